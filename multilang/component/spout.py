"""Spouts: the components that tuples come from."""

from __future__ import annotations

from multilang.component.base import Component, overload
from multilang.component.errors import UnrecoverableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, ClassVar, Literal

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Values


class Spout(Component):
    """A source of tuples that decides itself which of them are reliable (Storm's ISpout)."""

    _collector: SpoutCollector

    fails_alone: ClassVar[bool] = False
    """True if a failing tuple must make no other fail, since nobody replays that one (see multilang.exchange.hops)."""

    emits_again: ClassVar[bool] = False
    """True if each tuple that it emits has a message id, and is replayed when it fails.

    What comes of its tuples may then travel in larger blocks (see multilang.exchange.choice). A subclass that overrides
    ``fail`` or ``replay`` must set it again."""

    failing_together = False
    """True while ``fail`` is called for one of several tuples that travelled together, any of which may be the cause."""

    questions: ClassVar[frozenset[str]] = frozenset()
    """Streams whose tuples ask a question that a bolt answers by ack or fail; neither counts as a failure."""

    must_come_to: ClassVar[str | None] = None
    """The end that each life must reach, in the words of a message, or else it is given up after some; None: an emit."""

    came_to_it = False
    """True once this life came to ``must_come_to``."""

    if TYPE_CHECKING:

        def initialize(self, conf: dict[str, Any], context: Context) -> None: ...

    def next_tuple(self) -> None:
        """Emit the next tuple or tuples, or return without an emit when there is none now; never block for long."""
        raise UnrecoverableError(f"{type(self).__name__} has no next_tuple method: define next_tuple(self)")

    def ack(self, tup_id: Any) -> None:
        """Note that the tuple emitted with ``tup_id`` was fully processed."""

    def fail(self, tup_id: Any) -> None:
        """Note that the tuple emitted with ``tup_id`` failed or timed out, and replay it if it matters."""

    def activate(self) -> None:
        """Note that the topology was activated; also called once at the start."""

    def deactivate(self) -> None:
        """Note that the topology was deactivated: next_tuple is not called until it is activated again."""

    def exhausted(self) -> bool | None:
        """Return True when no more tuples will come, False when more will, None when this spout can't tell.

        Only engines that wait for the end of a topology ask (the embedded cluster, Spark); Storm never does.
        """
        return None

    def source_id(self, tup_id: Any) -> Any:
        """Return the id of the tuple's item in the source, for a spout that replays with new message ids.

        A tuple counts as lost when none of its message ids is acked.
        """
        return tup_id

    def is_question(self, tup_id: Any) -> bool:
        """Return whether the tuple with that id was emitted to one of the streams in ``questions``."""
        return False

    @overload
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: Literal[True],
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int]: ...

    @overload
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None: ...

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple.

        Args:
            values: The values, one per field of the stream.
            tup_id: The message id, a string or a number. It makes the tuple reliable: ``ack`` or ``fail`` is called
                with it.
            stream: The stream's name; the default stream if it is None.
            direct_task: The only task that it goes to, on a stream that is direct.
            need_task_ids: Wait for the ids of the tasks that the tuple goes to.
            on_task_ids: Is called with these ids when they arrive; ``emit`` does not wait for them.

        Returns:
            The task ids with ``need_task_ids``, otherwise None.

        Raises:
            UnserializableValue: JSON does not have one of the values; nothing is sent.
            LocalProtocolError: The stream, the number of values or the task is wrong; nothing is sent.
        """
        return self._collector.emit(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)

    def emit_many(
        self, rows: Iterable[Values], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None:
        """Send many tuples to one stream.

        Args:
            rows: The values of each tuple.
            tup_ids: A message id for each of them; None makes them all unreliable.
            stream: The stream's name; the default stream if it is None.
        """
        self._collector.emit_many(rows, tup_ids, stream)

    def replay(self) -> bool:
        """Replay a tuple that is due, and return whether there was one.

        Called before each ``next_tuple``, which is called only when this returns False.
        """
        return False

    def _runner_started(self, conf: dict[str, Any], context: Context) -> None:
        """Start what needs an initialized component; the runner calls this after ``initialize``."""

    def _around_next(self, call: Callable[[], None]) -> Callable[[], None]:
        """Return the function that the runner calls for the next tuple, inside of all middleware.

        Args:
            call: The spout's ``next_tuple``.
        """
        return call

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._shadow(Spout, {"emit": collector.emit, "emit_many": collector.emit_many})


def after_initialize(spout: Spout, conf: dict[str, Any], context: Context) -> Callable[[], None]:
    """Start what needs an initialized spout, and return the function that emits its next tuple."""
    spout._runner_started(conf, context)
    return spout._around_next(spout.next_tuple)
