"""A spout that can go back to an earlier position, which exact alignment needs."""

from __future__ import annotations

from multilang.component.reliable import ReliableSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context


class ReplayableSpout(ReliableSpout):
    """A source that is read by position: lines of a file, offsets of a log, keys in their order.

    With ``multilang.state.alignment: exact`` the position is part of each checkpoint. After a failure a new instance is
    initialized, its ``seek`` gets the position that was committed last, and it emits from there on; ``ack`` and
    ``fail`` are not called. In other topologies it is a ReliableSpout.
    """

    def position(self) -> Any:
        """Return the position of the next tuple.

        Returns:
            Anything that JSON can express, except None, such as ``{"file": "a.txt", "line": 7}``.
        """
        raise TypeError(f"{type(self).__name__} has no position method: define position(self)")

    def seek(self, position: Any) -> None:
        """Resume from a position. Not called if no position was committed yet.

        Args:
            position: The value that ``position`` returned in another process.
        """
        raise TypeError(f"{type(self).__name__} has no seek method: define seek(self, position)")

    def identity(self) -> Any:
        """Return an identity of the source: a path, a topic, a table. Define it if a source may change.

        It is stored with the position, and a position in another source is refused. It is called where the topology is
        built, and without exact alignment in the task, before ``initialize``. Without it, a source whose class or
        arguments changed causes a warning, and is refused only where it has those of another component.

        Returns:
            Anything that JSON can express, and that people may see in messages; None: nothing is known.
        """
        return None

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        if collector.replays_by_position:  # then no tuple need be stored for a replay
            self._shadow(ReliableSpout, {"emit": collector.emit, "emit_many": collector.emit_many})
