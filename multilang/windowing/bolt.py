"""Bolts that work on windows of tuples."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.streams import Stream
from multilang.windowing.batches import batch_of
from multilang.windowing.declared import DeclaredWindows
from multilang.windowing.settings import Settings, name_or_none
from multilang.windowing.task import WindowTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple
    from multilang.windowing.carried import Carried

LATE_FIELDS = ["late_tuple"]


class WindowedBolt(DeclaredWindows):
    """A bolt that works on windows of tuples (Storm's BaseWindowedBolt): define ``process_window``.

    A tuple is acked when it is in no window any more. Emits of ``process_window`` are anchored to the window's tuples.
    An exception from ``process_window`` ends the task, and all its tuples are replayed.
    """

    transformations = ["multilang.windowing.transform:windowed"]

    holds_tuples = True

    __slots__ = ("_windows",)  # beside the attributes, which engines may copy or carry elsewhere
    _windows: WindowTask

    carried_windows: Carried
    """The windows as a job carries them from round to round."""

    def process(self, tup: Tuple) -> None:
        self._windows.process(tup)

    def declared_streams(self) -> dict[str, Stream]:
        streams = super().declared_streams()
        late = name_or_none(self.late_stream, "late_stream", "a stream's name")
        if late is not None:
            if late in streams:
                raise ConfigError(
                    f"the stream {late!r} is late_stream, and is declared by the class, too; give one another name"
                )
            streams[late] = Stream(LATE_FIELDS)
        return streams

    def move_windows(self, *, is_last: bool) -> None:
        """Advance the time: called by engines whose input arrives in batches.

        Args:
            is_last: No batch will follow, so that all windows end.
        """
        self._windows.end_batch(is_last=is_last)

    def save_windows(self) -> None:
        """Write the windows to the values that are carried to the next batch, or to the state."""
        self._windows.save()

    def held_tuples(self) -> Iterator[tuple[Any, int]]:
        """Yield root and edge of each tuple that the windows hold, where tuples have them."""
        return self._windows.held()

    def check_conf(self, conf: dict[str, Any]) -> None:
        super().check_conf(conf)
        self.check_limits(Settings(self, conf, type(self).__name__), conf)

    def check_limits(self, settings: Settings, conf: dict[str, Any]) -> None:
        """Check that tuples can be held as long as they are in windows."""
        settings.check_limits(conf)

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        settings = Settings(self, conf, f"bolt {context.component!r}")
        self.check_limits(settings, conf)
        self._windows = self._new_task(settings, collector, conf, context)

    def _new_task(
        self, settings: Settings, collector: BoltCollector, conf: dict[str, Any], context: Context
    ) -> WindowTask:
        batch = batch_of(conf)
        if batch is None:
            return WindowTask(self, settings, collector, context)
        from multilang.windowing.carried import Carried, CarriedTask

        self.carried_windows = Carried()
        return CarriedTask(self, settings, collector, context, batch, lambda: self.carried_windows)
