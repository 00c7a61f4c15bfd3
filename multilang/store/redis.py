"""Rows in Redis, or in a Redis cluster. Needs the extra ``redis``.

===================== =======================================================================
key (a hash each)     content
===================== =======================================================================
``{PLACE}/TABLE``     the rows of a table
``{PLACE}/$call:ID``  the last calls of one store object, for an hour: see ``_WRITE``
===================== =======================================================================

The place stands in braces, so that all of it is on one server of a cluster, where one script sees it. A setting of the
server's (``appendfsync``) determines how soon a write is on the disk.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from hashlib import sha1
from threading import Lock

from multilang.component.errors import ConfigError
from multilang.helpers.masked import masked_text
from multilang.store import redis_access as access
from multilang.store import redis_client
from multilang.store.errors import StateError
from multilang.store.interface import Store
from multilang.store.redis_client import HASTE_SECS, REQUIRES, connect, connect_cluster, literal, translated_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.store.interface import Rows

LARGEST = 512 * 1024 * 1024  # bytes of a value, unless the server is set to another one (proto-max-bulk-len)
_PORTION_ROWS = 10_000
_PORTION_BYTES = 8 << 20
_FIRST = 100  # rows of the first portion that is read, when their size is not known yet
_MOST = 1000  # the same of all others: while a server reads them, it serves nobody else
_CALL = "$call:"

# KEYS: the calls of this store object, a key that is never there, the tables.
# ARGV: the number of this call, the lowest number of those that still wait for their answer, whether rows are removed, steps. A
# step is its name, the number of its table in KEYS, the number of its arguments, and these; first those that compare.
#
# A copy of a call finds the call's answer. The answers of calls below the lowest that waits are removed: a late copy of one
# changes nothing.
#
# Redis does not roll back a script when one of its commands is refused. So the kind of each key is checked first; the first
# write, of the record's present value, is one that a full memory refuses; and each other command is tried on no key.
_WRITE = """\
local lowest, answers = ARGV[2], ''
local before = redis.call('HGET', KEYS[1], 'calls')
if before then
  local last, calls = string.match(before, '^(%d+)([ %d=]*)$')
  if not last then error('DAMAGED: ' .. KEYS[1] .. ' is ' .. string.sub(before, 1, 40)) end
  for number, answer in string.gmatch(calls, ' (%d+)=(%d)') do
    if number == ARGV[1] then return tonumber(answer) end
    if tonumber(number) >= tonumber(lowest) then answers = answers .. ' ' .. number .. '=' .. answer end
  end
  if tonumber(last) > tonumber(lowest) then lowest = last end
  if tonumber(ARGV[1]) < tonumber(lowest) then error('DAMAGED: ' .. KEYS[1] .. ' is ' .. string.sub(before, 1, 40)) end
end
for place = 3, #KEYS do redis.call('HLEN', KEYS[place]) end
local calls = lowest .. answers
redis.call('HSET', KEYS[1], 'calls', calls)
for _, command in ipairs(ARGV[3] == '0' and {} or {{'UNLINK'}, {'HDEL', ''}, {'EXPIRE', 1}, {'HSCAN', 0}}) do
  redis.call(command[1], KEYS[2], unpack(command, 2))
end
local at, name, key, first, last = 4
local function step()
  name = ARGV[at]
  if name then key, first, last = KEYS[tonumber(ARGV[at + 1])], at + 3, at + 2 + tonumber(ARGV[at + 2]) end
  return name
end
local function each(rows, first, last, call)
  for start = first, last, 1000 do call(start, unpack(rows, start, math.min(start + 999, last))) end
end
local function put(key, rows, first, last)
  each(rows, first, last, function(_, ...) redis.call('HSET', key, ...) end)
end
local function drop(key, rows, first, last)
  each(rows, first, last, function(_, ...) redis.call('HDEL', key, ...) end)
end
local same = true
while same and (step() == 'is' or name == 'none') do
  at = last + 1
  local values = name == 'is' and (last - first + 1) / 2
  each(ARGV, first, values and last - values or last, function(start, ...)
    for place, found in ipairs(redis.call('HMGET', key, ...)) do
      same = same and found == (values and ARGV[start + place - 1 + values])
    end
  end)
end
redis.call('HSET', KEYS[1], 'calls', calls .. ' ' .. ARGV[1] .. (same and '=1' or '=0'))
redis.call('EXPIRE', KEYS[1], 3600)
if not same then return 0 end
while step() do
  at = last + 1
  if name == 'put' then put(key, ARGV, first, last)
  elseif name == 'drop' then drop(key, ARGV, first, last)
  else
    local into, cursor = name == 'merge' and KEYS[tonumber(ARGV[first])], '0'
    while into and cursor do
      local found = redis.call('HSCAN', key, cursor, 'COUNT', 1000)
      local rows, removed = {}, {}
      for place = 1, #found[2], 2 do
        local row, value = found[2][place], found[2][place + 1]
        if value == '' then removed[#removed + 1] = row
        else rows[#rows + 1] = row; rows[#rows + 1] = value end
      end
      put(into, rows, 1, #rows)
      drop(into, removed, 1, #removed)
      cursor = found[1] ~= '0' and found[1]
    end
    redis.call('UNLINK', key)
  end
end
return 1
"""
_DIGEST = sha1(_WRITE.encode()).hexdigest()  # how Redis names a script that it knows


class RedisStore(Store):
    """Rows in one database of a Redis, or in a cluster.

    Args:
        url: ``redis://HOST:PORT/DATABASE``, or ``rediss://USER@HOST:PORT/DATABASE?ca=FILE``.
        conf: The conf of the topology, with ``multilang.redis.access``, for passwords, which belong into no URL.
        setting: The conf key that has the URL, for messages.
        settings: Instead of the URL: the settings of ``redis_client.connect``, or with ``nodes`` those of ``connect_cluster``.

    Raises:
        ConfigError: The URL is wrong, or the credentials are.
    """

    requires = REQUIRES
    portion_rows = _PORTION_ROWS
    portion_bytes = _PORTION_BYTES

    def __init__(
        self,
        url: str,
        conf: Mapping[str, Any] | None = None,
        setting: str = "multilang.store",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url, conf, setting)
        self._given = settings
        if settings is None:
            try:
                settings = access.place_of(url)
            except (ValueError, ConfigError) as problem:
                raise ConfigError(f"{setting} is {masked_text(repr(url))}: {problem}") from None
        self._settings = access.with_access(self.conf, settings)
        self._is_cluster = "nodes" in self._settings
        self._lock = Lock()
        self._found: Any = None
        self._largest: int | None = None
        self._patience: float | None = None
        self._calls = _Calls()

    @property
    def largest(self) -> int:  # type: ignore[override]  # the server is asked once
        """The largest size of a key or value, in bytes, that the server takes and that can be read again."""
        if self._largest is None:
            most = LARGEST
            with self._errors() as client:
                try:
                    most = int(next(iter(client.config_get("proto-max-bulk-len").values())))
                except Exception as problem:
                    if type(problem).__name__ not in ("ResponseError", "NoPermissionError", "StopIteration"):
                        raise  # with the named errors the default holds: this user may not read the server's conf
            self._largest = min(LARGEST, most, redis_client.MAX_ANSWER // 2)
        return self._largest

    def get(self, place: str, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        with self._errors(place) as client:
            return client.hmget(_key(place, table), keys)  # type: ignore[no-any-return]

    def list(self, place: str, table: str) -> Iterator[tuple[bytes, bytes]]:
        seen: set[bytes] = set()  # HSCAN may give a row twice
        cursor, count = 0, _FIRST
        while True:
            with self._errors(place) as client:
                try:
                    after, rows = client.hscan(_key(place, table), cursor, count=count)
                except Exception as problem:
                    if type(problem).__name__ != "InvalidResponse" or count == 1:
                        raise
                    count = 1  # these rows are too large for one answer
                    continue
            new = {key: value for key, value in rows.items() if key not in seen}
            seen.update(new)
            yield from new.items()
            cursor = after
            if not cursor:
                return
            size = sum(len(key) + len(value) for key, value in rows.items())
            count = max(1, min(_MOST, len(rows) * _PORTION_BYTES // max(size, 1))) if rows else _FIRST

    def places(self, start: str) -> Sequence[str]:
        found = set()
        with self._errors() as client:
            for key in client.scan_iter(match=literal(f"{{{_quoted(start)}") + "*}/*", count=_MOST):
                place, _, table = key.decode("utf-8", "replace")[1:].partition("}/")
                if not table.startswith(_CALL):
                    found.add(_unquoted(place))
        return [*found]

    def tables(self, place: str) -> Sequence[str]:
        start = _key(place, "")
        with self._errors(place) as client:
            # SCAN may give a key twice
            keys = {key.decode("utf-8", "replace") for key in client.scan_iter(match=f"{literal(start)}*", count=_MOST)}
        return [key.removeprefix(start) for key in keys if not key.startswith(f"{start}{_CALL}")]

    def compare_and_write(
        self,
        place: str,
        expected: Rows,
        changes: Rows,
        cleared: Collection[str] = (),
        merged: tuple[str, str] | None = None,
    ) -> bool:
        self.trace("write")
        tables: dict[str, int] = {}
        steps: list[Any] = []

        def add(name: str, table: str, *arguments: Any) -> None:
            if arguments or name == "clear":
                steps.extend((name, number(table), len(arguments), *arguments))

        def number(table: str) -> int:
            return tables.setdefault(table, len(tables) + 3)

        for table, rows in expected.items():
            there = {key: value for key, value in rows.items() if value is not None}
            add("is", table, *there, *there.values())
            add("none", table, *(key for key, value in rows.items() if value is None))
        for table in cleared:
            add("clear", table)
        if merged is not None:
            add("merge", merged[0], number(merged[1]))
        for table, rows in changes.items():
            add("put", table, *(part for row in rows.items() if row[1] is not None for part in row))
            add("drop", table, *(key for key, value in rows.items() if value is None))
        removes = 1 if cleared or merged or any(None in rows.values() for rows in changes.values()) else 0
        if self._calls.process != os.getpid():
            self._calls = _Calls()  # a copy of this process would count as it does
        calls = self._calls
        keys = [
            _key(place, f"{_CALL}{calls.client}"),
            _key(place, f"{_CALL}none"),
            *(_key(place, each) for each in tables),
        ]
        with calls.one() as (call, lowest), self._errors(place) as client:
            self.trace("sync")
            try:
                done: int = client.evalsha(_DIGEST, len(keys), *keys, call, lowest, removes, *steps)
            except Exception as problem:
                if type(problem).__name__ != "NoScriptError":
                    raise
                done = client.eval(_WRITE, len(keys), *keys, call, lowest, removes, *steps)
        if done:
            self.trace("synced")
        return bool(done)

    def check(self) -> None:
        client = self._connect(lambda: HASTE_SECS)
        try:
            with translated_errors(self.describe(), self.setting):
                client.ping()
                try:
                    nodes = [{"target_nodes": each} for each in client.get_primaries()] if self._is_cluster else [{}]
                    infos = [client.info("memory", **node) for node in nodes]
                except Exception as problem:
                    if type(problem).__name__ not in ("ResponseError", "NoPermissionError"):
                        raise
                    return  # this user may not read the server's policy
        finally:
            client.close()
        for info in infos:
            policy = str(info.get("maxmemory_policy", ""))
            if policy.startswith("allkeys") and info.get("maxmemory"):
                raise StateError(
                    f"{self.describe()} deletes keys when its memory is full (maxmemory-policy {policy}), and so would lose what is "
                    "stored: set it to noeviction, or use another Redis"
                )

    def hurry(self) -> None:
        self._patience = HASTE_SECS

    def describe(self) -> str:
        return redis_client.place(self._settings)

    def close(self) -> None:
        super().close()
        with self._lock:
            if self._found is not None:
                self._found.close()
                self._found = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url, self.conf, self.setting, self._given)

    @contextmanager
    def _errors(self, place: str = "") -> Iterator[Any]:
        """Yield the connection, which is opened at its first use, and translate its errors."""
        where = f"{_key(place, '*')!r} in " if place else ""
        with translated_errors(where + self.describe(), self.setting):
            with self._lock:
                if self._found is None:
                    self._found = self._connect(lambda: self._patience or redis_client.PATIENCE_SECS)
            yield self._found

    def _connect(self, patience: Callable[[], float]) -> Any:
        if self._is_cluster:
            return connect_cluster(self._settings, self.setting, self.setting, patience)
        return connect(self._settings, self.setting, patience)


class _Calls:
    """The calls of one process, and which of them wait for their answer.

    Attributes:
        client: An id of the process, drawn at random.
        process: The number of the process.
    """

    def __init__(self) -> None:
        self.client = os.urandom(8).hex()
        self.process = os.getpid()
        self._lock = Lock()
        self._last = 0
        self._waiting: set[int] = set()

    @contextmanager
    def one(self) -> Iterator[tuple[int, int]]:
        """Count a call, and yield its number and the lowest of those that wait."""
        with self._lock:
            self._last = call = self._last + 1
            self._waiting.add(call)
            lowest = min(self._waiting)
        try:
            yield call, lowest
        finally:
            with self._lock:
                self._waiting.remove(call)


def _key(place: str, table: str) -> str:
    return f"{{{_quoted(place) or '%'}}}/{table}"  # a cluster sees no empty braces


def _quoted(place: str) -> str:
    return place.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def _unquoted(place: str) -> str:
    return "" if place == "%" else place.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")
