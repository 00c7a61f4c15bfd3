"""The status of a run, in one shape wherever it runs: embedded, a Spark job, a streaming query, a cluster's topology.

Each engine makes a ``RunStatus``; the table on a terminal, JSON, Prometheus and pages only show it. A figure that an
engine can't know is None, never 0. Counts go from the run's start on, times are in seconds and latencies, as on
Storm's page, in milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, TypeVar

from multilang.component.repeats import kind_of
from multilang.topology.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from multilang.component.metrics import Total
    from multilang.topology.model import ComponentSpec

_TRACEBACK = "\nTraceback"
_NUMBER = re.compile(r"\d+")
VERSION = 1
"""The version of the JSON document; it changes when a key is renamed, dropped, or gets another meaning."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The counts and measurements of a component or of one of its tasks.

    Attributes:
        emitted: Calls of emit.
        transferred: Deliveries that these calls led to.
        executed: Tuples that a bolt processed, ticks included.
        acked: A bolt's acked inputs, or a spout's acked tuples.
        failed: A bolt's failed inputs, or a spout's failed tuples.
        timed_out: Those of a spout's failed tuples that no bolt failed.
        pending: A spout's tuples that are neither acked nor failed yet.
        lost: A spout's message ids that failed, or died with their task, and were not acked since.
        unfinished: A bolt's inputs that are neither acked nor failed yet.
        errors: Errors that were reported, or that ended a task.
        restarts: Restarts of tasks.
        execute_latency_ms: Average time in a bolt's process(), of a sample.
        process_latency_ms: Average time from a tuple's delivery to its ack.
        complete_latency_ms: Average time from a spout's emit to the ack of the whole tuple tree.
        latency_p50_ms: The latency below which half of all are: of a spout from the emit to the ack of the tree, of a bolt to its ack
            or, where that is not known, in process(). Within 3 %.
        latency_p99_ms: The latency below which 99 of 100 are.
        busy_secs: The time in which tasks were busy, since the start; of a component, all its tasks together.
        rate: Tuples per second in the status' window: acked by a spout (emitted, if it is not reliable), or processed
            by a bolt.
        capacity: The share of the window in which a task was busy, from 0 to 1; of a component, that of its busiest
            task.
    """

    emitted: int | None = None
    transferred: int | None = None
    executed: int | None = None
    acked: int | None = None
    failed: int | None = None
    timed_out: int | None = None
    pending: int | None = None
    lost: int | None = None
    unfinished: int | None = None
    errors: int | None = None
    restarts: int | None = None
    execute_latency_ms: float | None = None
    process_latency_ms: float | None = None
    complete_latency_ms: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    busy_secs: float | None = None
    rate: float | None = None
    capacity: float | None = None


_F = TypeVar("_F", bound=Figures)


@dataclass(frozen=True, kw_only=True)
class StreamStatus:
    """An output stream of a component.

    Attributes:
        name: The stream's name.
        fields: Its fields; None: not known.
        emitted: Calls of emit on it.
        transferred: Deliveries that these calls led to.
    """

    name: str
    fields: tuple[str, ...] | None = None
    emitted: int | None = None
    transferred: int | None = None


@dataclass(frozen=True, kw_only=True)
class InputStatus:
    """A bolt's subscription to a stream: an edge of the topology's graph.

    Attributes:
        component: The component that emits.
        stream: The stream's name.
        grouping: The grouping in words; None: not known.
        executed: Tuples of this stream that the bolt processed.
    """

    component: str
    stream: str
    grouping: str | None = None
    executed: int | None = None


@dataclass(frozen=True, kw_only=True)
class CallStatus:
    """A call of user code that takes long.

    Attributes:
        method: What was called, such as "process", "next_tuple" or "timer Fetch.flush"; empty: not known, since its
            process is silent.
        secs: The seconds since the call, or since the process was heard last.
        at: The innermost line of the user's code that it was seen in, such as "fetch.py:12 in process".
    """

    method: str
    secs: float
    at: str | None = None

    def __str__(self) -> str:
        where = "" if self.at is None else f" ({self.at})"
        if not self.method:
            return f"has not been heard of for {self.secs:.0f} s{where}"
        return f"has been in {self.method} for {self.secs:.0f} s{where}"


@dataclass(frozen=True, kw_only=True)
class MetricStatus:
    """One of a component's own metrics, in one task.

    Attributes:
        name: Its name.
        kind: "counter", "gauge" or "timer".
        value: The sum of a counter, or of a timer in seconds, since the task's start; a gauge's last value.
        count: The number of durations that a timer recorded; None for the others.
    """

    name: str
    kind: str
    value: float
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class TaskStatus(Figures):
    """A task; on a cluster, the tasks of one executor, of which Storm counts the sum.

    Attributes:
        id: The task's id.
        through: The last task's id: greater than ``id`` where an executor has several tasks.
        alive: Whether it runs.
        where: The place where it runs: host and port of a worker, or the id of a process; None: not known, or in the
            process that was asked.
        uptime_secs: Seconds since its start.
        call: The call that it is in, if that takes long; None: it is in none, or it is not known.
        metrics: The component's own metrics, as far as they were reported.
    """

    id: int
    through: int
    alive: bool | None = None
    where: str | None = None
    uptime_secs: float | None = None
    call: CallStatus | None = None
    metrics: tuple[MetricStatus, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ComponentStatus(Figures):
    """A component, all its tasks together.

    Attributes:
        id: The component's id.
        kind: "spout" or "bolt".
        tasks: The number of its tasks.
        executors: The number of executors (threads, on a cluster).
        up: The number of executors that run.
        inputs: A bolt's subscriptions.
        streams: Its output streams.
        by_task: Its tasks; empty if they were not asked for, or are not known.
    """

    id: str
    kind: str
    tasks: int
    executors: int | None = None
    up: int | None = None
    inputs: tuple[InputStatus, ...] = ()
    streams: tuple[StreamStatus, ...] = ()
    by_task: tuple[TaskStatus, ...] = ()

    @property
    def done(self) -> int | None:
        """The number that a rate counts: a spout's finished tuples, or a bolt's processed ones; None: not known."""
        return work_done(self.kind, self.emitted, self.executed, self.acked, self.failed, self.pending)

    @property
    def latency_ms(self) -> float | None:
        """The most telling latency: a spout's complete latency, or a bolt's to the ack, else in process()."""
        if self.kind == "spout":
            return self.complete_latency_ms
        return self.process_latency_ms or self.execute_latency_ms

    @property
    def waiting(self) -> int | None:
        """The number of tuples that are neither acked nor failed yet."""
        return self.pending if self.kind == "spout" else self.unfinished


@dataclass(frozen=True, kw_only=True)
class RunError:
    """The last error of a kind that a component reported, or that ended a task.

    Attributes:
        component: The component's id.
        message: The error's text, without the frames of Java or Spark around it.
        task: The task's id.
        fatal: Whether it ended the task.
        at: Seconds since the run's start.
        time: Seconds since 1970.
        where: Host and port of the worker.
        times: The number of its kind; on a cluster, of those that Storm still stores.
        first_at: Seconds from the run's start to the first of its kind; None: not known, or it is the only one.
        first_time: The time of the first of its kind, in seconds since 1970; None: not known, or it is the only one.
        report: The whole report, where ``message`` is a part of it.
    """

    component: str
    message: str
    task: int | None = None
    fatal: bool | None = None
    at: float | None = None
    time: int | None = None
    where: str | None = None
    times: int = 1
    first_at: float | None = None
    first_time: int | None = None
    report: str | None = None

    def __str__(self) -> str:
        task = f" (task {self.task})" if self.task is not None else ""
        times = f", {self.times:,} times" if self.times > 1 else ""
        return f"{self.component!r}{task}{' died' if self.fatal else ''}{times}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class CheckpointStatus:
    """The last checkpoint of which all states are committed; of a streaming query, its last committed batch.

    Attributes:
        number: The checkpoint's transaction, or the batch.
        age_secs: Seconds since it was committed.
        seconds: The time that it took.
    """

    number: int
    age_secs: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """A component's figures over time: in each tuple, one for each interval that ends at a time of the history.

    Attributes:
        rate: Tuples per second.
        failed: Tuples that failed in the interval.
        pending: Tuples that were neither acked nor failed at its end.
        latency_ms: The average latency in the interval.
        capacity: The share of the interval in which the busiest task was busy.
    """

    rate: tuple[float | None, ...] = ()
    failed: tuple[int | None, ...] = ()
    pending: tuple[int | None, ...] = ()
    latency_ms: tuple[float | None, ...] = ()
    capacity: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class History:
    """The last minute or so of a run, one interval a second at most.

    Attributes:
        at: The ends of the intervals, in seconds since the run's start.
        components: Component id -> its figures in these intervals.
    """

    at: tuple[float, ...] = ()
    components: Mapping[str, Series] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run at one moment.

    Attributes:
        topology: The topology's name.
        engine: The engine that runs it: "process", "inprocess", "simulated", "storm", "spark" or "spark-stream".
        state: "inactive", "active", "rebalancing", "killed", "failed" or "ended".
        seconds: Seconds since the run's start (virtual ones, if it is simulated).
        window_secs: The length of the window of rates and capacities, in seconds; None: there are none yet.
        id: The engine's id of the run, such as Storm's.
        workers: The number of workers.
        components: The components, in the order in which they were declared.
        waiting_for: What is still to come before the run is drained, one line each; None: not known.
        errors: The last errors, each kind once, oldest first.
        notes: Sentences about figures that mean something else here than elsewhere.
        checkpoint: The last checkpoint; None: there was none, or it is not known.
        history: The last minute.
    """

    topology: str
    engine: str
    state: str
    seconds: float
    window_secs: float | None = None
    id: str | None = None
    workers: int | None = None
    components: tuple[ComponentStatus, ...] = ()
    waiting_for: tuple[str, ...] | None = None
    errors: tuple[RunError, ...] = ()
    notes: tuple[str, ...] = ()
    checkpoint: CheckpointStatus | None = None
    history: History = field(default_factory=History)

    def __getitem__(self, component: str) -> ComponentStatus:
        for each in self.components:
            if each.id == component:
                return each
        hint = did_you_mean(component, [each.id for each in self.components])
        raise KeyError(f"topology {self.topology!r} has no component {component!r}; {hint}")

    @property
    def spouts(self) -> tuple[ComponentStatus, ...]:
        """The spouts."""
        return tuple(each for each in self.components if each.kind == "spout")

    @property
    def missing(self) -> list[str]:
        """The components of which not all executors run."""
        return [each.id for each in self.components if each.up is not None and each.up < (each.executors or 0)]

    @property
    def long_calls(self) -> tuple[str, ...]:
        """A sentence for each task that is in a call which takes long."""
        return tuple(
            f"{each.id} task {task.id} {task.call}"
            for each in self.components
            for task in each.by_task
            if task.call is not None
        )

    def total(self, name: str, kind: str | None = "spout") -> int | None:
        """Return the sum of a count over all spouts, or over all components; None: it is not known of any.

        Args:
            name: The count's name, such as ``"acked"``.
            kind: "spout", "bolt", or None for all components.
        """
        counts = (getattr(each, name) for each in self.components if kind in (None, each.kind))
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    def averaged(self) -> RunStatus:
        """Return the status with rates and capacities over the whole run instead of its last window."""
        secs = self.seconds
        if secs <= 0:
            return self

        def averaged(figures: _F, kind: str, busy_secs: float | None) -> _F:
            done = work_done(kind, figures.emitted, figures.executed, figures.acked, figures.failed, figures.pending)
            capacity = None if busy_secs is None else min(busy_secs / secs, 1.0)
            return replace(figures, rate=None if done is None else done / secs, capacity=capacity)

        components = []
        for each in self.components:
            tasks = tuple(averaged(task, each.kind, task.busy_secs) for task in each.by_task)
            busiest = max((task.busy_secs for task in tasks if task.busy_secs is not None), default=None)
            components.append(replace(averaged(each, each.kind, busiest), by_task=tasks))
        return replace(self, window_secs=secs, components=tuple(components))

    def as_json(self) -> dict[str, Any]:
        """Return the status in JSON's types; docs/observing.md describes them."""
        return {"version": VERSION, **_plain(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunStatus:
        """Return the status of a document that ``as_json`` made.

        Raises:
            ValueError: It is of another version.
        """
        if document.get("version") != VERSION:
            raise ValueError(
                f"the status document is of version {document.get('version')!r}, and this is version {VERSION}: read it "
                "with the release of storm-multilang that wrote it"
            )
        values = _known(cls, document)
        values["components"] = tuple(map(_component, document["components"]))
        values["errors"] = tuple(RunError(**_known(RunError, each)) for each in document["errors"])
        if document["checkpoint"] is not None:
            values["checkpoint"] = CheckpointStatus(**_known(CheckpointStatus, document["checkpoint"]))
        if document["waiting_for"] is not None:
            values["waiting_for"] = tuple(document["waiting_for"])
        values["notes"] = tuple(document.get("notes", ()))
        history = document["history"]
        values["history"] = History(
            at=tuple(history["at"]),
            components={
                id: Series(**{name: tuple(column) for name, column in _known(Series, each).items()})
                for id, each in history["components"].items()
            },
        )
        return cls(**values)


def work_done(
    kind: str, emitted: int | None, executed: int | None, acked: int | None, failed: int | None, pending: int | None
) -> int | None:
    """Return the number that a rate counts: a spout's acked tuples (or emitted, if none has an id), a bolt's inputs."""
    if kind == "bolt":
        return executed
    return acked if acked or failed or pending else emitted


def error_kind(message: str) -> str:
    """Return what an error shares with others of its kind: a traceback's places, or else the text without numbers."""
    kind = kind_of(message)
    return kind if _TRACEBACK in message else _NUMBER.sub("", kind)


def by_kind(
    errors: Iterable[RunError], kind_of: Callable[[RunError], str] = lambda each: error_kind(each.message)
) -> tuple[RunError, ...]:
    """Return the last error of each kind with the number of its kind, the newest last.

    If the last one was only counted, its text is that of the last one with a traceback.

    Args:
        errors: The errors, oldest first.
        kind_of: Returns what an error shares with those of its kind, beside its component.
    """
    kinds: dict[tuple[object, ...], RunError] = {}
    for each in errors:
        kind = each.component, each.fatal, kind_of(each)
        before = kinds.pop(kind, None)
        if before is not None:
            written = each if _TRACEBACK in each.message or _TRACEBACK not in before.message else before
            each = replace(
                each,
                message=written.message,
                report=written.report,
                times=before.times + each.times,
                first_at=before.at if before.first_at is None else before.first_at,
                first_time=before.time if before.first_time is None else before.first_time,
            )
        kinds[kind] = each
    return tuple(kinds.values())


def joined(one: ComponentStatus, other: ComponentStatus) -> ComponentStatus:
    """Return the sum of the counts of two runs of a component. Latencies, rates and capacities are left out."""
    tasks = {task.id: task for task in one.by_task}
    for task in other.by_task:
        tasks[task.id] = replace(task, **_sums(tasks[task.id], task)) if task.id in tasks else task
    streams = tuple(
        replace(
            stream,
            emitted=_plus(before.emitted, stream.emitted),
            transferred=_plus(before.transferred, stream.transferred),
        )
        for before, stream in zip(one.streams, other.streams, strict=True)
    )
    return replace(other, **_sums(one, other), streams=streams, by_task=tuple(tasks.values()))


_SUMMED = tuple(
    name.name for name in fields(Figures) if "latency" not in name.name and name.name not in ("rate", "capacity")
)


def _sums(one: Figures, other: Figures) -> dict[str, Any]:
    sums: dict[str, Any] = {each.name: None for each in fields(Figures)}
    sums.update({name: _plus(getattr(one, name), getattr(other, name)) for name in _SUMMED})
    return sums


def _plus(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def metric_statuses(totals: Iterable[Total]) -> tuple[MetricStatus, ...]:
    """Return the statuses of a task's own metrics."""
    return tuple(MetricStatus(name=name, kind=kind, value=value, count=count) for name, kind, value, count in totals)


def declared(spec: ComponentSpec, figures: Figures | None = None) -> dict[str, Any]:
    """Return the part of a ComponentStatus that a topology declares, as arguments.

    Args:
        spec: The component's declaration.
        figures: Its counts: if it has one stream, all of its emits are on it.
    """
    lone = figures if len(spec.streams) == 1 else None
    return {
        "streams": tuple(
            StreamStatus(
                name=name,
                fields=tuple(stream.fields),
                emitted=None if lone is None else lone.emitted,
                transferred=None if lone is None else lone.transferred,
            )
            for name, stream in spec.streams.items()
        ),
        "inputs": tuple(
            InputStatus(component=each.component, stream=each.stream, grouping=str(each.grouping))
            for each in spec.inputs
        ),
    }


def _plain(value: Any) -> Any:
    """Return a status object, or a part of one, in JSON's types."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _component(document: Mapping[str, Any]) -> ComponentStatus:
    values = _known(ComponentStatus, document)
    values["inputs"] = tuple(InputStatus(**_known(InputStatus, each)) for each in document["inputs"])
    values["streams"] = tuple(
        StreamStatus(
            **{**_known(StreamStatus, each), "fields": None if (names := each["fields"]) is None else tuple(names)}
        )
        for each in document["streams"]
    )
    values["by_task"] = tuple(map(_task, document["by_task"]))
    return ComponentStatus(**values)


def _task(document: Mapping[str, Any]) -> TaskStatus:
    values = _known(TaskStatus, document)
    if (call := document.get("call")) is not None:
        values["call"] = CallStatus(**_known(CallStatus, call))
    values["metrics"] = tuple(MetricStatus(**_known(MetricStatus, each)) for each in document.get("metrics", ()))
    return TaskStatus(**values)


def _known(kind: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that this release knows: a later release of the same version may have added some."""
    return {each.name: document[each.name] for each in fields(kind) if each.name in document}
