"""The interface through which a task's process uses the topology that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from itertools import count
    from typing import Any

    from multilang.errors import LocalClusterError
    from multilang.local.process.command import TaskCommands
    from multilang.local.process.pipes import Pipes
    from multilang.runtime.clock import Clock, Timers
    from multilang.runtime.counters import TaskStats
    from multilang.runtime.plan import Route, TaskPlan
    from multilang.runtime.rotating import RotatingMap
    from multilang.runtime.tuples import Origin


class TupleQueue(Protocol):
    """A bolt's task, as the target of tuples."""

    def put(self, origin: Origin, text: str, root: int | dict[int, int], edge: int, tuples: int) -> None:
        """Queue a tuple, whose values are JSON text."""


class TaskHost(Protocol):
    """The topology of a task. All of it is used in the topology's thread alone.

    Attributes:
        name: The topology's name.
        now: The time at which the current turn began.
        clock: The clock of ``now``.
        active: Whether spouts are to emit.
        ending: Whether the topology ends, so that nothing is started any more.
        commands: The commands that start processes.
        env: The environment of the processes.
        program_env: The environment of those that are programs of their own.
        pid_dir: The folder of their pid files.
        max_buffer: The largest message in bytes.
        pipes: The pipes of the processes.
        timers: The timers of the topology's thread.
        dirty: The tasks to which something is to be written.
    """

    name: str
    now: float
    clock: Clock
    active: bool
    ending: bool
    commands: TaskCommands
    env: dict[str, str]
    program_env: dict[str, str]
    pid_dir: str
    max_buffer: int
    pipes: Pipes
    timers: Timers
    dirty: set[Any]
    new_id: count[int]
    getrandbits: Callable[[int], int]

    def dumps(self, value: object, /) -> str:
        """Return the JSON text of a value."""

    @property
    def stats(self) -> Mapping[int, TaskStats]:
        """The figures of each task."""

    @property
    def bolts(self) -> Mapping[int, TupleQueue]:
        """The bolts' tasks by id."""

    @property
    def ackers(self) -> Sequence[object]:
        """The ackers; there may be none."""

    @property
    def committed_before(self) -> float:
        """The time before which everything that a bolt got is in its state, and committed."""

    @property
    def stale_before(self) -> float:
        """The time before which a bolt's tuples count as forgotten."""

    def init_root(self, root: int, value: int, task: int) -> None:
        """Tell the root's acker of a new spout tuple."""

    def ack_root(self, root: int, value: int) -> None:
        """Tell the root's acker of an acked tuple."""

    def fail_root(self, root: int) -> None:
        """Tell the root's acker of a failed tuple."""

    def expired(self, task: int, pending: RotatingMap[tuple[Any, float]]) -> Iterable[tuple[Any, float]]:
        """Rotate the pending tuples of a spout's task, and return those that timed out."""

    def capture(self, route: Route, values: list[Any]) -> None:
        """Keep a copy of an emitted tuple."""

    def log(self, plan: TaskPlan, message: str, level: int) -> None:
        """Handle a child's log command."""

    def report(self, plan: TaskPlan, message: str, fatal: bool = False) -> None:
        """Handle a child's error command, or its death."""

    def metric(self, plan: TaskPlan, name: str, params: Any) -> None:
        """Handle a child's metrics command."""

    def fail(self, error: LocalClusterError) -> None:
        """End everything with this error."""
