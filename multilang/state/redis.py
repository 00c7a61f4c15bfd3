"""State in Redis, laid out as Storm's RedisKeyValueState does.

======================  ==========================================================
key (a hash each)       content
======================  ==========================================================
``<namespace>``         what is committed
``<namespace>$prepare``  what is prepared; no byte stands for a key to be deleted
``<namespace>$txid``    ``commit`` and ``prepare``: the transactions
======================  ==========================================================

There is no transaction over the three, in Storm as here: a commit that was cut short is repeated from what is prepared.
Needs the extra ``redis``.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.state.api import StateProvider
from multilang.state.errors import StateError
from multilang.state.redis_client import connect, connect_cluster, explained, place
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, cached_keys, check_members
from multilang.state.stored import Store, StoredState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

START_SECS = 3.0  # that it is waited for before anything is started
_AT_ONCE = 1000  # fields in one command
_POOL = ("host", "port", "timeout", "database", "password")
# One step, as a script is there: whether it is what was there before, and then what is written. A client that got no answer sends
# it again: if all is there already, that was it.
_WRITE_IF = """\
local function has(field, value) return redis.call('HGET', KEYS[1], field) == (value ~= '' and value) end
if not has(ARGV[1], ARGV[2]) then
  for place = 3, #ARGV, 2 do
    if not has(ARGV[place], ARGV[place + 1]) then return 0 end
  end
  return 1
end
for place = 3, #ARGV, 2 do
  if ARGV[place + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[place])
  else redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1]) end
end
return 1
"""
_CLUSTER = ("nodes", "timeout", "maxRedirections", "password")


class RedisStateProvider(StateProvider):
    """``topology.state.provider.config`` is that of Storm's page: ``{"jedisPoolConfig": {"host": ..., "port": ...}}``."""

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        super().__init__(config, conf)
        check_members(self.config, "state in Redis", ("jedisPoolConfig", "jedisClusterConfig"))
        self._pool = _members(self.config, "jedisPoolConfig", _POOL)
        self._cluster = _members(self.config, "jedisClusterConfig", _CLUSTER)
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)
        self._found: Any = None

    @property
    def client(self) -> Any:
        """The connection, made when it is first needed."""
        if self._found is None:
            self._found = self._connect()
        return self._found

    def new_state(self, namespace: str) -> StoredState:
        store = RedisStore(self.client, namespace, self.describe())
        return StoredState(namespace, store, self._keys, self._values, cached_keys(self.conf))

    def namespaces(self) -> list[str]:
        found = set()
        with explained(self.describe()):
            for suffix in ("$txid", "$prepare"):  # the latter alone where a first prepare was cut short
                for key in self.client.scan_iter(match=f"*{suffix}", count=_AT_ONCE):
                    found.add(key.decode("utf-8", "replace").removesuffix(suffix))
            for key in self.client.scan_iter(match="$checkpointspout-*", count=_AT_ONCE):
                name = key.decode("utf-8", "replace")
                if name.count("$") == 1:
                    found.add(name)
        return sorted(found)

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        return RedisStore(self.client, namespace, self.describe()).txids()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """One script's worth of renames makes all of it visible at once; a cluster has no such thing."""
        if self._cluster is not None and self._pool is None:
            raise StateError(
                "what a Redis cluster holds can't be replaced all at once; export it and import it elsewhere"
            )
        client = self.client
        with explained(self.describe()):
            for namespace, content in states.items():
                client.delete(f"{namespace}$new")
                rows = [(self._keys.encode(key), self._values.encode(value)) for key, value in content.items()]
                for part in _parts(rows):
                    client.hset(f"{namespace}$new", mapping=dict(part))
            with client.pipeline(transaction=True) as pipeline:
                for namespace, content in states.items():
                    pipeline.delete(namespace, f"{namespace}$prepare", f"{namespace}$txid")
                    if content:
                        pipeline.rename(f"{namespace}$new", namespace)
                        pipeline.hset(f"{namespace}$txid", "commit", -1)
                pipeline.execute()

    def check(self) -> None:
        """Ask it once, with the patience of somebody who waits for the answer."""
        client = self._connect(START_SECS)
        try:
            with explained(self.describe(), CONFIG):
                client.ping()
        finally:
            client.close()

    def describe(self) -> str:
        if self._cluster is not None and self._pool is None:
            return f"Redis cluster {', '.join(map(str, self._cluster.get('nodes') or ()))}"
        return place(self._pool or {})

    def close(self) -> None:
        if self._found is not None:
            self._found.close()

    def _connect(self, patience: float | None = None) -> Any:
        if self._pool is None and self._cluster is not None:
            return connect_cluster(self._cluster, "state in Redis", patience)
        return connect(self._pool or {}, "state in Redis", patience)


class RedisStore(Store):
    """One namespace. What is prepared is kept here too, as it is what a commit writes."""

    def __init__(self, client: Any, namespace: str, where: str) -> None:
        self._client = client
        self._data = namespace
        self._prepare = f"{namespace}$prepare"
        self._txid = f"{namespace}$txid"
        self._where = where = f"{namespace!r} in {where}"
        with explained(where):
            found = client.hgetall(self._txid)
            self._prepared: dict[bytes, bytes | None] = {k: v or None for k, v in client.hgetall(self._prepare).items()}
        try:
            self._txids = (_number(found.get(b"commit")), _number(found.get(b"prepare")))
        except ValueError as problem:
            raise StateError(f"{where} has no transactions of a state in {self._txid!r}: {found!r}") from problem

    def txids(self) -> tuple[int | None, int | None]:
        return self._txids

    def count(self) -> int:
        with explained(self._where):
            return int(self._client.hlen(self._data)) + len(self._prepared)

    def load(self, key: bytes) -> bytes | None:
        if key in self._prepared:
            return self._prepared[key]
        with explained(self._where):
            return self._client.hget(self._data, key)  # type: ignore[no-any-return]

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        seen: set[bytes] = set(self._prepared)  # HSCAN may give a field twice
        yield from ((key, value) for key, value in self._prepared.items() if value is not None)
        with explained(self._where):
            for key, value in self._client.hscan_iter(self._data, count=_AT_ONCE):
                if key not in seen:
                    seen.add(key)
                    yield key, value

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.trace("write")
        with explained(self._where):
            for part in _parts(rows):
                self._client.hset(self._prepare, mapping={key: value or b"" for key, value in part})
            self.trace("sync")
            self._client.hset(self._txid, "prepare", txid)
        self._prepared.update(rows)
        self._txids = (self._txids[0], txid)
        self.trace("synced")

    def commit(self, txid: int) -> None:
        self.trace("write")
        with explained(self._where):
            self._put(list(self._prepared.items()))
            self.trace("sync")
            self._client.hset(self._txid, mapping={"commit": txid, "prepare": txid})
            self.trace("clean")
            self._client.delete(self._prepare)
        self._prepared.clear()
        self._txids = (txid, txid)
        self.trace("synced")

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.trace("write")
        with explained(self._where):
            self._put(rows)
        self.trace("synced")

    def write_if(self, key: bytes, before: bytes | None, rows: Sequence[tuple[bytes, bytes | None]]) -> bool:
        self.trace("write")
        arguments = [part or b"" for row in rows for part in row]
        with explained(self._where):
            found = bool(self._client.eval(_WRITE_IF, 1, self._data, key, before or b"", *arguments))
        self.trace("synced")
        return found

    def rollback(self) -> None:
        committed = self._txids[0]
        self.trace("write")
        with explained(self._where):
            self._client.delete(self._prepare)
            self.trace("sync")
            if committed is None:
                self._client.hdel(self._txid, "prepare")
            else:
                self._client.hset(self._txid, "prepare", committed)
        self._prepared.clear()
        self._txids = (committed, committed)
        self.trace("synced")

    def _put(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        for part in _parts([(key, value) for key, value in rows if value is not None]):
            self._client.hset(self._data, mapping=dict(part))
        for gone in _parts([(key, value) for key, value in rows if value is None]):
            self._client.hdel(self._data, *(key for key, _ in gone))


def _parts(rows: Sequence[tuple[bytes, bytes | None]]) -> Iterator[Sequence[tuple[bytes, Any]]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def _number(text: bytes | None) -> int | None:
    return None if text is None else int(text)


def _members(config: Mapping[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any] | None:
    found = config.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ConfigError(f"{CONFIG}: {name} is an object with {', '.join(known)}, not {found!r}")
    unknown = [each for each in found if each not in known]
    if unknown:
        raise ConfigError(f"{CONFIG}: {name} knows no {unknown[0]!r}; it has {', '.join(known)}")
    given = {member: value for member, value in found.items() if value is not None}
    for member, value in given.items():
        if member in ("host", "password"):
            if type(value) is not str or not value:
                raise ConfigError(f"{CONFIG}: {name}.{member} is {value!r}; use text")
        elif member != "nodes" and (type(value) is not int or value < 0):
            raise ConfigError(f"{CONFIG}: {name}.{member} is {value!r}; use a number")
    return given
