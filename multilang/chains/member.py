"""A member of a chain in its process, with its counts."""

from __future__ import annotations

from collections import deque

from multilang.chains.tuples import ChainTuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.chains.tuples import ChainTuple, Tree
    from multilang.chains.view import View
    from multilang.component.base import Component
    from multilang.component.context import Context
    from multilang.component.many import Tuples
    from multilang.protocol.messages import Tuple

SAMPLE_EVERY = 20  # one of so many tuples is measured


class Stats:
    """A member's counts since its parent was last told of them."""

    __slots__ = ("acked", "emitted", "executed", "failed", "secs", "transferred")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.executed = self.emitted = self.transferred = self.acked = self.failed = 0
        self.secs = 0.0

    def as_list(self) -> list[float]:
        """Return the counts as they are told to the parent."""
        return [self.executed, self.emitted, self.transferred, self.acked, self.failed, self.secs]


class Member:
    """A member of a chain.

    Attributes:
        id: Its component's id.
        component: The bolt.
        context: Its context.
        conf: Its conf.
        task: Its task.
        collector: Its collector.
        has_ticks: Whether it gets ticks.
        stats: Its counts.
        named: Its unfinished inputs whose id was asked for.
        execute: Runs one tuple through it.
        execute_many: Runs many tuples through it; None: it takes them one by one.
        runs: The tuples that it will get together.
        most: The largest number of these in one call.
        calls: What its own threads emitted, acked and failed.
        countdown: Counts down to the next tuple whose time is measured.
        every: The number that ``countdown`` was set to.
    """

    def __init__(self, id: str, component: Component, view: View) -> None:
        self.id = id
        self.component: Any = component
        self.context: Context = view.context(id)
        self.conf = view.conf(id)
        self.task = view.task(id)
        self.has_ticks = view.has_ticks(id)
        self.stats = Stats()
        self.named: dict[str, ChainTuple] = {}
        self.execute: Callable[[Tuple], object] = _not_started
        self.execute_many: Callable[[Tuples], None] | None = None
        self.runs: deque[ChainTuples] = deque()
        self.most = 1
        self.calls: deque[Callable[[], object]] = deque()
        self.countdown = self.every = 1
        self.collector: Any = None
        self._names = 0

    def name_tuple(self, tup: ChainTuple, id: str | None = None) -> str:
        """Return an id for an input, which it is found by from now on."""
        if id is None:
            self._names += 1
            id = f"{self.id}-{self.task}-{self._names}"
        if tup.unfinished:
            self.named[id] = tup
        return id

    def make_calls(self) -> None:
        """Make the calls of its threads, in the main thread."""
        while self.calls:
            self.calls.popleft()()

    def put(self, origin: Any, trees: tuple[Tree, ...], values: list[Any]) -> None:
        """Add a tuple to those that it will get together."""
        runs = self.runs
        if runs:
            last = runs[-1]
            if last.origin is origin and last.trees == trees and len(last.rows) < self.most:
                last.rows.append(values)
                return
        runs.append(ChainTuples(self, origin, trees, [values]))

    def count_tasks(self, tasks: int) -> None:
        """Count the tasks outside that got a tuple in blocks."""
        self.stats.transferred += tasks

    def forget(self, tup: ChainTuple) -> None:
        """Let a finished input be found no more."""
        if self.named:
            self.named.pop(tup.id, None)


def _not_started(_: object) -> None:
    raise RuntimeError("the member was not started")
