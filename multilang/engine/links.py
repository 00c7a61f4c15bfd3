"""The connections between a task's collector and its host, for tasks of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from multilang.component.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from multilang.engine.plan import TaskPlan
    from multilang.engine.tuples import LocalTuple

    OnTaskIds: TypeAlias = Callable[[list[int]], None]


class DirectAcker(Protocol):
    """An acker to which a spout adds many roots without messages; the embedded cluster's explains its attributes."""

    newest: dict[int, int]
    received: int

    def begun(self, spout_task: int) -> int:
        """Return what is or-ed to the edge of a new root of a spout task, to be its entry in ``newest``."""


class Links:
    """The connections of a task's collector.

    Attributes:
        out: Gets ``(receiver, tuple)`` for each delivery, which the host then makes.
        receivers: The receivers by task id.
        init: The acker's message for a new root; None without ackers.
        ack: The acker's message for an ack.
        fail: The acker's message for a fail.
        acker: The acker itself, if it is the only one and can be called; None otherwise.
        later: Makes a receiver of an ``on_task_ids`` callback.
        named: The tuples whose id was asked for, by id.
        at_once: Whether task ids are returned at once where they can be; False gives all of them late.
        getrandbits: The source of random numbers for roots and edges.
        now: The clock's ``now``.
        log: Takes a component's log line.
        report: Takes a component's error.
        metric: Takes a component's metric.
    """

    __slots__ = (
        "ack",
        "acker",
        "at_once",
        "fail",
        "getrandbits",
        "init",
        "later",
        "log",
        "metric",
        "named",
        "now",
        "out",
        "receivers",
        "report",
    )

    def __init__(
        self,
        *,
        out: list[tuple[Any, Any]],
        receivers: dict[int, Any],
        init: Callable[[int, int, int], None] | None,
        ack: Callable[[int, int], None],
        fail: Callable[[int], None],
        later: Callable[[TaskPlan, OnTaskIds], Any],
        named: dict[str, LocalTuple],
        acker: DirectAcker | None = None,
        at_once: bool = False,
        getrandbits: Callable[[int], int],
        now: Callable[[], float],
        log: Callable[[TaskPlan, str, int], None],
        report: Callable[[TaskPlan, str], None],
        metric: Callable[[TaskPlan, str, Any], None],
    ) -> None:
        self.out = out
        self.receivers = receivers
        self.init = init
        self.ack = ack
        self.acker = acker
        self.at_once = at_once
        self.fail = fail
        self.later = later
        self.named = named
        self.getrandbits = getrandbits
        self.now = now
        self.log = log
        self.report = report
        self.metric = metric


class LinkedCollector(Collector):
    """The calls that every collector of a task in this process gives to the task's links."""

    def __init__(self, plan: TaskPlan, links: Links, reported: Callable[[BaseException], None] | None = None) -> None:
        super().__init__(reported=reported)
        self._plan = plan
        self._links = links

    def log(self, message: str, level: int = 2) -> None:
        self._links.log(self._plan, message, level)

    def report_error(self, message: str) -> None:
        self._links.report(self._plan, message)

    def report_metric(self, name: str, params: Any) -> None:
        self._links.metric(self._plan, name, params)
