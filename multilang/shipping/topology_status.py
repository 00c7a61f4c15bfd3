"""The status of a running topology, from Nimbus's answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from time import time as time_of_day
from typing import TYPE_CHECKING, Any

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
    by_kind,
    error_kind,
    metric_statuses,
    work_done,
)
from multilang.exchange.names import STREAM
from multilang.settings import EDGES
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import Grouping
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
_TASK = re.compile(r"[^\n]* in component '[^'\n]*' \(task (\d+)\)")
_AGAIN = re.compile(
    r" \(as before, (?:once|([\d,]+) times) more in [\d.]+ s; [\d,]+ times in all\)$"
)  # of component.repeats
_TRACEBACK = "Traceback (most recent call last):"
_GROUPINGS = ("shuffle", "all", "none", "direct", "local_or_shuffle", "custom_serialized")


def topology_status(
    info: Any,
    recorder: Recorder | None = None,
    reports: Mapping[tuple[str, int], TaskReport] | None = None,
    structure: Any = None,
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
        structure: Storm's StormTopology, which has what is declared; None: only what was counted is known.
    """
    declared = {} if structure is None else _declared(structure)
    executors: dict[str, list[_Executor]] = {}
    for each in info.executors:
        executors.setdefault(each.component_id, []).append(_Executor(each, reports or {}))
    ids = dict.fromkeys((*declared, *executors))
    components = [_component(id, executors.get(id, []), declared.get(id)) for id in ids]
    seconds = float(info.uptime_secs)
    if recorder is not None:
        recorder.record(seconds, {each.id: sample_of_status(each) for each in components})
    status = RunStatus(
        topology=info.name,
        engine="storm",
        state=info.status.lower(),
        seconds=seconds,
        window_secs=min(seconds, WINDOW_SECS),
        id=info.id,
        workers=len({(executor.host, executor.port) for executor in info.executors}),
        components=tuple(sorted(components, key=lambda each: (each.id.startswith("__"), each.id))),
        errors=component_errors(
            component_error(
                id, None if error.host is None else f"{error.host}:{error.port}", error.error_time_secs, error.error
            )
            for id, errors in info.errors.items()
            for error in errors
        ),
        history=History() if recorder is None else recorder.history(),
    )
    in_blocks = sorted(id for id, of in executors.items() if any(each.counts_blocks for each in of))
    return replace(status, notes=tuple(filter(None, (_counted_in_blocks(in_blocks), started_again(status)))))


def component_error(component: str, where: str | None, time: int, report: str) -> RunError:
    """Return an error that Nimbus keeps.

    Args:
        component: The component's id.
        where: Host and port of the worker.
        time: Seconds since 1970.
        report: Java's whole stack trace.
    """
    message = readable(report)
    task, again = _TASK.match(message), _AGAIN.search(message)
    return RunError(
        component=component,
        message=message if again is None else message[: again.start()],
        task=None if task is None else int(task[1]),
        where=where,
        time=time,
        times=1 if again is None or again[1] is None else int(again[1].replace(",", "")),
        report=report,
    )


def component_errors(errors: Iterable[RunError]) -> tuple[RunError, ...]:
    """Return the last error of each kind, without Java's reports of the end of a process that reported its own error.

    A report that was counted has no traceback, and is of the kind of the last one of its type that has.
    """
    in_order = sorted(errors, key=lambda each: each.time or 0)
    spoke = {each.component for each in in_order if _TRACEBACK in each.message}
    kinds: dict[tuple[str, str], str] = {}

    def kind(each: RunError) -> str:
        key = each.component, each.message.partition(" in component ")[0]
        found = error_kind(each.message)
        if _TRACEBACK in each.message:
            kinds[key] = found
        return kinds.get(key, found)

    return by_kind(
        (
            each
            for each in in_order
            if each.component not in spoke or "multilang.NoOutputException" not in (each.report or "")
        ),
        kind,
    )


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


def _counted_in_blocks(found: Sequence[str]) -> str:
    """Return a sentence on the components that Storm counts by the block; empty if there are none."""
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


@dataclass
class _Declared:
    """The declaration of a component in Storm's StormTopology.

    Attributes:
        kind: "spout" or "bolt".
        tasks: The number of its tasks.
        executors: The number of executors that it was submitted with.
        streams: Stream -> its fields.
        in_blocks: The streams whose tuples may travel in blocks.
        inputs: Source and stream -> the grouping in words.
        inputs_in_blocks: Source -> those of its subscriptions that may come in blocks.
    """

    kind: str
    tasks: int
    executors: int
    streams: dict[str, tuple[str, ...] | None]
    in_blocks: list[str] = field(default_factory=list)
    inputs: dict[tuple[str, str], str | None] = field(default_factory=dict)
    inputs_in_blocks: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def _declared(structure: Any) -> dict[str, _Declared]:
    """Return the declared components, with the streams and subscriptions for which there are blocks now."""
    found: dict[str, _Declared] = {}
    edges: dict[str, dict[str, dict[str, str]]] = {}
    for kind, specs in (("spout", structure.spouts), ("bolt", structure.bolts)):
        for id, spec in specs.items():
            common = spec.common
            tasks, edges[id] = _in_conf(common.json_conf)
            executors = common.parallelism_hint or 1
            found[id] = _Declared(
                kind=kind,
                tasks=tasks or executors,
                executors=executors,
                streams={name: tuple(of.output_fields) for name, of in common.streams.items() if name != STREAM},
                in_blocks=list(edges[id]),
                inputs={
                    (source.componentId, source.streamId): _in_words(grouping)
                    for source, grouping in common.inputs.items()
                    if source.streamId != STREAM
                },
            )
    for source, streams in edges.items():
        for stream, targets in streams.items():
            for target, grouping in targets.items():
                if target in found:
                    found[target].inputs[source, stream] = grouping
                    found[target].inputs_in_blocks.setdefault(source, []).append((source, stream))
    return found


def _in_conf(text: str | None) -> tuple[int | None, dict[str, dict[str, str]]]:
    """Return a component's number of tasks, and of its streams that travel in blocks each target with the grouping in words.

    A conf that this library did not make may have anything under these keys.
    """
    try:
        conf = json.loads(text or "{}")
        tasks = conf.get("topology.tasks")
        edges = {
            stream: {target: str(Grouping(each["type"], each.get("fields", ()))) for target, each in targets.items()}
            for stream, targets in conf.get(EDGES, {}).get("out", {}).items()
        }
    except (AttributeError, LookupError, TypeError, ValueError, TopologyError):
        return None, {}
    return tasks if type(tasks) is int else None, edges


def _in_words(grouping: Any) -> str | None:
    """Return Storm's struct of a grouping in words."""
    if grouping.fields is not None:
        return str(Grouping("fields", grouping.fields)) if grouping.fields else "global"
    if grouping.custom_object is not None:
        return str(grouping.custom_object.full_class_name.rpartition(".")[2])
    return next((name.replace("_", " ") for name in _GROUPINGS if getattr(grouping, name) is not None), None)


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
        """Return the sum of a count over all streams that count; None: Storm does not count it, or not yet."""
        if self.stats is None or not hasattr(self._home(name), name):
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
    def counts_blocks(self) -> bool:
        """True if some of its counts are of blocks."""
        return any(_name(each) == STREAM for name in ("emitted", "executed") for each in self.by_stream(name))

    @property
    def rate(self) -> float | None:
        """Tuples per second in Storm's window of ten minutes."""
        emitted, executed, acked, failed = (
            self.total(name, TEN_MINUTES) for name in ("emitted", "executed", "acked", "failed")
        )
        done = work_done(self.kind, emitted, executed, acked, failed, None)
        return done / self._window_secs if done is not None and self._window_secs else None

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
            uptime_secs=summary.uptime_secs or None,
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


def _component(id: str, executors: Sequence[_Executor], declared: _Declared | None) -> ComponentStatus:
    is_counted = any(each.stats is not None for each in executors)
    emitted, transferred = _summed(executors, "emitted"), _summed(executors, "transferred")
    executed = {(each.componentId, each.streamId): count for each, count in _summed(executors, "executed").items()}
    if declared is None:
        kind = next((each.kind for each in executors if each.kind), "")
        streams: dict[str, tuple[str, ...] | None] = dict.fromkeys({*emitted, *transferred} - {STREAM})
        declared = _Declared(kind, 0, 0, streams, inputs={key: None for key in executed if key[1] != STREAM})

    def count(counts: Mapping[Any, int], key: Any, of_blocks: Any, in_blocks: Sequence[Any]) -> int | None:
        blocks = counts.get(of_blocks, 0) if key in in_blocks else 0
        if not is_counted or (blocks and len(in_blocks) > 1):
            return None
        return counts.get(key, 0) + blocks

    capacities = [share for each in executors if (share := each.capacity) is not None]
    rates = [rate for each in executors if (rate := each.rate) is not None]
    return ComponentStatus(
        id=id,
        kind=declared.kind,
        tasks=sum(len(each.tasks) for each in executors) or declared.tasks,
        executors=len(executors) or declared.executors,
        up=sum(each.up for each in executors),
        streams=tuple(
            StreamStatus(
                name=name,
                fields=fields,
                emitted=count(emitted, name, STREAM, declared.in_blocks),
                transferred=count(transferred, name, STREAM, declared.in_blocks),
            )
            for name, fields in sorted(declared.streams.items(), key=lambda each: each[0])
        ),
        inputs=tuple(
            InputStatus(
                component=source,
                stream=stream,
                grouping=grouping,
                executed=count(executed, (source, stream), (source, STREAM), declared.inputs_in_blocks.get(source, [])),
            )
            for (source, stream), grouping in sorted(declared.inputs.items(), key=lambda each: each[0])
        ),
        by_task=tuple(each.task() for each in sorted(executors, key=lambda each: each.tasks[0])),
        rate=sum(rates) if rates else None,
        capacity=max(capacities) if capacities else None,
        **_figures(executors),
    )


def _summed(executors: Sequence[_Executor], name: str) -> dict[Any, int]:
    """Return a count of some executors together, by stream."""
    sums: dict[Any, int] = {}
    for each in executors:
        for stream, count in each.by_stream(name).items():
            sums[stream] = sums.get(stream, 0) + count
    return sums


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
