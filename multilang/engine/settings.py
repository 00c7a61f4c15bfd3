"""The settings that engines read from a topology's conf, with Storm's keys and Storm's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.settings import PARENT, is_number
from multilang.topology.conf import storm_default

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The conf that a component finds unless the topology overrides it: the part of Storm's defaults.yaml that matters to a
# component or to this cluster.
DEFAULTS: dict[str, Any] = {
    **{
        key: storm_default(key)
        for key in (
            "supervisor.worker.timeout.secs",
            "topology.acker.executors",
            "topology.debug",
            "topology.enable.message.timeouts",
            "topology.max.spout.pending",
            "topology.max.task.parallelism",
            "topology.message.timeout.secs",
            "topology.shellbolt.max.pending",
            "topology.stats.sample.rate",
            "topology.subprocess.timeout.secs",
            "topology.workers",
        )
    },
    "storm.cluster.mode": "local",
    # Our own parent on the wire: plain task ids in direct emits, no sleep on an idle next, "exhausted" in a spout's
    # sync.
    PARENT: "local",
}


_WAIT = "topology.sleep.spout.wait.strategy.time.ms"
_SHORTEST_WAIT_SECS = 0.001
_LONGEST_WAIT_SECS = 0.016
_EXHAUSTED_WAIT_SECS = 0.05  # for a spout that is exhausted
_LONGEST_VIRTUAL_WAIT_SECS = 4.0  # with a virtual clock waiting takes no time, while each call of a spout does


class Settings:
    """The checked settings of one component, or of the topology when it is given the topology's conf.

    Unlike Storm, it also accepts fractions of a second, so that tests are quick.

    Attributes:
        ackers: The number of ackers.
        max_shellbolt_pending: The length of a bolt's queue at which the tasks that fill it are made to wait.
        max_spout_pending: The most tuples of a spout in flight; None is no limit.
        message_timeout_secs: The seconds after which a tuple counts as timed out.
        message_timeouts: Whether tuples time out at all.
        subprocess_timeout_secs: The seconds without a heartbeat after which a process counts as dead.
        tick_secs: The seconds between two ticks; None is no ticks.
        wait_secs: The seconds that an idle spout waits; None leaves it to ``spout_wait_secs``.
    """

    __slots__ = (
        "ackers",
        "max_shellbolt_pending",
        "max_spout_pending",
        "message_timeout_secs",
        "message_timeouts",
        "subprocess_timeout_secs",
        "tick_secs",
        "wait_secs",
    )

    def __init__(self, conf: Mapping[str, Any]) -> None:
        workers = _count(conf, "topology.workers")
        ackers = conf.get("topology.acker.executors")
        self.ackers = max(workers, 1) if ackers is None else _count(conf, "topology.acker.executors")
        self.message_timeouts = conf.get("topology.enable.message.timeouts") is not False
        self.message_timeout_secs = _seconds(conf, "topology.message.timeout.secs")
        pending = conf.get("topology.max.spout.pending")
        # In Storm, null and 0 mean "unlimited".
        self.max_spout_pending = None if not pending else _count(conf, "topology.max.spout.pending")
        self.tick_secs = _seconds(conf, "topology.tick.tuple.freq.secs") or None
        self.max_shellbolt_pending = (
            _count(conf, "topology.shellbolt.max.pending") or DEFAULTS["topology.shellbolt.max.pending"]
        )
        self.wait_secs = None if conf.get(_WAIT) is None else _seconds(conf, _WAIT) / 1000
        timeout = conf.get("topology.subprocess.timeout.secs")
        key = "supervisor.worker.timeout.secs" if timeout is None else "topology.subprocess.timeout.secs"
        self.subprocess_timeout_secs = _seconds(conf, key)
        if self.message_timeouts and not self.message_timeout_secs:
            raise ConfigError(
                "topology.message.timeout.secs is 0; use a number of seconds above 0, "
                "or topology.enable.message.timeouts: false for none"
            )

    def spout_wait_secs(self, idle: int, exhausted: bool | None, virtual: bool = False) -> float:
        """Return for how many seconds a spout is not called after ``idle`` empty nexts in a row.

        It is the conf's value. Without one it gets longer each time, as with Storm 2's progressive strategy.

        Args:
            idle: The number of empty nexts in a row.
            exhausted: Whether the spout is exhausted; None: it can't tell.
            virtual: Whether the clock is a virtual one.
        """
        if self.wait_secs is not None:
            return self.wait_secs
        if virtual:
            return min(_SHORTEST_WAIT_SECS * 2.0 ** min(idle - 1, 12), _LONGEST_VIRTUAL_WAIT_SECS)
        if exhausted:
            return _EXHAUSTED_WAIT_SECS
        return min(_SHORTEST_WAIT_SECS * 2.0 ** min(idle - 1, 10), _LONGEST_WAIT_SECS)


def _seconds(conf: Mapping[str, Any], key: str) -> float:
    value: float | None = conf.get(key)
    if value is None:
        return DEFAULTS.get(key) or 0
    if not is_number(value) or value < 0:
        raise ConfigError(f"{key} is {value!r}; use a number from 0")
    return value


def _count(conf: Mapping[str, Any], key: str) -> int:
    value: int | None = conf.get(key)
    if value is None:
        return DEFAULTS.get(key) or 0
    if type(value) is not int or value < 0:
        raise ConfigError(f"{key} is {value!r}; use a whole number from 0")
    return value
