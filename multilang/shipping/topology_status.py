"""The status of a running topology, from what Nimbus says of it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

ALL_TIME = ":all-time"
_JAVA_FRAME = re.compile(r"\s+at [\w$.<>/@-]+\(.*\)( ~?\[.*\])?$|\s+\.\.\. \d+ more$|\s+Suppressed: ")
_JAVA_PREFIX = re.compile(r"^(Caused by: )?((java|org\.apache\.storm)\.[\w.$]+(: |$))+")
_SHELL_PREFIX = re.compile(r"^Shell Process Exception: ?")
_RESOURCES = re.compile(r"/\S*/stormdist/[^/\s]+/resources/")  # the folder in which a supervisor unpacks a jar
_ON_TUPLE = re.compile(r" on tuple -?\d+ ")
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class ComponentError:
    """An error that Nimbus keeps.

    Attributes:
        component: The component's id.
        where: Host and port of the worker.
        time: Seconds since the epoch.
        report: Java's whole stack trace.
    """

    component: str
    where: str
    time: int
    report: str

    @property
    def text(self) -> str:
        """The component's own text, without Java's frames."""
        return readable(self.report)

    @property
    def age(self) -> float:
        """Seconds since it was reported."""
        return max(0.0, time.time() - self.time)


@dataclass
class ComponentStatus:
    """The figures of one component, over all its tasks.

    For ``__acker``, ``acked`` are messages from spouts and bolts, and ``emitted`` its answers to spouts.

    Attributes:
        id: The component's id.
        executors: The number of executors.
        tasks: The number of tasks.
        up: The number of executors that have reported.
        emitted: The number of emitted tuples.
        acked: The number of acked trees of a spout, or acked inputs of a bolt.
        failed: The number of failed trees of a spout, or failed inputs of a bolt.
    """

    id: str
    executors: int = 0
    tasks: int = 0
    up: int = 0
    emitted: int = 0
    acked: int = 0
    failed: int = 0


@dataclass
class TopologyStatus:
    """A topology as Nimbus sees it.

    Attributes:
        id: Storm's id of the topology.
        name: The topology's name.
        status: Storm's status, such as ``"ACTIVE"``.
        uptime: Seconds since the submission.
        workers: The number of workers.
        least_uptime: Seconds since the start of the youngest executor; 0: one is not there yet.
        components: The figures of each component.
        errors: The errors that Nimbus keeps, oldest first.
    """

    id: str
    name: str
    status: str
    uptime: int
    workers: int
    least_uptime: int
    components: list[ComponentStatus] = field(default_factory=list)
    errors: list[ComponentError] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """The components of which not all executors have reported."""
        return [each.id for each in self.components if each.up < each.executors]


def topology_status(info: Any) -> TopologyStatus:
    """Return the status from Storm's TopologyInfo.

    Components are sorted by name, with Storm's own (``__acker``) last.
    """
    components: dict[str, ComponentStatus] = {}
    for executor in info.executors:
        id = executor.component_id
        each = components.setdefault(id, ComponentStatus(id))
        each.executors += 1
        each.tasks += executor.executor_info.task_end - executor.executor_info.task_start + 1
        each.up += executor.uptime_secs > 0
        _add_stats(each, executor.stats)
    return TopologyStatus(
        info.id,
        info.name,
        info.status,
        info.uptime_secs,
        len({(executor.host, executor.port) for executor in info.executors}),
        min((executor.uptime_secs for executor in info.executors), default=0),
        sorted(components.values(), key=lambda each: (each.id.startswith("__"), each.id)),
        sorted(
            (
                ComponentError(id, f"{error.host}:{error.port}", error.error_time_secs, error.error)
                for id, errors in info.errors.items()
                for error in errors
            ),
            key=lambda error: error.time,
        ),
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


def worth_showing(errors: Sequence[ComponentError]) -> list[tuple[ComponentError, int]]:
    """Return each error once, the last of its kind, with its number.

    If a component reported itself what was wrong, Java's reports that its process is gone are left out.
    """
    spoke = {each.component for each in errors if _TRACEBACK in each.text}
    kinds: dict[tuple[str, str], list[ComponentError]] = {}
    for each in errors:
        if each.component not in spoke or "multilang.NoOutputException" not in each.report:
            kinds.setdefault((each.component, _ON_TUPLE.sub("", each.text)), []).append(each)
    return [(kind[-1], len(kind)) for kind in kinds.values()]


def _add_stats(each: ComponentStatus, stats: Any) -> None:
    if stats is None:
        return
    specific = stats.specific.spout or stats.specific.bolt
    counts = _of_acker if each.id == ACKER else _of_user
    each.emitted += _total(stats.emitted, counts)
    if specific is not None:
        each.acked += _total(specific.acked, counts)
        each.failed += _total(specific.failed, counts)


def _of_user(stream: str) -> bool:
    """Return whether it is one of the user's streams.

    Storm also counts metrics and acks, on streams such as ``__ack_ack``.
    """
    return not stream.startswith("__")


def _of_acker(stream: str) -> bool:
    """Return whether an acker does its work on this stream. On others it has ticks and metrics."""
    return stream.startswith("__ack_")


def _total(windows: dict[str, dict[Any, int]], counts: Callable[[str], bool]) -> int:
    """Return the sum over all streams that count."""
    total = 0
    for stream, count in windows.get(ALL_TIME, {}).items():
        name = stream if isinstance(stream, str) else stream.streamId  # of a bolt's inputs
        total += count if counts(name) else 0
    return total
