"""What a task of this process is connected to: the seam between its collector and its host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from multilang.runtime.plan import TaskPlan
    from multilang.runtime.tuples import LocalTuple

    OnTaskIds: TypeAlias = Callable[[list[int]], None]


class DirectAcker(Protocol):
    """An acker that a collector calls without a message; see the embedded cluster's for ``newest`` and ``heard``."""

    newest: dict[int, list[int]]
    heard: int

    def settle(self, root: int, entry: list[int]) -> None:
        """Look whether ``root`` is done now; ``entry``: what is kept of it, whose first item is the xor."""


class Links:
    """What a task's collector is connected to.

    ``out``: gets ``(receiver, tuple)`` for each delivery, which the host then makes; ``receivers``: by task id;
    ``init``, ``ack``, ``fail``: the acker's three messages, ``init`` None without ackers; ``acker``: the acker itself
    where it is the only one and can be called; ``later(call, task_ids)``: makes a
    receiver of an ``on_task_ids`` callback; ``named``: tuples whose id somebody asked for, by id; ``at_once``: False
    where task ids are to come late also for those who could have them at once.
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
