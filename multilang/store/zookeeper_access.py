"""Authentication at a ZooKeeper: digest, SASL and TLS, by Storm's keys.

New nodes belong to the login, and to the user of Storm's daemons if the conf names one.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.secret import Secret, secret_of
from multilang.store.errors import StateError
from multilang.transport.jaas import FILE, read_section
from multilang.transport.keys import flag, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.transport.tls import Tls

AUTH_SCHEME = "storm.zookeeper.topology.auth.scheme"
AUTH_PAYLOAD = "storm.zookeeper.topology.auth.payload"
SUPER_ACL = "storm.zookeeper.superACL"
SECTION = "transactional.zookeeper.sasl.section"
USE_TLS = "storm.zookeeper.ssl.enable"
CHECK_HOST = "storm.zookeeper.ssl.hostnameVerification"
_STORE = "storm.zookeeper.ssl.{}store.{}"
_KEYSTORE = _STORE.format("key", "path")


class ZooKeeperAccess:
    """The logins and TLS of a conf.

    Args:
        conf: The component's conf.

    Raises:
        ConfigError: A setting that is not supported.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = conf
        self._digest = _auth(conf)
        self._section = text(conf, SECTION)
        self._tls = _tls(conf) if flag(conf, USE_TLS, False) else None
        self._problem = ""  # of the handshake of TLS, which kazoo does not report

    def __bool__(self) -> bool:
        return self._digest is not None or self._section is not None or self._certificate is not None

    @property
    def _certificate(self) -> str | None:
        """The store of the client's certificate, which is a login, too; None if there is none."""
        return None if self._tls is None else text(self._conf, _KEYSTORE)

    @property
    def used(self) -> str:
        """The keys of the login, in the words of a message."""
        if self._section is not None:
            return f"section {self._section} ({SECTION}) is of another user"
        if self._digest is not None:
            return f"those of {AUTH_SCHEME} and {AUTH_PAYLOAD} are others"
        return f"{AUTH_SCHEME} is not set" if self._certificate is None else f"{_KEYSTORE} has another certificate"

    @property
    def unknown(self) -> str:
        """The reason why the server may know no ids for ACLs, in the words of a message."""
        if self._digest is None and self._section is None and self._certificate is not None:
            return (
                f"does this ZooKeeper ask for certificates (ssl.clientAuth)? It does not know the one of {_KEYSTORE}, so that nodes can't "
                f"belong to it: set {AUTH_SCHEME} and {AUTH_PAYLOAD} or {SECTION} as well, or leave the certificate out, and the nodes "
                "are open to everybody"
            )
        return f"does this ZooKeeper know the schemes of {AUTH_SCHEME} and {SUPER_ACL}?"

    @property
    def refused(self) -> str:
        """The reason of a handshake that failed, in the words of a message; empty if none is known."""
        if self._problem:
            return self._problem
        if self._section is None:
            return ""
        return f"refused the login with section {self._section} ({SECTION}) of {self._conf.get(FILE)}: are its user and password right?"

    def options(self) -> dict[str, Any]:
        """Return the arguments of kazoo's client.

        Raises:
            ConfigError: A login can't be read.
            StateError: A package is missing.
        """
        found: dict[str, Any] = {}
        if self:
            found["default_acl"] = _acls(self._conf)
        if self._digest is not None:
            scheme, payload = self._digest
            found["auth_data"] = [(scheme, payload.reveal())]
        if self._section is not None:
            found["sasl_options"] = _sasl(self._conf, self._section)
        if self._tls is not None:
            self._tls.check()
            found["handler"] = self._handler(self._tls)
        return found

    def acls(self, for_all: bool = False) -> list[Any] | None:
        """Return the ACL of new nodes; None without a login.

        Args:
            for_all: Whether it is a folder in which others, too, may make nodes of their own.
        """
        from kazoo.security import ACL, ANYONE_ID_UNSAFE, Permissions

        if not self:
            return None
        others = [ACL(Permissions.READ | Permissions.CREATE, ANYONE_ID_UNSAFE)]
        return [*_acls(self._conf), *(others if for_all else [])]

    def own_ids(self) -> set[tuple[str, str]] | None:
        """Return the login's id in ACLs; None if only the server knows it: with certificates, and schemes of its own."""
        from kazoo.security import make_digest_acl_credential

        if self._digest is not None and self._digest[0] != "digest":
            return None
        if self._certificate is not None:
            return None
        found = set()
        if self._digest is not None:
            found.add(("digest", make_digest_acl_credential(*self._digest[1].reveal().split(":", 1))))
        if self._section is not None:
            found.add(("sasl", _sasl(self._conf, self._section)["username"]))
        return found

    def super_ids(self) -> set[tuple[str, str]]:
        """Return the ids in ACLs of the others that have all rights."""
        return {(each.id.scheme, each.id.id) for each in _acls(self._conf) if each.id.scheme != "auth"}

    def _handler(self, tls: Tls) -> Any:
        """Return the handler that makes kazoo's connections through the transport of the other clients."""
        from kazoo.exceptions import AuthFailedError
        from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler

        access = self

        class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]
            def create_connection(self, address: Any, hostname: str, timeout: float, **_: Any) -> Any:
                from socket import create_connection

                try:
                    wire = create_connection(address, timeout)
                except OSError as error:
                    raise KazooTimeoutError(str(error)) from error
                try:
                    return tls.open(wire, hostname)
                except (PermissionError, ConfigError) as error:
                    wire.close()
                    access._problem = str(error)
                    raise AuthFailedError(str(error)) from error
                except OSError as error:
                    wire.close()
                    raise KazooTimeoutError(str(error)) from error

        return TlsHandler()


def _auth(conf: Mapping[str, Any]) -> tuple[str, Secret] | None:
    """Return the scheme and the credentials, which no message may show."""
    scheme, payload = conf.get(AUTH_SCHEME), secret_of(conf, AUTH_PAYLOAD)
    if scheme is None or scheme == "":
        return None
    if not isinstance(scheme, str):
        raise ConfigError(f'{AUTH_SCHEME} is {scheme!r}; use a scheme of ZooKeeper\'s, "digest"')
    if payload is None or not payload.reveal():
        raise ConfigError(f"{AUTH_SCHEME} is {scheme!r}, and there are no credentials: set {AUTH_PAYLOAD} as well")
    if scheme == "digest" and ":" not in payload.reveal():
        raise ConfigError(f'{AUTH_PAYLOAD} (not shown) has no ":"; with digest it is "user:password"')
    return scheme, payload


def _sasl(conf: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the user and password of a section of the JAAS file, for a login by DIGEST-MD5."""
    options = read_section(conf, section)
    for name in ("username", "password"):
        if not options.get(name):
            raise ConfigError(
                f"section {section} of the JAAS file {conf[FILE]} ({SECTION}) has no {name}: the login at ZooKeeper is by digest, which "
                "needs both; Kerberos is not supported there"
            )
    try:
        import puresasl.client  # noqa: F401 - kazoo needs it, and its own error is less clear
    except ImportError as problem:
        raise StateError(
            f"{SECTION} is {section!r}, and a login by SASL needs the package pure-sasl ({problem}): pip install "
            "'storm-multilang[sasl]'; for a cluster's workers put pure-sasl into the file that multilang submit --requirements names"
        ) from problem
    return {"mechanism": "DIGEST-MD5", "username": options["username"], "password": options["password"]}


def _tls(conf: Mapping[str, Any]) -> Tls:
    from multilang.transport.tls import Stores, Tls

    trusted = _STORE.format("trust", "path")
    stores = Stores(
        (trusted, text(conf, trusted)),
        secret_of(conf, _STORE.format("trust", "password")),
        (_KEYSTORE, text(conf, _KEYSTORE)),
        secret_of(conf, _STORE.format("key", "password")),
    )
    return Tls(stores, flag(conf, CHECK_HOST, True))


def _acls(conf: Mapping[str, Any]) -> list[Any]:
    """Return full rights for the creator and, if the conf names it, for the user of Storm's daemons.

    Storm does this in Utils.getWorkerACL.
    """
    from kazoo.security import ACL, CREATOR_ALL_ACL, Id, Permissions

    found = list(CREATOR_ALL_ACL)
    others = conf.get(SUPER_ACL)
    if others is not None and others != "":
        scheme, separator, id = others.partition(":") if isinstance(others, str) else ("", "", "")
        if not separator:
            raise ConfigError(f'{SUPER_ACL} is {others!r}; use "scheme:id", such as "sasl:storm"')
        found.append(ACL(Permissions.ALL, Id(scheme, id)))
    return found
