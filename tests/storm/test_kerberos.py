"""A real Nimbus and DRPC server with logins by Kerberos, against a KDC of the tests' own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.drpc import DRPCClient, DRPCConnectionError, DRPCInvocationsClient
from multilang.shipping.cluster import Cluster
from multilang.shipping.cluster.artifacts import runs_sources
from multilang.shipping.storm_yaml import read_conf
from multilang.transport.keys import KERBEROS
from tests.cli.command import multilang
from tests.storm import jvm
from tests.storm.conftest import LIMIT, LIMITS, START_LIMIT, wait_for
from tests.storm.kdc import PROGRAMS, REALM, SYSTEM, Kdc
from tests.storm.secured import AUTH, write_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
NIMBUS = "storm/127.0.0.1"  # clients ask for the service at the host that they connect to


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    path = f"{os.environ.get('PATH', '')}:{SYSTEM}"
    missing = [each for each in PROGRAMS if shutil.which(each, path=path) is None]
    if importlib.util.find_spec("gssapi") is None:
        missing.append("the package gssapi")
    if missing:
        reason = f"no {' and no '.join(missing)} here, which tests with Kerberos need"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = Kdc(tmp_path_factory.mktemp("kdc"))
    server.start()
    try:
        yield server
    finally:
        server.kill()


def section(name: str, principal: str, keytab: Path) -> str:
    """Return a section of a JAAS file for a login by a keytab, as Storm's page on security has it."""
    options = f'useKeyTab=true keyTab="{keytab}" storeKey=true useTicketCache=false principal="{principal}@{REALM}"'
    return f'{name} {{ {MODULE} {options} serviceName="storm"; }};\n'


@pytest.fixture(scope="module")
def nimbus(storm_programs: None, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("daemons")
    jaas, keytab = folder / "daemons.jaas", kdc.add(NIMBUS)
    write_secret(jaas, section("StormServer", NIMBUS, keytab) + section("StormClient", NIMBUS, keytab))
    cluster = Cluster(
        tmp_path_factory.mktemp("kerberos"),
        supervisors=0,
        drpc=runs_sources(),
        start_limit=START_LIMIT,
        conf={
            **LIMITS,
            "storm.thrift.transport": KERBEROS,
            "java.security.auth.login.config": str(jaas),
            **jvm.conf(),
            **{
                f"{name}.childopts": f"-Djava.security.krb5.conf={kdc.conf} {jvm.daemon(name)}"
                for name in ("nimbus", "drpc")
            },
            "storm.principal.tolocal": f"{AUTH}.KerberosPrincipalToLocal",
            "nimbus.authorizer": f"{AUTH}.authorizer.SimpleACLAuthorizer",
            "nimbus.impersonation.authorizer": f"{AUTH}.authorizer.ImpersonationAuthorizer",
            "nimbus.admins": ["storm"],
            "nimbus.users": ["bob", "carol"],
        },
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)  # this process asks Nimbus whether it is ready
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()


@pytest.fixture
def settings(kdc: Kdc, nimbus: Cluster, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Makes the environment of a user with this section of a JAAS file."""

    def make(jaas: str, **more: Any) -> dict[str, str]:
        write_secret(tmp_path / "jaas.conf", jaas)
        conf = {
            "nimbus.seeds": ["127.0.0.1"],
            "nimbus.thrift.port": nimbus.address.port,
            "storm.thrift.transport": KERBEROS,
            "java.security.auth.login.config": str(tmp_path / "jaas.conf"),
            **more,
        }
        (tmp_path / "storm.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in conf.items()))
        return {"STORM_CONF_DIR": str(tmp_path), **kdc.environment}

    return make


def test_a_keytab_and_a_ticket_log_in_and_nobody_else_does(
    kdc: Kdc, nimbus: Cluster, settings: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    bob, carol, eve = (kdc.add(name) for name in ("bob", "carol", "eve"))
    listed = multilang("list", **settings(section("StormClient", "bob", bob)))
    assert listed.returncode == 0, listed.stderr

    ticket = kdc.ticket("carol", carol)
    jaas = f'StormClient {{ {MODULE} useTicketCache=true ticketCache="{ticket}" serviceName="storm"; }};\n'
    listed = multilang("list", **settings(jaas))
    assert listed.returncode == 0, listed.stderr

    # eve is known to the KDC, but not one of Nimbus's users.
    assert "not authorized" in refused(multilang("list", **settings(section("StormClient", "eve", eve))))
    # Nobody acts for another without Nimbus's leave: it sees both names.
    as_storm = settings(section("StormClient", "bob", bob), **{"storm.doAsUser": "storm"})
    assert "not authorized" in refused(multilang("list", **as_storm))

    kdc.change("bob")
    text = refused(multilang("list", **settings(section("StormClient", "bob", bob))))
    assert "run kinit, or name a keytab and its principal in StormClient" in text
    text = refused(multilang("list", **settings(jaas.replace(str(ticket), str(tmp_path / "none")))))
    assert "run kinit, or name a keytab and its principal in StormClient" in text
    another = settings(section("StormClient", "carol", carol).replace('serviceName="storm"', 'serviceName="hdfs"'))
    assert "hdfs@127.0.0.1" in refused(multilang("list", **another))


def test_calls_and_answers_of_drpc_log_in_by_a_keytab(
    kdc: Kdc, nimbus: Cluster, settings: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if nimbus.drpc is None:
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here, which the DRPC server needs")
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)
    conf = read_conf(Path(settings(section("StormClient", "dave", kdc.add("dave")))["STORM_CONF_DIR"], "storm.yaml"))
    clients, topologies = nimbus.drpc
    with (
        DRPCClient(clients.host, clients.port, LIMIT, conf) as client,
        DRPCInvocationsClient(topologies.host, topologies.port, conf=conf) as topology,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(client.execute, "double", "ab")
        fetched: list[tuple[str, str]] = []
        wait_for(lambda: fetched.extend(filter(None, [topology.fetch("double")])) or fetched, "the request is fetched")
        (id, arguments) = fetched[0]
        topology.result(id, 2 * arguments)
        assert asked.result(LIMIT) == "abab"
    kdc.change("dave")
    with pytest.raises(DRPCConnectionError, match="run kinit, or name a keytab"):
        DRPCClient(clients.host, clients.port, LIMIT, conf).execute("double", "ab")
    with pytest.raises(DRPCConnectionError):
        DRPCClient(clients.host, clients.port, LIMIT).execute("double", "ab")  # without a login


def refused(shown: Any) -> str:
    text: str = shown.stdout + shown.stderr
    assert shown.returncode in (2, 69), text
    assert "Traceback" not in text
    return text
