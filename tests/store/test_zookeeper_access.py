"""A ZooKeeper with logins by SASL and with TLS: what is stored there was made with other, and nobody else gets in."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from kazoo.security import OPEN_ACL_UNSAFE, Permissions, make_acl, make_digest_acl, make_digest_acl_credential

from multilang.component.errors import ConfigError
from multilang.shipping.cluster import missing_programs
from multilang.store import StateError
from multilang.store.zookeeper import ROOT, ZooKeeperStore
from multilang.store.zookeeper_client import ZooKeeperClient
from tests.authority import PASSWORD, Authority
from tests.servers import LIMIT, SecuredZooKeeperServer, ZooKeeperServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECTION = "transactional.zookeeper.sasl.section"
JAAS = "java.security.auth.login.config"
PAYLOAD = "storm.zookeeper.topology.auth.payload"
TLS = "storm.zookeeper.ssl."
PORT = "transactional.zookeeper.port"
FENCE = {"$owner": {b"f": b"1"}}


class Place:
    """A place in a store.

    Args:
        conf: The conf.
        name: The place's name.
        hurries: Whether it waits little.
    """

    def __init__(self, conf: dict[str, Any], name: str, hurries: bool = False) -> None:
        self._store = ZooKeeperStore("zookeeper:", conf)
        if hurries:
            self._store.hurry()
        self._name = name

    def make(self) -> None:
        """Write as a claim does."""
        assert self._store.compare_and_write(self._name, {"$owner": {b"owner": None}}, FENCE, ["$owner"])

    def set(self, value: bytes) -> None:
        assert self._store.compare_and_write(self._name, FENCE, {"t": {b"k": value}})

    def get(self) -> bytes | None:
        return self._store.get(self._name, "t", [b"k"])[0]

    def list(self) -> None:
        assert [*self._store.list(self._name, "t")]

    def check(self) -> None:
        self._store.check()

    def close(self) -> None:
        self._store.close()


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
    with closing(Place(conf, "sasl")) as state:
        state.make()
        state.set(b"7")
        assert state.get() == b"7"
        with closing(Place({**conf, SECTION: "eve"}, "sasl")) as other:
            for use in (other.make, other.get, other.list):
                with pytest.raises(
                    StateError, match=rf"was made with other .*section eve \({SECTION}\) is of another user"
                ):
                    use()
        with (
            closing(Place({**conf, SECTION: None}, "sasl")) as nobody,
            pytest.raises(StateError, match="was made with other credentials"),
        ):
            nobody.get()
        assert state.get() == b"7"


def test_a_wrong_password_is_refused_and_named(conf: dict[str, Any]) -> None:
    with (
        closing(Place({**conf, SECTION: "guessed"}, "wrong")) as place,
        pytest.raises(
            StateError, match=r"refused the login with section guessed .*are its user and password right"
        ) as caught,
    ):
        place.get()
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
        with closing(Place(own, id)) as state:
            state.make()
            state.set(b"7")
            # A certificate is a login, too: one who has another, and another password.
            eve = {SECTION: None, PAYLOAD: "eve:hers", f"{TLS}keystore.path": str(secured.authority.folder / "eve.p12")}
            with (
                closing(Place({**own, **eve}, id)) as other,
                pytest.raises(StateError, match="was made with other credentials"),
            ):
                other.get()
            assert state.get() == b"7"


@pytest.mark.parametrize("others", [None, "sasl:bob", "x509:CN=client"])
def test_what_a_certificate_alone_made_belongs_to_it_and_to_whom_the_conf_names(
    secured: SecuredZooKeeperServer, over_tls: dict[str, Any], others: str | None
) -> None:
    secured.authority.issue("eve")
    own = {**over_tls, SECTION: None, "storm.zookeeper.superACL": others}
    id, root = f"certificate {others}", f"certificates {str(others).replace(':', ' ')}"
    own["transactional.zookeeper.root"] = f"/{root}"
    ids = {("x509", "CN=client"), *([] if others is None else [tuple(others.split(":"))])}
    with closing(Place(own, id)) as state:
        state.make()
        state.set(b"7")
        assert state.get() == b"7"
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
            with closing(Place(stranger, id)) as other:
                for use in (other.make, other.get):
                    with pytest.raises(StateError, match=rf"was made with other .*{message}"):
                        use()
            with closing(Place(stranger, f"of {message}")) as other:
                other.make()
            with (
                closing(Place(own, f"of {message}")) as state_of_a_stranger,
                pytest.raises(StateError, match=r"may change it|was made with other"),
            ):
                state_of_a_stranger.make()
        assert state.get() == b"7"


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
                server = socket.create_connection(("127.0.0.1", secured.port))
                for ends in ((client, server), (server, client)):
                    Thread(target=pass_on, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, daemon=True).start()
        conf = {**over_tls, SECTION: None, PORT: listener.getsockname()[1]}
        with (
            closing(Place(conf, "behind")) as state,
            pytest.raises(StateError, match=r"InvalidACL.*does this ZooKeeper ask for certificates"),
        ):
            state.make()
        with closing(Place({**conf, SECTION: "bob"}, "behind")) as state:
            state.make()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("change", "hurries", "message"),
    [
        (
            {f"{TLS}truststore.path": None},
            False,
            r"has a certificate that is not trusted .*see storm.zookeeper.ssl.truststore.path",
        ),
        ({f"{TLS}keystore.path": None}, True, r"can't be used|does not answer"),
        ({"transactional.zookeeper.servers": ["localhost"]}, False, r"not trusted \(Hostname mismatch"),
    ],
    ids=["authority", "no certificate", "host"],
)
def test_a_side_of_tls_that_is_not_trusted_is_refused(
    over_tls: dict[str, Any], change: dict[str, Any], hurries: bool, message: str
) -> None:
    with (
        closing(Place({**over_tls, **change}, "untrusted", hurries)) as place,
        pytest.raises(StateError, match=message),
    ):
        place.get()


def test_the_host_of_a_certificate_is_not_looked_at_if_storms_key_says_so(over_tls: dict[str, Any]) -> None:
    conf = {**over_tls, "transactional.zookeeper.servers": ["localhost"], f"{TLS}hostnameVerification": False}
    with closing(Place(conf, "another host")) as state:
        assert state.get() is None


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
        Place({**conf, **change}, "x").get()


def test_a_login_by_kerberos_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    module = "com.sun.security.auth.module.Krb5LoginModule required"
    jaas.write_text(f'Client {{ {module} useKeyTab=true keyTab="/etc/bob.keytab" principal="bob@EXAMPLE.COM"; }};\n')
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = {"transactional.zookeeper.servers": ["127.0.0.1"]}
        where |= {"transactional.zookeeper.port": listener.getsockname()[1]}
        with pytest.raises(ConfigError, match=rf"section Client .*\({SECTION}\) .*Kerberos is not supported there"):
            Place({**where, JAAS: str(jaas), SECTION: "Client"}, "x").get()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


# ---- digest ----

SECRET = "counts:pass-word"
DIGEST = {
    "storm.zookeeper.topology.auth.scheme": "digest",
    PAYLOAD: SECRET,
    "storm.zookeeper.superACL": "digest:storm:kd/FLe/Ys3qQ9SSKBUtYlEGSnrE=",
}
NODES = ("", "/$writers", "/%24owner", "/%24owner/f", "/t", "/t/k", "/$t")


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    return "/" + "".join(each if each.isalnum() else "-" for each in request.node.name)


@pytest.fixture
def mine(zookeeper: ZooKeeperServer, root: str) -> dict[str, Any]:
    """A conf with a login by digest, below a root of the test's own."""
    return {**zookeeper.conf, **DIGEST, ROOT: root}


@pytest.fixture
def client(zookeeper: ZooKeeperServer) -> Iterator[Any]:
    """Somebody who knows the secret, so that he may read."""
    from kazoo.client import KazooClient

    found = KazooClient(f"127.0.0.1:{zookeeper.port}", auth_data=[("digest", SECRET)])
    found.start()
    yield found
    found.stop()
    found.close()


def test_nodes_belong_to_the_credentials_that_the_conf_has(mine: dict[str, Any], root: str, client: Any) -> None:
    with closing(Place(mine, "p")) as place:
        place.make()
        place.set(b"1")
        place.set(b"2")

        def below(path: str) -> list[str]:
            return [path, *(each for name in client.get_children(path) for each in below(f"{path}/{name}"))]

        paths = below(f"{root}/p")
        assert {f"{root}/p{node}" for node in NODES} < {*paths}
        for path in paths:
            acls, _ = client.get_acls(path)
            assert {(each.id.scheme, each.id.id, each.perms) for each in acls} == {
                ("digest", make_digest_acl_credential(*SECRET.split(":")), 31),
                ("digest", "storm:kd/FLe/Ys3qQ9SSKBUtYlEGSnrE=", 31),
            }, path


def test_folders_above_are_made_with_the_acl_of_the_conf_and_room_for_others(
    mine: dict[str, Any], root: str, client: Any
) -> None:
    conf = {**mine, ROOT: f"{root}/by/us"}
    with closing(Place(conf, "p")) as place, closing(Place({**conf, PAYLOAD: "others:word"}, "others")) as others:
        place.make()
        for path in (root, f"{root}/by", f"{root}/by/us"):
            rights = {each.id.scheme: each.perms for each in client.get_acls(path)[0] if "storm:" not in each.id.id}
            assert rights == {"digest": 31, "world": 1 | 4}, path  # to read and to create
        for each in (place, others):
            each.check()
        others.make()
        others.set(b"1")
        assert others.get() == b"1"


@pytest.mark.parametrize("rights", ["all", "all and read", "write", "create", "delete", "admin", "only read", "read"])
def test_a_node_that_a_stranger_made_before_is_refused(
    mine: dict[str, Any], root: str, client: Any, rights: str
) -> None:
    own = [make_digest_acl(*SECRET.split(":"), all=True)]
    theirs = [make_acl("world", "anyone", **{name: True}) for name in rights.removeprefix("only ").split(" and ")]
    for number, node in enumerate(NODES):
        with closing(Place(mine, f"{number}")) as before:
            before.make()
            before.set(b"1")
        client.set_acls(f"{root}/{number}{node}", theirs if rights == "only read" else [*own, *theirs])
        with closing(Place(mine, f"{number}")) as place:

            def use(place: Place = place) -> None:
                place.list()
                place.set(b"2")
                place.set(b"2")

            if rights == "read":
                use()
                continue
            if node == "/$t":  # which is not looked at: nobody expects a row of that table
                continue
            with pytest.raises(StateError, match=r"was not made by this topology|was made with other"):
                use()


def test_a_node_that_a_stranger_put_in_the_place_of_one_that_was_read_is_refused(
    mine: dict[str, Any], root: str, client: Any
) -> None:
    with closing(Place(mine, "p")) as place:
        place.make()
        place.set(b"1")
        assert place.get() == b"1"
        client.delete(f"{root}/p/t/k")
        client.create(f"{root}/p/t/k", b"2", OPEN_ACL_UNSAFE)
        for use in (place.get, place.list):
            with pytest.raises(StateError, match="world:anyone may change it"):
                use()


@pytest.mark.parametrize("other", [None, "counts:another"])
def test_wrong_credentials_are_one_clear_error(mine: dict[str, Any], other: str | None) -> None:
    with closing(Place(mine, "p")) as place:
        place.make()
        place.set(b"1")
    scheme = {"storm.zookeeper.topology.auth.scheme": None} if other is None else {}
    with closing(Place({**mine, **scheme, PAYLOAD: other}, "p")) as wrong:
        for use in (wrong.make, wrong.get, wrong.list, lambda: wrong.set(b"2")):
            with pytest.raises(StateError, match="was made with other credentials") as caught:
                use()
            assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"storm.zookeeper.topology.auth.scheme": 7}, r"auth.scheme is 7; use a scheme"),
        ({PAYLOAD: None}, r"set storm.zookeeper.topology.auth.payload as well"),
        ({PAYLOAD: "pass-word"}, r'\(not shown\) has no ":"'),
        ({"storm.zookeeper.superACL": "storm"}, r"storm.zookeeper.superACL is 'storm'; use \"scheme:id\""),
    ],
)
def test_credentials_that_can_not_work_are_named_and_not_shown(
    mine: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with closing(Place({**mine, **change}, "p")) as place, pytest.raises(ConfigError, match=message) as caught:
        place.get()
    assert "pass-word" not in str(caught.value)
