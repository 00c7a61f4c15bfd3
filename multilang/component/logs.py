"""Python's logging, into Storm's log."""

from __future__ import annotations

import logging

from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import Collector


class StormHandler(logging.Handler):
    """Sends each record to Storm's log, with its level."""

    def __init__(self, collector: Collector) -> None:
        super().__init__()
        self._collector = collector
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._collector.log(self.format(record), storm_level(record.levelno))
        except Exception:
            self.handleError(record)


def storm_level(level: int) -> int:
    """Storm's number for one of logging's: 0 trace, 1 debug, 2 info, 3 warn, 4 error."""
    if level >= logging.ERROR:
        return 4
    if level >= logging.WARNING:
        return 3
    if level >= logging.INFO:
        return 2
    return 1 if level >= logging.DEBUG else 0


def install(collector: Collector, conf: dict[str, Any]) -> None:
    """Send the root logger's records, from ``multilang.log.level`` (default info) on, to Storm's log."""
    name = conf.get("multilang.log.level", "INFO")
    level = logging.getLevelName(name.upper()) if isinstance(name, str) else None
    if name == "trace" or name == "TRACE":
        level = 5
    if not isinstance(level, int):
        raise ConfigError(f"multilang.log.level is {name!r}; use trace, debug, info, warning or error")
    root = logging.getLogger()
    root.addHandler(StormHandler(collector))
    root.setLevel(level)
    logging.captureWarnings(True)
