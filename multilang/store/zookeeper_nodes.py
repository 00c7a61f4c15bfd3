"""The nodes of places in ZooKeeper: their names, and reading them."""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from secrets import token_hex
from threading import Lock
from urllib.parse import quote_from_bytes, unquote_to_bytes

from multilang.store.errors import StateError
from multilang.store.zookeeper_client import HURRY_SECS, ZooKeeperClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    Node: TypeAlias = tuple[bytes, int]
    """Its data and version."""

WRITERS = "$writers"  # quoted names have no "$"
MOST_READS = 100  # that are on their way at once: each may bring 1 MB
_EMPTY = "%"  # no name is quoted so
_RESERVED = (".", "..", "zookeeper")


class Nodes:
    """The nodes below a root, with a connection that is made at its first use.

    Args:
        conf: The topology's conf.
        servers: The servers' addresses.
        root: The path of the folder of all places; empty for ZooKeeper's own root.
        named: The setting with ZooKeeper's address, in the words of a message.

    Attributes:
        servers: The servers' addresses.
        root: The path of the folder of all places.
        marks: The nodes of all writers, to be removed at the end.
    """

    def __init__(self, conf: Mapping[str, Any], servers: str, root: str, named: str) -> None:
        self.servers = servers
        self.root = root
        self.marks: list[str] = []
        self._conf = conf
        self._named = named
        self._token = token_hex(8)
        self._numbers = count()
        self._opening = Lock()
        self._client: ZooKeeperClient | None = None
        self._is_hurried = False
        self._synced: set[str] = set()

    @property
    def client(self) -> ZooKeeperClient:
        """The connection."""
        if self._client is None:
            with self._opening:
                if self._client is None:
                    self._client = self.connect(HURRY_SECS if self._is_hurried else None)
        return self._client

    def connect(self, patience: float | None) -> ZooKeeperClient:
        """Return a new connection.

        Args:
            patience: Seconds to wait for an answer; None: the conf's.
        """
        return ZooKeeperClient(
            self._conf, self.root, patience, lambda _: None, self.servers, self._named, is_shared=True
        )

    def hurry(self) -> None:
        """Shorten the timeout from now on."""
        with self._opening:
            self._is_hurried = True
            if self._client is not None:
                self._client.hurry()

    def close(self) -> None:
        """Remove the nodes of the writers, and end the connection."""
        with self._opening:
            client, self._client = self._client, None
        marks, self.marks = self.marks, []
        self._synced.clear()
        if client is None:
            return
        try:
            if client.is_connected:
                client.hurry()
                client.calls([("delete", mark) for mark in marks])
        except StateError:
            pass  # the next claim removes them
        finally:
            client.close()

    def at(self, place: str, table: str | None = None) -> str:
        """Return the path of a place or table."""
        at = f"{self.root}/{_name_of_text(place)}"
        return at if table is None else f"{at}/{_name_of_text(table)}"

    def text_of(self, name: str) -> str | None:
        """Return the place or table for the name of a node; None if something else made that."""
        text = key_of(name).decode(errors="replace")
        return text if _name_of_text(text) == name else None

    def path(self, place: str, table: str, key: bytes) -> str:
        """Return the path of a row."""
        return f"{self.at(place, table)}/{name_of(key)}"

    def new_mark(self, place: str) -> str:
        """Return a path for the node of a new writer."""
        self.marks.append(f"{self.at(place)}/{WRITERS}/{self._token}-{next(self._numbers)}")
        return self.marks[-1]

    def other_marks(self, place: str, mark: str) -> Sequence[str]:
        """Return the nodes of the writers of a place but one. Some may have ended long ago."""
        at = f"{self.at(place)}/{WRITERS}"
        return [other for name in self.names(place, at) if (other := f"{at}/{name}") != mark]

    def make(self, paths: Sequence[str]) -> bool:
        """Make nodes that are not there yet, in this order; return False if the one above the first is not there."""
        from kazoo.exceptions import NoNodeError

        found = self.client.calls([("create", path, b"") for path in paths])
        return not any(isinstance(each, NoNodeError) for each in found)

    def make_root(self) -> None:
        """Make the folder of all places, in which everybody may make another one."""
        from kazoo.security import OPEN_ACL_UNSAFE

        if self.root:
            self.client.call("ensure_path", self.root, acl=self.client.acls(for_all=True) or OPEN_ACL_UNSAFE)

    def distrust(self, place: str) -> None:
        """Let the server catch up with the others before the next reading: it may lag behind."""
        self._synced.discard(place)

    def read(self, place: str, paths: Sequence[str]) -> list[Node | None]:
        """Return the data and version of nodes, in one round trip; None where there is none."""
        found = self._ask(place, "get", paths)
        return [None if isinstance(each, Exception) else (each[0] or b"", each[1].version) for each in found]

    def are_there(self, place: str, paths: Sequence[str]) -> list[bool]:
        """Return for each path whether there is such a node."""
        return [each is not None for each in self._ask(place, "exists", paths)]

    def sizes(self, place: str, paths: Sequence[str]) -> list[int]:
        """Return how many nodes are below each."""
        return [0 if each is None else each.numChildren for each in self._ask(place, "exists", paths)]

    def listed(self, place: str, table: str) -> Iterator[tuple[bytes, Node]]:
        """Yield the keys of a table with their nodes. The names are read at once, the rest in portions."""
        at = self.at(place, table)
        names = self.names(place, at)
        for start in range(0, len(names), MOST_READS):
            part = names[start : start + MOST_READS]
            for name, found in zip(part, self.read(place, [f"{at}/{name}" for name in part]), strict=True):
                if found is not None:
                    yield key_of(name), found

    def keys(self, place: str, table: str) -> Sequence[bytes]:
        """Return the keys of a table."""
        return [key_of(name) for name in self.names(place, self.at(place, table))]

    def names(self, place: str, path: str) -> Sequence[str]:
        """Return the names of the nodes below one; none if there is no such node."""
        (found,) = self._ask(place, "get_children", [path])
        return () if isinstance(found, Exception) else found

    def _ask(self, place: str, name: str, paths: Sequence[str]) -> list[Any]:
        calls = [(name, path) for path in paths]
        if place in self._synced:
            return self.client.calls(calls)
        _, *found = self.client.calls([("sync", self.at(place)), *calls])  # what follows waits for it, too
        self._synced.add(place)
        return found


def name_of(key: bytes) -> str:
    """Return the name of a node for a key. ZooKeeper does not take each text as one."""
    name = quote_from_bytes(key, safe="") or _EMPTY
    return f"%{ord(name[0]):02X}{name[1:]}" if name in _RESERVED else name


@lru_cache
def _name_of_text(text: str) -> str:
    return name_of(text.encode(errors="surrogatepass"))


def key_of(name: str) -> bytes:
    """Return the key for the name of a node."""
    return b"" if name == _EMPTY else unquote_to_bytes(name)
