"""Send Python's logging to Storm's log."""

from __future__ import annotations

import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.protocol import ChildConnection


class StormHandler(logging.Handler):
    """Sends each record to Storm's log, with its level."""

    def __init__(self, connection: ChildConnection) -> None:
        super().__init__()
        self._connection = connection
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._connection.log(self.format(record), storm_level(record.levelno))
        except Exception:  # noqa: BLE001 - logging's own rule: a handler never raises
            self.handleError(record)


def storm_level(level: int) -> int:
    """Return Storm's number for a level of logging: 0 trace, 1 debug, 2 info, 3 warn, 4 error."""
    if level >= logging.ERROR:
        return 4
    if level >= logging.WARNING:
        return 3
    if level >= logging.INFO:
        return 2
    return 1 if level >= logging.DEBUG else 0


def install(connection: ChildConnection, level: int) -> None:
    """Send the root logger's records to Storm's log, from ``level`` (logging's number) up."""
    root = logging.getLogger()
    root.addHandler(StormHandler(connection))
    root.setLevel(level)
    logging.captureWarnings(True)
