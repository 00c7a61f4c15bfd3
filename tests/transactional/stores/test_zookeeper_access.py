"""A ZooKeeper with logins by SASL and with TLS: what a topology keeps there belongs to it, and nobody else gets in."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from kazoo.security import Permissions

from multilang.component.errors import ConfigError
from multilang.shipping.cluster import missing_programs
from multilang.state.errors import StateError
from multilang.transactional.stores.zookeeper import ZooKeeperTransactionalState
from multilang.transactional.stores.zookeeper_client import ZooKeeperClient
from tests.authority import PASSWORD, Authority
from tests.servers import LIMIT, SecuredZooKeeperServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECTION = "transactional.zookeeper.sasl.section"
JAAS = "java.security.auth.login.config"
PAYLOAD = "storm.zookeeper.topology.auth.payload"
TLS = "storm.zookeeper.ssl."
PORT = "transactional.zookeeper.port"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeperServer]:
    def make(folder: Path) -> SecuredZooKeeperServer:
        return SecuredZooKeeperServer(folder, Authority(folder, "authority"))

    make.name = "zookeeper"  # type: ignore[attr-defined]
    needed = [*missing_programs(), "java"]
    yield from running(make, tmp_path_factory.mktemp("secured"), *needed)  # type: ignore[arg-type]


@pytest.fixture
def conf(secured: SecuredZooKeeperServer, tmp_path: Path) -> dict[str, Any]:
    """The conf of bob, who logs in by SASL."""
    jaas = tmp_path / "jaas.conf"
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    people = {**{name: (name, word) for name, word in secured.users.items()}, "guessed": ("bob", "guessed")}
    jaas.write_text(
        "".join(
            f'{section} {{ {module} username="{who}" password="{word}"; }};\n'
            for section, (who, word) in people.items()
        )
    )
    return {**secured.conf, JAAS: str(jaas), SECTION: "bob", "storm.id": "run-1", "topology.name": "counts"}


@pytest.fixture
def over_tls(secured: SecuredZooKeeperServer, conf: dict[str, Any]) -> dict[str, Any]:
    """The same by TLS, with a certificate that the server asks for."""
    authority = secured.authority
    authority.issue("client")
    stores = {"truststore": authority.p12, "keystore": authority.folder / "client.p12"}
    paths = {f"{TLS}{name}.path": str(path) for name, path in stores.items()}
    passwords = {f"{TLS}{name}.password": PASSWORD.decode() for name in stores}
    return {**conf, "transactional.zookeeper.port": secured.tls_port, f"{TLS}enable": True, **paths, **passwords}


def test_what_sasl_made_belongs_to_its_user_alone(conf: dict[str, Any]) -> None:
    with closing(ZooKeeperTransactionalState(conf, "sasl")) as state:
        state.claim()
        state.update({"coordinator/currtx": 7})
        assert state.get_data("coordinator/currtx") == 7
        with closing(ZooKeeperTransactionalState({**conf, SECTION: "eve"}, "sasl")) as other:
            for use in (other.claim, lambda: other.get_data("coordinator/currtx"), lambda: other.list("coordinator")):
                with pytest.raises(
                    StateError, match=rf"belongs to who made it .*section eve \({SECTION}\) is of another user"
                ):
                    use()
        with (
            closing(ZooKeeperTransactionalState({**conf, SECTION: None}, "sasl")) as nobody,
            pytest.raises(StateError, match="belongs to who made it with other credentials"),
        ):
            nobody.get_data("coordinator/currtx")
        assert state.get_data("coordinator/currtx") == 7


def test_a_wrong_password_is_refused_and_named(conf: dict[str, Any]) -> None:
    with pytest.raises(
        StateError, match=r"refused the login with section guessed .*are its user and password right"
    ) as caught:
        ZooKeeperTransactionalState({**conf, SECTION: "guessed"}, "wrong").get_data("x")
    assert "bob's" not in str(caught.value)


def test_a_refused_login_is_named_to_who_asks_after_it(conf: dict[str, Any]) -> None:
    is_lost = Event()
    with closing(ZooKeeperClient({**conf, SECTION: "guessed"}, "/wrong", None, lambda _: is_lost.set())) as client:
        assert is_lost.wait(LIMIT)
        for _ in range(20):  # the first may come before kazoo has closed the connection
            with pytest.raises(StateError, match="refused the login with section guessed"):
                client.call("exists", "/wrong")


def test_tls_carries_what_digest_and_sasl_protect(
    secured: SecuredZooKeeperServer, over_tls: dict[str, Any], tmp_path: Path
) -> None:
    secured.authority.issue("eve")
    secret = tmp_path / "payload"
    secret.write_text("counts:pass-word\n")
    digest = {
        **over_tls,
        SECTION: None,
        "storm.zookeeper.topology.auth.scheme": "digest",
        PAYLOAD: {"file": str(secret)},
    }
    for id, own in {"sasl over tls": over_tls, "digest over tls": digest}.items():
        with closing(ZooKeeperTransactionalState(own, id)) as state:
            state.claim()
            state.update({"coordinator/currtx": 7})
            # A certificate is a login, too: one who has another, and another password.
            eve = {SECTION: None, PAYLOAD: "eve:hers", f"{TLS}keystore.path": str(secured.authority.folder / "eve.p12")}
            with (
                closing(ZooKeeperTransactionalState({**own, **eve}, id)) as other,
                pytest.raises(StateError, match="belongs to who made it with other credentials"),
            ):
                other.get_data("coordinator/currtx")
            assert state.get_data("coordinator/currtx") == 7


@pytest.mark.parametrize("others", [None, "sasl:bob", "x509:CN=client"])
def test_what_a_certificate_alone_made_belongs_to_it_and_to_whom_the_conf_names(
    secured: SecuredZooKeeperServer, over_tls: dict[str, Any], others: str | None
) -> None:
    secured.authority.issue("eve")
    own = {**over_tls, SECTION: None, "storm.zookeeper.superACL": others}
    id, root = f"certificate {others}", f"certificates {str(others).replace(':', ' ')}"
    own["transactional.zookeeper.root"] = f"/{root}"
    ids = {("x509", "CN=client"), *([] if others is None else [tuple(others.split(":"))])}
    with closing(ZooKeeperTransactionalState(own, id)) as state:
        state.claim()
        state.update({"coordinator/currtx": 7})
        assert state.get_data("coordinator/currtx") == 7
        plain = {**own, f"{TLS}enable": False, "transactional.zookeeper.port": secured.conf[PORT]}
        with closing(ZooKeeperClient({**over_tls, SECTION: None}, f"/{root}", None, lambda _: None)) as client:
            for path, all_may in ((f"/{root}", {("world", "anyone")}), (f"/{root}/{quote(id)}", set())):
                acls, _ = client.call("get_acls", path)
                assert {(each.id.scheme, each.id.id) for each in acls} == ids | all_may
                rights = {each.perms for each in acls if each.id.scheme != "world"}
                assert rights == {Permissions.ALL}
        eve = {f"{TLS}keystore.path": str(secured.authority.folder / "eve.p12"), "storm.zookeeper.superACL": None}
        for stranger, message in (
            (own | eve, r"keystore\.path has another certificate"),
            (plain, "auth.scheme is not set"),
        ):
            with closing(ZooKeeperTransactionalState(stranger, id)) as other:
                for use in (other.claim, lambda: other.get_data("coordinator/currtx")):
                    with pytest.raises(StateError, match=rf"belongs to who made it .*{message}"):
                        use()
            with closing(ZooKeeperTransactionalState(stranger, f"of {message}")) as other:
                other.claim()
            with (
                closing(ZooKeeperTransactionalState(own, f"of {message}")) as state_of_a_stranger,
                pytest.raises(StateError, match=r"may change it|belongs to who made it"),
            ):
                state_of_a_stranger.claim()
        assert state.get_data("coordinator/currtx") == 7


def test_a_certificate_that_the_server_does_not_ask_for_is_refused_as_the_only_login(
    secured: SecuredZooKeeperServer, over_tls: dict[str, Any]
) -> None:
    """A program stands before the server, and ends TLS there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secured.authority.folder / "zookeeper.pem")

    def pass_on(source: socket.socket, other: socket.socket) -> None:
        with source, suppress(OSError):
            while data := source.recv(65536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client = context.wrap_socket(listener.accept()[0], server_side=True)
                server = socket.create_connection(("127.0.0.1", secured.conf[PORT]))
                for ends in ((client, server), (server, client)):
                    Thread(target=pass_on, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, daemon=True).start()
        conf = {**over_tls, SECTION: None, PORT: listener.getsockname()[1]}
        with (
            closing(ZooKeeperTransactionalState(conf, "behind")) as state,
            pytest.raises(StateError, match=r"InvalidACL.*does this ZooKeeper ask for certificates"),
        ):
            state.claim()
        with closing(ZooKeeperTransactionalState({**conf, SECTION: "bob"}, "behind")) as state:
            state.claim()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("change", "patience", "message"),
    [
        (
            {f"{TLS}truststore.path": None},
            LIMIT,
            r"has a certificate that is not trusted .*see storm.zookeeper.ssl.truststore.path",
        ),
        ({f"{TLS}keystore.path": None}, 2, r"can't be used|does not answer"),
        ({"transactional.zookeeper.servers": ["localhost"]}, LIMIT, r"not trusted \(Hostname mismatch"),
    ],
    ids=["authority", "no certificate", "host"],
)
def test_a_side_of_tls_that_is_not_trusted_is_refused(
    over_tls: dict[str, Any], change: dict[str, Any], patience: float, message: str
) -> None:
    with pytest.raises(StateError, match=message):
        ZooKeeperTransactionalState({**over_tls, **change}, "untrusted", patience).get_data("x")


def test_the_host_of_a_certificate_is_not_looked_at_if_storms_key_says_so(over_tls: dict[str, Any]) -> None:
    conf = {**over_tls, "transactional.zookeeper.servers": ["localhost"], f"{TLS}hostnameVerification": False}
    with closing(ZooKeeperTransactionalState(conf, "another host")) as state:
        assert state.get_data("x") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({SECTION: "nobody"}, "has no section nobody"),
        ({SECTION: 5}, "sasl.section is 5"),
        ({f"{TLS}enable": "perhaps"}, "storm.zookeeper.ssl.enable is 'perhaps'; write true or false"),
        ({f"{TLS}enable": True, f"{TLS}truststore.path": "/nowhere.p12"}, "/nowhere.p12, which can't be read"),
        (
            {PAYLOAD: {"env": "NOT_SET_ANYWHERE"}, "storm.zookeeper.topology.auth.scheme": "digest"},
            "NOT_SET_ANYWHERE, which is not set",
        ),
    ],
)
def test_a_setting_that_can_not_be_kept_is_named(conf: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ZooKeeperTransactionalState({**conf, **change}, "x")


def test_a_login_by_kerberos_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    module = "com.sun.security.auth.module.Krb5LoginModule required"
    jaas.write_text(f'Client {{ {module} useKeyTab=true keyTab="/etc/bob.keytab" principal="bob@EXAMPLE.COM"; }};\n')
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = {"transactional.zookeeper.servers": ["127.0.0.1"]}
        where |= {"transactional.zookeeper.port": listener.getsockname()[1]}
        with pytest.raises(ConfigError, match=rf"section Client .*\({SECTION}\) .*Kerberos is not supported there"):
            ZooKeeperTransactionalState({**where, JAAS: str(jaas), SECTION: "Client"}, "x")
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
