"""Run one bolt on given tuples, without a process or a cluster."""

from __future__ import annotations

from collections.abc import Hashable
from time import monotonic
from typing import TYPE_CHECKING

from multilang.component.clock import virtual_clock
from multilang.component.runner import close, start_bolt
from multilang.component.timers import TaskTimers
from multilang.component.wrapper import innermost
from multilang.coordination import COORD_STREAM
from multilang.engine.bolt_collector import LocalBoltCollector
from multilang.engine.clock import VirtualClock
from multilang.engine.counters import TaskStats
from multilang.engine.tuples import LocalTuple, Origin
from multilang.protocol import Tuple
from multilang.protocol.codec import normalize
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.state.bolt import Stateful, promise_state
from multilang.state.databases import MemoryStateProvider
from multilang.testing.harness import Emitted, Harness, Raised, check_kind, coordinated_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from multilang.component.bolt import Bolt
    from multilang.coordination import BatchBolt

    AnyBolt: TypeAlias = Bolt | BatchBolt | type[Bolt | BatchBolt]

__all__ = ["BoltRun", "Emitted", "make_tuple", "run_bolt", "tick"]


def make_tuple(
    values: Sequence[Any] | Mapping[str, Any],
    fields: Sequence[str] | None = None,
    component: str = "source",
    stream: str = "default",
) -> Tuple:
    """Make a tuple for a bolt: ``make_tuple({"word": "ant"})``, or ``make_tuple(["ant"], ["word"])``.

    Args:
        values: The values, or a dict of fields and values.
        fields: The fields' names; field0, field1 and so on if it is None.
        component: The component that it seems to come from.
        stream: That component's stream.

    Returns:
        The tuple.

    Raises:
        ValueError: The numbers of fields and values differ.
    """
    if isinstance(values, dict):
        fields = list(values)
        values = list(values.values())
    else:
        values = list(values)
        fields = [f"field{i}" for i in range(len(values))] if fields is None else list(fields)
    if len(fields) != len(values):
        raise ValueError(f"{len(values)} values for {len(fields)} fields: {values!r} for {list(fields)!r}")
    return LocalTuple(normalize(values), stream, Origin(component, stream, 1, tuple(fields)))


def tick() -> Tuple:
    """Make a tick tuple."""
    return LocalTuple([1], TICK_STREAM, Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",)))


class BoltRun:
    """A bolt, and what it did with the tuples that it got.

    Attributes:
        emitted: The tuples that it emitted, in order.
        reports: The reports that a coordinated bolt sent downstream.
        acked: The input tuples that it acked, in order.
        failed: The input tuples that it failed, in order.
        unfinished: The input tuples that it keeps.
        errors: The errors that it reported.
        logged: Its log lines, as (level, message).
        metrics: Its metrics, as (name, params).
        clock: The bolt's clock, which ``advance`` moves on.
        bolt: The bolt itself.
        state: A stateful bolt's state, a KeyValueState in memory; otherwise None.
    """

    def __init__(
        self,
        bolt: AnyBolt,
        inputs: Sequence[Tuple],
        conf: Mapping[str, Any] | None,
        component: str,
        sink_tasks: int,
        seed: int,
        state: Mapping[Any, Any] | None = None,
        expect: type[Exception] | tuple[type[Exception], ...] = (),
        commits: bool = False,
        clock: VirtualClock | None = None,
    ) -> None:
        sources: dict[str, dict[str, Sequence[str]]] = {}
        for tup in inputs:
            if tup.component != SYSTEM_COMPONENT:
                sources.setdefault(str(tup.component), {})[tup.stream] = tup.fields
        made = as_it_runs(bolt, list(sources) or ["source"], inputs, commits)
        self._coordinated = coordinated_part(made)
        if self._coordinated is not None:
            for source in self._coordinated.sources:
                sources.setdefault(source, {}).setdefault(COORD_STREAM, ["id", "count"])
            if self._coordinated.id_stream is not None:
                source, stream = self._coordinated.id_stream
                sources.setdefault(source, {}).setdefault(stream, ["id"])
        harness = Harness(made, sources or {"source": {"default": ["value"]}}, conf, component, sink_tasks, seed)
        self._harness = harness
        self._fields = next((tup.fields for tup in inputs if not tup.is_tick), None)
        self._inputs: dict[int, LocalTuple] = {}  # by root id: each input is the root of its own tuple tree
        self._own: set[int] = set()  # roots of inputs that the test did not give itself
        self._given: dict[tuple[str, Any], int] = {}  # the number of tuples of an id by source
        self.emitted: list[Emitted] = []
        self.reports: list[Emitted] = []
        self.acked: list[LocalTuple] = []
        self.failed: list[LocalTuple] = []
        self.errors = harness.errors
        self.logged = harness.logged
        self.metrics = harness.metrics
        self.state: Any = None
        links = harness.links(
            None,
            lambda root, _: self._settled(self.acked, root),
            lambda root: self._settled(self.failed, root),
            monotonic,
        )
        runs: Any = harness.plan.spec.component
        self.bolt = innermost(runs)
        if isinstance(self.bolt, Stateful):
            runs = self.bolt  # its wrapper, which makes checkpoints, is not needed here
        self._coordinated = coordinated_part(runs)
        self._runs = runs
        self._raised = Raised(expect)
        collector = LocalBoltCollector(harness.plan, links, TaskStats(), self._raised.add)
        self.clock = VirtualClock() if clock is None else clock
        self._timers = TaskTimers(collector.scope, virtual_clock(self.clock.now))
        if isinstance(self.bolt, Stateful):
            promise_state(self.bolt)
        self._execute = start_bolt(runs, collector, harness.plan.conf, harness.plan.context)
        if isinstance(self.bolt, Stateful):
            self.state = MemoryStateProvider().new_state(component)
            for key, value in (state or {}).items():
                self.state.put(key, value)
            self.bolt.init_state(self.state)
        self._collect()

    @property
    def unfinished(self) -> list[LocalTuple]:
        """The input tuples that the bolt has neither acked nor failed."""
        return [tup for root, tup in self._inputs.items() if tup.unfinished and root not in self._own]

    @property
    def values(self) -> list[list[Any]]:
        """The values of the tuples that it emitted."""
        return [emitted.values for emitted in self.emitted]

    def emitted_on(self, stream: str) -> list[Emitted]:
        """Return the tuples that it emitted on one stream."""
        return [emitted for emitted in (*self.emitted, *self.reports) if emitted.stream == stream]

    def process(self, *tuples: Tuple | Sequence[Any] | Mapping[str, Any]) -> None:
        """Give it more tuples; lists have the fields of the first tuple that it got.

        Every exception but FailedException is raised here, whether it would end a task or be reported and fail its
        tuple, unless ``run_bolt`` expects it.
        """
        for tup in _tuples(tuples, self._fields):
            if tup.stream not in (TICK_STREAM, COORD_STREAM) and tup.values and isinstance(tup.values[0], Hashable):
                key = (str(tup.component), tup.values[0])
                self._given[key] = self._given.get(key, 0) + 1
            self._give(tup)

    def tick(self, times: int = 1) -> None:
        """Give it ``times`` ticks."""
        self.process(*(tick() for _ in range(times)))

    def advance(self, secs: float) -> None:
        """Let ``secs`` seconds pass on the bolt's clock, and run its timers that become due, each at its instant.

        Exceptions are raised as by ``process``.
        """
        end = self.clock.now() + secs
        while (due := self._timers.next_due) <= end:
            self.clock.move_to(due)
            try:
                self._timers.run_due()
            finally:
                self._collect(check=False)
            self._raised.check()
        self.clock.move_to(end)

    def finish(self, *ids: Hashable) -> None:
        """Announce to a batch bolt or a coordinated bolt that all tuples of these ids have come: it finishes them.

        A bolt that commits gets its commit as well.

        Args:
            ids: The ids.

        Raises:
            TypeError: It is another kind of bolt.
        """
        bolt = self._coordinated
        if bolt is None:
            raise TypeError(
                f"{type(self.bolt).__name__} does not learn when an id ends: finish() is for batch bolts and coordinated ones"
            )
        for id in ids:
            for source in bolt.sources:
                count = self._given.pop((source, id), 0)
                self._give(make_tuple([id, count], ["id", "count"], source, COORD_STREAM), own=True)
            if bolt.id_stream is not None:
                source, stream = bolt.id_stream
                self._give(make_tuple([id], ["id"], source, stream), own=True)

    def close(self) -> None:
        """Close the bolt; raise AssertionError if an expected exception never came."""
        close(self._runs)
        self._collect()
        self._raised.check_came(self.bolt)

    def _check_expected(self) -> None:
        """Raise AssertionError if an expected exception did not come, and none can come any more of these tuples."""
        if self._inputs and self._coordinated is None and not self.unfinished:
            self._raised.check_came(self.bolt)

    def _give(self, tup: Tuple, own: bool = False) -> None:
        origin = Origin(str(tup.component), tup.stream, tup.task, tuple(tup.fields), self._harness.name_tuple)
        root = self._harness.random.getrandbits(64) | 1
        mine = LocalTuple(tup.values, tup.stream, origin, 0 if tup.is_tick else root)
        if not tup.is_tick:
            self._inputs[root] = mine
        if own:
            self._own.add(root)
        try:
            self._execute(mine)
        finally:
            self._collect(check=False)
        self._raised.check()

    def _settled(self, to: list[LocalTuple], root: int) -> None:
        if root not in self._own:
            to.append(self._inputs[root])

    def _collect(self, check: bool = True) -> None:
        for tup, direct_task in self._harness.taken():
            roots = tup.root if isinstance(tup.root, dict) else [tup.root] if tup.root else []
            to = self.reports if tup.stream == COORD_STREAM else self.emitted
            to.append(Emitted(tup, [self._inputs[root] for root in roots], None, direct_task))
        if check:
            self._raised.check()


def as_it_runs(bolt: AnyBolt, sources: Sequence[str], inputs: Sequence[Tuple], commits: bool) -> Any:
    """Return the bolt with the wrappers that a topology's builder adds; a batch bolt gets coordinated."""
    from multilang.coordination import SINGLE, BatchBolt, CoordinatedBolt, KeyedFairBolt
    from multilang.coordination.delegate import delegate_of

    kind = bolt if isinstance(bolt, type) else type(bolt)
    whole = bolt.wrapped if isinstance(bolt, KeyedFairBolt) else bolt
    if not (issubclass(kind, BatchBolt) or isinstance(whole, BatchBolt)):
        if commits:
            raise TypeError(
                f"run_bolt(commits=True): a committer is a BatchBolt, which commits in finish_batch, not {bolt!r}"
            )
        return bolt
    from multilang.transactional.api import Committer
    from multilang.transactional.attempt import TransactionAttempt

    delegate, factory = delegate_of(bolt, "run_bolt")
    commits = commits or isinstance(innermost(delegate), Committer)
    by_source = dict.fromkeys(sources, SINGLE)
    if not commits and not any(tup.values and isinstance(tup.values[0], TransactionAttempt) for tup in inputs):
        return CoordinatedBolt(delegate, by_source, None, factory, ticks=False)
    from multilang.transactional.bolts import TransactionalBolt
    from multilang.transactional.names import COMMIT_STREAM, coordinator

    id_stream = (coordinator(sources[0]), COMMIT_STREAM) if commits else None
    made = TransactionalBolt(delegate, by_source, id_stream, factory, ticks=False)
    made.early = frozenset(sources)
    return made


def run_bolt(
    bolt: AnyBolt,
    tuples: Iterable[Tuple | Sequence[Any] | Mapping[str, Any]] = (),
    conf: Mapping[str, Any] | None = None,
    *,
    fields: Sequence[str] | None = None,
    component: str = "bolt",
    sink_tasks: int = 1,
    seed: int = 0,
    state: Mapping[Any, Any] | None = None,
    expect: type[Exception] | tuple[type[Exception], ...] = (),
    commits: bool = False,
    clock: VirtualClock | None = None,
) -> BoltRun:
    """Initialize ``bolt`` and give it ``tuples``, one after the other, in this thread.

    Every output stream has a subscriber, the component "sink" (by direct grouping if the stream is direct). Emits are
    checked as on the wire. A bolt runs with all its wrappers: a BatchBolt is coordinated as in a DRPC topology, or as
    in a transactional one if the first value of a tuple is a TransactionAttempt, and ``finish`` of the result ends an
    id.

    An exception is raised here, even if it would only be reported and fail its tuple; FailedException is not raised.

    Args:
        bolt: The bolt, or its class.
        tuples: Each is made with ``make_tuple`` or ``tick``, or is a dict of fields and values, or a list of values.
        conf: The bolt's conf.
        fields: The fields of the lists of values.
        component: The bolt's component id.
        sink_tasks: The number of the sink's tasks.
        seed: Makes random choices repeatable.
        state: The content of a stateful bolt's state.
        expect: Classes of exceptions that the test expects to be reported, as on a cluster. If none comes,
            AssertionError is raised: at once, or by ``close`` if the bolt keeps tuples or waits for an id's end.
        commits: The bolt is given to ``set_committer_bolt`` without being marked as a Committer.
        clock: The bolt's clock; by default one that begins at 0. It moves on only by ``advance`` of the result.

    Returns:
        The bolt, and what it did.

    Raises:
        TypeError: It is no bolt, or one in another language.
        AssertionError: An expected exception did not come.
    """
    check_kind(bolt, "bolt")
    inputs = _tuples(tuples, fields)
    # Of what is given to the run later.
    examples = inputs or ([make_tuple([None] * len(fields), fields)] if fields else [])
    run = BoltRun(bolt, examples, conf, component, sink_tasks, seed, state, expect, commits, clock)
    run.process(*inputs)
    run._check_expected()
    return run


def _tuples(tuples: Iterable[Tuple | Sequence[Any] | Mapping[str, Any]], fields: Sequence[str] | None) -> list[Tuple]:
    return [tup if isinstance(tup, Tuple) else make_tuple(tup, fields) for tup in tuples]
