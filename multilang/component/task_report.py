"""A task's report about itself: one line of its log, which the cluster's page and the embedded cluster read.

On a Storm that knows nothing of it, a component's process can only write to the worker's log. So that is where the
report goes: how busy the task was, its own metrics, and the call that it is in, if that takes long.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps
from multilang.settings import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.component.metrics import Total

PREFIX = 'TASK {"task":'


class TaskReport:
    """A report of one task.

    Args:
        task: The task's id.
        time: The time of the report, in seconds since 1970.
        secs: The length of the interval that it is about.
        busy_secs: The time in which the task was busy in this interval.
        metrics: The totals of its own metrics.
        call: The method that it is in, if that takes long, the seconds since the call, and a line of its code.
    """

    __slots__ = ("busy_secs", "call", "metrics", "secs", "task", "time")

    def __init__(
        self,
        task: int,
        time: float,
        secs: float,
        busy_secs: float,
        metrics: Sequence[Total] = (),
        call: tuple[str, float, str | None] | None = None,
    ) -> None:
        self.task = task
        self.time = time
        self.secs = secs
        self.busy_secs = busy_secs
        self.metrics = metrics
        self.call = call

    @property
    def capacity(self) -> float:
        """The share of the interval in which the task was busy."""
        return min(max(self.busy_secs / self.secs, 0.0), 1.0)

    def line(self) -> str:
        """Return it as a line of the log."""
        fields: dict[str, Any] = {
            "task": self.task,
            "time": round(self.time, 3),
            "secs": round(self.secs, 3),
            "busy_secs": round(self.busy_secs, 3),
        }
        if self.metrics:
            fields["metrics"] = self.metrics
        if self.call is not None:
            method, secs, at = self.call
            fields["call"] = (method, round(secs, 1), at)
        return f"TASK {dumps(fields)}"


def read_report(text: str) -> TaskReport | None:
    """Return the report of a line; None if it is another line, or a report of another form."""
    if not text.startswith(PREFIX):
        return None
    import json  # which a component's process, which only writes reports, need not import

    try:
        fields = json.loads(text[len("TASK ") :])
        numbers = [fields[name] for name in ("task", "time", "secs", "busy_secs")]
        metrics = [(str(name), str(kind), value, count) for name, kind, value, count in fields.get("metrics", ())]
        call = fields.get("call")
        if call is not None:
            method, secs, at = call
            call = str(method), secs, None if at is None else str(at)
            numbers.append(secs)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    numbers += [value for _, _, value, _ in metrics]
    if not all(map(is_number, numbers)) or fields["secs"] <= 0:
        return None
    task, time, interval, busy = numbers[:4]
    return TaskReport(task, time, interval, busy, metrics, call)
