"""One namespace of state in Redis, and the scripts by which it changes.

Each step is one script, which compares the claim and the transactions and moves the rows inside Redis. It is done whole
or not at all, and never for a task that is not the newest. A client that got no answer sends its script again; the
script then finds that its step, or its claim, was done. A client ends if it finds fewer steps than it did, or another
number of keys: then Redis was put back to an older copy, or has lost keys.
"""

from __future__ import annotations

import os

from multilang.state.errors import StateError, StoreGoneError
from multilang.state.stored import Store, check_commit, check_prepare, fenced, went_back
from multilang.store.redis_client import NUMBER, translated_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# Limits for one command, in fields and bytes: while a server runs it, it serves nobody else.
AT_ONCE = 1000
_OF_MAPS = "$owner"  # a field that every map has, and no state with the library's serializers
_BYTES_AT_ONCE = 4 << 20

# KEYS of all scripts of a namespace: data, prepare, txid. Each returns a list that begins with its outcome.
# ARGV: the epoch, the claim of this client (empty: none yet), the claim that it found there, and this call's name. A copy
# that comes late finds another claim than the client had found, and so takes nothing from whoever has claimed since.
_CLAIM = (
    NUMBER
    + """\
local epoch, claim, step, size, waiting, by = unpack(
  redis.call('HMGET', KEYS[3], 'epoch', 'claim', 'step', 'size', 'waiting', 'by'))
if (epoch and number(epoch, 'epoch') > tonumber(ARGV[1])) or (ARGV[2] ~= '' and claim ~= ARGV[2]) then
  return {'fenced', claim or 0, epoch or 0}
end
local keys, more = redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2])
if (size and keys ~= tonumber(size)) or (waiting and more ~= tonumber(waiting)) then
  return {'lost', keys, size or '', more, waiting or ''}
end
claim = number(claim, 'claim')
local seen = tonumber(ARGV[3])
if ARGV[2] == '' and not (by == ARGV[4] and claim == seen + 1) then
  if claim ~= seen then return {'moved'} end
  claim = claim + 1
  redis.call('HSET', KEYS[3], 'claim', claim, 'by', ARGV[4])
end
redis.call('HSET', KEYS[3], 'epoch', ARGV[1])
return {'claimed', claim, number(step, 'step')}
"""
)
# ARGV: the claim, the last step that is known to be done, the number of this step.
_IF_MINE = (
    NUMBER
    + """\
local claim, committed, prepared, step, size, waiting = unpack(
  redis.call('HMGET', KEYS[3], 'claim', 'commit', 'prepare', 'step', 'size', 'waiting'))
if not claim then return {'gone'} end
if claim ~= ARGV[1] then return {'fenced', claim} end
step = number(step, 'step')
committed = committed and number(committed, 'commit')
prepared = prepared and number(prepared, 'prepare')
if step < tonumber(ARGV[2]) then return {'back', step} end
if step >= tonumber(ARGV[3]) then return {'done', step} end  -- this step, or even later ones: it is a copy that came late
local keys, more = redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2])
if (size and keys ~= tonumber(size)) or (waiting and more ~= tonumber(waiting)) then
  return {'lost', keys, size or '', more, waiting or ''}
end
local function done()
  redis.call('HSET', KEYS[3], 'step', ARGV[3], 'size', redis.call('HLEN', KEYS[1]), 'waiting', redis.call('HLEN', KEYS[2]))
  return {'done', tonumber(ARGV[3])}
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
)
_PREPARE = (
    _IF_MINE
    + """\
local txid = tonumber(ARGV[4])
if committed and txid <= committed then return {'transaction', committed, prepared or ''} end
put(KEYS[2], 6, #ARGV, ARGV)
if ARGV[5] == 'last' then redis.call('HSET', KEYS[3], 'prepare', txid) end
return done()
"""
)
_COMMIT = (
    _IF_MINE
    + """\
local txid = tonumber(ARGV[4])
if (committed and txid < committed) or (prepared and txid ~= prepared) then
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
        except ValueError:
            raise StateError(f"{self._where} has no transactions of a state in {self._txid!r}: {found!r}") from None

    def claim(self, epoch: int) -> None:
        mine = self._claim
        keys = (self._data, self._prepare, self._txid)
        call = os.urandom(8).hex()
        said = b"moved"
        while said == b"moved":  # somebody else claimed between the look and the claim
            with translated_errors(self._where):
                seen = (self._client.hget(self._txid, "claim") or 0) if mine is None else mine
                if not seen and self._client.hexists(self._data, _OF_MAPS):
                    raise StoreGoneError(
                        f"the state of {self._where} can't be stored: its key {self._data!r} is that of a map of a transactional "
                        "topology; give the topology, or the map, another name"
                    )
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
            for key, value in self._client.hscan_iter(self._data, count=AT_ONCE):
                if key not in seen:
                    seen.add(key)
                    yield key, value

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.trace("write")
        portions = list(parts(rows)) or [[]]
        for number, part in enumerate(portions, 1):
            last = number == len(portions)
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
            if int(found[0]) != self._step:
                raise StoreGoneError(
                    f"the state of {self._where} was changed by somebody else: {self._txid!r} says that step {_text(found[0])} was done, and "
                    f"{self._step} is the next. Put it back, or delete all of {self._data!r}, {self._prepare!r} and {self._txid!r} of "
                    "every task to start from nothing"
                )
            self._done = self._step
        if said == b"back":
            then = "Start the topology again, which goes on from that copy"
            raise went_back(self._namespace, self._where, self._done, int(found[0]), then)
        if said == b"lost":
            raise self._lost(found)
        if said == b"gone":
            raise StoreGoneError(
                f"the state of {self._where} was deleted while it was in use: what was stored there is gone. Put it back, or start "
                "the topology again, which then goes on from what is there"
            )
        if said == b"fenced":
            raise fenced(self._namespace, self._where, self._claim, _text(found[0]))
        if said == b"transaction":
            committed, prepared = (None if each == b"" else int(each) for each in found)
            return committed, prepared
        return None, None

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


def parts(rows: Sequence[tuple[bytes, bytes | None]]) -> Iterator[Sequence[tuple[bytes, Any]]]:
    """Yield rows in portions that one command can take."""
    part: list[tuple[bytes, Any]] = []
    size = 0
    for row in rows:
        more = len(row[0]) + len(row[1] or b"")
        if part and (len(part) == AT_ONCE or size + more > _BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(row)
        size += more
    if part:
        yield part


def _number(text: bytes | None) -> int | None:
    return None if text is None else int(text)
