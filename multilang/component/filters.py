"""A collector around a collector, which a wrapper gives to the component inside it."""

from __future__ import annotations

from multilang.component.collector import BoltCollector, many_anchored, one_by_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.component.collector import Anchors, Emit, EmitMany, OnTaskIds, Settle
    from multilang.component.timers import Scope
    from multilang.protocol.messages import Tuple, Values


class BoltFilter(BoltCollector):
    """A collector around another: the given calls in place of the other's, and the other's for the rest.

    An ``emit`` alone is enough: the other calls that emit then use it, unless they are given because theirs is faster.
    Likewise, all calls that ack or fail use an ``ack`` or a ``fail`` that is given.

    Args:
        inner: The other collector.
        emit: The emit.
        emit_anchored: The emit of basic bolts.
        emit_many: The emit of many tuples.
        ack: The ack.
        fail: The fail.
        fail_acked: The fail of a tuple that was acked.
    """

    def __init__(
        self,
        inner: BoltCollector,
        *,
        emit: Emit | None = None,
        emit_anchored: Emit | None = None,
        emit_many: EmitMany | None = None,
        ack: Settle | None = None,
        fail: Settle | None = None,
        fail_acked: Callable[[Tuple], None] | None = None,
    ) -> None:
        super().__init__(inner.scope, inner.reported)
        self._inner = inner
        self._settles = ack is not None or fail is not None
        self.takes_threads = inner.takes_threads
        self.knows_tasks = inner.knows_tasks
        if emit is not None:
            emit_anchored = emit_anchored or anchored(emit, inner.scope)
            emit_many = emit_many or one_by_one(emit)
        self.emit = emit or inner.emit
        self.emit_anchored = emit_anchored or inner.emit_anchored
        self.emit_many = emit_many or inner.emit_many
        self.emit_many_anchored = (
            inner.emit_many_anchored if emit_many is None else many_anchored(emit_many, inner.scope)
        )
        self.ack = ack or inner.ack
        self.fail = fail or inner.fail
        self.fail_acked = fail_acked or inner.fail_acked

    def received(self, tup: Tuple | str) -> Tuple:
        return self._inner.received(tup)

    def settle_many(self, tups: Iterable[Tuple], ok: bool) -> None:
        if self._settles:
            super().settle_many(tups, ok)
        else:
            self._inner.settle_many(tups, ok)

    def deferred_ack(self, deferred: list[Any]) -> Settle:
        return super().deferred_ack(deferred) if self._settles else self._inner.deferred_ack(deferred)

    def finish(self, deferred: list[Any], ok: bool) -> None:
        if self._settles:
            super().finish(deferred, ok)
        else:
            self._inner.finish(deferred, ok)

    def log(self, message: str, level: int = 2) -> None:
        self._inner.log(message, level)

    def report_error(self, message: str) -> None:
        self._inner.report_error(message)

    def report_metric(self, name: str, params: Any) -> None:
        self._inner.report_metric(name, params)


def anchored(emit: Emit, scope: Scope) -> Emit:
    """Return ``emit`` with the scope's anchors unless ``anchors`` is given."""

    def emit_anchored(
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        return emit(
            values, stream, scope.anchors if anchors is None else anchors, direct_task, need_task_ids, on_task_ids
        )

    return emit_anchored
