"""The state of transactions in ZooKeeper, in the places where Storm's had them; its values are JSON. Needs the extra ``zookeeper``.

=========================================  ========================================
conf                                       unless given
=========================================  ========================================
``transactional.zookeeper.servers``        ``storm.zookeeper.servers``, the cluster's
``transactional.zookeeper.port``           ``storm.zookeeper.port``
``transactional.zookeeper.root``           ``/transactional``
=========================================  ========================================
"""

from __future__ import annotations

import logging
import os
import socket
from time import monotonic, sleep
from urllib.parse import quote

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.state.errors import StateError
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SERVERS = "transactional.zookeeper.servers"
PORT = "transactional.zookeeper.port"
ROOT = "transactional.zookeeper.root"
SESSION_TIMEOUT = "storm.zookeeper.session.timeout"
PATIENCE_SECS = 20.0  # for a ZooKeeper that is being started again, or can't be reached for a while
START_SECS = 3.0  # the same, before anything is started
_MOST_BYTES = 1_000_000  # of a node: ZooKeeper takes a little more (jute.maxbuffer)
_RETRY_SECS = 0.1
_OWNER = "owner"

log = logging.getLogger(__name__)
_of_kazoo = log.getChild("kazoo")  # which tells of every attempt to connect
_of_kazoo.setLevel(logging.ERROR)


class ZooKeeperTransactionalState(TransactionalState):
    """``<root>/<id>/<path>``, a node for each value. One connection, which is made anew when it is lost.

    Each call waits up to 20 seconds for a ZooKeeper that doesn't answer, and then raises StateError. The task that ends by
    that is started again and goes on with what is stored.
    """

    def __init__(self, conf: Mapping[str, Any], id: str, patience: float | None = None) -> None:
        super().__init__(conf, id)
        self._patience = PATIENCE_SECS if patience is None else patience
        self.servers = _servers(conf)
        self._root = f"{_root(conf)}/{quote(id, safe='')}"
        self._session_secs = (conf.get(SESSION_TIMEOUT) or 20_000) / 1000
        self._claim: int | None = None  # the session that claimed, if this is the coordinator's
        self._client = self._connect()
        try:
            self._call("sync", self._root)  # so that a server that lags behind does not answer with what was
        except BaseException:
            self.close()  # or its threads would go on trying
            raise

    @classmethod
    def check(cls, conf: Mapping[str, Any], id: str) -> None:
        """Ask it once, with the patience of somebody who waits for the answer."""
        cls(conf, id, START_SECS).close()

    def claim(self) -> None:
        """By a node that is there for as long as this process; it waits for that of one that was killed to go."""
        # A server notices the end of a session a little later, by its own clock's ticks.
        deadline = monotonic() + self._session_secs + min(self._session_secs, 5)
        is_told = False
        while (session := self._claimed()) is None:
            owner = self._owner()
            if owner is not None and owner.get("storm.id") == self.conf.get("storm.id"):
                self.delete(_OWNER)  # of this same run: what is left of a coordinator that died
            elif monotonic() > deadline:
                raise StateError(
                    f"{self._root} in ZooKeeper {self.servers} is in use by another topology ({_shown(owner)}), and two with "
                    "the same id would count wrongly: end that one, or give TransactionalTopologyBuilder another id"
                )
            else:
                if owner is not None and not is_told:
                    log.warning("waiting until %s gives up %s", _shown(owner), self._root)
                    is_told = True
                sleep(_RETRY_SECS)
        self._claim = session

    def get_data(self, path: str) -> Any:
        return self._decoded(path, self._get(path))

    def set_data(self, path: str, value: Any) -> None:
        from kazoo.exceptions import NodeExistsError, NoNodeError

        data = dumps(value).encode()
        if len(data) > _MOST_BYTES:
            raise StateError(
                f"{self._at(path)}: {len(data)} bytes are more than ZooKeeper takes in one node; keep the metadata of a batch "
                "small: where it begins and ends, not what is in it"
            )
        for _ in range(2):
            try:
                self._call("set", self._at(path), data)
                return
            except NoNodeError:
                pass
            try:
                self._call("create", self._at(path), data, makepath=True)
                return
            except NodeExistsError:  # an answer was lost, or another task made it
                pass
        raise StateError(f"{self._at(path)} comes and goes: another topology uses the same transactional id")

    def delete(self, path: str) -> None:
        from kazoo.exceptions import NoNodeError

        try:
            self._call("delete", self._at(path))
        except NoNodeError:
            pass

    def list(self, path: str) -> Sequence[str]:
        from kazoo.exceptions import NoNodeError

        try:
            names: Sequence[str] = self._call("get_children", self._at(path))
        except NoNodeError:
            return []
        return names

    def close(self) -> None:
        self._claim = None
        self._client.stop()
        self._client.close()

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _get(self, path: str) -> bytes | None:
        from kazoo.exceptions import NoNodeError

        try:
            data: bytes = self._call("get", self._at(path))[0]
        except NoNodeError:
            return None
        return data

    def _decoded(self, path: str, data: bytes | None) -> Any:
        if not data:  # a node that has others below it
            return None
        try:
            return loads(data)
        except ValueError:
            raise StateError(
                f"{self._at(path)} in ZooKeeper {self.servers} is no JSON: a Java topology uses the same transactional id; "
                f"give this one another, or another {ROOT}"
            ) from None

    def _claimed(self) -> int | None:
        """This session, if the owner's node is its own."""
        from kazoo.exceptions import NodeExistsError, NoNodeError

        mark = {"storm.id": self.conf.get("storm.id"), "host": socket.gethostname(), "pid": os.getpid()}
        try:
            self._call("create", self._at(_OWNER), dumps(mark).encode(), ephemeral=True, makepath=True)
        except NodeExistsError:
            pass
        try:
            owner: int = self._call("get", self._at(_OWNER))[1].ephemeralOwner
        except NoNodeError:
            return None
        return owner if owner == self._session() else None

    def _session(self) -> int | None:
        """The session of the connection; None while there is none."""
        known = self._client.client_id
        return None if known is None else known[0]

    def _owner(self) -> dict[str, Any] | None:
        found = self._decoded(_OWNER, self._get(_OWNER))
        return found if isinstance(found, dict) else None

    def _connect(self) -> Any:
        try:
            from kazoo.client import KazooClient
        except ImportError as problem:
            raise StateError(
                f"transactions in ZooKeeper need the package kazoo ({problem}): pip install 'storm-multilang[zookeeper]'; for a "
                "cluster's workers put kazoo into the file that multilang submit --requirements names"
            ) from problem
        client = KazooClient(
            self.servers,
            timeout=self._session_secs,
            logger=_of_kazoo,
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 0.5},
        )
        client.start_async()
        return client

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """A request whose connection was lost is made again: whatever was done already does no harm."""
        from kazoo.exceptions import ConnectionLoss, KazooException, OperationTimeoutError, SessionExpiredError

        lost = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, self._client.handler.timeout_exception)
        deadline = monotonic() + self._patience
        is_told = False
        while True:
            try:
                self._check_claim()
                request = getattr(self._client, f"{name}_async")(*arguments, **options)
                return request.get(timeout=max(deadline - monotonic(), _RETRY_SECS))
            except lost as problem:
                if monotonic() > deadline:
                    raise StateError(
                        f"ZooKeeper {self.servers} does not answer, {self._patience:g} seconds long; is it running, and are "
                        f"{SERVERS} and {PORT} right?"
                    ) from problem
                if not is_told:
                    log.warning("ZooKeeper %s does not answer; waiting for it", self.servers)
                    is_told = True
                sleep(_RETRY_SECS)
            except KazooException as problem:
                if type(problem).__name__ in ("NoNodeError", "NodeExistsError"):
                    raise
                raise StateError(
                    f"{arguments[0]} in ZooKeeper {self.servers} can't be used: {type(problem).__name__} {problem}"
                ) from problem

    def _check_claim(self) -> None:
        """With its session the claim is lost, and another topology may have come: nothing is written before it is claimed anew."""
        from kazoo.exceptions import ConnectionLoss

        session = self._session()
        if self._claim is None or session == self._claim:
            return
        if session is None:
            raise ConnectionLoss
        lost, self._claim = self._claim, None
        try:
            self.claim()
        except BaseException:
            self._claim = lost
            raise


def _servers(conf: Mapping[str, Any]) -> str:
    servers, key = conf.get(SERVERS), SERVERS
    if servers is None:
        servers, key = conf.get("storm.zookeeper.servers", ["localhost"]), "storm.zookeeper.servers"
    if not isinstance(servers, list) or not servers or not all(isinstance(each, str) and each for each in servers):
        raise ConfigError(f'{key} is {servers!r}; use a list of hosts, ["zoo1", "zoo2"]')
    port = conf.get(PORT) or conf.get("storm.zookeeper.port") or 2181
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"{PORT} is {port!r}; use a port's number")
    return ",".join(f"{host}:{port}" for host in servers)


def _root(conf: Mapping[str, Any]) -> str:
    root = conf.get(ROOT) or "/transactional"
    if not isinstance(root, str) or not root.startswith("/"):
        raise ConfigError(f'{ROOT} is {root!r}; use a path, "/transactional"')
    return root.rstrip("/")


def _shown(owner: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key} {value}" for key, value in (owner or {}).items())
