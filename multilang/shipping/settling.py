"""Waiting until a topology on a cluster runs: what shows that it does, and what shows that it does not.

Storm counts the uptime of a worker, which says nothing of the Python processes that it starts. Nor does a lack of errors, as long as
a component has not got a tuple. So each Python task announces its start: after ``initialize`` it emits on the stream ``__system``,
which Storm gives to each component and to which nothing subscribes. Storm's counters of that stream reach Nimbus with the executor's
next report, from which on an error-free time counts. Storm counts only some emits, and counts the tasks of an executor together;
so ``announcements`` asks for so many that each task's share can be told.

All times are measured here: the clocks of the workers' hosts, by which errors have their times, may differ. Nimbus keeps errors by the
id of a topology, so none of an earlier version is among them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from multilang.protocol.messages import SYSTEM_STREAM
from multilang.settings import ANNOUNCED
from multilang.shipping.commands import LAUNCHER
from multilang.shipping.nimbus import conf_of
from multilang.shipping.topology_status import ALL_TIME, least_uptime, topology_status

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.engine.status import RunStatus
    from multilang.shipping.jar import Shipment
    from multilang.shipping.nimbus import Nimbus

SETTLED = 5.0  # seconds
_POLL = 0.5  # seconds
_SHOWN = 3  # tasks that a sentence names


class Outcome(NamedTuple):
    """The end of the wait for a topology.

    Attributes:
        runs: Whether it runs without an error.
        status: Its last status.
        problem: The reason why it does not run, in words; empty if it does.
    """

    runs: bool
    status: RunStatus
    problem: str


def announcements(shipment: Shipment, sample_rate: float) -> dict[str, int]:
    """Return for each component in Python how many emits Storm is to count of each of its tasks when that has started.

    The tasks of an executor are counted together, each with up to two intervals of the sampling more than this. With ``2 * tasks - 1``
    intervals, the sum without the share of one of them is less than the tasks' number times this.

    Args:
        shipment: The packed topology.
        sample_rate: ``topology.stats.sample.rate``.
    """
    interval = int(1 / sample_rate)
    return {
        id: interval * (2 * -(-spec.tasks // spec.parallelism) - 1)
        for id, spec in shipment.topology.components.items()
        if id in shipment.commands and shipment.commands[id][1] == LAUNCHER
    }


def wait_until_running(nimbus: Nimbus, name: str, timeout: float, settled: float = SETTLED) -> Outcome:
    """Wait until every task has run for some seconds without an error, or an error is reported.

    The tasks of an inactive topology have no processes yet: of it, the executors have to be up.

    Args:
        nimbus: The connection.
        name: The topology's name.
        timeout: The longest wait in seconds.
        settled: The seconds without an error, from the moment when all tasks are known to have started.

    Raises:
        ShippingError: Nimbus can't be reached, or the topology has ended.
    """
    deadline = time.monotonic() + timeout
    announced: Mapping[str, int] | None = None
    since: float | None = None
    while True:
        info = nimbus.topology(name)
        if announced is None:
            announced = announced_by(nimbus, info.id)
        status = topology_status(info)
        now = time.monotonic()
        if status.errors:
            first = status.errors[0]
            return Outcome(False, status, f"{first.component!r} reported an error on {first.where}")
        problem = not_started(info, status, announced)
        if problem:
            since = None
        else:
            since = now if since is None else since
            secs = min(now - since, least_uptime(status))  # a worker that starts again is young
            if secs >= settled:
                return Outcome(True, status, "")
            problem = f"all of it has started, but is known to run for {secs:.0f} s only, and {settled:g} are asked for"
        if now > deadline:
            return Outcome(False, status, problem)
        time.sleep(_POLL)


def announced_by(nimbus: Nimbus, id: str) -> Mapping[str, int]:
    """Return what a topology's tasks announce; nothing, if it was not submitted by this library. ``id``: its id."""
    announced: Mapping[str, int] = conf_of(nimbus, id).get(ANNOUNCED) or {}
    return announced


def has_run(info: Any, announced: Mapping[str, int], settled: float) -> bool:
    """Return whether a topology runs, by its state at one moment.

    Args:
        info: Storm's TopologyInfo.
        announced: See ``announcements``.
        settled: The seconds for which its workers must have been up.
    """
    status = topology_status(info)
    return not status.errors and not not_started(info, status, announced) and least_uptime(status) >= settled


def not_started(info: Any, status: RunStatus, announced: Mapping[str, int]) -> str:
    """Return in words what of a topology has not started; empty if everything has.

    Args:
        info: Storm's TopologyInfo.
        status: The status that was made of it.
        announced: See ``announcements``.
    """
    if not status.components:
        return "Nimbus has found no worker for it. Are supervisors up, with free slots (multilang list)?"
    if status.missing:
        return f"{', '.join(status.missing)} did not start; the worker's log on the supervisor has the reason"
    if status.state == "inactive":
        return ""
    waiting = [
        _place(each)
        for each in sorted(info.executors, key=lambda each: each.executor_info.task_start)
        if _announcements_of(each) < announced.get(each.component_id, 0) * len(_tasks(each))
    ]
    if not waiting:
        return ""
    more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
    return (
        f"{', '.join(waiting[:_SHOWN])}{more} did not report the start of Python; multilang logs {status.topology} --storm may "
        "show the reason"
    )


def _place(executor: Any) -> str:
    tasks = _tasks(executor)
    which = f"task {tasks[0]}" if len(tasks) == 1 else f"tasks {tasks[0]} to {tasks[-1]}"
    return f"{executor.component_id!r} ({which} on {executor.host}:{executor.port})"


def _tasks(executor: Any) -> range:
    return range(executor.executor_info.task_start, executor.executor_info.task_end + 1)


def _announcements_of(executor: Any) -> int:
    stats = executor.stats
    counts: Mapping[str, int] = {} if stats is None else (stats.emitted or {}).get(ALL_TIME) or {}
    return counts.get(SYSTEM_STREAM, 0)
