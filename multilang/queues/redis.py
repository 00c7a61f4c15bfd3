"""A Redis Stream as the source of a plain topology: a consumer group divides its entries and stores their acks.

Each task is a consumer of its own, ``TOPOLOGY/COMPONENT/TASK``. Entries that it got and did not ack (XACK) stay in its
list of pending entries, whatever is killed, and a restarted task begins with these. If a consumer asks for nothing for
``claim_idle_secs`` (its task has ended), the others take its entries over.

An ack is for one entry, and moves no position. So a late ack is right, even one from a task that was stopped and whose
entries others have by now.
"""

from __future__ import annotations

from collections import deque
from time import monotonic

from multilang.component.errors import ConfigError
from multilang.component.reliable import ReliableSpout
from multilang.store.errors import StateError
from multilang.store.redis_access import settings, with_access
from multilang.store.redis_client import HASTE_SECS, REQUIRES, connect, place, translated_errors
from multilang.store.settings import stored_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context

_ACK_SECS = 0.1  # how long an ack waits for others, so that one command sends many
_REST_SECS = 0.5  # after a Redis did not answer
_AT_ONCE = 1000
_LOOK_SECS = 0.25  # between two looks at what other consumers have
_NOTED_MS = 1000.0  # for which another consumer may be busy before the wait for it is logged


class RedisStreamSpout(ReliableSpout):
    """A spout of the entries of a Redis Stream, each at least once. The message id is the entry's id.

    A failed entry is replayed without limit, unless ``max_replays`` is set; an entry that is given up is acked. Needs
    the extra ``redis``, and Redis 6.2 or later.

    Args:
        stream: The stream's name. It is made if there is none.
        fields: The fields of an entry, which are also the tuple's. An entry that lacks one has None there.
        group: The consumer group. Topologies with the same group divide the entries; each further group gets all of
            them.
        take: The number of entries to ask for at once.
        host: The server's host.
        port: The server's port.
        database: The number of the database.
        timeout: Milliseconds that an answer may take.
        claim_idle_secs: Seconds in which a consumer asked for nothing, after which others take its entries over.
        access: The credentials, if the server authenticates its clients: ``user``, ``password`` (a Secret, or its place),
            ``tls``, ``ca``, ``cert`` and ``key``, each optional; missing ones are those of the conf's
            ``multilang.redis.access``.

    Attributes:
        max_replays: How often a failed entry is replayed before it is given up; None: until it is acked.
    """

    emits_again = True
    requires: Mapping[str, str] = REQUIRES
    _look_at: float  # when to look again at what other consumers have

    def __init__(
        self,
        stream: str,
        fields: Sequence[str],
        group: str,
        take: int = 100,
        host: str = "localhost",
        port: int = 6379,
        database: int = 0,
        timeout: int = 2000,
        claim_idle_secs: float = 60.0,
        access: Mapping[str, Any] | None = None,
    ) -> None:
        for name, value in (("stream", stream), ("group", group)):
            if type(value) is not str or not value:
                raise ConfigError(f"{name} is {value!r}; use its name, as text")
        if type(take) is not int or take < 1:
            raise ConfigError(f"take is {take!r}; use how many entries are asked for at once, from 1")
        if not claim_idle_secs > 0:
            raise ConfigError(f"claim_idle_secs is {claim_idle_secs!r}; use seconds above 0")
        self.output_fields = list(fields)  # type: ignore[misc]
        self.stream = stream
        self.group = group
        self.take = take
        self.claim_idle_secs = claim_idle_secs
        self.settings = settings(host, port, database, timeout, access)
        self._where = f"stream {stream!r} in {place(self.settings)}"

    def check_start(self, conf: dict[str, Any]) -> None:
        """Make the group, with a short timeout since somebody waits for the answer."""
        super().check_start(conf)
        client = connect(with_access(conf, self.settings), "a spout of a Redis Stream", HASTE_SECS)
        try:
            self._make_group(client)
        finally:
            client.close()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        patient = connect(with_access(conf, self.settings), "a spout of a Redis Stream")
        try:
            self._make_group(patient)
        finally:
            patient.close()
        # No command is repeated silently: the entries in a lost answer would be this task's, and never emitted.
        self._client = connect(with_access(conf, self.settings), "a spout of a Redis Stream", 0.0)
        self._consumer = f"{stored_name(conf)}/{context.component}/{context.task_index}"
        self._keys = [field.encode() for field in self.output_fields or ()]
        self._after: str | None = "0-0"  # the last entry read of this task's pending ones; None: all were read
        self._entries: deque[tuple[str, Any]] = deque()
        self._acks: list[str] = []
        self._ack_at = 0.0
        self._claim_at = self.clock() + self.claim_idle_secs
        self._rest_until = 0.0
        self._is_reported = False
        self._removed = 0  # the number of removed entries at the last report of lost ones
        self._deleted = b"0-0"  # the last deleted entry that was reported
        self._show_at = 0.0
        self._pending = 0  # entries that the group has given and that are not acked
        self._forget_others()

    def next_tuple(self) -> None:
        if not self._entries:
            if self.clock() < self._rest_until:
                return
            try:
                self._send_acks()
                self._read()
                self._is_reported = False
            except StateError as problem:
                self._report_once(problem)
        entries = self._entries
        while entries:
            id, entry = entries.popleft()
            if id in self._sent:
                continue  # it is in flight already
            values = self._values(id, entry)
            if values is not None:
                self.emit(values, id)
                return

    def exhausted(self) -> bool | None:
        """Return None if the group has given all entries, and none is unacked with a consumer that may have ended, else False."""
        if self._entries or self._after is not None or self._sent:
            return False
        if self._pending and self.clock() >= self._look_at:
            self._look_at = self.clock() + _LOOK_SECS
            self._others_hold = True
            try:
                self._others_hold = self._look()
            except StateError as problem:
                self._report_once(problem)
        return False if self._pending and self._others_hold else None

    def ack(self, tup_id: Any) -> None:
        known = tup_id in self._sent
        super().ack(tup_id)
        if known:
            self._done(tup_id)

    def fail(self, tup_id: Any) -> None:
        known = tup_id in self._sent
        super().fail(tup_id)
        if known and tup_id not in self._sent:  # the entry was given up
            self._done(tup_id)

    def replay(self) -> bool:
        if self._acks and self.clock() >= self._ack_at:
            try:
                self._send_acks()
            except StateError as problem:
                self._report_once(problem)
        return super().replay()

    @property
    def stored_elsewhere(self) -> tuple[str, ...]:
        """Always, by the group; a state is compared with it by a note where positions of spouts are, see ``multilang.state.witness``."""
        return ()

    def close(self) -> None:
        if hasattr(self, "_client"):
            try:
                self._send_acks()
            finally:
                self._client.close()

    # ---- inside ----

    def _done(self, id: str) -> None:
        if not self._acks:
            self._ack_at = self.clock() + _ACK_SECS
        self._acks.append(id)

    def _send_acks(self) -> None:
        while self._acks:
            with translated_errors(self._where):
                self._client.xack(self.stream, self.group, *self._acks[:_AT_ONCE])
            del self._acks[:_AT_ONCE]

    def _report_once(self, problem: StateError) -> None:
        """Report a problem once, and ask the queue again after a pause."""
        now = self.clock()
        self._rest_until = self._ack_at = now + _REST_SECS
        self._after = "0-0"  # a lost answer may have given this task entries
        if "NOGROUP" in str(problem):  # the stream was deleted, and the next one is new
            self._removed, self._deleted = 0, b"0-0"
            try:
                self._make_group(self._client)
            except StateError:
                pass  # it is reported below
        if not self._is_reported:
            self._is_reported = True
            self.report_error(f"{problem}; it is tried again until it works")

    def _read(self) -> None:
        if self._after is not None:
            found = self._given(self._after)
            self._after = found[-1][0] if found else None
        if self._after is None:
            found = []
            if self.clock() >= self._claim_at:  # also while there are new entries, which may never cease
                self._claim_at = self.clock() + self.claim_idle_secs / 2
                found = self._claimed()
            found = found or self._new()
            if not found and self._pending and self.clock() >= self._show_at:
                self._show_at = self.clock() + min(_LOOK_SECS, self.claim_idle_secs / 4)
                self._show()
        self._entries.extend(found)
        if found:
            self._forget_others()

    def _show(self) -> None:
        """Show the other tasks that this one runs. Redis before 7.2 takes a consumer for idle that asks and gets nothing."""
        with translated_errors(self._where):
            self._client.xreadgroup(self.group, self._consumer, {self.stream: "0-0"}, count=1)

    def _given(self, after: str) -> list[tuple[str, Any]]:
        with translated_errors(self._where):
            found = self._client.xreadgroup(self.group, self._consumer, {self.stream: after}, count=self.take)
        return [(id.decode(), entry) for _, entries in _pairs(found) for id, entry in entries]

    def _new(self) -> list[tuple[str, Any]]:
        """Read entries that the group has not read yet, and report those that were removed before it could."""
        with translated_errors(self._where):
            with self._client.pipeline(transaction=True) as pipeline:  # so that nobody reads or trims in between
                pipeline.xinfo_stream(self.stream)
                pipeline.xinfo_groups(self.stream)
                pipeline.xreadgroup(self.group, self._consumer, {self.stream: ">"}, count=self.take)
                stream, groups, found = pipeline.execute(raise_on_error=False)
            if isinstance(found, Exception):
                raise found
        if not isinstance(stream, Exception) and not isinstance(groups, Exception):
            (group,) = (each for each in groups if each["name"] == self.group.encode())
            self._pending = group["pending"]
            self._report_lost(stream, group)
        return [(id.decode(), entry) for _, entries in _pairs(found) for id, entry in entries]

    def _report_lost(self, stream: dict[str, Any], group: dict[str, Any]) -> None:
        """Report entries that were trimmed or deleted before the group had read them. Redis counts them from 7.0 on.

        Args:
            stream: XINFO STREAM.
            group: XINFO GROUPS of this group, at the same moment.
        """
        after, read = group["last-delivered-id"], group.get("entries-read")
        added = stream.get("entries-added")
        if added is None or _order(after) == (0, 0):
            return  # Redis does not count them, or this group begins with the first entry
        removed = added - stream["length"]
        first = stream.get("first-entry")
        deleted = stream["max-deleted-entry-id"]
        if _order(deleted) != (0, 0):
            read = None  # Redis itself miscounts what was read behind an XDEL
        if read is not None and (not first or _order(first[0]) > _order(after)):
            # All that is left is unread, so that all that was read is removed.
            lost = removed - max(read, self._removed)
            if lost > 0:
                self._removed = removed
                self.report_error(
                    f"{lost} entries of {self._where} behind {after.decode()} were trimmed or deleted before group {self.group!r} read "
                    "them: they are lost. Trim only what is acked (XTRIM with MINID)"
                )
        elif deleted != self._deleted and _order(deleted) > _order(after):
            self._deleted = deleted
            self.report_error(
                f"entries of {self._where} up to {deleted.decode()} were deleted before group {self.group!r} read them"
            )

    def _forget_others(self) -> None:
        self._look_at = 0.0
        self._others_hold = True
        self._quiet_since: float | None = None  # real seconds, as Redis has them
        self._waits_for: dict[bytes, int] = {}  # logged already

    def _look(self) -> bool:
        """Return whether consumers that may have ended have entries, which are taken over later.

        One that asked for something since this task found nothing more still runs, and its entries are left to it.
        """
        now = monotonic()
        with translated_errors(self._where):
            consumers = self._client.xinfo_consumers(self.stream, self.group)
        mine = self._consumer.encode()
        quiet_ms = -1.0 if self._quiet_since is None else (now - self._quiet_since) * 1000
        if self._quiet_since is None:
            self._quiet_since = monotonic()
        silent = [
            each for each in consumers if each["name"] != mine and each["pending"] and each["idle"] + 1 > quiet_ms
        ]
        if any(each["idle"] >= int(self.claim_idle_secs * 1000) for each in silent):
            self._claim_at = 0.0
        elif quiet_ms >= _NOTED_MS:
            self._note({each["name"]: each["pending"] for each in silent})
        return bool(silent)

    def _note(self, silent: dict[bytes, int]) -> None:
        for name in silent.keys() - self._waits_for.keys():
            self.log(
                f"{silent[name]} entries of {self._where} are with consumer {name.decode()!r}, which asks for nothing: they are waited "
                f"for, and taken over after {self.claim_idle_secs:g} s"
            )
        self._waits_for = silent

    def _claimed(self) -> list[tuple[str, Any]]:
        """Take over and return entries of idle consumers. One that was deleted meanwhile has no fields."""
        idle_ms = int(self.claim_idle_secs * 1000)
        with translated_errors(self._where):
            for consumer in self._client.xinfo_consumers(self.stream, self.group):
                name = consumer["name"].decode()
                if name == self._consumer or not consumer["pending"] or consumer["idle"] < idle_ms:
                    continue
                theirs = self._client.xpending_range(self.stream, self.group, "-", "+", self.take, name)
                ids = [each["message_id"] for each in theirs]
                if not ids:
                    continue
                with self._client.pipeline(transaction=True) as pipeline:  # so that nobody acks or deletes in between
                    for id in ids:
                        pipeline.xpending_range(self.stream, self.group, id, id, 1, name)
                        pipeline.xrange(self.stream, id, id)
                    pipeline.xclaim(self.stream, self.group, self._consumer, idle_ms, ids)
                    *each, taken = pipeline.execute()
                # Redis 7 leaves a deleted entry out of the answer, and Redis 6 gives None for it.
                found = [(id.decode(), entry) for id, entry in taken if id is not None]
                found += [
                    (id.decode(), None)
                    for id, held, there in zip(ids, each[::2], each[1::2], strict=True)
                    if held and not there
                ]
                if found:
                    self.log(f"{len(found)} entries of {self._where} are taken over from consumer {name!r}")
                    self._claim_at = 0.0  # there may be more
                    return found
        return []

    def _values(self, id: str, entry: Any) -> list[Any] | None:
        if not entry:
            self.report_error(f"entry {id} of {self._where} was trimmed or deleted before it was acked: it is lost")
            self._done(id)
            return None
        found = [entry.get(key) for key in self._keys]
        try:
            return [None if value is None else value.decode() for value in found]
        except UnicodeDecodeError as problem:
            self.report_error(
                f"entry {id} of {self._where} is not UTF-8 ({problem.reason}) and is left unacked: what crosses the wire is text, so "
                "write numbers and base64, not bytes"
            )
            return None

    def _make_group(self, client: Any) -> None:
        """Make the group from the first entry on, and the stream, if they are not there."""
        with translated_errors(self._where, "the spout's host and port"):
            try:
                client.xgroup_create(self.stream, self.group, id="0", mkstream=True)
            except Exception as problem:
                if "BUSYGROUP" not in str(problem):
                    raise


def _order(id: bytes) -> tuple[int, ...]:
    return tuple(map(int, id.split(b"-")))


def _pairs(found: Any) -> Any:
    """Return XREADGROUP's answer as pairs: it is a list of pairs or, in RESP3, a dict of lists."""
    if not found:
        return ()
    if isinstance(found, dict):
        return [(name, [entry for part in parts for entry in part]) for name, parts in found.items()]
    return found
