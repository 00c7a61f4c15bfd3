"""The status of a running topology, from Nimbus's answers."""

from __future__ import annotations

import re
from time import time as time_of_day
from typing import TYPE_CHECKING

from multilang.engine.samples import sample_of_status
from multilang.engine.status import (
    CallStatus,
    ComponentStatus,
    History,
    InputStatus,
    RunError,
    RunStatus,
    StreamStatus,
    TaskStatus,
    metric_statuses,
    work_done,
)
from multilang.exchange.names import STREAM
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.task_report import TaskReport
    from multilang.engine.samples import Recorder

ALL_TIME = ":all-time"
TEN_MINUTES = "600"  # Storm's shortest window
WINDOW_SECS = 600.0
_YOUNG_SECS = 60  # of an executor; about as long as a cluster's counters may be old
_JAVA_FRAME = re.compile(r"\s+at [\w$.<>/@-]+\(.*\)( ~?\[.*\])?$|\s+\.\.\. \d+ more$|\s+Suppressed: ")
_JAVA_PREFIX = re.compile(r"^(Caused by: )?((java|org\.apache\.storm)\.[\w.$]+(: |$))+")
_SHELL_PREFIX = re.compile(r"^Shell Process Exception: ?")
_RESOURCES = re.compile(r"/\S*/stormdist/[^/\s]+/resources/")  # the folder in which a supervisor unpacks a jar
_ON_TUPLE = re.compile(r" on tuple -?\d+ ")
_TRACEBACK = "Traceback (most recent call last):"


def topology_status(
    info: Any, recorder: Recorder | None = None, reports: Mapping[tuple[str, int], TaskReport] | None = None
) -> RunStatus:
    """Return the status from Storm's TopologyInfo.

    Components are sorted by name, with Storm's own (``__acker``) last. Storm counts by executor, in windows; rates and
    capacities are those of its window of ten minutes. It measures the time of execute() and the capacity in its own
    JVM, where a component in another process is only handed its tuples: so they are given for Storm's own components
    alone. The capacity of another component is that of its processes' last reports.

    Args:
        info: Storm's TopologyInfo.
        recorder: The samples of earlier calls, of which the history is made; None: there are none.
        reports: The last reports of tasks, by component and task.
    """
    executors: dict[str, list[_Executor]] = {}
    for each in info.executors:
        executors.setdefault(each.component_id, []).append(_Executor(each, reports or {}))
    components = [_component(id, of) for id, of in executors.items()]
    seconds = float(info.uptime_secs)
    if recorder is not None:
        recorder.record(seconds, {each.id: sample_of_status(each) for each in components})
    return RunStatus(
        topology=info.name,
        engine="storm",
        state=info.status.lower(),
        seconds=seconds,
        window_secs=min(seconds, WINDOW_SECS),
        id=info.id,
        workers=len({(executor.host, executor.port) for executor in info.executors}),
        components=tuple(sorted(components, key=lambda each: (each.id.startswith("__"), each.id))),
        errors=tuple(
            sorted(
                (
                    component_error(id, f"{error.host}:{error.port}", error.error_time_secs, error.error)
                    for id, errors in info.errors.items()
                    for error in errors
                ),
                key=lambda error: error.time or 0,
            )
        ),
        history=History() if recorder is None else recorder.history(),
    )


def component_error(component: str, where: str, time: int, report: str) -> RunError:
    """Return an error that Nimbus keeps.

    Args:
        component: The component's id.
        where: Host and port of the worker.
        time: Seconds since 1970.
        report: Java's whole stack trace.
    """
    return RunError(component=component, message=readable(report), where=where, time=time, report=report)


def least_uptime(status: RunStatus) -> int:
    """Return the seconds since the start of the youngest executor; 0: one is not there yet."""
    uptimes = [task.uptime_secs or 0 for each in status.components for task in each.by_task]
    return int(min(uptimes, default=0))


def started_again(status: RunStatus) -> str:
    """Return a sentence on executors that are much younger than their active topology; empty if there are none.

    Storm removes the errors of a worker with it. If the worker ends again and again, all that Nimbus still knows is
    that its executors are young, or have reported nothing.
    """
    if status.state != "active" or status.seconds < 2 * _YOUNG_SECS:
        return ""
    uptimes = [task.uptime_secs or 0 for each in status.components for task in each.by_task]
    young = sum(uptime < _YOUNG_SECS for uptime in uptimes)
    if not young:
        return ""
    return (
        f"{young} of {len(uptimes)} executors have been up for less than {_YOUNG_SECS} s, or are not up, {status.seconds:.0f} s "
        f"after the topology's submission; if that stays so, its workers end again and again, and multilang logs "
        f"{status.topology} has the reason"
    )


def counted_in_blocks(status: RunStatus) -> str:
    """Return a sentence on the components that Storm counts by the block; empty if there are none."""
    found = [
        each.id
        for each in status.components
        if any(part.stream == STREAM for part in each.inputs) or any(part.name == STREAM for part in each.streams)
    ]
    if not found:
        return ""
    return (
        f"{' and '.join([', '.join(found[:-1]), found[-1]] if found[1:] else found)}: tuples travel in blocks of many, and Storm "
        "counts a block as one tuple (with multilang.exchange: tuple it counts tuples)"
    )


def readable(report: str) -> str:
    """Return the component's own text of a report, without Java's frames around it: for Python, its traceback."""
    lines = [line for line in report.strip().splitlines() if line.strip() and not _JAVA_FRAME.match(line)]
    python = next((n for n, line in enumerate(lines) if line == _TRACEBACK), None)
    if python is None:
        causes = [n for n, line in enumerate(lines) if line.startswith("Caused by: ")]
        lines = [*lines[:1], *(lines[n] for n in causes[:-1]), *lines[causes[-1] :]] if causes else lines
    else:
        after = next((n for n, line in enumerate(lines) if n > python and _JAVA_PREFIX.match(line)), len(lines))
        lines = lines[:after]
    words = [_SHELL_PREFIX.sub("", _JAVA_PREFIX.sub("", line)) for line in lines]
    if python is None:  # drop causes whose text is in the line before
        words = [word for n, word in enumerate(words) if n == 0 or word not in words[n - 1]]
    return _RESOURCES.sub("", "\n".join(words)).strip()


def worth_showing(errors: Sequence[RunError]) -> list[tuple[RunError, int]]:
    """Return each error once, the last of its kind, with its number.

    If a component reported its own error, Java's reports of its process's end are left out.
    """
    spoke = {each.component for each in errors if _TRACEBACK in each.message}
    kinds: dict[tuple[str, str], list[RunError]] = {}
    for each in errors:
        if each.component not in spoke or "multilang.NoOutputException" not in (each.report or ""):
            kinds.setdefault((each.component, _ON_TUPLE.sub("", each.message)), []).append(each)
    return [(kind[-1], len(kind)) for kind in kinds.values()]


class _Executor:
    """The figures of one executor, in the words of Storm's ExecutorSummary."""

    def __init__(self, summary: Any, reports: Mapping[tuple[str, int], TaskReport]) -> None:
        self._summary = summary
        self.is_storms = summary.component_id.startswith("__")
        self._counts = _of_acker if summary.component_id == ACKER else _of_user
        self.stats = summary.stats
        specific = None if self.stats is None else self.stats.specific
        self._spout = None if specific is None else specific.spout
        self._bolt = None if specific is None else specific.bolt
        self.kind = "spout" if self._spout is not None else "bolt" if self._bolt is not None or self.is_storms else ""
        info = summary.executor_info
        self.tasks = range(info.task_start, info.task_end + 1)
        self.up = summary.uptime_secs > 0
        of_tasks = (reports.get((summary.component_id, task)) for task in self.tasks)
        self._reports = [each for each in of_tasks if each is not None]

    def total(self, name: str, window: str = ALL_TIME) -> int | None:
        """Return the sum of a count over all streams that count; None: Storm has not counted it yet."""
        if self.stats is None:
            return None
        counts: dict[Any, int] = self._windows(name).get(window) or {}
        return sum(count for stream, count in counts.items() if self._counts(_name(stream)))

    def by_stream(self, name: str) -> dict[Any, int]:
        """Return a count by stream, of all time."""
        if self.stats is None:
            return {}
        counts = self._windows(name).get(ALL_TIME) or {}
        return {stream: count for stream, count in counts.items() if self._counts(_name(stream))}

    def latency(self, name: str, weight: str) -> tuple[float, int]:
        """Return the sum of a latency in ms, of all time, and the number of tuples that it is the latency of."""
        if self.stats is None:
            return 0.0, 0
        averages, counts = self._windows(name).get(ALL_TIME) or {}, self._windows(weight).get(ALL_TIME) or {}
        known = [(averages[stream], count) for stream, count in counts.items() if averages.get(stream) is not None]
        return sum(average * count for average, count in known), sum(count for _, count in known)

    @property
    def rate(self) -> float | None:
        """Tuples per second in Storm's window of ten minutes."""
        emitted, executed, acked, failed = (
            self.total(name, TEN_MINUTES) for name in ("emitted", "executed", "acked", "failed")
        )
        done = work_done(self.kind, emitted, executed, acked, failed, None)
        return done / self._window_secs if self.stats is not None and self._window_secs else None

    @property
    def capacity(self) -> float | None:
        """The share of ten minutes in which it executed tuples, as Storm's page has it; see ``topology_status``."""
        if not self.is_storms:
            return max((each.capacity for each in self._reports), default=None)
        if self._bolt is None or not self._window_secs:
            return None
        averages, counts = (self._windows(name).get(TEN_MINUTES) or {} for name in ("execute_ms_avg", "executed"))
        busy_ms: float = sum((averages.get(stream) or 0.0) * count for stream, count in counts.items())
        return min(busy_ms / 1000 / self._window_secs, 1.0)

    @property
    def _window_secs(self) -> float:
        return min(float(self._summary.uptime_secs), WINDOW_SECS)

    def task(self) -> TaskStatus:
        """Return its status."""
        summary = self._summary
        return TaskStatus(
            id=self.tasks[0],
            through=self.tasks[-1],
            alive=self.up,
            where=f"{summary.host}:{summary.port}",
            uptime_secs=summary.uptime_secs,
            rate=self.rate,
            capacity=self.capacity,
            call=self._call,
            metrics=metric_statuses(self._reports[0].metrics) if len(self.tasks) == len(self._reports) == 1 else (),
            **_figures([self]),
        )

    @property
    def _call(self) -> CallStatus | None:
        """The longest call that one of its tasks is in."""
        now = time_of_day()
        calls = [(each.call, max(now - each.time, 0.0)) for each in self._reports if each.call is not None]
        found = [CallStatus(method=method, secs=secs + age, at=at) for (method, secs, at), age in calls]
        return max(found, key=lambda call: call.secs, default=None)

    def _home(self, name: str) -> Any:
        return self.stats if name in ("emitted", "transferred") else self._spout or self._bolt

    def _windows(self, name: str) -> dict[str, dict[Any, Any]]:
        return getattr(self._home(name), name, None) or {}


def _figures(executors: Sequence[_Executor]) -> dict[str, Any]:
    """Return the counts and latencies of some executors together, as arguments."""
    figures: dict[str, Any] = {}
    for name in ("emitted", "transferred", "executed", "acked", "failed"):
        known = [count for each in executors if (count := each.total(name)) is not None]
        figures[name] = sum(known) if known else None
    latencies = {"process": "acked", "complete": "acked"}
    if all(each.kind == "bolt" and each.is_storms for each in executors):
        latencies["execute"] = "executed"
    for name, weight in latencies.items():
        parts = [each.latency(f"{name}_ms_avg", weight) for each in executors]
        count = sum(count for _, count in parts)
        figures[f"{name}_latency_ms"] = sum(ms for ms, _ in parts) / count if count else None
    return figures


def _component(id: str, executors: Sequence[_Executor]) -> ComponentStatus:
    streams: dict[str, list[int]] = {}
    inputs: dict[tuple[str, str], int] = {}
    for each in executors:
        for place, name in enumerate(("emitted", "transferred")):
            for stream, count in each.by_stream(name).items():
                streams.setdefault(stream, [0, 0])[place] += count
        for source, count in each.by_stream("executed").items():
            key = (source.componentId, source.streamId)
            inputs[key] = inputs.get(key, 0) + count
    capacities = [share for each in executors if (share := each.capacity) is not None]
    rates = [rate for each in executors if (rate := each.rate) is not None]
    return ComponentStatus(
        id=id,
        kind=next((each.kind for each in executors if each.kind), ""),
        tasks=sum(len(each.tasks) for each in executors),
        executors=len(executors),
        up=sum(each.up for each in executors),
        streams=tuple(
            StreamStatus(name=name, emitted=emitted, transferred=transferred)
            for name, (emitted, transferred) in sorted(streams.items())
        ),
        inputs=tuple(
            InputStatus(component=component, stream=stream, executed=count)
            for (component, stream), count in sorted(inputs.items())
        ),
        by_task=tuple(each.task() for each in sorted(executors, key=lambda each: each.tasks[0])),
        rate=sum(rates) if rates else None,
        capacity=max(capacities) if capacities else None,
        **_figures(executors),
    )


def _name(stream: Any) -> str:
    """Return a stream's name; a bolt's inputs are counted by component and stream."""
    return stream if isinstance(stream, str) else stream.streamId


def _of_user(stream: str) -> bool:
    """Return whether it is one of the user's streams.

    Storm also counts metrics and acks, on streams such as ``__ack_ack``.
    """
    return not stream.startswith("__")


def _of_acker(stream: str) -> bool:
    """Return whether an acker does its work on this stream. On others it has ticks and metrics."""
    return stream.startswith("__ack_")
