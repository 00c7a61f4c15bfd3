"""A run's status as a page shows it: polled once a second while somebody watches, with the curves of the last minutes."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from time import time
from typing import TYPE_CHECKING

from multilang.engine.status import Series

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from multilang.engine.status import ComponentStatus, RunStatus

EVERY_SECS = 1.0
CURVE_SECS = 300.0
_COLUMNS = ("rate", "failed", "pending", "latency_ms", "capacity")


class Feed:
    """The last status of a run, its curves, and the traffic of its streams.

    Args:
        ask: Returns the status now; None: there is none yet. What it raises is shown as the reason why there is none.
        every: Seconds between two statuses.

    Attributes:
        status: The last status; None: none has come.
        at: The time of this status, in seconds since 1970.
        problem: The reason why the last question was not answered; empty if it was.
        is_over: Whether no further status will come.
        version: A number that rises with every change of these.
        traffic: Source, stream and target of an edge -> tuples per second; None: not known.
        curves: The history, longer than that of a status.
    """

    def __init__(self, ask: Callable[[], Awaitable[RunStatus | None]], every: float = EVERY_SECS) -> None:
        self._ask = ask
        self._every = every
        self._watchers = 0
        self._is_watched = asyncio.Event()
        self.status: RunStatus | None = None
        self.at = 0.0
        self.problem = ""
        self.is_over = False
        self.version = 0
        self.traffic: dict[tuple[str, str, str], float | None] = {}
        self.curves = Curves()

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
        self.version += 1

    def take(self, status: RunStatus) -> None:
        """Take a status as the last one."""
        before = self.status
        if before is not None and (status.id != before.id or status.seconds < before.seconds):
            before, self.curves = None, Curves()  # another run of the same name
        self.traffic = traffic(before, status, self.traffic)
        self.status, self.at = status, time()
        self.curves.add(status)
        self.version += 1

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


def traffic(
    before: RunStatus | None, now: RunStatus, last: dict[tuple[str, str, str], float | None]
) -> dict[tuple[str, str, str], float | None]:
    """Return the tuples per second of each edge: source, stream and target.

    Args:
        before: The status of some seconds ago; None: there was none.
        now: The status.
        last: The result for the status before, which is returned if no time has passed.
    """
    rates: dict[tuple[str, str, str], float | None] = {}
    counts = {} if before is None else dict(_counted(before))
    secs = 0.0 if before is None else now.seconds - before.seconds
    for edge, count in _counted(now):
        earlier = counts.get(edge)
        if secs <= 0:
            rates[edge] = last.get(edge)
        elif count is None or earlier is None:
            rates[edge] = None
        else:
            rates[edge] = max(0, count - earlier) / secs
    return rates


def _counted(status: RunStatus) -> list[tuple[tuple[str, str, str], int | None]]:
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
