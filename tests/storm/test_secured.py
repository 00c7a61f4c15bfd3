"""On a cluster that asks everybody for a login, a topology lives from submission to its end; nobody else touches it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from multilang.shipping.cluster.artifacts import runs_sources
from multilang.transport.keys import SIMPLE
from tests.cli.command import ROOT, multilang
from tests.storm.conftest import LIMIT
from tests.storm.secured import PASSWORDS, SecuredCluster

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

TOPOLOGY = ROOT / "examples" / "exclamation.py"
NAME = "shouting"


@pytest.fixture(scope="module")
def secured(storm_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    if not runs_sources():
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here, which the DRPC server needs")
    cluster = SecuredCluster(tmp_path_factory.mktemp("secured"), tmp_path_factory.mktemp("people"))
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


def said(shown: subprocess.CompletedProcess[str], status: int) -> str:
    """Return all that a command said, which never is a password."""
    text = shown.stdout + shown.stderr
    assert shown.returncode == status, text
    assert not any(json.dumps(password)[1:-1] in text or password in text for password in PASSWORDS.values())
    assert "Traceback" not in text
    return text


def test_a_topology_lives_on_a_secured_cluster(secured: SecuredCluster) -> None:
    bob, eve, games = (secured.settings_of(name) for name in ("bob", "eve", "games"))
    wrong = secured.settings_of("bob", "guessed")
    assert secured.drpc is not None
    clients, topologies = secured.drpc
    conf: dict[str, Any] = {
        "drpc.servers": ["localhost"],
        "drpc.invocations.port": topologies.port,
        "topology.users": ["bob"],
        "topology.groups": ["games"],
    }
    entries = [word for key, value in conf.items() for word in ("-c", f"{key}={json.dumps(value)}")]
    submit = ("submit", TOPOLOGY, "--name", NAME, *entries, "--wait", LIMIT)

    # The address of the command line or of the file: a wrong password is refused, and so is a client without one.
    for where in ((), ("--nimbus", secured.address)):
        text = said(multilang(*submit, *where, **wrong), 2)
        assert "refused the login by DIGEST-MD5" in text
        assert wrong["STORM_CONF_DIR"] in text, "it names the JAAS file"
    plain = secured.settings_of("eve", "no login", **{"storm.thrift.transport": SIMPLE})
    assert "another login or TLS than storm.yaml says" in said(multilang("list", **plain), 69)
    assert NAME not in said(multilang("list", **bob), 0)

    said(multilang(*submit, limit=2 * LIMIT, **bob), 0)
    assert NAME in said(multilang("list", **eve), 0)  # any user may list
    for people in (bob, games):
        assert "ACTIVE" in said(multilang("status", NAME, **people), 0)
    for refused in (("status", NAME), ("kill", NAME, "--wait", 0), ("rebalance", NAME)):
        assert "not authorized" in said(multilang(*refused, **eve), 2)

    call = ("drpc", "call", "exclamation", "hello", "--host", "localhost", "--port", clients.port, "--timeout", LIMIT)
    assert said(multilang(*call, limit=2 * LIMIT, **bob), 0) == "hello!\n"
    assert "refused the login by DIGEST-MD5" in said(multilang(*call, **wrong), 69)
    assert "not authorized" in said(multilang(*call, **eve), 69)

    assert "==> worker" in said(multilang("logs", NAME, "--folder", secured.logs, **bob), 0)
    said(multilang("kill", NAME, "--wait", 0, **games), 0)


def test_a_blob_belongs_to_who_put_it(secured: SecuredCluster) -> None:
    bob, eve = secured.settings_of("bob"), secured.settings_of("eve")
    said(multilang("blob", "put", "own", TOPOLOGY, **bob), 0)
    said(multilang("blob", "put", "shared", TOPOLOGY, "--acl", "u:eve:r", **bob), 0)
    text = TOPOLOGY.read_text()
    assert said(multilang("blob", "cat", "own", **bob), 0) == text
    assert said(multilang("blob", "cat", "shared", **eve), 0) == text
    for refused in (("cat", "own"), ("rm", "own"), ("rm", "shared"), ("put", "shared", TOPOLOGY)):
        assert "does not have" in said(multilang("blob", *refused, **eve), 2)
    said(multilang("blob", "rm", "own", "shared", **bob), 0)
