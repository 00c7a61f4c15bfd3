"""The parts that the watchdog thread runs beside user code (see work.Part)."""

from __future__ import annotations

import os
import select
import sys
from _thread import get_ident
from time import monotonic, time

from multilang.child.calls import LongCalls, long_secs
from multilang.child.work import Part
from multilang.component.base import used_metrics
from multilang.component.repeats import Repeats
from multilang.component.task_report import TaskReport
from multilang.settings import METRICS_INTERVAL, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.child.output import Output
    from multilang.child.wire import Wire
    from multilang.child.work import Work
    from multilang.component.base import Component
    from multilang.component.metrics import MetricsRegistry
    from multilang.protocol import ChildConnection

GRACE = 5.0  # seconds that the end of the process may take
_HEARTBEAT_SECS = 0.5  # half of Storm's interval, so that one may be late
_FIRST_REPORT_SECS = 10.0  # from the start to the first report of the task, unless its interval is shorter
_LOCAL_REPORT_SECS = 1.0  # between two reports to an embedded cluster
_SHORTEST_SECS = 0.001  # of an interval


class Heartbeats(Part):
    """Sends heartbeats to the parent while user code runs for long, since the main thread can't answer meanwhile.

    A bolt's heartbeat is a ``sync``, which Storm ignores when it did not ask. A spout's sync would end the command, so
    that its heartbeat is a ``log`` of level 0, as for a task before its component is started.

    Args:
        connection: The connection.
        work: The work of user code.
        by_sync: Whether the heartbeat is a sync; it can be set later.
        busy_secs: Returns how long the component was busy, which each sync to a local parent has.
    """

    def __init__(
        self, connection: ChildConnection, work: Work, by_sync: bool, busy_secs: Callable[[], float] | None = None
    ) -> None:
        self.by_sync = by_sync
        self._connection = connection
        self._work = work
        self._sent_at = monotonic()
        self._busy_secs = busy_secs

    def look(self, now: float) -> None:
        if self._work.seen is None:
            return
        # A bolt may be busy with many tuples of half a second each, while a heartbeat waits behind them. A spout
        # answers every command.
        quiet_since = self._work.idle_since if self.by_sync else self._work.since
        if now - quiet_since > _HEARTBEAT_SECS and now - self._sent_at > _HEARTBEAT_SECS:
            self._sent_at = now
            if self.by_sync:
                self._connection.sign_of_life(None if self._busy_secs is None else self._busy_secs())
            else:
                self._connection.log("still at work", 0)


class Deadline(Part):
    """Ends the process when one call of user code takes too long, and puts the main thread's stack into Storm's log.

    Args:
        connection: The connection.
        output: The connection's output.
        work: The work of user code.
        secs: The seconds that a call may take (``multilang.process.timeout.secs``); 0 for no limit.
    """

    def __init__(self, connection: ChildConnection, output: Output, work: Work, secs: float) -> None:
        self._connection = connection
        self._output = output
        self._work = work
        self._secs = secs
        self._main = get_ident()

    def look(self, now: float) -> None:
        seen = self._work.seen
        if self._secs and seen is not None and now - self._work.since > self._secs:
            self._end_it(seen, now - self._work.since)

    def _end_it(self, busy: object, seconds: float) -> None:
        from traceback import format_stack

        frame = sys._current_frames().get(self._main)
        stack = "".join(format_stack(frame)) if frame is not None else "(no stack)\n"
        text = (
            f"user code of component {self._connection.component!r} (task {self._connection.task}) has not returned for "
            f"{seconds:.0f} s (multilang.process.timeout.secs: {self._secs:g}) while working on {busy!r:.500}; "
            f"the process ends so that it is restarted. It hangs here:\n{stack}"
        )
        self._connection.error(text)
        self._connection.log(text, 4)
        until = monotonic() + GRACE
        while not self._output.flush_some() and monotonic() < until:
            select.select([], [self._output.fd], [], 0.1)
        os._exit(1)


class RepeatedErrors(Part):
    """Reports the first error of a kind, and how often it was repeated."""

    def __init__(self, connection: ChildConnection) -> None:
        self._repeats = Repeats(lambda _, text: connection.error(text))

    def report(self, text: str) -> None:
        """Report an error, or count it; any thread may call."""
        self._repeats.report(None, text)

    def look(self, now: float) -> None:
        self._repeats.report_due()

    def has_work(self) -> bool:
        return self._repeats.unreported > 0

    def end(self) -> None:
        self._repeats.report_rest()


class Reports(Part):
    """Reports a component's metrics at their interval, and the task itself (see TaskReport); names calls that take long.

    A parent on this machine knows already how busy the task is: it gets reports only if there is something else.

    Args:
        connection: The connection.
        wire: The wire, which knows how busy the task is.
        conf: The conf.
        local: Whether the parent is an embedded cluster.
    """

    def __init__(self, connection: ChildConnection, wire: Wire, conf: Mapping[str, Any], local: bool) -> None:
        self._connection = connection
        self._wire = wire
        self._secs = _LOCAL_REPORT_SECS if local else float(value(conf, METRICS_INTERVAL))
        self._local = local
        self._component: Component | None = None
        main = get_ident()
        self._calls = LongCalls(wire.work, lambda: main, self._log, long_secs(conf))
        self._told_at = monotonic()
        self._told_busy = 0.0
        self._due = self._told_at + min(self._secs, _FIRST_REPORT_SECS)

    def watch(self, component: Component) -> None:
        """Report this component's metrics, too."""
        self._component = component

    @property
    def due(self) -> float:  # type: ignore[override]
        """See Part."""
        metrics = self._metrics
        if metrics is not None:
            return min(self._due, metrics.due)
        return float("inf") if self._local else self._due

    @property
    def _metrics(self) -> MetricsRegistry | None:
        return None if self._component is None else used_metrics(self._component)

    def look(self, now: float) -> None:
        metrics = self._metrics
        if metrics is not None:
            metrics.report_if_due(now)
        has_changed, is_due = self._calls.look(now), now >= self._due
        if is_due:
            self._due = now + self._secs
        if has_changed or (is_due and (metrics is not None or not self._local)):
            self._tell(now)

    def end(self) -> None:
        now = monotonic()
        self._wire.work.look(now)
        if self._calls.look(now) or self._metrics is not None:
            self._tell(now)

    def _tell(self, now: float) -> None:
        busy, metrics, call = self._wire.busy_secs(), self._metrics, self._calls.call
        if busy == self._told_busy and call is None and not self._local:
            return  # nothing came since: the parent does not read, as of a spout that is deactivated
        report = TaskReport(
            self._connection.task,
            time(),
            max(now - self._told_at, _SHORTEST_SECS),
            busy - self._told_busy if busy >= self._told_busy else busy,  # it counts from the end of the start
            () if metrics is None else metrics.totals(),
            None if call is None else (call[0], now - call[1], call[2]),
        )
        self._told_at, self._told_busy = now, busy
        self._connection.log(report.line())

    def _log(self, text: str, _: object) -> None:
        self._connection.log(f"{self._connection.component} task {self._connection.task} {text}", 3)


class Meanwhile(Part):
    """Sends unfinished blocks while user code works for long, so that their tuples don't wait until it returns."""

    def __init__(self, send: Callable[[], None]) -> None:
        self._send = send

    def look(self, now: float) -> None:
        self._send()
