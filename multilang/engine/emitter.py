"""The emits of a task in this process: their checks, their rarer paths, and the delivery to the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.engine.tuples import LocalTuple
from multilang.protocol import ChildConnection, Tuple
from multilang.protocol.codec import dumps, normalize
from multilang.protocol.messages import DEFAULT_STREAM
from multilang.settings import PARENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.component.collector import OnTaskIds
    from multilang.engine.counters import TaskStats
    from multilang.engine.links import Links
    from multilang.engine.plan import Route, TaskPlan


class TupleEmitter:
    """The parts that the closures of one task's collector share, and their rarer paths."""

    def __init__(self, plan: TaskPlan, links: Links, stats: TaskStats) -> None:
        self.plan = plan
        self.links = links
        self.stats = stats
        self.routes = plan.routes
        # A child's end of the wire that has read this task's handshake, so that it knows what may be emitted. It gets
        # only the calls that look suspicious to the closures, and its output is discarded.
        self.wire = ChildConnection()
        setup = dumps({"conf": {PARENT: "local"}, "pidDir": "", "context": dict(plan.context)})
        self.wire.receive_data(setup.encode() + b"\nend\n")

    def checked(self, values: Any, stream: str | None, direct_task: int | None) -> tuple[list[Any], Route]:
        """Return the values as received, and their route; raise the error that the wire would raise."""
        self.wire.emit(values, stream, None, direct_task)
        self.wire.data_to_send()
        return normalize(values), self.routes[DEFAULT_STREAM if stream is None else stream]

    def live(self, anchors: Any, values: list[Any], stream: str | None, direct_task: int | None) -> list[LocalTuple]:
        """Return the tuples that ``anchors`` stand for, or raise the wire's error for one that is finished."""
        if isinstance(anchors, list | tuple):
            if all([type(anchor) is LocalTuple and anchor.unfinished for anchor in anchors]):  # noqa: C419  # a list is faster
                return anchors  # type: ignore[return-value]
            found = [self._original(anchor) for anchor in anchors]
            if all(isinstance(anchor, LocalTuple) and anchor.unfinished for anchor in found):
                return found
        self.wire.emit(values, stream, anchors, direct_task)
        raise TypeError(f"{self.plan}: anchors are tuples that this task received, not {anchors!r}")

    def _original(self, tup: Any) -> Any:
        """Return the received tuple that this id or this copy stands for; return anything else as it is."""
        if isinstance(tup, LocalTuple) or not isinstance(tup, str | Tuple):
            return tup
        return self.links.named.get(tup if isinstance(tup, str) else tup.id, tup)

    def received(self, tup: Any, what: str) -> LocalTuple:
        """Return the unfinished tuple that ``tup`` (or its id) stands for, or raise the wire's error."""
        found = self._original(tup)
        if not isinstance(found, LocalTuple) or not found.unfinished:
            getattr(self.wire, what)(tup)
            raise TypeError(f"{self.plan}: {what} takes a tuple that this task received, not {tup!r}")
        return found

    def deliver(
        self, route: Route, values: list[Any], targets: Sequence[int], roots: Callable[[], tuple[Any, int]] | None
    ) -> None:
        """Deliver a copy of the tuple, with its own roots, to each target, so that no target sees another's changes."""
        self.stats.emitted += 1
        self.stats.transferred += len(targets)
        if route.captured is not None:
            route.captured(LocalTuple(normalize(values), route.stream, route.origin))
        first = True
        for task in targets:
            root, edge = (0, 0) if roots is None else roots()
            mine = values if first else normalize(values)
            first = False
            self.links.out.append(
                (self.links.receivers[task], LocalTuple(mine, route.stream, route.origin, root, edge))
            )

    def deliver_root(self, route: Route, values: list[Any], targets: Sequence[int], root: int) -> None:
        """Deliver a spout's tuple to each target, and send its root to the acker."""
        total = 0
        getrandbits, init = self.links.getrandbits, self.links.init

        def roots() -> tuple[int, int]:
            nonlocal total
            edge = getrandbits(64)
            total ^= edge
            return root, edge

        self.deliver(route, values, targets, roots)
        assert init is not None
        init(root, total, self.plan.id)

    def answer(self, targets: Sequence[int], need_task_ids: bool, on_task_ids: OnTaskIds | None) -> list[int] | None:
        """Return the task ids of an emit if they were asked for.

        A callback gets them once the current call into the component has returned, as on the wire.

        Args:
            targets: The tasks that got the tuple; for a direct emit the task that it names.
            need_task_ids: Whether the caller asked for the ids.
            on_task_ids: The callback that gets them; None: nobody asked for one.
        """
        if on_task_ids is not None:
            self.links.out.append((self.links.later(self.plan, on_task_ids), list(targets)))
        return list(targets) if need_task_ids else None
