"""Spouts: where tuples come from."""

from __future__ import annotations

from multilang.component.base import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, ClassVar

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context


class Spout(Component):
    """A source of tuples, with full control of what is reliable (Storm's ISpout)."""

    _collector: SpoutCollector

    questions: ClassVar[frozenset[str]] = frozenset()
    """Streams whose tuples ask what a bolt answers by its ack or its failure; neither counts as a failure then."""

    if TYPE_CHECKING:

        def initialize(self, conf: dict[str, Any], context: Context) -> None: ...

    def next_tuple(self) -> None:
        """Emit the next tuple or tuples, or return without an emit when there is nothing now; never block for long."""
        raise TypeError(f"{type(self).__name__} has no next_tuple method: define next_tuple(self)")

    def ack(self, tup_id: Any) -> None:
        """The tuple emitted with ``tup_id`` was fully processed."""

    def fail(self, tup_id: Any) -> None:
        """The tuple emitted with ``tup_id`` failed or timed out; emit it again when it matters."""

    def activate(self) -> None:
        """The topology was activated; also called once at the start."""

    def deactivate(self) -> None:
        """The topology was deactivated: next_tuple is not called until it is activated again."""

    def exhausted(self) -> bool | None:
        """True when no more tuples will come, False when more will; None: this spout can't tell.

        Only runners that wait for the end of a topology ask (the embedded cluster, Spark); Storm never does.
        """
        return None

    def source_id(self, tup_id: Any) -> Any:
        """What a message id stands for, where a replay has another one: a tuple is lost when no id of it is acked."""
        return tup_id

    def is_question(self, tup_id: Any) -> bool:
        """Whether the tuple of that id was emitted on one of the streams of ``questions``."""
        return False

    def emit(
        self,
        values: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple.

        ``tup_id`` (a string or a number) makes it reliable: ``ack`` or ``fail`` is called with it. ``stream`` is the
        default stream unless given. ``direct_task`` sends it to that task alone. With ``need_task_ids`` the call waits
        for the ids of the tasks it went to and returns them; ``on_task_ids`` is called with them when they arrive,
        without waiting. Raises UnserializableValue or LocalProtocolError, and then nothing was sent.
        """
        return self._collector.emit(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)

    def emit_many(
        self, rows: Iterable[Sequence[Any]], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None:
        """Send many tuples to one stream; ``tup_ids`` has a message id for each, or is None for unreliable ones."""
        self._collector.emit_many(rows, tup_ids, stream)

    def replay(self) -> bool:
        """Emit what is due again. Asked before each ``next_tuple``, which is called only when this returns False."""
        return False

    def _runner_started(self, conf: dict[str, Any], context: Context) -> None:
        """Called by the runner after ``initialize``."""

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._shadow(Spout, {"emit": collector.emit, "emit_many": collector.emit_many})
