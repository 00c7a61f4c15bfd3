"""The connection to ZooKeeper: its settings, requests that wait while ZooKeeper is away, and errors that name the node."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from secrets import token_hex
from time import monotonic, sleep

from multilang.component.closing import close_all
from multilang.component.errors import ConfigError
from multilang.extras import imported
from multilang.state.errors import StateError
from multilang.transactional.stores.zookeeper_access import ZooKeeperAccess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

SERVERS = "transactional.zookeeper.servers"
PORT = "transactional.zookeeper.port"
SESSION_TIMEOUT = "storm.zookeeper.session.timeout"
CONNECTION_TIMEOUT = "storm.zookeeper.connection.timeout"
PATIENCE_SECS = 20.0  # with a ZooKeeper that is being started again, or can't be reached for a while
RETRY_SECS = 0.1
_READS = ("exists", "get", "get_children")

log = logging.getLogger(__name__)
_of_kazoo = log.getChild("kazoo")  # below ERROR it logs every attempt to connect
_of_kazoo.setLevel(logging.ERROR)


class ZooKeeperClient:
    """A connection that is made anew when it is lost. Each request waits for a ZooKeeper that does not answer.

    Args:
        conf: The component's conf.
        root: The path under which everything is; relative paths begin there.
        patience: Seconds to wait for an answer; None: 20, or those of ``storm.zookeeper.connection.timeout`` if they are more.
        listener: Called in the connection's thread with each of its states ("CONNECTED", ...).

    Attributes:
        servers: The servers' addresses.
        session_secs: The seconds after which the server ends the session of a client that it does not hear.
    """

    def __init__(
        self, conf: Mapping[str, Any], root: str, patience: float | None, listener: Callable[[str], object]
    ) -> None:
        self._root = root
        self._patience = (
            max(PATIENCE_SECS, (conf.get(CONNECTION_TIMEOUT) or 0) / 1000) if patience is None else patience
        )
        self.servers = _servers(conf)
        self.session_secs = (conf.get(SESSION_TIMEOUT) or 20_000) / 1000
        self._access = ZooKeeperAccess(conf)
        self._own: set[tuple[str, str]] | None = None
        self._checked: dict[str, tuple[int, int]] = {}  # path -> what tells the node, and its ACL, from another one
        self._is_refused = False
        self._problem = ""  # of an answer that was refused
        self._kazoo = self._connect()
        self._kazoo.add_listener(self._note_refusal)
        self._kazoo.add_listener(listener)
        self._kazoo.start_async()

    def at(self, path: str) -> str:
        """Return the whole path of a node."""
        return f"{self._root}/{path}" if path else self._root

    @property
    def session(self) -> int | None:
        """The session of the connection; None while there is none."""
        known = self._kazoo.client_id
        return None if known is None else known[0]

    def transaction(self) -> Any:
        """Return an empty request of several operations."""
        return self._kazoo.transaction()

    def close(self) -> None:
        """End the session."""
        close_all(self._kazoo.stop, self._kazoo.close)

    def _connect(self) -> Any:
        kazoo = imported(
            "kazoo.client", "zookeeper", "a store of transactions in ZooKeeper", error=StateError, on_workers=True
        )
        from multilang.transactional.stores.zookeeper_bounds import bounded

        return bounded(
            kazoo.KazooClient(
                self.servers,
                timeout=self.session_secs,
                logger=_of_kazoo,
                connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 0.5},
                **self._access.options(),
            ),
            self._note_problem,
        )

    def _note_problem(self, problem: str) -> None:
        self._problem = problem

    def _note_refusal(self, _: str) -> None:
        # Kazoo ends such a connection, and tells later requests only that it is closed.
        self._is_refused |= self._kazoo.client_state == "AUTH_FAILED"

    def commit(self, request: Any) -> Any:
        """Send a request of several operations, and return the result of each."""
        operations = request.operations

        def commit() -> Any:
            again = self._kazoo.transaction()
            again.operations = operations
            return again.commit_async()

        return self._answered(commit, self._root)

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of kazoo's client; its first argument is the path.

        With a login, what is read is refused if others may have written it.
        """
        if not self._access or name not in _READS:
            return self._call(name, *arguments, **options)
        for above in self._above(arguments[0]):  # who may change those may put another node in its place
            if above not in self._checked and (there := self._call("exists", above)) is not None:
                self._check_acl(above, there)
        if name == "get_children":
            options["include_data"] = True  # with which the node's versions come, too
        found = self._call(name, *arguments, **options)
        stat = found[1] if name != "exists" else found
        if stat is not None:
            self._check_acl(arguments[0], stat)
        return found[0] if name == "get_children" else found

    def _above(self, path: str) -> list[str]:
        """Return the nodes above a node, from the root on."""
        names = path.removeprefix(self._root).split("/")
        return [self._root + "/".join(names[:count]) for count in range(1, len(names))]

    def acls(self, for_all: bool = False) -> list[Any] | None:
        """Return the ACL of what is made; None without a login. See ZooKeeperAccess."""
        return self._access.acls(for_all)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        return self._answered(lambda: getattr(self._kazoo, f"{name}_async")(*arguments, **options), arguments[0])

    def _check_acl(self, path: str, stat: Any) -> None:
        """Refuse a node that others than this login, and the user of Storm's daemons, may change."""
        from kazoo.security import Permissions

        if self._checked.get(path) == (stat.czxid, stat.aversion):
            return
        acls, now = self._call("get_acls", path)
        own, also = self._own_ids(), self._access.super_ids()
        ids: dict[tuple[str, str], int] = {}
        for each in acls:  # an ACL may name somebody twice
            id = each.id.scheme, each.id.id
            ids[id] = ids.get(id, 0) | each.perms
        others = [id for id, rights in ids.items() if rights & ~Permissions.READ and id not in own | also]
        is_changed = (now.czxid, now.aversion) != (stat.czxid, stat.aversion)
        if others or is_changed or not any(ids.get(id) == Permissions.ALL for id in own):
            may = f"{':'.join(others[0])} may change it" if others else "this login has not all rights there"
            raise StateError(
                f"{path} in ZooKeeper {self.servers} was not made by this topology, or before it had credentials: {may}. Remove the "
                "node if nobody needs it, give it this login's ACL if what is in it is right, or take another transactional id"
            )
        self._checked[path] = stat.czxid, stat.aversion

    def _own_ids(self) -> set[tuple[str, str]]:
        """Return how ACLs name this login; where only the server knows that, it says so for a node that is made for it."""
        if self._own is None:
            self._own = self._access.own_ids()
        if self._own is None:
            from kazoo.security import CREATOR_ALL_ACL

            path = f"{self._root.rpartition('/')[0]}/.login-{token_hex(8)}"
            self._call("create", path, b"", CREATOR_ALL_ACL, ephemeral=True)
            acls, _ = self._call("get_acls", path)
            with suppress(StateError):  # in another login's folder it stays until the session ends
                self._call("delete", path)
            self._own = {(each.id.scheme, each.id.id) for each in acls}
        return self._own

    def _answered(self, ask: Callable[[], Any], path: str) -> Any:
        """Return the answer to a request.

        After a lost connection the request is made again: each of ours may be done twice.
        """
        from kazoo.exceptions import (
            AuthFailedError,
            ConnectionLoss,
            KazooException,
            OperationTimeoutError,
            SessionExpiredError,
        )

        lost = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, self._kazoo.handler.timeout_exception)
        deadline = monotonic() + self._patience
        is_told = False
        while True:
            request = ask()
            try:
                return request.get(timeout=max(deadline - monotonic(), RETRY_SECS))
            except lost:
                pass
            except KazooException as problem:
                if type(problem).__name__ in ("NoNodeError", "NodeExistsError"):
                    raise
                raise self.unusable(path, problem) from None
            except Exception as problem:  # noqa: BLE001  # kazoo hands on whatever comes of reading wrong bytes
                self._note_problem(f"what can't be read: {type(problem).__name__}")
            if self._is_refused:
                raise self.unusable(path, AuthFailedError())
            if monotonic() > deadline:
                wrong = f" as a ZooKeeper does (it sent {self._problem})" if self._problem else ""
                raise StateError(
                    f"ZooKeeper {self.servers} does not answer{wrong}, {self._patience:g} seconds long; is it running, and are "
                    f"{SERVERS} and {PORT} right? {CONNECTION_TIMEOUT} may give it more time"
                )
            if not is_told:
                log.warning("ZooKeeper %s does not answer; waiting for it", self.servers)
                is_told = True
            sleep(RETRY_SECS)

    def unusable(self, path: str, problem: Exception) -> StateError:
        """Return the error that says why a node can't be used, and what to do."""
        at = path if path.startswith("/") else self.at(path)
        kind = type(problem).__name__
        if kind == "AuthFailedError" and self._access.refused:
            return StateError(f"ZooKeeper {self.servers} {self._access.refused}")
        if kind in ("NoAuthError", "AuthFailedError"):
            return StateError(
                f"{at} in ZooKeeper {self.servers} belongs to who made it with other credentials, and {self._access.used}: give the topology "
                "the credentials of its earlier runs in its conf, or another transactional id"
            )
        fix = f"; {self._access.unknown}" if self._access else ""
        return StateError(f"{at} in ZooKeeper {self.servers} can't be used: {type(problem).__name__} {problem}{fix}")


def _servers(conf: Mapping[str, Any]) -> str:
    servers, key = conf.get(SERVERS), SERVERS
    if servers is None:
        servers, key = conf.get("storm.zookeeper.servers", ["localhost"]), "storm.zookeeper.servers"
    if not isinstance(servers, list) or not servers or not all(isinstance(each, str) and each for each in servers):
        raise ConfigError(f'{key} is {servers!r}; use a list of hosts, ["zoo1", "zoo2"]')
    port = conf.get(PORT) or conf.get("storm.zookeeper.port") or 2181
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"{PORT} is {port!r}; use a port's number")
    return ",".join(f"{_host(each, key)}:{port}" for each in servers)


def _host(text: str, key: str) -> str:
    """Return a host as it stands before a port. Kazoo would read the port as part of a path, or not at all, behind anything else."""
    is_ipv6 = text.count(":") > 1 and not text.startswith("[")
    if set(text) & set("/, \t") or (text.count(":") == 1):
        raise ConfigError(
            f"{key} has {text!r}; use a host alone: its port is {PORT} or storm.zookeeper.port, and a path below which everything is "
            "(chroot) is the beginning of transactional.zookeeper.root"
        )
    return f"[{text}]" if is_ipv6 else text


def is_there(conf: Mapping[str, Any], secs: float) -> bool:
    """Return whether something listens at one of the addresses of a conf; it has ``secs`` seconds to answer."""
    for address in _servers(conf).split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), secs).close()
        except OSError:
            continue
        return True
    return False
