"""A topology that was submitted to the embedded cluster, with the methods to control and to observe it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.component.base import Component
from multilang.component.reliable import MAX_SPOUT_PENDING
from multilang.component.repeats import Repeats
from multilang.component.spout import Spout
from multilang.engine.counters import TaskStats, summed
from multilang.engine.status import error_kind
from multilang.errors import LocalClusterError
from multilang.local.acker import acker_counters, renew
from multilang.local.errors import NotDrainedError
from multilang.local.status import StatusSource
from multilang.topology.errors import did_you_mean
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Literal, TypeAlias

    from multilang.engine.clock import Clock
    from multilang.engine.counters import Counters
    from multilang.engine.plan import Plan, TaskPlan
    from multilang.engine.rotating import RotatingMap
    from multilang.engine.status import CheckpointStatus, RunStatus
    from multilang.engine.tuples import LocalTuple
    from multilang.local.acker import Acker

    Until: TypeAlias = Literal["drained"] | Callable[["LocalTopology"], object]
    Keep: TypeAlias = Callable[[LocalTuple], object]
    Capture: TypeAlias = "Iterable[str | tuple[str, str]] | Mapping[str | tuple[str, str], Keep]"

_PRINTED = "stdout: "  # the prefix of text that a component's process wrote to its standard output
MAX_ERRORS = 1000  # the oldest are dropped; the counters count them all
MAX_KINDS = 100  # of errors in a status; the one that was not repeated for the longest time is dropped

INACTIVE = "it was submitted inactive: no task is started, and nothing is emitted, before activate() is called"

_LEVELS = (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)  # by Storm's number; 0 is trace


@dataclass(frozen=True)
class TaskError:
    """An error that a component reported, or that ended a task.

    Attributes:
        component: The component's id.
        task: The task's id.
        message: The error's text.
        fatal: Whether it ended the task, which was then restarted or given up.
        at: The time since the topology was submitted, in seconds.
    """

    component: str
    task: int
    message: str
    fatal: bool
    at: float

    def __str__(self) -> str:
        return f"{self.component!r} (task {self.task}){' died' if self.fatal else ''}: {self.message}"


@dataclass(frozen=True)
class TaskInfo:
    """The current state of a task.

    Attributes:
        id: Its id.
        component: Its component's id.
        kind: "spout" or "bolt".
        alive: Whether it runs.
        restarts: The number of its restarts.
        pid: The id of its process; None when it has none.
        instance: The component, if it is in this process.
        uptime_secs: Seconds since its process was started; None when it has none.
    """

    id: int
    component: str
    kind: str
    alive: bool
    restarts: int
    pid: int | None = None
    instance: Any = None
    uptime_secs: float | None = None


class LocalTopology(ABC):
    """A running topology. ``LocalCluster.submit`` makes it; ``kill``, or the end of the cluster's ``with``, ends it."""

    engine = ""
    """The engine's mode: "process", "inprocess" or "simulated"."""
    killed = False
    """True once it was ended."""

    def __init__(self, plan: Plan, clock: Clock, capture: Capture) -> None:
        self.name = plan.name
        self.plan = plan
        self.clock = clock
        self.started = clock.now()
        self.stats = {task: TaskStats() for task in plan.tasks}
        for task, planned in plan.tasks.items():
            spout = planned.spec.component
            if isinstance(spout, Spout):
                self.stats[task].lost_ids.source_id = spout.source_id
                if type(spout).is_question is not Spout.is_question:
                    self.stats[task].is_question = spout.is_question
        self._warned_full: set[int] = set()  # the spout tasks with a warning that windows hold all that may be pending
        self._doubted: dict[int, set[int]] = {}  # roots by spout task: see _expired
        self._source = StatusSource(self, self._acker_counters)
        self._errors: deque[TaskError] = deque(maxlen=MAX_ERRORS)
        self._kinds_of_errors: dict[
            tuple[str, bool, str], tuple[TaskError, int, float]
        ] = {}  # the last of each, their number, and when the first was
        self._repeats = Repeats(self._log_error, clock.now)
        self._printing: set[str] = set()  # components whose printed text was mentioned in the log
        self._captured: dict[tuple[str, str], list[LocalTuple]] = {}
        for wanted in [capture] if isinstance(capture, str) else capture:
            keep = capture[wanted] if isinstance(capture, Mapping) else None
            component, stream = (wanted, None) if isinstance(wanted, str) else wanted
            self._capture(component, stream, keep)

    # ---- control ----

    @abstractmethod
    def wait(self, until: Until = "drained", timeout: float | None = None) -> None:
        """Wait until all is done: spouts exhausted, nothing pending, nothing queued.

        A spout is exhausted when its ``exhausted()`` returns True or, if it can't tell, when it was idle several times.
        A topology that was submitted inactive is drained when it was activated and then all is done.

        Args:
            until: "drained", or a function of this topology that returns true when the wait is over.
            timeout: The longest wait in seconds; None for no limit.

        Raises:
            NotDrainedError: The time is over; the error names what is still to come, and where.
            LocalClusterError: The topology can't continue.
            ValueError: ``until`` is something else.
        """

    @abstractmethod
    def run_for(self, secs: float) -> None:
        """Let it run for ``secs`` seconds, drained or not."""

    @abstractmethod
    def activate(self) -> None:
        """Let the spouts emit, for the first time or again after ``deactivate``.

        The first call starts all tasks.

        Raises:
            TaskStartError: A task can't be started (with processes, ``wait`` raises it).
        """

    @abstractmethod
    def deactivate(self) -> None:
        """Ask the spouts for no more tuples; tuples in flight are still processed."""

    @abstractmethod
    def kill(self, wait_secs: float = 0) -> None:
        """End it: deactivate the spouts, wait up to ``wait_secs`` seconds for tuples in flight, then end all tasks."""

    # ---- observation ----

    @property
    @abstractmethod
    def tasks(self) -> list[TaskInfo]:
        """All tasks except the ackers, by id."""

    @property
    @abstractmethod
    def waiting_for(self) -> list[str]:
        """Everything that is still to come before it is drained, one line each; empty when it is drained."""

    def captured(self, component: str, stream: str = "default") -> list[LocalTuple]:
        """Return copies of the tuples emitted to a captured stream, in order of emission.

        Args:
            component: The component that emitted them.
            stream: Its stream.

        Raises:
            KeyError: ``submit(capture=...)`` did not name the stream.
        """
        try:
            return list(self._captured[component, stream])
        except KeyError:
            raise KeyError(
                f"stream {stream!r} of {component!r} is not captured; submit with capture=[({component!r}, {stream!r})]"
            ) from None

    @property
    def counters(self) -> dict[str, Counters]:
        """The counts of each component; the ackers (``__acker``) come last."""
        self._count()
        counted = {
            id: summed(id, spec.kind, [self.stats[task.id] for task in self.plan.tasks_of(id)])
            for id, spec in self.plan.topology.components.items()
        }
        ackers = self._acker_counters()
        if ackers is not None:
            counted[ACKER] = ackers
        return counted

    def _acker_counters(self) -> Counters | None:
        ackers = self._ackers_now
        return acker_counters(ackers) if ackers else None

    def status(self, *, by_task: bool = True) -> RunStatus:
        """Return the status: counts, rates, capacities, errors, what is waited for, and the last minute.

        Call it from the thread that waits: in process, it asks the spouts whether they are exhausted.

        Args:
            by_task: Whether to include each task's figures, which takes longer with thousands of tasks.
        """
        return self._source.status(by_task)

    @property
    @abstractmethod
    def state(self) -> str:
        """The state: "inactive", "active", "failed" or "ended"."""

    @property
    def checkpoint(self) -> CheckpointStatus | None:
        """The last checkpoint that was committed; None: there was none, or it is not known."""
        return None

    @property
    @abstractmethod
    def _ackers_now(self) -> Sequence[Acker]:
        """The acker tasks."""

    @property
    def kinds_of_errors(self) -> list[tuple[TaskError, int, float]]:
        """The last error of each kind, the number of that kind, and when its first was; the newest is the last."""
        return list(self._kinds_of_errors.values())

    @property
    def errors(self) -> list[TaskError]:
        """The last thousand errors, reported ones and those that ended tasks."""
        return list(self._errors)

    # ---- helpers of subclasses ----

    def _check_running(self) -> None:
        """Raise LocalClusterError if the topology was ended."""
        if self.killed:
            raise LocalClusterError(f"topology {self.name!r} was killed; submit it again")

    def _ended(self) -> None:
        """Call ``after_end`` of its components, as they were declared."""
        for spec in self.plan.topology.components.values():
            if isinstance(spec.component, Component):
                spec.component.after_end()

    @abstractmethod
    def fail(self, error: LocalClusterError) -> None:
        """End the topology: ``wait`` and ``run_for`` raise this error."""

    def _state(self, failure: LocalClusterError | None, active: bool) -> str:
        if self.killed:
            return "ended"
        if failure is not None:
            return "failed"
        return "active" if active else "inactive"

    def _expired(self, task: int, pending: RotatingMap[tuple[Any, float]]) -> list[tuple[Any, float]]:
        """Rotate the pending tuples of a spout's task, and return those that timed out.

        A tuple that waits only for windows to end is pending for as long as they hold it. If it seems to wait for
        something else, too, that may be an ack in flight, so that it is checked once more, one timeout later.

        Args:
            task: The task's id.
            pending: Its pending tuples, by their roots.
        """
        expired = pending.rotate()
        held = self._held() if expired or len(pending) else ()
        renewed, others = renew(self._ackers_now, held) if held else ((), ())
        for root in renewed:  # younger ones, too: when their windows end, their acks have a whole timeout
            entry = expired.pop(root, None) or pending.remove(root)
            if entry is not None:
                pending.newest[root] = entry
        seen, doubted = self._doubted.get(task, ()), set()
        failed = []
        for root, entry in expired.items():
            if root in others and root not in seen:
                pending.restore(root, entry)
                doubted.add(root)
            else:
                failed.append(entry)
        self._doubted[task] = doubted
        plan = self.plan.tasks[task]
        most = plan.settings.max_spout_pending
        if most and renewed and len(pending) >= most and task not in self._warned_full:
            self._warned_full.add(task)
            self._log(
                plan,
                f"it is asked for no more tuples: {MAX_SPOUT_PENDING} is {most}, and windows that wait for more tuples hold so many. Set it "
                "higher, or make the windows stateful, so that they ack early",
                3,
            )
        return failed

    def _held(self) -> list[tuple[int | dict[int, int], int]]:
        """Return root and edge of each delivery that a window holds."""
        return []

    @abstractmethod
    def _count(self) -> None:
        """Update ``stats`` from counts that are stored elsewhere."""

    def _sample(self) -> None:
        """Store the present counts for rates and curves."""
        self._count()
        self._source.sample()

    def _capture(self, component: str, stream: str | None, keep: Keep | None) -> None:
        spec = self.plan.topology[component]
        for name in spec.streams if stream is None else [stream]:
            if name not in spec.streams:
                hint = did_you_mean(name, spec.streams)
                raise KeyError(f"{component!r} declares no stream {name!r} that could be captured; {hint}")
            if keep is None:
                keep_here: Keep = self._captured.setdefault((component, name), []).append
            else:
                keep_here = self._guarded(component, keep)
            for task in self.plan.tasks_of(component):
                task.routes[name].captured = keep_here

    def _guarded(self, component: str, keep: Keep) -> Keep:
        """Return ``keep``, with its exceptions caught: they end the topology, and are raised by ``wait``."""

        def guarded(tup: LocalTuple) -> None:
            try:
                keep(tup)
            except Exception as error:  # noqa: BLE001  # user code
                broken = LocalClusterError(
                    f"topology {self.name!r} can't continue: {error!r} of the function that captures {component!r}"
                )
                broken.__cause__ = error
                self.fail(broken)

        return guarded

    def _not_met(self, until: Until, after: str, waiting_for: Sequence[str], which: str = "") -> NotDrainedError:
        """Return the error of a ``wait`` that ran out of time."""
        what = "is not drained" if until == "drained" else "did not meet the condition of wait()"
        lines = listed(waiting_for) or ["nothing is in flight, no spout has more, and no bolt holds a tuple"]
        return NotDrainedError(f"topology {self.name!r}{which} {what} after {after}:", lines)

    def _error(self, task: TaskPlan, message: str, fatal: bool = False) -> None:
        self.stats[task.id].errors += 1
        error = TaskError(task.component, task.id, message, fatal, self.clock.now() - self.started)
        self._errors.append(error)
        kinds, kind = self._kinds_of_errors, (task.component, fatal, error_kind(message))
        _, times, first_at = kinds.pop(kind, (None, 0, error.at))
        kinds[kind] = error, times + 1, first_at  # the newest kind is the last
        if len(kinds) > MAX_KINDS:
            del kinds[next(iter(kinds))]
        text = f"died: {message}" if fatal else message
        if logging.getLogger(task.component).isEnabledFor(logging.DEBUG):
            self._log_error(task, text)
        else:
            self._repeats.report(task, text, task.component)

    def _log_error(self, task: TaskPlan, message: str) -> None:
        logging.getLogger(task.component).error("%s", message, extra={"task": task.id})

    def _log(self, task: TaskPlan, message: str, level: int) -> None:
        logger = logging.getLogger(task.component)
        logger.log(_LEVELS[level], "%s", message, extra={"task": task.id})
        if (
            message.startswith(_PRINTED)
            and task.component not in self._printing
            and not logger.isEnabledFor(_LEVELS[level])
        ):
            self._printing.add(task.component)
            logger.warning(
                "what it prints is not shown here: it goes to the log, at level info, which multilang run shows with -v "
                "and a script with logging.basicConfig(level='INFO'); this is logged once. It was: %.200s",
                message[len(_PRINTED) :],
                extra={"task": task.id},
            )

    def _metric(self, task: TaskPlan, name: str, params: Any) -> None:
        logging.getLogger(task.component).debug("metric %s: %r", name, params, extra={"task": task.id})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def listed(lines: Sequence[str], limit: int = 12) -> list[str]:
    """Return at most ``limit`` lines, and a line with the number of further ones."""
    return [*lines[:limit], f"and {len(lines) - limit} more"] if len(lines) > limit else list(lines)
