"""A run's status as a page shows it: polled once a second while somebody watches, with the curves of the last minutes."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING

from multilang.engine.samples import REPORT_SECS
from multilang.engine.status import Series

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from multilang.engine.status import ComponentStatus, RunStatus

EVERY_SECS = 1.0
CURVE_SECS = 300.0
MAX_LINES = 2000  # of the log
_REPORTING = ("storm", "spark", "spark-stream")  # engines whose counts stay the same until the next report
_COLUMNS = ("rate", "failed", "pending", "latency_ms", "capacity")

if TYPE_CHECKING:
    Edge: TypeAlias = tuple[str, str, str]  # source, stream and target


@dataclass(frozen=True)
class LogLine:
    """A record of the log.

    Attributes:
        at: Its time in seconds since 1970; None: only as text.
        time: Its time as the log has it, where ``at`` is not known.
        level: Its level, such as "info".
        component: The component that it is of; None: of none.
        task: The component's task; None: not known.
        where: The worker, as host and port; empty: there is one log.
        text: Its text.
    """

    level: str
    text: str
    at: float | None = None
    time: str = ""
    component: str | None = None
    task: int | None = None
    where: str = ""


class Feed:
    """The last status of a run, its curves, and the traffic of its streams.

    Args:
        ask: Returns the status now; None: there is none yet. What it raises is shown as the reason why there is none.
        every: Seconds between two statuses.
        ask_log: Returns the lines of the log since the last call; None: there is no log to be had.

    Attributes:
        status: The last status; None: none has come.
        at: The time of this status, in seconds since 1970.
        began: The time of the run's start.
        problem: The reason why the last question was not answered; empty if it was.
        is_over: Whether no further status will come.
        version: A number that rises with every change of these.
        traffic: Source, stream and target of an edge -> tuples per second; None: not known.
        curves: The history, longer than that of a status.
        log: The last lines of the log.
        log_version: A number that rises with every new line.
        log_problem: The reason why the last lines are missing; empty if they are not.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[RunStatus | None]],
        every: float = EVERY_SECS,
        ask_log: Callable[[], Awaitable[list[LogLine]]] | None = None,
    ) -> None:
        self._ask = ask
        self._ask_log = ask_log
        self._every = every
        self._watchers = 0
        self._is_watched = asyncio.Event()
        self.status: RunStatus | None = None
        self.at = self.began = 0.0
        self.problem = ""
        self.is_over = False
        self.version = 0
        self.traffic: dict[Edge, float | None] = {}
        self._counted: dict[Edge, tuple[float, int]] = {}
        self.curves = Curves()
        self.log: deque[LogLine] = deque(maxlen=MAX_LINES)
        self.log_version = 0
        self.log_problem = ""

    def watch(self) -> None:
        """Count one more watcher."""
        self._watchers += 1
        self._is_watched.set()

    def unwatch(self) -> None:
        """Count one watcher less."""
        self._watchers -= 1
        if self._watchers <= 0:
            self._is_watched.clear()

    async def follow(self) -> None:
        """Poll the status while somebody watches, until the run is over."""
        while not self.is_over:
            await self._is_watched.wait()
            await self.refresh()
            await asyncio.sleep(self._every)

    async def refresh(self) -> None:
        """Ask for the status once."""
        try:
            status = await self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown, and asked again
            self.problem = str(error) or repr(error)
        else:
            self.problem = ""
            if status is not None:
                self.take(status)
            if self._ask_log is not None:
                try:
                    self.take_log(await self._ask_log())
                except Exception as error:  # noqa: BLE001 - as above
                    self.log_problem = str(error) or repr(error)
        self.version += 1

    def take(self, status: RunStatus) -> None:
        """Take a status as the last one."""
        before = self.status
        self.status, self.at = status, time()
        if before is None or status.id != before.id or status.seconds < before.seconds:
            self.began = self.at - status.seconds
            self._counted, self.curves = {}, Curves()
        self._count_traffic(status)
        self.curves.add(status)
        self.version += 1

    def take_log(self, lines: Sequence[LogLine]) -> None:
        """Take new lines of the log."""
        self.log_problem = ""
        self.log.extend(lines)
        self.log_version += len(lines)

    def _count_traffic(self, status: RunStatus) -> None:
        """Find the tuples per second of each edge, since its count was reported before."""
        rates: dict[Edge, float | None] = {}
        hold = REPORT_SECS if status.engine in _REPORTING else 0.0
        for edge, count in _counted(status):
            then, earlier = self._counted.get(edge, (status.seconds, None))
            secs = status.seconds - then
            if count is None:
                rates[edge] = None
            elif secs > 0 and (count != earlier or secs >= hold):
                rates[edge] = None if earlier is None else max(0, count - earlier) / secs
                self._counted[edge] = status.seconds, count
            else:
                rates[edge] = self.traffic.get(edge)
                self._counted.setdefault(edge, (status.seconds, count))
        self.traffic = rates

    def end(self) -> None:
        """Take note that no further status will come."""
        self.is_over = True
        self.version += 1


class Curves:
    """The histories of several statuses of a run, joined.

    Attributes:
        at: The ends of the intervals, in seconds since the run's start.
        components: Component id -> its figures in these intervals.
    """

    def __init__(self) -> None:
        self.at: list[float] = []
        self.components: dict[str, dict[str, list[float | None]]] = {}

    def add(self, status: RunStatus) -> None:
        """Add the new intervals of a status, and drop old ones."""
        history = status.history
        begin = bisect_right(history.at, self.at[-1]) if self.at else 0
        known, new = len(self.at), len(history.at) - begin
        self.at += history.at[begin:]
        for id in {*self.components, *history.components}:
            columns = self.components.setdefault(id, {name: [None] * known for name in _COLUMNS})
            series = history.components.get(id, Series())
            for name, column in columns.items():
                values = getattr(series, name)[begin:]
                column.extend(values or [None] * new)
        old = bisect_right(self.at, self.at[-1] - CURVE_SECS) if self.at else 0
        if old:
            del self.at[:old]
            for columns in self.components.values():
                for column in columns.values():
                    del column[:old]


def _counted(status: RunStatus) -> list[tuple[Edge, int | None]]:
    """Return the edges, and the tuples that have passed each: received ones or, where they are not counted, emitted."""
    components = {each.id: each for each in status.components}
    return [
        (
            (read.component, read.stream, each.id),
            _passed(each, read.executed, components.get(read.component), read.stream),
        )
        for each in status.components
        for read in each.inputs
    ]


def _passed(target: ComponentStatus, executed: int | None, source: ComponentStatus | None, stream: str) -> int | None:
    if executed is not None:
        return executed
    if len(target.inputs) == 1:
        return target.executed
    return None if source is None else next((each.emitted for each in source.streams if each.name == stream), None)
