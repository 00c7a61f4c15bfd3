"""Recording of a spout's emits, acks and fails: ``multilang.record`` in the conf (docs/testing.md).

Every task appends whole lines to one file by single writes, so that the lines of tasks in several processes don't mix,
and a task that dies loses none that it has written.
"""

from __future__ import annotations

import os

from multilang.component.collector import SpoutCollector
from multilang.component.errors import ConfigError
from multilang.helpers import private
from multilang.protocol.codec import dumps
from multilang.protocol.errors import UnserializableValue
from multilang.settings import RECORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.spout import Spout
    from multilang.protocol.messages import Values

_DEFAULT = "default"


def recorder_of(spout: Spout, conf: Mapping[str, Any], context: Context) -> Recorder | None:
    """Return the recorder of a spout's task; None if nothing is to be recorded.

    Raises:
        ConfigError: The setting is wrong, or the file can't be opened.
    """
    value = conf.get(RECORD)
    if value is None or context.component.startswith("$"):  # what this library adds is no source
        return None
    if not isinstance(value, dict) or not isinstance(value.get("file"), str):
        raise ConfigError(f'{RECORD} is {value!r}; write {{"file": PATH, "start": SECONDS}}, which run --record does')
    start = value.get("start", 0.0)
    return Recorder(spout, value["file"], float(start), context)


class Recorder:
    """Writes one task's emits, acks and fails.

    Args:
        spout: The spout, by whose clock times are recorded.
        path: The file, which must exist.
        start: The instant of the spout's clock from which times are counted, in seconds.
        context: The task's context.

    Raises:
        ConfigError: The file can't be opened.
    """

    def __init__(self, spout: Spout, path: str, start: float, context: Context) -> None:
        try:
            self._file = private.open_file(path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise ConfigError(f"{RECORD}: {path} can't be written to: {error.strerror or error}") from None
        self._spout = spout
        self._start = start
        self._head = f',"spout":{dumps(context.component)},"task":{context.task}'
        self._lines: list[str] = []
        self._under_way: set[Any] = set()  # ids of the source's items that were emitted, and not acked yet

    def around(self, inner: SpoutCollector) -> SpoutCollector:
        """Return a collector that records its emits."""
        return _RecordedCollector(inner, self)

    def wrap(self, call: Callable[[Any], object], what: str) -> Callable[[Any], None]:
        """Return a function that records an ack or a fail, and then calls the spout's."""

        def recorded(tup_id: Any) -> None:
            self._add(f'"{what}":{dumps(tup_id)}')
            if what == "ack":
                self._under_way.discard(self._key(tup_id))
            call(tup_id)
            self.flush()

        return recorded

    def flushed(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that calls ``call``, and then writes the lines that were gathered."""

        def called() -> Any:
            try:
                return call()
            finally:
                self.flush()

        return called

    def flush(self) -> None:
        """Write the lines that were gathered."""
        if self._lines:
            data = "".join(self._lines).encode("utf-8", "surrogatepass")
            self._lines.clear()
            if os.write(self._file, data) != len(data):
                raise OSError("the recording could not be written whole: is the disk full?")

    def emitted(self, values: Values, tup_id: Any, stream: str | None, direct_task: int | None) -> int:
        """Note an emit that is about to be made; return its place for ``undo``."""
        try:
            line = f'"emit":{dumps(values)},"id":{dumps(tup_id)}'
        except (TypeError, ValueError, UnserializableValue):
            return -1  # the collector raises an error for it
        if stream not in (None, _DEFAULT):
            line += f',"stream":{dumps(stream)}'
        if direct_task is not None:
            line += f',"direct":{dumps(direct_task)}'
        if tup_id is not None:
            key = self._key(tup_id)
            if key in self._under_way:
                line += ',"again":true'
            self._under_way.add(key)
        self._add(line)
        return len(self._lines) - 1

    def undo(self, place: int) -> None:
        """Remove an emit that was refused."""
        if 0 <= place < len(self._lines):
            del self._lines[place]

    def _key(self, tup_id: Any) -> str:
        return dumps(self._spout.source_id(tup_id))

    def _add(self, what: str) -> None:
        at = self._spout.clock.monotonic() - self._start
        self._lines.append(f'{{"at":{at:.6f}{self._head},{what}}}\n')


class _RecordedCollector(SpoutCollector):
    def __init__(self, inner: SpoutCollector, recorder: Recorder) -> None:
        super().__init__(inner.scope, inner.reported)
        self.to_parent = inner.to_parent
        self.settles_in_rounds = inner.settles_in_rounds
        self.keeps_position = inner.keeps_position
        self.replays_by_position = inner.replays_by_position
        self._inner = inner
        self._recorder = recorder

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        *asked: Any,
        **named: Any,
    ) -> list[int] | None:
        place = self._recorder.emitted(values, tup_id, stream, direct_task)  # before the ack, which may come at once
        try:
            return self._inner.emit(values, tup_id, stream, direct_task, *asked, **named)
        except Exception:
            self._recorder.undo(place)
            raise

    def log(self, message: str, level: int = 2) -> None:
        self._inner.log(message, level)

    def report_error(self, message: str) -> None:
        self._inner.report_error(message)

    def report_metric(self, name: str, params: Any) -> None:
        self._inner.report_metric(name, params)
