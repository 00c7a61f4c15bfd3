"""State in Redis, laid out as Storm's RedisKeyValueState does, with the topology's name before each key.

================================== ==========================================================
key (a hash each)                  content
================================== ==========================================================
``<topology>:<namespace>``         the committed keys and values
``<topology>:<namespace>$prepare`` the prepared ones; an empty value stands for a deleted key
``<topology>:<namespace>$txid``    ``commit`` and ``prepare``: the transactions; ``epoch`` and ``claim``: the owner's;
                                   ``by``: the call that made the claim; ``step``: the last step that was done; ``size``
                                   and ``waiting``: the number of keys in the other two
``<topology>:$owner``              ``epoch`` and ``owner`` of the topology's states; ``<topology>:$beats`` counts its beats
================================== ==========================================================

Each step is one script, which compares the claim and the transactions and moves the rows inside Redis. It is done whole
or not at all, and never for a task that is not the newest. A client that got no answer sends its script again; the
script then finds that its step, or its claim, was done. A client ends if it finds fewer steps than it did, or another
number of keys: then Redis was put back to an older copy, or has lost keys.

In a Redis cluster ``<topology>:<namespace>`` stands in braces, so that the three keys are on one server. Needs the
extra ``redis``.
"""

from __future__ import annotations

import os

from multilang.component.errors import ConfigError
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.owner import Owner, claim_for
from multilang.state.provider import StateProvider
from multilang.state.redis_client import REQUIRES, connect, connect_cluster, place, translated_errors
from multilang.state.redis_place import HASTE_SECS, RedisPlace
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, cached_keys, check_members
from multilang.state.stored import Store, StoredState, check_commit, check_prepare, fenced, went_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


START_SECS = HASTE_SECS  # how long Redis is waited for before a topology starts
LARGEST = 512 * 1024 * 1024  # bytes of a value, unless the server says otherwise (proto-max-bulk-len)
# Limits for one command, in fields and bytes: while a server runs it, it serves nobody else.
_AT_ONCE = 1000
_BYTES_AT_ONCE = 4 << 20
_POOL = ("host", "port", "timeout", "database", "password")
_CLUSTER = ("nodes", "timeout", "maxRedirections", "password")
_COORDINATOR = "$checkpointspout-0"

# KEYS of all scripts of a namespace: data, prepare, txid. Each returns a list that begins with its outcome.
# ARGV: the epoch, the claim of this client (empty: none yet), the claim that it found there, and this call's name. A copy
# that comes late finds another claim than the client had found, and so takes nothing from whoever has claimed since.
_CLAIM = """\
local epoch, claim, step, size, waiting, by = unpack(
  redis.call('HMGET', KEYS[3], 'epoch', 'claim', 'step', 'size', 'waiting', 'by'))
if (epoch and tonumber(epoch) > tonumber(ARGV[1])) or (ARGV[2] ~= '' and claim ~= ARGV[2]) then
  return {'fenced', claim or 0, epoch or 0}
end
local keys, more = redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2])
if (size and keys ~= tonumber(size)) or (waiting and more ~= tonumber(waiting)) then
  return {'lost', keys, size or '', more, waiting or ''}
end
claim = tonumber(claim or 0)
local seen = tonumber(ARGV[3])
if ARGV[2] == '' and not (by == ARGV[4] and claim == seen + 1) then
  if claim ~= seen then return {'moved'} end
  claim = claim + 1
  redis.call('HSET', KEYS[3], 'claim', claim, 'by', ARGV[4])
end
redis.call('HSET', KEYS[3], 'epoch', ARGV[1])
return {'claimed', claim, tonumber(step or 0)}
"""
# ARGV: the claim, the last step that is known to be done, the number of this step.
_IF_MINE = """\
local claim, committed, prepared, step, size, waiting = unpack(
  redis.call('HMGET', KEYS[3], 'claim', 'commit', 'prepare', 'step', 'size', 'waiting'))
if not claim then return {'gone'} end
if claim ~= ARGV[1] then return {'fenced', claim} end
step = tonumber(step or 0)
if step < tonumber(ARGV[2]) then return {'back', step} end
if step >= tonumber(ARGV[3]) then return {'done'} end  -- this step, or even later ones: it is a copy that came late
local keys, more = redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2])
if (size and keys ~= tonumber(size)) or (waiting and more ~= tonumber(waiting)) then
  return {'lost', keys, size or '', more, waiting or ''}
end
local function done()
  redis.call('HSET', KEYS[3], 'step', ARGV[3], 'size', redis.call('HLEN', KEYS[1]), 'waiting', redis.call('HLEN', KEYS[2]))
  return {'done'}
end
local function put(key, first, last, rows)
  for start = first, last, 1000 do
    redis.call('HSET', key, unpack(rows, start, math.min(start + 999, last)))
  end
end
local function drop(key, fields)
  for start = 1, #fields, 1000 do
    redis.call('HDEL', key, unpack(fields, start, math.min(start + 999, #fields)))
  end
end
"""
_PREPARE = (
    _IF_MINE
    + """\
local txid = tonumber(ARGV[4])
if committed and txid <= tonumber(committed) then return {'transaction', committed, prepared or ''} end
put(KEYS[2], 6, #ARGV, ARGV)
if ARGV[5] == 'last' then redis.call('HSET', KEYS[3], 'prepare', txid) end
return done()
"""
)
_COMMIT = (
    _IF_MINE
    + """\
local txid = tonumber(ARGV[4])
if (committed and txid < tonumber(committed)) or (prepared and txid ~= tonumber(prepared)) then
  return {'transaction', committed or '', prepared or ''}
end
local rows = redis.call('HGETALL', KEYS[2])
local kept, gone = {}, {}
for place = 1, #rows, 2 do
  if rows[place + 1] == '' then gone[#gone + 1] = rows[place]
  else kept[#kept + 1] = rows[place]; kept[#kept + 1] = rows[place + 1] end
end
put(KEYS[1], 1, #kept, kept)
drop(KEYS[1], gone)
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[3], 'commit', txid, 'prepare', txid)
return done()
"""
)
_WRITE = (
    _IF_MINE
    + """\
for place = 4, #ARGV, 2 do
  if ARGV[place + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[place])
  else redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1]) end
end
return done()
"""
)
_ROLLBACK = (
    _IF_MINE
    + """\
redis.call('DEL', KEYS[2])
if committed then redis.call('HSET', KEYS[3], 'prepare', committed)
else redis.call('HDEL', KEYS[3], 'prepare') end
return done()
"""
)


class RedisStateProvider(StateProvider):
    """A provider of states in Redis.

    ``topology.state.provider.config`` is that of Storm's page: ``{"jedisPoolConfig": {"host": ..., "port": ...}}``, or
    ``jedisClusterConfig`` with ``nodes`` for a cluster.
    """

    requires: Mapping[str, str] = REQUIRES

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        super().__init__(config, conf)
        check_members(self.config, "state in Redis", ("jedisPoolConfig", "jedisClusterConfig"))
        self._pool = _members(self.config, "jedisPoolConfig", _POOL)
        self._cluster = _members(self.config, "jedisClusterConfig", _CLUSTER)
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)
        topology = str(self.conf.get("topology.name") or "topology")
        self._name = topology.replace("%", "%25").replace(":", "%3A")  # so that the first colon of a key ends the name
        self._found: Any = None
        self._largest: int | None = None

    @property
    def client(self) -> Any:
        """The connection, opened at its first use."""
        if self._found is None:
            self._found = self.connect()
        return self._found

    def new_state(self, namespace: str) -> StoredState:
        return StoredState(namespace, self._store(namespace), self._keys, self._values, cached_keys(self.conf))

    def namespaces(self) -> list[str]:
        return sorted(self._namespaces(self.key("").removesuffix("}")))

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        return self._store(namespace).txids()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """Replace these contents in one transaction of renames, which shows them all at once. A cluster can't do that.

        Args:
            states: The new contents by namespace.

        Raises:
            FencedError: Somebody else has claimed the states since.
            StateError: This is a cluster.
        """
        if self.is_cluster:
            raise StateError(
                "what a Redis cluster holds can't be replaced all at once; export it and import it elsewhere"
            )
        client = self.client
        with translated_errors(self.describe()):
            for namespace, content in states.items():
                new = self.key(namespace, "$new")
                client.delete(new)
                rows = [(self._keys.encode(key), self._values.encode(value)) for key, value in content.items()]
                for part in _parts(rows):
                    client.hset(new, mapping=dict(part))
            with client.pipeline(transaction=True) as pipeline:
                owner = self.key("", "$owner")
                pipeline.watch(owner)
                self._check_owner(*pipeline.hmget(owner, "epoch", "owner"))
                pipeline.multi()
                for namespace, content in states.items():
                    data = self.key(namespace)
                    pipeline.delete(data, f"{data}$prepare")
                    pipeline.hdel(f"{data}$txid", "commit", "prepare")
                    pipeline.hincrby(f"{data}$txid", "claim", 1)  # so that an earlier writer is refused
                    pipeline.hset(f"{data}$txid", mapping={"size": len(content), "waiting": 0})
                    if content:
                        pipeline.rename(f"{data}$new", data)
                        pipeline.hset(f"{data}$txid", "commit", -1)
                pipeline.execute()

    def adopt(self) -> int:
        """Give this topology's name to states that an older version stored without one.

        Returns:
            The number of namespaces.

        Raises:
            StateError: This is a cluster, or there is state under this topology's name already.
        """
        if self.is_cluster:
            raise StateError("what a Redis cluster holds can't be renamed; export it by the version that wrote it")
        found = self._older()
        if self.namespaces():
            raise StateError(f"{self.describe()} holds a state of this topology already; nothing was renamed")
        with translated_errors(self.describe()), self.client.pipeline(transaction=True) as pipeline:
            for name in found:
                for suffix in ("", "$prepare", "$txid"):
                    if self.client.exists(f"{name}{suffix}"):
                        pipeline.rename(f"{name}{suffix}", self.key(name, suffix))
            pipeline.execute()
        return len(found)

    def check(self) -> None:
        """Ask Redis once, with a short patience since somebody waits for the answer."""
        client = self.connect(START_SECS)
        try:
            with translated_errors(self.describe(), CONFIG):
                client.ping()
            self._check_eviction(client)
        finally:
            client.close()

    def place(self) -> RedisPlace:
        what = f"the state of topology {self.conf.get('topology.name')!r}"
        keys = self.key("", "$owner"), self.key("", "$beats")
        return RedisPlace(keys, self.connect, what, self.describe(), f"{CONFIG}, or another topology.name")

    def claim(self) -> int:
        if self._owned is None:
            self._check_eviction(self.client)
            self._owned = claim_for(self.conf, self.place())
            if not self.namespaces() and (older := self._older()):
                raise StateError(
                    f"{self.describe()} holds a state that an older version stored under no topology's name ({', '.join(older)}). "
                    "If it is this topology's: multilang state adopt TOPOLOGY; if not, name another database in "
                    f"{CONFIG}"
                )
        return self._owned.epoch

    def describe(self) -> str:
        if self.is_cluster:
            return f"Redis cluster {', '.join(map(str, (self._cluster or {}).get('nodes') or ()))}"
        return place(self._pool or {})

    def close(self) -> None:
        super().close()
        if self._found is not None:
            self._found.close()
            self._found = None

    @property
    def is_cluster(self) -> bool:
        """True for a Redis cluster, where a script sees the keys of one server only."""
        return self._cluster is not None and self._pool is None

    def key(self, namespace: str, suffix: str = "") -> str:
        """Return the key of a namespace, or with a ``suffix`` one of the keys beside it."""
        key = f"{self._name}:{namespace}"
        return f"{{{key}}}{suffix}" if self.is_cluster else f"{key}{suffix}"

    def connect(self, patience: float | None = None) -> Any:
        """Return a new connection.

        Args:
            patience: Seconds to wait for a Redis that does not answer; None: ``PATIENCE_SECS``.
        """
        if self._pool is None and self._cluster is not None:
            return connect_cluster(self._cluster, "state in Redis", patience)
        return connect(self._pool or {}, "state in Redis", patience)

    def _check_eviction(self, client: Any) -> None:
        """Raise StateError if the server deletes keys by itself when its memory is full."""
        with translated_errors(self.describe(), CONFIG):
            try:
                said = client.info("memory")
            except Exception as problem:
                if type(problem).__name__ not in ("ResponseError", "NoPermissionError"):
                    raise
                return  # this user may not know the server's policy
        policy = str(said.get("maxmemory_policy", ""))
        if policy.startswith("allkeys") and said.get("maxmemory"):
            raise StateError(
                f"{self.describe()} deletes keys when its memory is full (maxmemory-policy {policy}), and so would lose state: set "
                "it to noeviction, or use another Redis"
            )

    def _store(self, namespace: str) -> RedisStore:
        return RedisStore(self.client, namespace, self.key(namespace), self.describe(), self._value_limit())

    def _value_limit(self) -> int:
        """Return the largest size of a value, in bytes, that the server takes."""
        if self._largest is None:
            self._largest = LARGEST
            with translated_errors(self.describe(), CONFIG):
                try:
                    said = self.client.config_get("proto-max-bulk-len")
                    self._largest = min(LARGEST, int(next(iter(said.values()))))
                except Exception as problem:
                    if type(problem).__name__ not in ("ResponseError", "NoPermissionError", "StopIteration"):
                        raise  # the named errors leave the default: the server does not tell this user
        return self._largest

    def _namespaces(self, start: str) -> set[str]:
        found = set()
        end = "}" if self.is_cluster else ""
        client = self.client
        with translated_errors(self.describe()):
            # After a first prepare that was cut short there is only $prepare. An older version had neither key for the
            # checkpoint spout.
            for pattern in ("*$txid", "*$prepare", f"{_COORDINATOR}{end}"):
                for key in client.scan_iter(match=_literal(start) + pattern, count=_AT_ONCE):
                    data = key.decode("utf-8", "replace").removesuffix("$txid").removesuffix("$prepare")
                    if any(client.hmget(f"{data}$txid", "commit", "prepare")) or client.exists(data, f"{data}$prepare"):
                        found.add(data.removeprefix(start).removesuffix(end))
        return found

    def _older(self) -> list[str]:
        """Return the namespaces of a version that stored one topology in a database, without its name."""
        if self.is_cluster or not self.client.exists(_COORDINATOR):
            return []
        return sorted({_COORDINATOR, *(name for name in self._namespaces("") if ":" not in name)})

    def _check_owner(self, epoch: bytes | None, owner: bytes | None) -> None:
        mine = 0 if self._owned is None else self._owned.epoch
        if epoch is None or owner is None or int(epoch) != mine:
            by = "nobody" if owner is None else Owner.from_text(owner)
            raise FencedError(
                f"the state of {self._name!r} in {self.describe()} belongs to {by} by now: nothing was replaced"
            )


class RedisStore(Store):
    """One namespace in Redis. Prepared values are also kept in memory, once they were read."""

    def __init__(self, client: Any, namespace: str, key: str, where: str, largest: int) -> None:
        self._client = client
        self._namespace = namespace
        self._data = key
        self._prepare = f"{key}$prepare"
        self._txid = f"{key}$txid"
        self._where = f"{namespace!r} in {where}"
        self._claim: int | None = None
        self._step = self._done = 0  # the last step that was begun, and the last that is known to be done
        self._read: dict[bytes, bytes | None] | None = None
        self.largest = largest

    def txids(self) -> tuple[int | None, int | None]:
        with translated_errors(self._where):
            found = self._client.hmget(self._txid, "commit", "prepare")
        try:
            return _number(found[0]), _number(found[1])
        except ValueError as problem:
            raise StateError(f"{self._where} has no transactions of a state in {self._txid!r}: {found!r}") from problem

    def claim(self, epoch: int) -> None:
        mine = self._claim
        keys = (self._data, self._prepare, self._txid)
        call = os.urandom(8).hex()
        said = b"moved"
        while said == b"moved":  # somebody else claimed between the look and the claim
            with translated_errors(self._where):
                seen = (self._client.hget(self._txid, "claim") or 0) if mine is None else mine
                said, *found = self._client.eval(_CLAIM, 3, *keys, epoch, "" if mine is None else mine, seen, call)
        if said == b"lost":
            raise self._lost(found)
        if said != b"claimed":
            known = " of epoch ".join(_text(each) for each in found)
            raise fenced(self._namespace, self._where, f"{mine or 0} of epoch {epoch}", known)
        self._claim, self._done = map(int, found)
        self._step = self._done

    def count(self) -> int:
        prepared = self._prepared()
        with translated_errors(self._where):
            return int(self._client.hlen(self._data)) + len(prepared)

    def load(self, key: bytes) -> bytes | None:
        prepared = self._prepared()
        if key in prepared:
            return prepared[key]
        with translated_errors(self._where):
            return self._client.hget(self._data, key)  # type: ignore[no-any-return]

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        prepared = dict(self._prepared())
        seen: set[bytes] = set(prepared)  # HSCAN may give a field twice
        yield from ((key, value) for key, value in prepared.items() if value is not None)
        with translated_errors(self._where):
            for key, value in self._client.hscan_iter(self._data, count=_AT_ONCE):
                if key not in seen:
                    seen.add(key)
                    yield key, value

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.trace("write")
        parts = list(_parts(rows)) or [[]]
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            if last:
                self.trace("sync")
            committed, _ = self._run(_PREPARE, txid, "last" if last else "more", *_flat(part))
            check_prepare(self._namespace, txid, committed)
        if self._read is not None:
            self._read.update(rows)
        self.trace("synced")

    def commit(self, txid: int) -> None:
        self.trace("write")
        check_commit(self._namespace, txid, *self._run(_COMMIT, txid))
        self._read = {}
        self.trace("synced")

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.trace("write")
        self._run(_WRITE, *_flat(rows))
        self.trace("synced")

    def rollback(self) -> None:
        self.trace("write")
        self._run(_ROLLBACK)
        self._read = {}
        self.trace("synced")

    def _prepared(self) -> dict[bytes, bytes | None]:
        if self._read is None:
            with translated_errors(self._where):
                self._read = {key: value or None for key, value in self._client.hgetall(self._prepare).items()}
        return self._read

    def _run(self, script: str, *arguments: Any) -> tuple[int | None, int | None]:
        """Run a script on this store's namespace.

        Returns:
            The committed and prepared transactions if they forbid the step; (None, None) if it was done.
        """
        if self._claim is None:
            raise StateError(f"the state of {self._where} is written to before it was claimed: call claim(epoch) first")
        keys = (self._data, self._prepare, self._txid)
        self._step += 1
        with translated_errors(self._where):
            said, *found = self._client.eval(script, 3, *keys, self._claim, self._done, self._step, *arguments)
        if said == b"done":
            self._done = self._step
        if said == b"back":
            raise went_back(self._namespace, self._where, self._done, int(found[0]))
        if said == b"lost":
            raise self._lost(found)
        if said == b"gone":
            raise StoreGoneError(
                f"the state of {self._where} was deleted while it was in use: what was stored there is gone. Put it back, or start "
                "the topology again, which then goes on from what is there"
            )
        if said == b"fenced":
            raise fenced(self._namespace, self._where, self._claim, _text(found[0]))
        return (_number(found[0] or None), _number(found[1] or None)) if said == b"transaction" else (None, None)

    def _lost(self, found: Sequence[Any]) -> StoreGoneError:
        keys, size, more, waiting = (_text(each) for each in found)
        which, has, had = (self._data, keys, size) if size not in ("", keys) else (self._prepare, more, waiting)
        return StoreGoneError(
            f"the state of {self._where} was changed by somebody else: {which!r} has {has} keys, and {had} were written. Put them back, or "
            f"delete all of {self._data!r}, {self._prepare!r} and {self._txid!r} of every task to start from nothing"
        )


def _flat(rows: Sequence[tuple[bytes, bytes | None]]) -> list[bytes]:
    return [part or b"" for row in rows for part in row]


def _text(found: Any) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def _literal(text: str) -> str:
    """Return ``text`` escaped for a pattern of SCAN."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^" else letter for letter in text)


def _parts(rows: Sequence[tuple[bytes, bytes | None]]) -> Iterator[Sequence[tuple[bytes, Any]]]:
    part: list[tuple[bytes, Any]] = []
    size = 0
    for row in rows:
        more = len(row[0]) + len(row[1] or b"")
        if part and (len(part) == _AT_ONCE or size + more > _BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(row)
        size += more
    if part:
        yield part


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
