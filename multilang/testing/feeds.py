"""Spouts that a test feeds, and the fate of their tuples (Storm's FeederSpout, FixedTupleSpout and AckTracker)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from multilang.component.spout import Spout
from multilang.protocol.codec import normalize
from multilang.testing.shared import Shared, check_reachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context


class AckTracker:
    """The acks and fails of fed tuples (Storm's AckTracker and AckFailMapTracker).

    Several spouts may share one; their message ids must differ then.

    Attributes:
        acked: The message ids of acked tuples, in the order of the acks.
        failed: The message ids of failed tuples, in the order of the fails.
    """

    def __init__(self) -> None:
        self.acked: list[Any] = []
        self.failed: list[Any] = []

    def is_acked(self, tup_id: Any) -> bool:
        """Return whether the tuple with this message id was fully processed."""
        return tup_id in self.acked

    def is_failed(self, tup_id: Any) -> bool:
        """Return whether the tuple with this message id failed, or timed out."""
        return tup_id in self.failed

    def reset(self) -> None:
        """Forget all acks and fails so far."""
        self.acked.clear()
        self.failed.clear()

    def __repr__(self) -> str:
        return f"<AckTracker: acked {self.acked}, failed {self.failed}>"


class Feed(Shared):
    """The tuples that wait for a fed spout's tasks, and those in flight."""

    def __init__(self, tracker: AckTracker) -> None:
        super().__init__()
        self.tracker = tracker
        self.waiting: deque[tuple[Sequence[Any], Any, str]] = deque()
        self.pending: list[Any] = []
        self._serial = 0
        self.topologies = 0  # the number that run, or are being started
        self.has_ended = False  # one of them has ended

    def put(self, values: Sequence[Any], tup_id: Any, stream: str) -> Any:
        """Add a tuple to those that wait; return its message id."""
        with self.lock:
            if tup_id is None:
                self._serial = tup_id = self._serial + 1
            self.waiting.append((values, tup_id, stream))
            self.pending.append(tup_id)
            return tup_id

    def take(self) -> tuple[Sequence[Any], Any, str] | None:
        """Return the next tuple, or None."""
        return self.waiting.popleft() if self.waiting else None

    def finish(self, what: str, tup_id: Any) -> None:
        """Note that a tuple was acked or failed."""
        if tup_id in self.pending:
            self.pending.remove(tup_id)
        getattr(self.tracker, what).append(tup_id)

    def is_empty(self) -> bool:
        """Return whether no tuple waits."""
        return not self.waiting


class FeederSpout(Spout):
    """Emits tuples that the test feeds it while the topology runs (Storm's FeederSpout).

    A tuple that fails is not emitted again: the test may feed it again. Several tasks share the fed tuples. With
    processes, the topology must be built inside the test.

        feeder = FeederSpout(["word"])
        builder.set_spout("words", feeder)
        ...
        first = feeder.feed(["ant"])
        run.wait(timeout=10)
        assert feeder.tracker.acked == [first]

    Args:
        fields: The fields of the default stream.
        streams: The fields of other streams, by name.
        tracker: Gets the acks and fails; a new AckTracker if it is None.
    """

    def __init__(
        self,
        fields: Sequence[str] | None = None,
        *,
        streams: Mapping[str, Sequence[str]] | None = None,
        tracker: AckTracker | None = None,
    ) -> None:
        self.output_fields = None if fields is None else list(fields)  # type: ignore[misc]
        self.output_streams = None if streams is None else dict(streams)  # type: ignore[misc]
        self._feed = Feed(AckTracker() if tracker is None else tracker)

    @property
    def tracker(self) -> AckTracker:
        """The acks and fails of its tuples."""
        return self._feed.tracker

    @property
    def pending(self) -> list[Any]:
        """The message ids of fed tuples that are neither acked nor failed."""
        with self._feed.lock:
            return list(self._feed.pending)

    def feed(self, values: Sequence[Any] | Mapping[str, Any], tup_id: Any = None, stream: str = "default") -> Any:
        """Give the spout a tuple to emit.

        Args:
            values: A list of values, or a dict by fields.
            tup_id: The message id; a serial number if it is None.
            stream: The stream's name.

        Returns:
            The message id.

        Raises:
            ValueError: The stream, the values or the message id is wrong.
            RuntimeError: The topology has ended.
        """
        if self._feed.has_ended and not self._feed.topologies:
            raise RuntimeError(
                f"feed({values!r}): the topology of this {type(self).__name__} has ended, and nobody would emit the tuple; feed it "
                "before that end, or submit the topology again"
            )
        declared = self.declared_streams()
        if stream not in declared:
            raise ValueError(
                f"feed(..., stream={stream!r}): this FeederSpout declares {', '.join(map(repr, declared))}"
            )
        fields = declared[stream].fields
        if isinstance(values, dict):
            if set(values) != set(fields):
                raise ValueError(f"feed({values!r}): stream {stream!r} has the fields {', '.join(fields)}")
            values = [values[field] for field in fields]
        if len(values) != len(fields):
            raise ValueError(f"feed({values!r}): stream {stream!r} has {len(fields)} fields, {', '.join(fields)}")
        if tup_id is not None and tup_id in self.pending:
            raise ValueError(f"feed(..., tup_id={tup_id!r}): a tuple of this message id is under way; take another")
        return self._feed.put(normalize(list(values)), tup_id, stream)

    def settled(self, run: object = None) -> bool:
        """Return whether all fed tuples are acked or failed: ``run.wait(feeder.settled, timeout=10)``."""
        return not self._feed.pending

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        check_reachable(
            self._feed, self._collector, f"what spout {context.component!r} emits, a {type(self).__name__},"
        )

    def check_start(self, conf: dict[str, Any]) -> None:
        self._feed.topologies += 1

    def after_end(self) -> None:
        self._feed.topologies = max(self._feed.topologies - 1, 0)
        self._feed.has_ended = True

    def next_tuple(self) -> None:
        found = self._feed.call("take")
        if found is not None:
            values, tup_id, stream = found
            self.emit(values, tup_id, stream)

    def ack(self, tup_id: Any) -> None:
        self._feed.call("finish", "acked", tup_id)

    def fail(self, tup_id: Any) -> None:
        self._feed.call("finish", "failed", tup_id)

    def exhausted(self) -> bool:
        empty: bool = self._feed.call("is_empty")
        return empty


class FixedTupleSpout(FeederSpout):
    """Emits the given tuples, in order, each once (Storm's FixedTupleSpout).

    Their message ids are 1, 2, 3 and so on. More tuples can be fed.

    Args:
        fields: The fields of the default stream.
        tuples: The tuples, lists of values or dicts by fields.
        tracker: Gets the acks and fails; a new AckTracker if it is None.
    """

    def __init__(
        self,
        fields: Sequence[str],
        tuples: Iterable[Sequence[Any] | Mapping[str, Any]],
        *,
        tracker: AckTracker | None = None,
    ) -> None:
        super().__init__(fields, tracker=tracker)
        for values in tuples:
            self.feed(values)
