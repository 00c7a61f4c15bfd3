"""One bolt on given tuples, with no process and no cluster around it."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from multilang.component.runner import close, start_bolt
from multilang.component.wrapper import innermost
from multilang.local.collector import LocalBoltCollector
from multilang.local.counters import TaskStats
from multilang.local.tuples import LocalTuple, Origin
from multilang.protocol import Tuple
from multilang.protocol.codec import normalize
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.state.bolt import Stateful
from multilang.state.memory import MemoryStateProvider
from multilang.testing.harness import Emitted, Harness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.component.bolt import Bolt

__all__ = ["BoltRun", "Emitted", "make_tuple", "run_bolt", "tick"]


def make_tuple(
    values: Sequence[Any] | Mapping[str, Any],
    fields: Sequence[str] | None = None,
    component: str = "source",
    stream: str = "default",
) -> Tuple:
    """A tuple to give to a bolt: ``make_tuple({"word": "ant"})``, or ``make_tuple(["ant"], ["word"])``."""
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
    """A tick tuple."""
    return LocalTuple([1], TICK_STREAM, Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",)))


class BoltRun:
    """What a bolt did with the tuples it was given.

    ``emitted``: what it emitted, in order; ``acked``, ``failed``: the input tuples that it did so to, in order;
    ``unfinished``: those that it keeps; ``errors``: reported ones; ``logged``: (level, message); ``metrics``:
    (name, params); ``bolt``: the bolt itself; ``state``: a stateful bolt's, a KeyValueState in memory.
    """

    def __init__(
        self,
        bolt: Bolt | type[Bolt],
        inputs: Sequence[Tuple],
        conf: Mapping[str, Any] | None,
        component: str,
        sink_tasks: int,
        seed: int,
        state: Mapping[Any, Any] | None = None,
    ) -> None:
        sources: dict[str, dict[str, Sequence[str]]] = {}
        for tup in inputs:
            if tup.component != SYSTEM_COMPONENT:
                sources.setdefault(str(tup.component), {})[tup.stream] = tup.fields
        harness = Harness(bolt, sources or {"source": {"default": ["value"]}}, conf, component, sink_tasks, seed)
        self._harness = harness
        self._fields = next((tup.fields for tup in inputs if not tup.is_tick), None)
        self._inputs: dict[int, LocalTuple] = {}  # by root id: each input is a spout tuple's tree of its own
        self.emitted: list[Emitted] = []
        self.acked: list[LocalTuple] = []
        self.failed: list[LocalTuple] = []
        self.errors = harness.errors
        self.logged = harness.logged
        self.metrics = harness.metrics
        links = harness.links(
            None,
            lambda root, _: self.acked.append(self._inputs[root]),
            lambda root: self.failed.append(self._inputs[root]),
            monotonic,
        )
        self.bolt = innermost(harness.plan.spec.component)
        collector = LocalBoltCollector(harness.plan, links, TaskStats())
        if isinstance(self.bolt, Stateful):
            self.bolt._has_state = True
        self._execute = start_bolt(self.bolt, collector, harness.plan.conf, harness.plan.context)
        if isinstance(self.bolt, Stateful):
            self.state = MemoryStateProvider().new_state(component)
            for key, value in (state or {}).items():
                self.state.put(key, value)
            self.bolt.init_state(self.state)
        self._collect()

    @property
    def unfinished(self) -> list[LocalTuple]:
        """The input tuples that the bolt has neither acked nor failed."""
        return [tup for tup in self._inputs.values() if tup.unfinished]

    @property
    def values(self) -> list[list[Any]]:
        """The values of what it emitted, without more."""
        return [emitted.values for emitted in self.emitted]

    def emitted_on(self, stream: str) -> list[Emitted]:
        """What it emitted on one stream."""
        return [emitted for emitted in self.emitted if emitted.stream == stream]

    def process(self, *tuples: Tuple | Sequence[Any] | Mapping[str, Any]) -> None:
        """Give it more tuples; lists have the fields of the first tuple that it was given.

        What ends a task is raised here: any exception of a Bolt but FailedException.
        """
        for tup in _tuples(tuples, self._fields):
            origin = Origin(str(tup.component), tup.stream, tup.task, tuple(tup.fields), self._harness.name_tuple)
            root = self._harness.random.getrandbits(64) | 1
            mine = LocalTuple(tup.values, tup.stream, origin, 0 if tup.is_tick else root)
            if not tup.is_tick:
                self._inputs[root] = mine
            self._execute(mine)
            self._collect()

    def tick(self, times: int = 1) -> None:
        """Give it so many ticks."""
        self.process(*(tick() for _ in range(times)))

    def close(self) -> None:
        """Tell it that it is over."""
        close(self.bolt)
        self._collect()

    def _collect(self) -> None:
        for tup, direct_task in self._harness.taken():
            roots = tup.root if isinstance(tup.root, dict) else [tup.root] if tup.root else []
            self.emitted.append(Emitted(tup, [self._inputs[root] for root in roots], None, direct_task))


def run_bolt(
    bolt: Bolt | type[Bolt],
    tuples: Iterable[Tuple | Sequence[Any] | Mapping[str, Any]] = (),
    conf: Mapping[str, Any] | None = None,
    *,
    fields: Sequence[str] | None = None,
    component: str = "bolt",
    sink_tasks: int = 1,
    seed: int = 0,
    state: Mapping[Any, Any] | None = None,
) -> BoltRun:
    """Initialize ``bolt`` and give it ``tuples``, one after the other, in this thread.

    A tuple is made with ``make_tuple``, or is a dict of fields and values, or a list of values (of ``fields``);
    ``tick()`` makes a tick. Every output stream has a subscriber, the component "sink" of ``sink_tasks`` tasks
    (by direct grouping where the stream is direct). Emits are checked as on the wire. ``state``: what a stateful bolt
    finds in its state.
    """
    inputs = _tuples(tuples, fields)
    run = BoltRun(bolt, inputs, conf, component, sink_tasks, seed, state)
    run.process(*inputs)
    return run


def _tuples(tuples: Iterable[Tuple | Sequence[Any] | Mapping[str, Any]], fields: Sequence[str] | None) -> list[Tuple]:
    return [tup if isinstance(tup, Tuple) else make_tuple(tup, fields) for tup in tuples]
