"""The conf keys that a component's process reads, all checked at the start, before user code runs."""

from __future__ import annotations

from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LOG_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}


def check(conf: dict[str, Any]) -> None:
    """Raise ConfigError for the first of our keys that has a wrong value."""
    deadline(conf)
    log_level(conf)
    names(conf, "multilang.middleware", "dotted names")
    names(conf, "multilang.metrics.registered", "names")
    metrics_interval(conf)
    prometheus(conf)
    plain = conf.get("multilang.direct.task.plain")
    if plain is not None and type(plain) is not bool:
        raise ConfigError(f"multilang.direct.task.plain is {plain!r}; use true or false")
    limit = conf.get("multilang.buffer.max.bytes")
    if limit is not None and (type(limit) is not int or limit <= 0):
        raise ConfigError(f"multilang.buffer.max.bytes is {limit!r}; use a number of bytes above 0")


def deadline(conf: dict[str, Any]) -> float:
    """Return the seconds that one call of user code may take; 0 for no limit."""
    value = conf.get("multilang.process.timeout.secs", 300)
    if not _is_number(value) or not value >= 0:
        raise ConfigError(f"multilang.process.timeout.secs is {value!r}; use seconds above 0, or 0 for no deadline")
    return float(value)


def log_level(conf: dict[str, Any]) -> int:
    """Return the lowest level (logging's number) that is sent to Storm's log."""
    name = conf.get("multilang.log.level", "info")
    level = _LOG_LEVELS.get(name.lower()) if isinstance(name, str) else None
    if level is None:
        raise ConfigError(f"multilang.log.level is {name!r}; use one of {', '.join(_LOG_LEVELS)}")
    return level


def names(conf: Mapping[str, Any], key: str, what: str) -> list[str]:
    """Return a list of names, empty when the key is not set."""
    value = conf.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ConfigError(f"{key} is a list of {what}, not {value!r}")
    return value


def metrics_interval(conf: dict[str, Any]) -> float:
    """Return the seconds between two reports of the metrics."""
    value = conf.get("multilang.metrics.interval.secs", 60)
    if not _is_number(value) or not value > 0:
        raise ConfigError(f"multilang.metrics.interval.secs is {value!r}; use seconds above 0")
    return float(value)


def prometheus(conf: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return port (0: any free one) and host of the Prometheus endpoint; None when none is wanted."""
    port = conf.get("multilang.metrics.prometheus.port")
    host = conf.get("multilang.metrics.prometheus.host", "127.0.0.1")
    if not isinstance(host, str) or not host:
        raise ConfigError(f"multilang.metrics.prometheus.host is {host!r}; use an address, such as 127.0.0.1")
    if port is None:
        return None
    if type(port) is not int or not 0 <= port < 65536:
        raise ConfigError(f"multilang.metrics.prometheus.port is {port!r}; use a port number, or 0 for any free one")
    return port, host


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
