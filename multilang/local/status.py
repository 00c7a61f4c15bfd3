"""The status of a topology on the embedded cluster."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from multilang.engine.counters import summed
from multilang.engine.samples import Recorder, Sample, sample_of
from multilang.engine.status import (
    CallStatus,
    ComponentStatus,
    Figures,
    RunError,
    RunStatus,
    TaskStatus,
    declared,
    metric_statuses,
)
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from multilang.engine.clock import Clock
    from multilang.engine.counters import Counters, TaskStats
    from multilang.engine.plan import Plan
    from multilang.engine.samples import Rates
    from multilang.engine.status import CheckpointStatus

    class WatchedRun(Protocol):
        """The parts of a LocalTopology that its status is made of."""

        name: str
        engine: str
        plan: Plan
        clock: Clock
        started: float
        stats: dict[int, TaskStats]

        @property
        def counters(self) -> Mapping[str, Counters]: ...
        @property
        def tasks(self) -> Sequence[Any]: ...
        @property
        def kinds_of_errors(self) -> Sequence[tuple[Any, int, float]]: ...
        @property
        def waiting_for(self) -> Sequence[str]: ...
        @property
        def state(self) -> str: ...
        @property
        def checkpoint(self) -> CheckpointStatus | None: ...


_NO_FIGURES = ("component", "kind", "tasks")


class StatusSource:
    """Makes the status of a run, and stores the samples of its last minute."""

    def __init__(self, run: WatchedRun, ackers: Callable[[], Counters | None]) -> None:
        """Begin with no sample. ``ackers``: returns the counts of the ackers, or None if there are none."""
        self._run = run
        self._ackers = ackers
        self._tasks = {id: [task.id for task in run.plan.tasks_of(id)] for id in run.plan.topology.components}
        self._recorder = Recorder()

    def sample(self) -> None:
        """Store the present counts; to be called about once a second, after they were updated."""
        self._recorder.record(self._now(), self._samples())

    def status(self, by_task: bool) -> RunStatus:
        """Return the status now.

        Args:
            by_task: Whether to include each task's figures.
        """
        run = self._run
        counters = run.counters  # which updates the counts of all tasks
        now, samples = self._now(), self._samples()
        rates = self._recorder.rates(now, samples)
        self._recorder.record(now, samples)
        infos = {task.id: task for task in run.tasks} if by_task else {}
        return RunStatus(
            topology=run.name,
            engine=run.engine,
            state=run.state,
            seconds=now,
            window_secs=rates.window_secs,
            components=tuple(self._component(each, rates, infos) for each in counters.values()),
            waiting_for=None if run.state in ("ended", "failed") else tuple(run.waiting_for),
            errors=tuple(
                RunError(
                    component=each.component,
                    task=each.task,
                    message=each.message,
                    fatal=each.fatal,
                    at=each.at,
                    times=times,
                    first_at=None if times == 1 else first_at,
                )
                for each, times, first_at in run.kinds_of_errors
            ),
            checkpoint=run.checkpoint,
            history=self._recorder.history(),
        )

    def _now(self) -> float:
        return self._run.clock.now() - self._run.started

    def _samples(self) -> dict[str, Sample]:
        stats, components = self._run.stats, self._run.plan.declared.components
        samples = {
            id: sample_of(components[id].kind, {task: stats[task] for task in tasks})
            for id, tasks in self._tasks.items()
        }
        ackers = self._ackers()
        if ackers is not None:
            samples[ACKER] = Sample(ackers.executed)
        return samples

    def _component(self, counters: Counters, rates: Rates, infos: dict[int, Any]) -> ComponentStatus:
        id, counts = counters.component, _figures(counters)
        if id == ACKER:
            return ComponentStatus(id=id, kind=counters.kind, tasks=counters.tasks, rate=rates.rate.get(id), **counts)
        stats, tasks = self._run.stats, self._tasks[id]
        busy = [secs for task in tasks if (secs := stats[task].busy) is not None]
        figures = Figures(
            **counts,
            busy_secs=sum(busy) if busy else None,
            rate=rates.rate.get(id),
            capacity=rates.capacity.get(id),
        )
        return ComponentStatus(
            id=id,
            kind=counters.kind,
            tasks=counters.tasks,
            by_task=tuple(_task(infos[task], stats[task], rates) for task in tasks if task in infos),
            **vars(figures),
            **declared(self._run.plan.declared.components[id], figures),
        )


def _figures(counters: Counters) -> dict[str, Any]:
    return {name: value for name, value in counters.as_dict().items() if name not in _NO_FIGURES}


def _call(method: str, since: float, at: str | None) -> CallStatus:
    return CallStatus(method=method, secs=monotonic() - since, at=at)


def _task(info: Any, stats: TaskStats, rates: Rates) -> TaskStatus:
    return TaskStatus(
        id=info.id,
        through=info.id,
        alive=info.alive,
        where=None if info.pid is None else str(info.pid),
        uptime_secs=info.uptime_secs,
        busy_secs=stats.busy,
        rate=rates.task_rate.get(info.id),
        capacity=rates.task_capacity.get(info.id),
        call=None if stats.call is None else _call(*stats.call),
        metrics=metric_statuses(stats.metrics),
        **_figures(summed(info.component, info.kind, [stats])),
    )
