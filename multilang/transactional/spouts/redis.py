"""Redis Streams as sources: a partition is a stream, a position is the id of the last entry that was read.

Trim a stream (XTRIM, MAXLEN) only up to entries that were read and committed. Entries that were trimmed or deleted before
they were read are lost, and are reported: Redis counts all entries that were ever added, and a position has their number
less those that are left behind it (``ID NUMBER``). If a replayed batch has lost entries, that is reported, and so is a
stream that was deleted. Needs the extra ``redis``, and Redis 6.2 or later; only from 7.0 on it counts entries.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError, SourceUnavailable
from multilang.store.errors import StateError
from multilang.store.redis_access import settings, with_access
from multilang.store.redis_client import REQUIRES, connect, place, translated_errors
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceSpout,
    TransactionalSourceSpout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

START_SECS = 3.0  # of patience with a Redis that does not answer, before a topology starts


class _RedisStreams(SourceSpout):
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        streams: Sequence[str],
        fields: Sequence[str],
        batch_size: int = 1000,
        host: str = "localhost",
        port: int = 6379,
        database: int = 0,
        timeout: int = 2000,
        access: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(fields, batch_size)
        if isinstance(streams, str) or not streams:
            raise ConfigError(f'streams is {streams!r}; use a list of names, ["orders-0", "orders-1"]')
        self.streams = list(streams)
        self.settings = settings(host, port, database, timeout, access)

    def check_start(self, conf: dict[str, Any]) -> None:
        """Open the source once, with a short timeout since somebody waits for the answer."""
        RedisSource(self.streams, self.fields, with_access(conf, self.settings), START_SECS).close()

    def open(self, conf: Mapping[str, Any]) -> RedisSource:
        return RedisSource(self.streams, self.fields, with_access(conf, self.settings))


class TransactionalRedisSpout(_RedisStreams, TransactionalSourceSpout):
    """Entries of streams, the same in each replay.

    Args:
        streams: The names of the streams. One that is added at the end is a further partition.
        fields: The fields of the entries. An entry that lacks one has None there.
        batch_size: The largest number of entries of a stream in one batch.
        host: The server's host.
        port: The server's port.
        database: The number of the database.
        timeout: Milliseconds that an answer may take.
        access: The credentials, if the server authenticates its clients: ``user``, ``password`` (a Secret, or its place),
            ``tls``, ``ca``, ``cert`` and ``key``, each optional; missing ones are those of the conf's
            ``multilang.redis.access``.
    """


class OpaqueTransactionalRedisSpout(_RedisStreams, OpaqueTransactionalSourceSpout):
    """Entries of streams; a stream that can't be read holds up none of the others.

    Its arguments are those of TransactionalRedisSpout.
    """


class RedisSource(Source):
    """The source of both spouts of Redis Streams."""

    forgets = True  # streams are trimmed

    def __init__(
        self, streams: Sequence[str], fields: Sequence[str], settings: dict[str, Any], patience: float | None = None
    ) -> None:
        self._streams = streams
        self._fields = [field.encode() for field in fields]
        self._where = place(settings)
        self._notices: list[str] = []
        self._noticed: dict[int, Any] = {}  # by partition, the last loss that was reported
        self._client = connect(settings, "a spout of Redis Streams", patience)
        try:
            with translated_errors(self._where):
                missing = [name for name in streams if self._client.type(name) != b"stream"]
        except StateError:
            self._client.close()
            raise
        if missing:
            self._client.close()
            raise ConfigError(
                f"there is no stream {missing[0]!r} in {self._where}, which the spout is to read; add a first entry (XADD), "
                "or name another"
            )

    def num_partitions(self) -> int:
        return len(self._streams)

    def first(self, partition: int) -> str:
        return "0-0"

    def describe(self) -> str:
        return self._where

    def identity(self, partition: int) -> dict[str, str]:
        return {"stream": self._streams[partition]}

    def read(self, partition: int, position: str, most: int) -> tuple[list[list[Any]], str]:
        known, entries = self._entries(partition, position, "+", most)
        number = self._number(partition, position, known)
        if len(entries) < most:
            number = known.get("entries-added")  # this is the end
        elif number is not None:
            number += len(entries)
        id = entries[-1][0].decode() if entries else _id(position)
        return self._rows(partition, entries), id if number is None else f"{id} {number}"

    def read_again(self, partition: int, start: str, end: str) -> list[list[Any]]:
        return self._rows(partition, self._entries(partition, start, _id(end))[1])

    def has_more(self, partition: int, position: str) -> bool:
        known, entries = self._entries(partition, position, "+", 1)
        if not entries:  # otherwise the loss is noticed when they are read
            self._number(partition, position, known)
        return bool(entries)

    def notices(self) -> list[str]:
        found, self._notices = self._notices, []
        return found

    def close(self) -> None:
        self._client.close()

    def _number(self, partition: int, position: str, known: Mapping[str, Any]) -> int | None:
        """Return how many entries the stream ever had, less those behind a position; None if that is not known.

        Entries behind it that were removed before they were read are noticed. Redis counts removed entries, without their
        place. If none is left up to the position, all that are left are behind it, and the count is exact. Otherwise
        nothing behind it was trimmed, since Redis trims the oldest; but some may be deleted, of which the last is known.
        Then the count may be too low, and such a deletion may be reported a second time, which is better than never.
        """
        added = known.get("entries-added")
        if added is None:
            return None
        after, _, counted = position.partition(" ")
        removed, deleted, first = (
            int(added - known["length"]),
            known["max-deleted-entry-id"].decode(),
            known["first-entry"],
        )
        if _order(after) == (0, 0):  # it begins with what is there
            return removed
        is_exact = not first or _order(first[0].decode()) > _order(after)
        if counted and is_exact:
            lost = removed - int(counted)
            if lost > 0:
                self._notice(partition, f"{lost} entries behind {after} were trimmed or deleted", removed)
        elif _order(deleted) > _order(after):
            self._notice(partition, f"entries up to {deleted} were deleted behind {after}", deleted)
        return removed if is_exact else int(counted) if counted else None

    def _notice(self, partition: int, what: str, mark: Any) -> None:
        if self._noticed.get(partition) != mark:
            self._noticed[partition] = mark
            self._notices.append(
                f"stream {self._streams[partition]!r} in {self._where}: {what} before they were read: they are lost. Trim only "
                "what is committed (XTRIM with MINID)"
            )

    def _entries(self, partition: int, position: str, to: str, most: int | None = None) -> tuple[Any, list[Any]]:
        """Return Redis's facts about the stream, and the entries behind a position up to the id ``to``."""
        name, after = self._streams[partition], _id(position)
        try:
            with translated_errors(self._where), self._client.pipeline(transaction=True) as pipeline:
                pipeline.xinfo_stream(name)
                pipeline.xrange(name, f"({after}", to, most)
                known, entries = pipeline.execute(raise_on_error=False)
        except StateError as problem:
            raise SourceUnavailable(str(problem)) from problem
        for found in (known, entries):
            if isinstance(found, Exception):
                raise SourceUnavailable(f"stream {name!r} in {self._where} can't be read any more: {found}")
        if _order(known["last-generated-id"].decode()) < _order(after):
            raise SourceUnavailable(
                f"stream {name!r} in {self._where} was deleted and made anew: it was read up to {after}, and now ends at "
                f"{known['last-generated-id'].decode()}; give the new one another name"
            )
        return known, entries

    def _rows(self, partition: int, entries: Sequence[Any]) -> list[list[Any]]:
        rows = []
        for id, entry in entries:
            found = [entry.get(field) for field in self._fields]
            try:
                rows.append([None if value is None else value.decode() for value in found])
            except UnicodeDecodeError as problem:
                raise SourceUnavailable(
                    f"entry {id.decode()} of stream {self._streams[partition]!r} in {self._where} is not UTF-8: {problem.reason}; "
                    "what crosses the wire is text, so write numbers and base64, not bytes"
                ) from problem
        return rows


def _id(position: str) -> str:
    return position.partition(" ")[0]


def _order(id: str) -> tuple[int, ...]:
    return tuple(map(int, id.split("-")))
