"""The rows of a source that can't be read, and the one setting of all sources that says what happens to them."""

from __future__ import annotations

from multilang.component.errors import ConfigError, ConnectorError, UnrecoverableError
from multilang.protocol.errors import UnserializableValue
from multilang.settings import PARENT
from multilang.state.position_spout import PositionSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Values

STREAM = "unreadable"
_FIELDS = ("source", "row", "reason", "raw")
_COUNTER = "unreadable_rows"
_FAIL, _SKIP, _SEND = "fail", "skip", "stream"
_REPORT_SECS = 60.0  # between two reports of rows that are left out, and of a task that stands still
_LONGEST_RAW = 10_000  # characters of a row that are sent


def readable(text: str | bytes) -> str:
    """Return text that any tuple can have: what is no UTF-8, and half a surrogate pair, stands there as an escape."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    return data.decode("utf-8", "backslashreplace")[:_LONGEST_RAW]


class RowSpout(PositionSpout):
    """A spout of the rows of a source, of which some may be such that no tuple can have them.

    Args:
        on_unreadable: What happens to a row that can't be read: ``"fail"``, the topology ends with an error that names it; on
            Storm, which would start the task again for ever, the task emits nothing more and reports the error each minute.
            ``"skip"``: it is counted as ``unreadable_rows``, reported, and left out. ``"stream"``: it is counted, and sent to
            the stream ``unreadable`` with the fields ``source``, ``row``, ``reason`` and ``raw``.
    """

    def __init__(self, on_unreadable: str) -> None:
        if on_unreadable not in (_FAIL, _SKIP, _SEND):
            raise ConfigError(f"on_unreadable is {on_unreadable!r}; use {_FAIL!r}, {_SKIP!r} or {_SEND!r}")
        self.on_unreadable = on_unreadable
        if on_unreadable == _SEND:
            self.output_streams = {STREAM: _FIELDS}  # type: ignore[misc]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        if self.on_unreadable == _SEND and not context.targets.get(STREAM):
            raise ConfigError(
                f"spout {context.component!r} sends rows that can't be read to the stream {STREAM!r}, to which no bolt subscribes, so that they "
                f"would be lost: subscribe with shuffle_grouping({context.component!r}, {STREAM!r}), or use on_unreadable={_SKIP!r}"
            )
        self._stays = self._collector.to_parent and conf.get(PARENT) != "local"
        self._stands_at: str | None = None
        self._left_out = 0  # since the last report
        self._last_left_out = ""
        self._report_at = 0.0

    def emit_row(self, values: Values, wrong: Callable[[str], ConnectorError]) -> None:
        """Emit a row, or leave it out if no tuple can have it.

        Args:
            values: The row.
            wrong: Returns the error for the row, from the reason.
        """
        try:
            self.emit(values)
        except UnserializableValue as problem:
            field = "" if problem.index is None else f", field {list(self.output_fields or ())[problem.index]!r},"
            raise wrong(f"{field} can't be a tuple: {problem.reason}") from problem

    def leave_out(self, error: ConnectorError, step_back: Callable[[], None]) -> None:
        """Do with a row that can't be read what ``on_unreadable`` says.

        Args:
            error: The error that names it.
            step_back: Goes back before the row, so that the next position is there; called if this is the end.

        Raises:
            ConnectorError: The error is about more than a row.
        """
        if error.row is None:
            raise error
        self.metrics.counter(_COUNTER).inc()
        message = readable(str(error))
        if self.on_unreadable == _FAIL:
            step_back()
            message += f"; correct it, or read over such rows by on_unreadable={_SKIP!r} or {_SEND!r}"
            self._stands_at = message
        elif self.on_unreadable == _SEND:
            self.emit([readable(error.row.source), error.row.number, message, error.row.raw], stream=STREAM)
        else:
            self._left_out, self._last_left_out = self._left_out + 1, message
            if self.clock() >= self._report_at:
                self._report_left_out()

    def stands_still(self) -> bool:
        """Return whether it stopped before a row that can't be read, which it then reports from time to time.

        Raises:
            UnrecoverableError: It did, and the topology is to end.
        """
        if self._stands_at is None:
            return False
        if not self._stays:
            raise UnrecoverableError(self._stands_at)
        if self.clock() >= self._report_at:
            self._report_at = self.clock() + _REPORT_SECS
            self.report_error(f"{self._stands_at}. Until then this task emits nothing")
        return True

    def close(self) -> None:
        if getattr(self, "_left_out", 0):
            self._report_left_out()

    def _report_left_out(self) -> None:
        self._report_at = self.clock() + _REPORT_SECS
        others = f", and {self._left_out - 1} before it" if self._left_out > 1 else ""
        self._left_out = 0
        self.report_error(f"{self._last_left_out}; it is left out{others}")
