"""The keys of Storm's conf about state, and their checks."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.settings import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

INTERVAL = "topology.state.checkpoint.interval.ms"
TIMEOUT = "topology.message.timeout.secs"
PROVIDER = "topology.state.provider"
CONFIG = "topology.state.provider.config"
LEAST_INTERVAL_MS = 100


def check(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first setting that can't work."""
    interval = interval_secs(conf)
    timeout = conf.get(TIMEOUT, 30)
    if conf.get("topology.enable.message.timeouts") is not False and is_number(timeout) and interval >= timeout:
        raise ConfigError(
            f"{INTERVAL} is {interval * 1000:g} ({interval:g} s) and {TIMEOUT} is {timeout:g}: tuples are acked when their "
            "state is committed, so they would time out before; make the interval a fraction of the timeout"
        )
    if conf.get("topology.acker.executors") == 0:
        raise ConfigError(
            "topology.acker.executors is 0: without ackers the checkpoint spout would take everything for done at once, "
            "so that states could be wrong; leave the key out, or give a number from 1"
        )


def interval_secs(conf: Mapping[str, Any]) -> float:
    """Return the seconds from the start of one checkpoint to the start of the next."""
    value = conf.get(INTERVAL)
    if value is None:
        return 1.0
    if not is_number(value) or value <= 0:
        raise ConfigError(f"{INTERVAL} is {value!r}; use milliseconds, from {LEAST_INTERVAL_MS} on")
    return float(max(value, LEAST_INTERVAL_MS)) / 1000


def check_members(config: Mapping[str, Any], what: str, own: tuple[str, ...]) -> None:
    """Raise ConfigError for an unknown member of a provider's config. ``own`` has those of this provider alone."""
    # keyClass and valueClass are Java's; JSON needs no class to read a value back.
    known = ("keyClass", "valueClass", "keySerializerClass", "valueSerializerClass", *own)
    unknown = [name for name in config if name not in known]
    if unknown:
        raise ConfigError(f"{CONFIG}: {what} knows no {unknown[0]!r}; it has {', '.join(known)}")


def divided_otherwise(component: str, before: int, now: int, where: str, is_source: bool) -> str:
    """Return the error text for a component's state of another number of tasks, with the fix."""
    if is_source:
        return (
            f"the positions of {component!r} are those of {before} tasks, and it has {now} now, which would divide the source in another "
            f"way: give it {before}, as before; if it is to begin at the beginning: multilang state rm TOPOLOGY {component}. Only you can "
            "divide the positions themselves: give each task one in the file of multilang state export, and in its first line the "
            f"number of tasks, for state import --replace ({where})"
        )
    return (
        f"the state of {component!r} is that of {before} tasks, and it has {now} now, so that keys would be looked for in the "
        f"wrong tasks: give it {before}, as before, or move the keys: multilang state reshard TOPOLOGY {component} {now} ({where})"
    )
