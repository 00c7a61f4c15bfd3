"""The connection to ZooKeeper: its settings, requests that wait while ZooKeeper is away, and errors that name the node."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from math import ceil
from secrets import token_hex
from time import monotonic, sleep

from multilang.component.errors import ConfigError
from multilang.helpers.closing import close_all
from multilang.helpers.extras import imported
from multilang.store.errors import StateError
from multilang.store.zookeeper_access import ZooKeeperAccess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

SERVERS = "transactional.zookeeper.servers"
PORT = "transactional.zookeeper.port"
SESSION_TIMEOUT = "storm.zookeeper.session.timeout"
CONNECTION_TIMEOUT = "storm.zookeeper.connection.timeout"
PATIENCE_SECS = 20.0  # with a ZooKeeper that restarts, or can't be reached for a while
HURRY_SECS = 2.0  # of patience once the task ends
START_SECS = 3.0  # of patience before a topology starts, where nothing listens
RETRY_SECS = 0.1
_STEP_SECS = 0.5
_READS = ("exists", "get", "get_children")

log = logging.getLogger(__name__)
_of_kazoo = log.getChild("kazoo")  # below ERROR it logs every attempt to connect
_of_kazoo.setLevel(logging.ERROR)


class ZooKeeperClient:
    """A connection that reconnects. Each request waits for a ZooKeeper that does not answer.

    Args:
        conf: The component's conf.
        root: The path under which everything is; relative paths begin there.
        patience: Seconds to wait for an answer; None: 20, or those of ``storm.zookeeper.connection.timeout`` if they are more.
        listener: Called in the connection's thread with each of its states ("CONNECTED", ...).
        servers: The servers' addresses; None: those of the conf.
        named: The setting with ZooKeeper's address, in the words of a message.
        is_shared: Whether others may have nodes of their own in ``root`` itself, rather than beside it.

    Attributes:
        servers: The servers' addresses.
        session_secs: The seconds after which the server ends the session of a client without heartbeats.
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        root: str,
        patience: float | None,
        listener: Callable[[str], object],
        servers: str | None = None,
        named: str = f"{SERVERS} and {PORT}",
        *,
        is_shared: bool = False,
    ) -> None:
        self._root = root
        self._shared = root if is_shared else root.rpartition("/")[0]
        self._named = named
        self._patience = (
            max(PATIENCE_SECS, (conf.get(CONNECTION_TIMEOUT) or 0) / 1000) if patience is None else patience
        )
        self.servers = servers_of(conf) if servers is None else servers
        self.session_secs = (conf.get(SESSION_TIMEOUT) or 20_000) / 1000
        self._access = ZooKeeperAccess(conf)
        self._own: set[tuple[str, str]] | None = None
        self._checked: dict[str, tuple[int, int]] = {}  # path -> the ids of the node and of its ACL
        self._is_refused = False
        self._problem = ""  # of an answer that was refused
        self._kazoo = self._connect()
        self._kazoo.add_listener(self._note_refusal)
        self._kazoo.add_listener(listener)
        self._kazoo.start_async()

    def at(self, path: str) -> str:
        """Return the whole path of a node."""
        return f"{self._root}/{path}" if path else self._root

    def request(self, operations: Iterable[tuple[str, str, tuple[Any, ...]]]) -> Any:
        """Return a request of operations, as the methods of kazoo's TransactionRequest make them, but quickly.

        Args:
            operations: For each one its name ("create", "delete", "set_data" or "check"), the whole path, and the data, if it is
                not empty, with the version, if it matters.
        """
        from kazoo.protocol.serialization import CheckVersion, Create, Delete, SetData
        from kazoo.security import OPEN_ACL_UNSAFE

        acl = self.acls() or OPEN_ACL_UNSAFE
        request = self._kazoo.transaction()
        for name, path, arguments in operations:
            if name == "set_data":
                operation = SetData(path, arguments[0], arguments[1] if arguments[1:] else -1)
            elif name == "create":
                operation = Create(path, arguments[0] if arguments else b"", acl, 0)
            else:
                operation = (CheckVersion if name == "check" else Delete)(path, *(arguments or (-1,)))
            request.operations.append(operation)
        return request

    @property
    def is_connected(self) -> bool:
        """True while there is a connection."""
        return bool(self._kazoo.connected)

    def hurry(self) -> None:
        """Shorten the timeout from now on, also that of requests under way."""
        self._patience = min(self._patience, HURRY_SECS)

    def close(self) -> None:
        """End the session."""
        close_all(self._kazoo.stop, self._kazoo.close)

    def _connect(self) -> Any:
        kazoo = imported("kazoo.client", "zookeeper", "a store in ZooKeeper", error=StateError, on_workers=True)
        from multilang.store.zookeeper_bounds import bounded

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
        # Kazoo ends such a connection, and fails later requests only with "closed".
        self._is_refused |= self._kazoo.client_state == "AUTH_FAILED"

    def commit(self, request: Any, again: Callable[[], object] = lambda: None) -> Any:
        """Send a request of several operations, and return the result of each.

        Args:
            request: The request.
            again: Called before it is sent again, since its answer was lost.
        """
        operations = request.operations
        is_sent = False

        def commit() -> Any:
            nonlocal is_sent
            if is_sent:
                again()
            is_sent = True
            request = self._kazoo.transaction()
            request.operations = operations
            return [request.commit_async()]

        return self._answered(commit, [self._root])[0]

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of kazoo's client; its first argument is the path.

        With a login, what is read is refused if others may have written it.
        """
        (found,) = self.calls([(name, *arguments)], **options)
        if isinstance(found, Exception):
            raise found
        return found

    def calls(self, calls: Sequence[tuple[Any, ...]], **options: Any) -> list[Any]:
        """Make several calls in one round trip, in this order; see ``call``.

        Returns:
            What each call gives; the error itself where a node is not there, or is there already.
        """
        reads = [call[1] for call in calls if call[0] in _READS]
        if not self._access or not reads:
            return self._calls(calls, **options)
        asked = [(*call[:2], None, True) if call[0] == "get_children" else call for call in calls]  # with its versions
        while True:
            # Whoever may change a node above may replace the one that is read.
            above = [*dict.fromkeys(each for path in reads for each in self._above(path) if each not in self._checked)]
            stats = dict(zip(above, self._calls([("exists", path) for path in above]), strict=True))
            found = self._calls(asked, **options)
            for index, (name, path, *_) in enumerate(calls):
                if name in _READS and not isinstance(found[index], Exception):
                    if path.rstrip("/") != self._shared:
                        stats[path] = found[index] if name == "exists" else found[index][1]
                    found[index] = found[index][0] if name == "get_children" else found[index]
            if self._are_checked(stats):
                return found

    def _above(self, path: str) -> list[str]:
        """Return the nodes above a node, from below the folder that all share."""
        names = path.removeprefix(self._shared).split("/")
        return [self._shared + "/".join(names[:count]) for count in range(2, len(names))]

    def acls(self, for_all: bool = False) -> list[Any] | None:
        """Return the ACL of new nodes; None without a login. See ZooKeeperAccess."""
        return self._access.acls(for_all)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        (found,) = self._calls([(name, *arguments)], **options)
        if isinstance(found, Exception):
            raise found
        return found

    def _calls(self, calls: Sequence[tuple[Any, ...]], **options: Any) -> list[Any]:
        def ask() -> list[Any]:
            return [getattr(self._kazoo, f"{name}_async")(*arguments, **options) for name, *arguments in calls]

        return self._answered(ask, [each[1] for each in calls]) if calls else []

    def _are_checked(self, stats: Mapping[str, Any]) -> bool:
        """Refuse nodes that others than this login, and the user of Storm's daemons, may change.

        Returns:
            False if one was removed or made again since it was read.
        """
        new = {
            path: stat
            for path, stat in stats.items()
            if stat is not None and self._checked.get(path) != (stat.czxid, stat.aversion)
        }
        acls = self._calls([("get_acls", path) for path in new])
        return all(self._is_checked(*each, found) for each, found in zip(new.items(), acls, strict=True))

    def _is_checked(self, path: str, stat: Any, found: Any) -> bool:
        from kazoo.security import Permissions

        if isinstance(found, Exception) or (found[1].czxid, found[1].aversion) != (stat.czxid, stat.aversion):
            return False
        own, also = self._own_ids(), self._access.super_ids()
        ids: dict[tuple[str, str], int] = {}
        for each in found[0]:  # an ACL may name somebody twice
            id = each.id.scheme, each.id.id
            ids[id] = ids.get(id, 0) | each.perms
        others = [id for id, rights in ids.items() if rights & ~Permissions.READ and id not in own | also]
        if others or not any(ids.get(id) == Permissions.ALL for id in own):
            may = f"{':'.join(others[0])} may change it" if others else "this login has not all rights there"
            raise StateError(
                f"{path} in ZooKeeper {self.servers} was not made by this topology, or before it had credentials: {may}. Remove the "
                "node if nobody needs it, give it this login's ACL if what is in it is right, or keep this elsewhere"
            )
        self._checked[path] = stat.czxid, stat.aversion
        return True

    def _own_ids(self) -> set[tuple[str, str]]:
        """Return this login's id in ACLs; where only the server knows it, it is read from a node that is made for it."""
        if self._own is None:
            self._own = self._access.own_ids()
        if self._own is None:
            from kazoo.security import CREATOR_ALL_ACL

            path = f"{self._shared}/.login-{token_hex(8)}"
            self._call("create", path, b"", CREATOR_ALL_ACL, ephemeral=True)
            acls, _ = self._call("get_acls", path)
            with suppress(StateError):  # in another login's folder it stays until the session ends
                self._call("delete", path)
            self._own = {(each.id.scheme, each.id.id) for each in acls}
        return self._own

    def _answered(self, ask: Callable[[], Sequence[Any]], paths: Sequence[str]) -> list[Any]:
        """Return the answers to requests.

        After a lost connection the requests are made again: each of ours may be done twice.
        """
        from kazoo.exceptions import (
            AuthFailedError,
            ConnectionLoss,
            KazooException,
            OperationTimeoutError,
            SessionExpiredError,
        )

        lost = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, self._kazoo.handler.timeout_exception)
        began = monotonic()
        is_logged = False
        while True:
            requests = ask()
            self._wait(requests[-1], max(began + self._patience - monotonic(), RETRY_SECS))
            found: list[Any] = []
            try:
                found.extend(map(_result, requests))
                return found
            except lost:
                pass
            except KazooException as problem:
                raise self.unusable(paths[len(found)], problem) from None
            except Exception as problem:  # noqa: BLE001  # kazoo passes on any exception that wrong bytes cause
                self._note_problem(f"what can't be read: {type(problem).__name__}")
            if self._is_refused:
                raise self.unusable(paths[0], AuthFailedError())
            if monotonic() > began + self._patience:
                wrong = f" as a ZooKeeper does (it sent {self._problem})" if self._problem else ""
                raise StateError(
                    f"ZooKeeper {self.servers} does not answer{wrong}, {self._patience:g} seconds long; is it running, and are "
                    f"{self._named} right? {CONNECTION_TIMEOUT} may give it more time"
                )
            if not is_logged:
                log.warning("ZooKeeper %s does not answer; waiting for it", self.servers)
                is_logged = True
            sleep(RETRY_SECS)

    def _wait(self, request: Any, secs: float) -> None:
        step = min(secs, _STEP_SECS)
        for count in range(1, ceil(secs / step) + 1):
            request.wait(step)
            if request.ready() or count * step >= self._patience:  # which may have become less
                break

    def unusable(self, path: str, problem: Exception) -> StateError:
        """Return the error for a node that can't be used, with the reason and the fix."""
        at = path if path.startswith("/") else self.at(path)
        kind = type(problem).__name__
        if kind == "AuthFailedError" and self._access.refused:
            return StateError(f"ZooKeeper {self.servers} {self._access.refused}")
        if kind in ("NoAuthError", "AuthFailedError"):
            return StateError(
                f"{at} in ZooKeeper {self.servers} was made with other credentials, and {self._access.used}: give the topology "
                "the credentials of its earlier runs in its conf, or keep this elsewhere"
            )
        fix = f"; {self._access.unknown}" if self._access else ""
        return StateError(f"{at} in ZooKeeper {self.servers} can't be used: {type(problem).__name__} {problem}{fix}")


def _result(request: Any) -> Any:
    from kazoo.exceptions import NodeExistsError, NoNodeError

    try:
        return request.get(timeout=RETRY_SECS)
    except (NodeExistsError, NoNodeError) as problem:
        return problem


def servers_of(conf: Mapping[str, Any]) -> str:
    """Return the addresses of the servers that a conf names.

    Raises:
        ConfigError: It names none.
    """
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


def is_there(servers: str, secs: float) -> bool:
    """Return whether something listens at one of the addresses; it has ``secs`` seconds to answer."""
    for address in servers.split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), secs).close()
        except OSError:
            continue
        return True
    return False
