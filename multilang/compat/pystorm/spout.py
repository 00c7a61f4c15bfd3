"""pystorm's spouts."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

from multilang.compat.pystorm.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Spout(Component):
    """A source of tuples: define ``next_tuple``."""

    def next_tuple(self) -> None:
        """Emit the next tuple or tuples, or return without an emit when there is none now."""
        raise NotImplementedError(f"{type(self).__name__} has no next_tuple method: define next_tuple(self)")

    def ack(self, tup_id: Any) -> None:
        """Note that the tuple emitted with ``tup_id`` was fully processed."""

    def fail(self, tup_id: Any) -> None:
        """Note that the tuple emitted with ``tup_id`` failed or timed out."""

    def activate(self) -> None:
        """Note that the topology was activated."""

    def deactivate(self) -> None:
        """Note that the topology was deactivated."""

    def emit(  # type: ignore[override]  # pystorm's
        self,
        tup: Any,
        tup_id: Any = None,
        stream: Any = None,
        direct_task: Any = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Send a tuple.

        Args:
            tup: The values, a list or a tuple.
            tup_id: The message id; it makes the tuple reliable.
            stream: The stream's name; None is the default stream.
            direct_task: The only task that it goes to.
            need_task_ids: Wait for the ids of the tasks that it goes to.

        Returns:
            The task ids with ``need_task_ids``, otherwise None.
        """
        link = self._multilang.link
        if link is not None and link.sends_itself:
            return link.emit(tup, tup_id, stream, direct_task, need_task_ids)
        return super().emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)

    def _run(self) -> None:
        command = self.read_command()
        kind = command["command"]
        if kind in ("ack", "fail"):
            getattr(self, kind)(command["id"])
        elif kind in ("activate", "deactivate"):
            getattr(self, kind)()
        elif kind == "next":
            self.next_tuple()
        else:
            self.logger.error("Received invalid command from Storm: %r", command)
        self.send_message({"command": "sync"})


class ReliableSpout(Spout):
    """A spout that replays a failed tuple, at once and at most ``max_fails`` times.

    Attributes:
        max_fails: The most replays of a tuple; after that it counts as acked.
        failed_tuples: The number of failures by message id.
        unacked_tuples: The arguments of each emit that is not acked yet, by message id.
    """

    max_fails: int = 3

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.failed_tuples: Counter[Any] = Counter()
        self.unacked_tuples: dict[Any, Any] = {}

    def ack(self, tup_id: Any) -> None:
        self.failed_tuples.pop(tup_id, None)
        if tup_id in self.unacked_tuples:
            del self.unacked_tuples[tup_id]
        else:
            self.logger.error("Received ack for unknown tuple ID: %r", tup_id)

    def fail(self, tup_id: Any) -> None:
        emitted = self.unacked_tuples.get(tup_id)
        if emitted is None:
            self.logger.error("Received fail for unknown tuple ID: %r", tup_id)
        elif self.failed_tuples[tup_id] < self.max_fails:
            tup, stream, direct_task, need_task_ids = emitted
            self.emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
            self.failed_tuples[tup_id] += 1
        else:
            self.logger.info("Acking tuple ID %r after it exceeded retry limit (%r)", tup_id, self.max_fails)
            self.ack(tup_id)

    def emit(  # type: ignore[override]  # pystorm's
        self,
        tup: Any,
        tup_id: Any = None,
        stream: Any = None,
        direct_task: Any = None,
        need_task_ids: bool = False,
    ) -> Any:
        if tup_id is None:
            raise ValueError(
                f"{type(self).__name__} is a ReliableSpout, whose tuples are tracked by their ids: write emit(..., tup_id=...)"
            )
        self.unacked_tuples[tup_id] = (deepcopy(tup), stream, direct_task, need_task_ids)
        return super().emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
