"""A spout that can go back to where it was, which exact alignment needs."""

from __future__ import annotations

from multilang.component.reliable import ReliableSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context


class ReplayableSpout(ReliableSpout):
    """A source that is read by position: lines of a file, offsets of a log, keys in their order.

    With ``multilang.state.alignment: exact`` its position is part of each checkpoint. After a failure a new instance of it
    is initialized and told to ``seek`` what was committed last, and what comes after is emitted again; ``ack`` and ``fail``
    are not called. In other topologies it is a ReliableSpout.
    """

    def position(self) -> Any:
        """Where the next tuple comes from: anything that JSON has but None, such as ``{"file": "a.txt", "line": 7}``."""
        raise TypeError(f"{type(self).__name__} has no position method: define position(self)")

    def seek(self, position: Any) -> None:
        """Go on from what ``position`` returned in another process. Not called where nothing was committed yet."""
        raise TypeError(f"{type(self).__name__} has no seek method: define seek(self, position)")

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        if getattr(collector, "replays_by_position", False):  # then nothing need be kept until it is acked
            self._shadow(ReliableSpout, {"emit": collector.emit, "emit_many": collector.emit_many})
