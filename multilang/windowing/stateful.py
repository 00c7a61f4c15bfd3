"""Windowed bolts whose windows are in their state."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.state.bolt import Stateful
from multilang.windowing.batches import batch_of
from multilang.windowing.bolt import WindowedBolt
from multilang.windowing.saved import SavedTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.state.api import KeyValueState
    from multilang.windowing.settings import Settings
    from multilang.windowing.task import WindowTask


class StatefulWindowedBolt(Stateful, WindowedBolt):
    """A WindowedBolt whose windows are part of its topology's checkpoints (Storm's ``withPersistence``).

    A tuple is acked when the checkpoint that has it is committed, so that a window may be longer than the message
    timeout. After a crash, the windows and the watermark are those of the last checkpoint. Emits of ``process_window``
    are anchored to nothing.

    If you override ``init_state``, ``pre_prepare`` or ``pre_rollback``, call ``super()``'s, too. You may put values of
    your own into the state, under keys that do not begin with ``$window``.
    """

    transformations = ["multilang.windowing.transform:windowed", "multilang.state.transform:stateful"]

    can_spill = True
    holds_tuples = False

    _windows: SavedTask

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        """Receive the state with the last committed windows."""
        self._windows.load(state)

    def pre_prepare(self, txid: int) -> None:
        """Write the windows to the state."""
        self._windows.save()

    def pre_rollback(self) -> None:
        """Return to the committed windows."""
        self._windows.roll_back()

    def check_limits(self, settings: Settings, conf: dict[str, Any]) -> None:
        if self.keep_expired:
            raise ConfigError(
                f"{settings.who}: keep_expired is set, and a StatefulWindowedBolt does not keep expired tuples"
            )
        settings.keep_expired = False

    def _new_task(
        self, settings: Settings, collector: BoltCollector, conf: dict[str, Any], context: Context
    ) -> WindowTask:
        return SavedTask(self, settings, collector, context, batch_of(conf))
