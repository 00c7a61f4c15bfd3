"""Rows in ZooKeeper: for a cluster, which has one anyway. Needs the extra ``zookeeper``.

A row is the node ``<root>/<place>/<table>/<key>``, its names quoted as in a URL. Beside its tables, a place has

* ``$writers`` with a node for each writer. Each of its writes raises that node's version, from the one that it expects. So a
  request that is sent again, or that is late, is refused if it was done before. The node has the number of the last one;
* ``$<table>`` for each table, whose version counts the steps that removed rows there. The version of a node identifies a
  value only as long as it is the same node, so a writer that expects a value also expects that nothing was removed since. The
  table of the owner has none: keys there are drawn at random, and a claim removes the nodes of all other writers.

A write is one ``multi``, which begins with these checks, and usually one round trip. This holds for all rows and writers.
A place that is deleted by hand takes the nodes of its writers with it, so that they read again what is expected.

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
"""

from __future__ import annotations

import re
from typing import ClassVar

from multilang.component.errors import ConfigError
from multilang.helpers.masked import masked_text
from multilang.store.errors import StateError
from multilang.store.interface import Store
from multilang.store.zookeeper_client import START_SECS, is_there, servers_of
from multilang.store.zookeeper_nodes import Nodes
from multilang.store.zookeeper_writes import Write, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.store.interface import Rows

ROOT = "transactional.zookeeper.root"
_ROOT = "/transactional"
_URLS = "zookeeper://HOST:PORT,HOST:PORT/PATH, or zookeeper:///PATH with the servers of the conf"
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\s,]+)(?::(\d{1,5}))?")
_PORT = 2181
_MOST_READS = 1000  # in one request


class ZooKeeperStore(Store):
    """Rows in ZooKeeper: a node for each row.

    It has one connection, which is made anew when it is lost. Each call waits up to 20 seconds, or
    ``storm.zookeeper.connection.timeout`` if that is more, for a ZooKeeper that does not answer.

    One step can't have more than ZooKeeper takes in a request, 1 MB: more is refused with a StateError. Tables are emptied
    and merged in several steps if they are larger: each of these removes rows, or moves them to the other table, and the last
    one has the changes. If an expected row changes in between, the answer is False although some rows were removed or merged.

    Args:
        url: ``zookeeper://HOST:PORT,HOST:PORT/PATH``. Missing hosts, or a missing path, are those of the conf.
        conf: The topology's conf.
        setting: The conf key that has the URL, for messages.
    """

    requires: ClassVar[Mapping[str, str]] = {"kazoo.client": "kazoo>=2.10"}
    largest = 900_000
    portion_rows = 400
    portion_bytes = 200_000  # each byte of a key may become three in a path

    def __init__(
        self, url: str = "zookeeper:", conf: Mapping[str, Any] | None = None, setting: str = "multilang.store"
    ) -> None:
        super().__init__(url, conf, setting)
        servers, root = _where(url, self.conf, setting)
        named = setting if servers else "transactional.zookeeper.servers and transactional.zookeeper.port"
        self._nodes = Nodes(self.conf, servers or servers_of(self.conf), root, named)
        self._free: dict[str, list[Writer]] = {}  # by place: those that no thread uses now

    def get(self, place: str, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for start in range(0, len(keys), _MOST_READS):
            paths = [self._nodes.path(place, table, key) for key in keys[start : start + _MOST_READS]]
            found += [None if node is None else node[0] for node in self._nodes.read(place, paths)]
        return found

    def list(self, place: str, table: str) -> Iterator[tuple[bytes, bytes]]:
        return ((key, data) for key, (data, _) in self._nodes.listed(place, table))

    def places(self, start: str) -> Sequence[str]:
        self._nodes.distrust("")
        names = self._nodes.names("", self._nodes.root or "/")
        found = [
            place for name in names if (place := self._nodes.text_of(name)) is not None and place.startswith(start)
        ]
        return [place for place in found if self.tables(place)]

    def tables(self, place: str) -> Sequence[str]:
        self._nodes.distrust(place)
        names = self._nodes.names(place, self._nodes.at(place))
        found = [table for name in names if (table := self._nodes.text_of(name)) is not None]
        sizes = self._nodes.sizes(place, [self._nodes.at(place, table) for table in found])
        return [table for table, size in zip(found, sizes, strict=True) if size]

    def compare_and_write(
        self,
        place: str,
        expected: Rows,
        changes: Rows,
        cleared: Collection[str] = (),
        merged: tuple[str, str] | None = None,
    ) -> bool:
        self._check_sizes(changes)
        write = Write(expected, changes, cleared, merged)
        free = self._free.setdefault(place, [])
        try:
            writer = free.pop()
        except IndexError:
            writer = Writer(self._nodes, place)
        try:
            self.trace("write")
            while True:
                is_done, is_more = writer.write(write, self.trace)
                if not is_more:
                    return is_done
        finally:
            free.append(writer)

    def describe(self) -> str:
        return f"ZooKeeper {self._nodes.servers}{self._nodes.root}"

    def check(self) -> None:
        client = self._nodes.connect(None if is_there(self._nodes.servers, START_SECS) else START_SECS)
        try:
            for name in ("sync", "exists"):
                client.call(name, self._nodes.root or "/")
        finally:
            client.close()

    def hurry(self) -> None:
        self._nodes.hurry()

    def close(self) -> None:
        super().close()
        self._free.clear()
        self._nodes.close()

    def _check_sizes(self, changes: Rows) -> None:
        for table, rows in changes.items():
            for key, value in rows.items():
                size = max(len(key), len(value or b""))
                if size > self.largest:
                    raise StateError(
                        f"a row of table {table!r} in {self.describe()} has a key or value of {size} bytes, and ZooKeeper takes {self.largest}: "
                        "nothing was written; keep what is stored small, or keep it in another database"
                    )


def _where(url: str, conf: Mapping[str, Any], setting: str) -> tuple[str, str]:
    """Return the servers of a URL, empty if it has none, and the root.

    Raises:
        ConfigError: The URL or the conf can't be understood.
    """

    def wrong(why: str) -> ConfigError:
        return ConfigError(f"{setting} is {masked_text(repr(url))}: {why}; use {_URLS}")

    rest = url.partition(":")[2]
    if rest and not rest.startswith("//"):
        raise wrong("// is missing")
    hosts, _, path = rest[2:].partition("/")
    if "@" in hosts:
        raise wrong("a login belongs into storm.zookeeper.topology.auth.scheme and .payload of the conf")
    if set(path) & set("?#@"):
        raise wrong("nothing follows the path")
    servers = []
    for address in hosts.split(",") if hosts else ():
        found = _ADDRESS.fullmatch(address)
        if found is None or not 0 < int(found[2] or _PORT) < 65536:
            raise wrong(f"{address!r} is no address")
        servers.append(f"{found[1]}:{int(found[2] or _PORT)}")
    names = _names(path)
    if names is None:
        raise wrong(f"/{path} can't be a path there")
    if not names:
        root = conf.get(ROOT) or _ROOT
        names = _names(root) if isinstance(root, str) and root.startswith("/") else None
        if names is None:
            raise ConfigError(f'{ROOT} is {root!r}; use a path, "{_ROOT}"')
    return ",".join(servers), "".join(f"/{name}" for name in names)


def _names(path: str) -> Sequence[str] | None:
    """Return the names of a path; None if ZooKeeper does not take them."""
    names = [name for name in path.split("/") if name]
    return names if path.isprintable() and not {".", ".."} & {*names} else None
