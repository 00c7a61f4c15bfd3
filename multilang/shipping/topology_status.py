"""How a running topology does, from what Nimbus says of it."""

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
_RESOURCES = re.compile(r"/\S*/stormdist/[^/\s]+/resources/")  # where a supervisor unpacks a jar
_ON_TUPLE = re.compile(r" on tuple -?\d+ ")
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class ComponentError:
    """An error that Nimbus keeps. ``report``: Java's whole stack trace; ``time``: seconds since the epoch."""

    component: str
    where: str
    time: int
    report: str

    @property
    def text(self) -> str:
        """The component's own words."""
        return readable(self.report)

    @property
    def age(self) -> float:
        """Seconds since it was reported."""
        return max(0.0, time.time() - self.time)


@dataclass
class ComponentStatus:
    """Figures of one component, all its tasks together. ``acked``, ``failed``: a spout's trees, a bolt's inputs.

    Those of ``__acker`` are its own messages: ``acked`` what came of spouts and bolts, ``emitted`` its answers to spouts.
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
    """A topology as Nimbus sees it. ``least_uptime``: seconds of its youngest executor, 0: one is not there yet."""

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
        """Components of which not all executors have reported."""
        return [each.id for each in self.components if each.up < each.executors]


def topology_status(info: Any) -> TopologyStatus:
    """From Storm's TopologyInfo. Components in the order of their names, Storm's own (``__acker``) last."""
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
    """The component's own words in a report, without the frames of Java around them: for Python, its traceback."""
    lines = [line for line in report.strip().splitlines() if line.strip() and not _JAVA_FRAME.match(line)]
    python = next((n for n, line in enumerate(lines) if line == _TRACEBACK), None)
    if python is None:
        causes = [n for n, line in enumerate(lines) if line.startswith("Caused by: ")]
        lines = [*lines[:1], *(lines[n] for n in causes[:-1]), *lines[causes[-1] :]] if causes else lines
    else:
        after = next((n for n, line in enumerate(lines) if n > python and _JAVA_PREFIX.match(line)), len(lines))
        lines = lines[:after]
    words = [_SHELL_PREFIX.sub("", _JAVA_PREFIX.sub("", line)) for line in lines]
    if python is None:  # a cause is often named in what it led to
        words = [word for n, word in enumerate(words) if n == 0 or word not in words[n - 1]]
    return _RESOURCES.sub("", "\n".join(words)).strip()


def worth_showing(errors: Sequence[ComponentError]) -> list[tuple[ComponentError, int]]:
    """Each error once, the last of its kind, with how often it is there.

    When a component said itself what was wrong, Java's own reports that its process is gone say nothing more.
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
    """Whether it is one of the user's: Storm counts its metrics and acks too, on streams called ``__ack_ack``."""
    return not stream.startswith("__")


def _of_acker(stream: str) -> bool:
    """Whether an acker does its work there: on others it has ticks, and metrics."""
    return stream.startswith("__ack_")


def _total(windows: dict[str, dict[Any, int]], counts: Callable[[str], bool]) -> int:
    """Of all streams that count."""
    total = 0
    for stream, count in windows.get(ALL_TIME, {}).items():
        name = stream if isinstance(stream, str) else stream.streamId  # a bolt's inputs: component and stream
        total += count if counts(name) else 0
    return total
