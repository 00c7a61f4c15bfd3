"""The counts of a run: per task while it runs, per component for reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from multilang.engine.quantiles import bin_of, quantiles
from multilang.engine.readable import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.metrics import Total

MAX_LOST = 100_000  # failed message ids that are stored; any beyond are only counted
SAMPLE_EVERY = 20  # Storm's topology.stats.sample.rate, 0.05: only latencies are sampled, counts are exact
ALL_BINNED = 1000  # measurements of which each is put into its interval
BINNED_EVERY = 7  # of those after that; an odd number, since alternating kinds are often two
SLOW_SECS = 0.001  # after a call that took longer, the next one is measured: that costs it next to nothing


@dataclass(frozen=True)
class Counters:
    """The counts of a component, all its tasks together.

    Latencies are averages in milliseconds over a sample; None: nothing was sampled.

    Attributes:
        component: The component's id.
        kind: "spout" or "bolt".
        tasks: The number of tasks.
        emitted: Calls of emit.
        transferred: Deliveries that these calls led to.
        executed: Tuples that a bolt processed, ticks included.
        acked: A bolt's acked inputs, or a spout's acked tuples.
        failed: A bolt's failed inputs, or a spout's failed tuples.
        timed_out: Those of a spout's failed tuples that no bolt failed.
        pending: A spout's tuples that are neither acked nor failed yet.
        lost: A spout's message ids that failed, or died with their task, and were not acked since. A tuple whose replay
            was acked is not among them.
        unfinished: A bolt's inputs that are neither acked nor failed yet.
        errors: Errors that were reported, or that ended a task.
        restarts: Restarts of tasks.
        execute_latency_ms: Time in a bolt's process().
        process_latency_ms: Time from a tuple's delivery to its ack (known for child processes only).
        complete_latency_ms: Time from a spout's emit to the ack of the whole tuple tree.
        latency_p50_ms: The latency below which half of all are: of a spout the complete one, of a bolt that of process or, where
            it is not known, of execute.
        latency_p99_ms: The latency below which 99 of 100 are.
    """

    component: str
    kind: str
    tasks: int
    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    timed_out: int = 0
    pending: int = 0
    lost: int = 0
    unfinished: int = 0
    errors: int = 0
    restarts: int = 0
    execute_latency_ms: float | None = None
    process_latency_ms: float | None = None
    complete_latency_ms: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as a dict, for JSON."""
        return asdict(self)


class Average:
    """The average of a sample, in seconds, and its histogram.

    Attributes:
        count: The number of measurements, or what they stand for.
        total: Their sum.
        bins: Interval -> the number of measurements in it (``quantiles.bin_of``). After the first ones, only some are
            binned, each for all since the one before: to find an interval takes as long as all the rest.
    """

    __slots__ = ("_binned", "_due", "bins", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.bins: dict[int, int] = {}
        self._binned = 0
        self._due = 0

    def add(self, secs: float, weight: int = 1) -> None:
        """Add a measurement, which stands for so many."""
        self.count = count = self.count + weight
        self.total += secs * weight
        if count >= self._due:
            number = bin_of(secs)
            self.bins[number] = self.bins.get(number, 0) + count - self._binned
            self._binned = count
            if count > ALL_BINNED:
                self._due = count + BINNED_EVERY * weight


class Lost:
    """The message ids of a spout's tuples that failed and were not acked since. For ``source_id`` see Spout."""

    __slots__ = ("_more", "ids", "source_id")

    def __init__(self) -> None:
        self.source_id: Callable[[Any], Any] | None = None
        self.ids: set[Any] = set()
        self._more = 0

    def add(self, tup_id: Any) -> None:
        """Add a tuple that failed."""
        key = self._key(tup_id)
        if len(self.ids) < MAX_LOST:
            self.ids.add(key)
        elif key not in self.ids:
            self._more += 1

    def discard(self, tup_id: Any) -> None:
        """Remove a tuple that was acked after all."""
        if self.ids:
            self.ids.discard(self._key(tup_id))

    def __len__(self) -> int:
        return len(self.ids) + self._more

    def _key(self, tup_id: Any) -> Any:
        """Return a key that a set can hold: in other languages a message id may be a list or an object."""
        if self.source_id is not None:
            tup_id = self.source_id(tup_id)
        return repr(tup_id) if isinstance(tup_id, list | dict) else tup_id


class TaskStats:
    """The counts of one task, as plain attributes that the hot path adds to."""

    __slots__ = (
        "acked",
        "busy",
        "call",
        "complete",
        "emitted",
        "errors",
        "execute",
        "executed",
        "failed",
        "idle",
        "is_question",
        "lost",
        "lost_ids",
        "metrics",
        "pending",
        "process",
        "received",
        "restarts",
        "timed_out",
        "transferred",
    )

    def __init__(self) -> None:
        self.emitted = 0
        self.transferred = 0
        self.received = 0  # given to a bolt
        self.executed = 0
        self.acked = 0
        self.failed = 0
        self.timed_out = 0
        self.idle = 0  # a bolt's tuples that need no ack or fail: ticks, and what came of ticks alone (IDLE)
        self.lost = 0  # tuples that died with the task, which will never be acked or failed
        self.pending = 0
        self.lost_ids = Lost()  # a spout's
        self.is_question: Callable[[Any], bool] | None = None  # see Spout; None: it never asks questions
        self.errors = 0
        self.restarts = 0
        self.busy: float | None = None  # seconds in which the task was busy; None: not known
        # the method that it is in, if that takes long, the instant of monotonic() since which, and the line of code
        self.call: tuple[str, float, str | None] | None = None
        self.metrics: Sequence[Total] = ()  # of the component's own
        self.execute = Average()
        self.process = Average()
        self.complete = Average()

    def fail(self, tup_id: Any, timed_out: bool) -> None:
        """Count a spout's tuple that a bolt failed, or that timed out."""
        if not timed_out and self.is_question is not None and self.is_question(tup_id):
            self.acked += 1  # the question was answered
            return
        self.failed += 1
        self.timed_out += timed_out
        self.lost_ids.add(tup_id)

    def with_failures(self, line: str) -> str:
        """Return the line of ``waiting_for`` of a spout with the number of its tuples that failed and were not acked since."""
        lost = len(self.lost_ids)
        return f"{line}; {counted(lost)} failed and {'was' if lost == 1 else 'were'} not acked since" if lost else line

    @property
    def unfinished(self) -> int:
        """The tuples that a bolt got and has neither acked nor failed."""
        return self.received - self.acked - self.failed - self.lost


def summed(component: str, kind: str, tasks: Iterable[TaskStats]) -> Counters:
    """Sum up the counters of a component's tasks."""
    stats = list(tasks)

    def total(name: str) -> int:
        return sum(getattr(each, name) for each in stats)

    def latency(name: str) -> float | None:
        count = sum(getattr(each, name).count for each in stats)
        return 1000 * sum(getattr(each, name).total for each in stats) / count if count else None

    which = "complete" if kind == "spout" else "process" if any(each.process.count for each in stats) else "execute"
    half, most = quantiles((getattr(each, which).bins for each in stats), (0.5, 0.99))
    return Counters(
        component,
        kind,
        len(stats),
        emitted=total("emitted"),
        transferred=total("transferred"),
        executed=total("executed"),
        acked=total("acked"),
        failed=total("failed"),
        timed_out=total("timed_out"),
        pending=total("pending"),
        lost=sum(len(each.lost_ids) for each in stats),
        unfinished=total("unfinished") if kind == "bolt" else 0,
        errors=total("errors"),
        restarts=total("restarts"),
        execute_latency_ms=latency("execute"),
        process_latency_ms=latency("process"),
        complete_latency_ms=latency("complete"),
        latency_p50_ms=None if half is None else 1000 * half,
        latency_p99_ms=None if most is None else 1000 * most,
    )
