"""The state of transactions in ZooKeeper, in the same places as Storm's.

Its values are JSON. Needs the extra ``zookeeper``.

=========================================  ========================================
conf                                       default
=========================================  ========================================
``transactional.zookeeper.servers``        ``storm.zookeeper.servers``, the cluster's
``transactional.zookeeper.port``           ``storm.zookeeper.port``
``transactional.zookeeper.root``           ``/transactional``
``storm.zookeeper.topology.auth.scheme``   nodes are open to everybody, without another login
``storm.zookeeper.topology.auth.payload``  needed with a scheme; ``user:password`` with ``digest``
``storm.zookeeper.superACL``               nobody but the creator
=========================================  ========================================

The rules of ``multilang.transactional.state`` are kept as follows. The epoch is a persistent node. A claim raises it by
a write that checks the node's version. Every later write is a ``multi`` that begins with a check of that version, so
ZooKeeper itself refuses the writes of a replaced owner, however late they come. The node ``owner`` goes when its
session ends. It is for people only: with it, a second topology is refused before it has taken anything over.
"""

from __future__ import annotations

import logging
from time import monotonic, sleep
from urllib.parse import quote

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.state.errors import FencedError, InUseError, StateError
from multilang.state.owner import Owner
from multilang.store.settings import owner_of
from multilang.store.zookeeper_client import RETRY_SECS, START_SECS, ZooKeeperClient, is_there, servers_of
from multilang.transactional.names import EPOCH
from multilang.transactional.state import TransactionalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

ROOT = "transactional.zookeeper.root"
_MOST_BYTES = 1_000_000  # of a request: ZooKeeper takes a little more (jute.maxbuffer)
_MOST_OPERATIONS = 1000  # of a request
_TRIES = 100  # of a write whose nodes come and go
_OWNER = "owner"  # ends with its session
_LAST_OWNER = "coordinator/owner"  # the last owner, which stays

log = logging.getLogger(__name__)


class ZooKeeperTransactionalState(TransactionalState):
    """The state of transactions in ZooKeeper: a node for each value, at ``<root>/<id>/<path>``.

    It has one connection, which is made anew when it is lost. Each call waits up to 20 seconds, or as long as
    ``storm.zookeeper.connection.timeout`` says if that is more, for a ZooKeeper that does not answer, and then raises
    StateError. That ends the task; when it is started again, it goes on from what is stored.

    Args:
        conf: The component's conf.
        id: The topology's transactional id.
        patience: Seconds to wait for an answer; None: see above.
    """

    requires: Mapping[str, str] = {"kazoo.client": "kazoo>=2.10"}

    def __init__(self, conf: Mapping[str, Any], id: str, patience: float | None = None) -> None:
        super().__init__(conf, id)
        self._top = _root(conf)
        self._root = f"{self._top}/{quote(id, safe='')}"
        self._known: dict[str, tuple[Any, int]] = {}  # path -> value and version, for nodes that writes compare
        self._there: set[str] = set()  # nodes that were there when they were last seen
        self._mark: tuple[bytes, int] | None = None  # the owner's node, and the version of its epoch
        self._client = ZooKeeperClient(conf, self._root, patience, self._mark_again)
        self.servers = self._client.servers
        try:
            self._client.call("sync", self._root)  # so that a server that lags behind does not answer with old values
        except BaseException:
            self.close()  # or the client's threads would go on trying
            raise

    @classmethod
    def check(cls, conf: Mapping[str, Any], id: str) -> None:
        """Ask ZooKeeper once; see TransactionalState.check.

        Where nothing listens this gives up soon, since somebody waits. A server that is there may be slow.
        """
        state = cls(conf, id, None if is_there(servers_of(conf), START_SECS) else START_SECS)
        try:
            state._wait_until_free(waits=True, again=False)
        finally:
            state.close()

    def claim(self, waits: bool = True, again: bool = False) -> int:
        self._fence = self._mark = None
        while True:
            run, topology = owner_of(self.conf)
            former = self.owner()
            if former is not None and run in former.earlier and waits:
                raise FencedError(
                    f"{self.describe()} was taken over by {former}, while this run did not answer: it ends here, and nothing more "
                    "is written by it"
                )
            last, before = self._wait_until_free(waits, again)
            epoch = max(last or 0, 0 if former is None else former.epoch, self.highest_epoch()) + 1
            me = Owner.after(former, run, topology)
            me.epoch = epoch
            mark = me.text().encode()
            self.trace("claim")
            if not self._write({EPOCH: last}, [(EPOCH, dumps(epoch).encode()), (_LAST_OWNER, mark)], (mark, before)):
                continue  # somebody else was faster, or the write was done and its answer was lost
            self.trace("claimed")
            versions = self._versions({EPOCH: epoch})
            if versions is None:
                raise self._outdated(epoch)
            self._mark = (mark, versions[EPOCH] or 0)
            return self._write_as(epoch)

    def get_data(self, path: str) -> Any:
        found = self._read(path)
        return None if found is None else found[0]

    def compare_and_write(
        self, expected: Mapping[str, Any], values: Mapping[str, Any], deleted: Iterable[str] = ()
    ) -> bool:
        """Set and remove values if the expected values are there; see TransactionalState.

        More than ZooKeeper takes in one request is written in several, in the order given.
        """
        changes: list[tuple[str, bytes | None]] = [(path, self._encoded(path, each)) for path, each in values.items()]
        changes += [(path, None) for path in deleted]
        return all(self._write(expected, part) for part in _parts(changes))

    def list(self, path: str) -> Sequence[str]:
        from kazoo.exceptions import NoNodeError

        try:
            names: Sequence[str] = self._client.call("get_children", self._client.at(path))
        except NoNodeError:
            return []
        self._there.update(f"{path}/{name}" for name in names)
        return names

    def describe(self) -> str:
        return f"{self._root} in ZooKeeper {self.servers}"

    def owner(self) -> Owner | None:
        found = self._read(_LAST_OWNER)
        return None if found is None else Owner.from_text(dumps(found[0]))

    def close(self) -> None:
        self._mark = None
        self._client.close()

    # ---- who may write ----

    def _wait_until_free(self, waits: bool, again: bool) -> tuple[int | None, int | None]:
        """Wait until no other run owns the transactions.

        Return the epoch, and the version of an owner's node to be replaced.
        """
        # A server notices the end of a session a little later, by its own clock's ticks.
        deadline = monotonic() + (self._client.session_secs + min(self._client.session_secs, 5)) * waits
        run, _ = owner_of(self.conf)
        is_told = False
        while True:
            self.trace("look")
            self._known.pop(EPOCH, None)
            epoch = self.get_data(EPOCH)  # read first: a claim after this look changes its version
            found = self._owner_node()
            if found is None:
                return epoch, None
            owner, version, session = found
            if session == self._client.session or (owner.run == run and not again) or owner.is_dead():
                return epoch, version
            if monotonic() >= deadline:
                raise InUseError(
                    f"{self.describe()} is in use by {owner}, and two with the same id would count wrongly: end that one, or "
                    "give TransactionalTopologyBuilder another id"
                )
            if not is_told:
                log.warning("waiting until %s gives up %s", owner, self._root)
                is_told = True
            sleep(RETRY_SECS)

    def _owner_node(self) -> tuple[Owner, int, int] | None:
        """Return the owner, its node's version, and the session that the node belongs to; None without such a node."""
        from kazoo.exceptions import NoNodeError

        try:
            data, stat = self._client.call("get", self._client.at(_OWNER))
        except NoNodeError:
            return None
        try:
            owner = Owner.from_text(data)
        except ValueError:
            owner = _earlier_owner(self._decoded(_OWNER, data))
        return owner, stat.version, stat.ephemeralOwner

    def _mark_again(self, state: str) -> None:
        """Make the owner's node again after its session ended.

        Called in the connection's thread when its state changes.
        """
        mark = self._mark
        if state != "CONNECTED" or mark is None:
            return
        request = self._client.transaction()
        request.check(self._client.at(EPOCH), mark[1])  # only if nobody else has claimed it meanwhile
        request.create(self._client.at(_OWNER), mark[0], ephemeral=True)
        request.commit_async()  # if it fails, the node is there, or the next write will find another owner

    # ---- nodes ----

    def _write(
        self,
        expected: Mapping[str, Any],
        changes: Sequence[tuple[str, bytes | None]],
        mark: tuple[bytes, int | None] | None = None,
    ) -> bool:
        """Change nodes (None: remove them) in one request that checks the expected versions.

        With a ``mark`` it also makes the owner's node. If a node is not as this object remembers it, it is read and the
        request is made again. A request whose answer was lost may have been done before, so each change is one that may
        be made twice.
        """
        from kazoo.exceptions import NodeExistsError, NoNodeError

        gone: set[str] = set()  # nodes to be removed that are not there
        for _ in range(_TRIES):
            versions = self._versions(expected)
            if versions is None:
                return False
            request, paths = self._request(versions, [each for each in changes if each[0] not in gone], mark)
            failed = _first_failure(paths, self._client.commit(request))
            if failed is None:
                for path, data in changes:
                    self._known.pop(path, None)
                    (self._there.discard if data is None else self._there.add)(path)
                return True
            path, problem = failed
            if path == _OWNER and mark is not None:
                return False  # it has changed since it was read
            if path in expected:
                self._known.pop(path, None)
                self._client.call("sync", self._root)  # a server that lags behind would give the old version for ever
            elif isinstance(problem, NodeExistsError | NoNodeError):
                # Look at all of them: after a lost answer, none may be as it was before the request.
                self._there.difference_update(_parents(path))
                self._look_up(each for each, _ in changes)
                gone = {each for each, data in changes if data is None and each not in self._there}
            else:
                raise self._client.unusable(path, problem) from None
        raise StateError(f"{self._client.at(path)} comes and goes: another topology uses the same transactional id")

    def _request(
        self,
        versions: Mapping[str, int | None],
        changes: Sequence[tuple[str, bytes | None]],
        mark: tuple[bytes, int | None] | None,
    ) -> tuple[Any, Sequence[str]]:
        """Return a request, and the path of each of its operations."""
        request, paths = self._client.transaction(), []
        made: set[str] = set()
        for path, version in versions.items():
            if version is not None:
                request.check(self._client.at(path), version)
                paths.append(path)
        for path, data in changes:
            is_there = versions[path] is not None if path in versions else path in self._there
            if data is None:
                request.delete(self._client.at(path))
            elif is_there:
                request.set_data(self._client.at(path), data)
            else:
                for parent in self._missing_parents(path, made):
                    request.create(self._client.at(parent), b"")
                    paths.append(parent)
                request.create(self._client.at(path), data)
            paths.append(path)
        if mark is not None:
            if mark[1] is not None:
                request.delete(self._client.at(_OWNER), mark[1])
                paths.append(_OWNER)
            request.create(self._client.at(_OWNER), mark[0], ephemeral=True)
            paths.append(_OWNER)
        return request, paths

    def _look_up(self, paths: Iterable[str]) -> None:
        for path in paths:
            is_there = self._client.call("exists", self._client.at(path)) is not None
            (self._there.add if is_there else self._there.discard)(path)

    def _versions(self, expected: Mapping[str, Any]) -> dict[str, int | None] | None:
        """Return the versions of nodes that have the expected values; None if one has another value."""
        versions: dict[str, int | None] = {}
        for path, value in expected.items():
            found = self._known.get(path)
            if found is None or found[0] != value:
                found = self._read(path)
                if (None if found is None else found[0]) != value:
                    return None
                if found is not None:
                    self._known[path] = found
            versions[path] = None if found is None else found[1]
        return versions

    def _read(self, path: str) -> tuple[Any, int] | None:
        from kazoo.exceptions import NoNodeError

        try:
            data, stat = self._client.call("get", self._client.at(path))
        except NoNodeError:
            return None
        self._there.add(path)
        found = self._decoded(path, data), stat.version
        if path == EPOCH:
            self._known[path] = found
        return found

    def _missing_parents(self, path: str, made: set[str]) -> Iterator[str]:
        for parent in _parents(path):
            if parent not in self._there and parent not in made:
                if self._client.call("exists", self._client.at(parent)) is None:
                    if not parent:
                        self._make_top()
                    made.add(parent)
                    yield parent
                else:
                    self._there.add(parent)

    def _make_top(self) -> None:
        """Make the folder of all ids, in which everybody may make another one."""
        from kazoo.security import OPEN_ACL_UNSAFE

        if self._top:
            self._client.call("ensure_path", self._top, acl=self._client.acls(for_all=True) or OPEN_ACL_UNSAFE)

    def _encoded(self, path: str, value: Any) -> bytes:
        data = dumps(value).encode()
        if len(data) > _MOST_BYTES:
            raise StateError(
                f"{self._client.at(path)}: {len(data)} bytes are more than ZooKeeper takes in one node; keep the metadata of a batch "
                "small: where it begins and ends, not what is in it"
            )
        return data

    def _decoded(self, path: str, data: bytes | None) -> Any:
        if not data:  # a node without a value, which has others below it
            return None
        try:
            return loads(data)
        except ValueError:
            raise StateError(
                f"{self._client.at(path)} in ZooKeeper {self.servers} is not JSON: a Java topology uses the same transactional id; "
                f"give this one another, or another {ROOT}"
            ) from None


def _first_failure(paths: Iterable[str], results: Iterable[Any]) -> tuple[str, Exception] | None:
    """Return the operation of a request that failed, and its error.

    The errors of the other operations only follow from it.
    """
    from kazoo.exceptions import RolledBackError, RuntimeInconsistency

    for path, result in zip(paths, results, strict=False):
        if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
            return path, result
    return None


def _parts(changes: Sequence[tuple[str, bytes | None]]) -> Iterator[Sequence[tuple[str, bytes | None]]]:
    """Yield the changes in portions that one request can take; at least one portion."""
    part: list[tuple[str, bytes | None]] = []
    size = 0
    for path, data in changes:
        more = len(path) + len(data or b"") + 200  # an allowance for the operation's other bytes
        if part and (size + more > _MOST_BYTES or len(part) >= _MOST_OPERATIONS):
            yield part
            part, size = [], 0
        part.append((path, data))
        size += more
    yield part


def _parents(path: str) -> Iterator[str]:
    """Yield the paths above a path, the topmost first (the topology's own node, "")."""
    yield ""
    names = path.split("/")
    for depth in range(1, len(names)):
        yield "/".join(names[:depth])


def _earlier_owner(found: Any) -> Owner:
    """Return the owner that an earlier version of this library stored."""
    known = found if isinstance(found, dict) else {}
    run = str(known.get("storm.id"))
    return Owner(0, run, run, str(known.get("host")), [known.get("pid")], "?", [])


def _root(conf: Mapping[str, Any]) -> str:
    root = conf.get(ROOT) or "/transactional"
    if not isinstance(root, str) or not root.startswith("/"):
        raise ConfigError(f'{ROOT} is {root!r}; use a path, "/transactional"')
    return root.rstrip("/")
