"""The collector of a chain's member: what it emits goes to the members behind it, and out of the chain."""

from __future__ import annotations

from _thread import get_ident

from multilang.chains.tuples import ChainTuple, ChainTuples, Origin, OuterTuple, OuterTuples
from multilang.component.collector import BoltCollector, many_anchored, one_by_one
from multilang.protocol.codec import normalize
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.protocol.messages import Tuple
from multilang.protocol.outputs import Outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol

    from multilang.chains.member import Member
    from multilang.chains.tuples import Tree
    from multilang.child.wire import Wire
    from multilang.component.collector import Anchors, Emit, OnTaskIds, Settle
    from multilang.component.context import Context
    from multilang.protocol.messages import Values

    class Running(Protocol):
        """The parts of a chain at work that its members' collectors use; see running.Running."""

        inner: BoltCollector
        wire: Wire
        main: int
        out: list[tuple[Member, ChainTuple]]
        done: list[tuple[Tree, bool]]
        emit: Emit

        def call(self, member: Member, call: Callable[[], object]) -> None: ...
        def call_back(self, call: Callable[[], object]) -> None: ...
        def here(self, member: Member, call: Callable[[], object]) -> None: ...
        def hold(self, more: int) -> None: ...
        def log(self, member: Member, message: str, level: int) -> None: ...
        def report_error(self, member: Member, message: str) -> None: ...


_PAST = {"ack": "acked", "fail": "failed", "anchor": "used as an anchor"}


class Route:
    """One of a member's streams.

    Attributes:
        width: The number of values of an emit; -1 if each is to be checked.
        origin: The properties of its tuples.
        targets: The members that get its tuples.
        tasks: Their tasks.
        outside: The stream on which its tuples leave the chain; None: nobody there gets them.
    """

    __slots__ = ("origin", "outside", "targets", "tasks", "width")

    def __init__(self, origin: Origin, width: int, targets: list[Member], outside: str | None) -> None:
        self.origin = origin
        self.width = width
        self.targets = targets
        self.tasks = [each.task for each in targets]
        self.outside = outside


class MemberCollector(BoltCollector):
    """The collector of a member, around that of the chain.

    Args:
        running: The chain.
        member: The member.
        context: Its context.
    """

    to_parent = True
    takes_threads = True

    def __init__(self, running: Running, member: Member, context: Context) -> None:
        super().__init__(running.inner.scope, running.inner.reported)
        self._running = running
        self._member = member
        self._outputs = Outputs()
        self._outputs.learn(context.component, context.task_component, context)
        self.routes: dict[str | None, Route] = {}
        self.emit = self._fast_emit(automatic=False)
        self.emit_anchored = self._fast_emit(automatic=True)
        self.emit_many = one_by_one(self.emit)
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)
        self.ack = self._fast_ack()
        self.fail = lambda tup: self._settle(tup, False)

    def _fast_emit(self, automatic: bool) -> Emit:  # noqa: C901 - a call for each part would cost as much as the part
        """Return an ``emit``; with ``automatic``, it is anchored to the scope's anchors unless anchors are given."""
        scope, running, member, main = self.scope, self._running, self._member, self._running.main
        out, routes, new, kind, runs = (
            running.out,
            self.routes,
            ChainTuple.__new__,
            ChainTuple,
            (ChainTuples, OuterTuples),
        )
        otherwise, stats, calls = self._emit, member.stats, member.calls

        def emit(
            values: Values,
            stream: str | None = None,
            anchors: Anchors = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: OnTaskIds | None = None,
        ) -> list[int] | None:
            if automatic and anchors is None:
                anchors = scope.anchors
            try:
                route = routes[stream]
                if (
                    direct_task is None
                    and not need_task_ids
                    and on_task_ids is None
                    and len(values) == route.width
                    and anchors
                    and not calls
                    and get_ident() == main
                ):
                    trees: Any = None
                    anchor: Any = anchors
                    if type(anchor) in runs:
                        if anchor.owner is member and anchor.open:
                            trees = anchor.trees
                    elif len(anchors) == 1:
                        anchor = anchors[0]
                        if isinstance(anchor, kind) and anchor.unfinished and anchor.owner is member:
                            trees = anchor.trees
                    if trees:
                        for target in route.targets:
                            row = normalize(values)
                            if target.execute_many is not None:
                                target.put(route.origin, trees, row)
                                for tree in trees:
                                    tree.left += 1
                                stats.transferred += 1
                                continue
                            tup = new(kind)
                            tup.values = row
                            tup.stream = route.origin.stream
                            tup.origin = route.origin
                            tup.trees = trees
                            tup.owner = target
                            tup.unfinished = True
                            for tree in trees:
                                tree.left += 1
                            out.append((target, tup))
                            stats.transferred += 1
                        if route.outside is not None:
                            running.emit(
                                values,
                                route.outside,
                                [tree.outer for tree in trees if not tree.failed],
                                None,
                                False,
                                None,
                            )
                        stats.emitted += 1
                        return None
            except (LookupError, TypeError, UnserializableValue):
                pass  # the slow path sends it or says what is wrong
            return otherwise(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

        return emit

    def _emit(
        self,
        values: Values,
        stream: str | None,
        anchors: Anchors,
        direct_task: int | None,
        need_task_ids: bool,
        on_task_ids: OnTaskIds | None,
    ) -> list[int] | None:
        """Send any emit, or say what is wrong with it."""
        name = "default" if stream is None else stream
        outputs, running = self._outputs, self._running
        outputs.check(name, values, direct_task)
        outputs.encode(outputs.streams[stream], values)
        trees = self._trees(anchors)
        if need_task_ids:
            running.wire.check_wait()
        if get_ident() != running.main:
            copy = normalize(values)
            running.call(self._member, lambda: self._send(copy, name, trees, direct_task, False, on_task_ids))
            return None
        self._member.make_calls()
        return self._send(values, name, trees, direct_task, need_task_ids, on_task_ids)

    def _send(
        self,
        values: Values,
        stream: str,
        trees: tuple[Tree, ...],
        direct_task: int | None,
        need_task_ids: bool,
        on_task_ids: OnTaskIds | None,
    ) -> list[int] | None:
        """Send a checked emit, in the main thread."""
        route, running, stats = self.routes[stream], self._running, self._member.stats
        stats.emitted += 1
        told = on_task_ids
        if on_task_ids is not None:
            callback = on_task_ids
            told = lambda others: running.call_back(lambda: callback([*route.tasks, *others]))  # noqa: E731
        others: list[int] | None = None
        if direct_task is None:
            for target in route.targets:
                for tree in trees:
                    tree.left += 1
                if not trees:
                    running.hold(1)
                if target.execute_many is not None:
                    target.put(route.origin, trees, normalize(values))
                else:
                    running.out.append((target, self._tuple(route, normalize(values), trees, target)))
                stats.transferred += 1
        if route.outside is not None:
            outer = [tree.outer for tree in trees if not tree.failed]
            others = running.emit(values, route.outside, outer, direct_task, need_task_ids, told)
        elif told is not None:
            told([])
        if direct_task is not None:
            return others
        return [*route.tasks, *(others or ())] if need_task_ids else None

    @staticmethod
    def _tuple(route: Route, values: list[Any], trees: tuple[Tree, ...], target: Member) -> ChainTuple:
        tup = ChainTuple.__new__(ChainTuple)
        tup.values = values
        tup.stream = route.origin.stream
        tup.origin = route.origin
        tup.trees = trees
        tup.owner = target
        tup.unfinished = True
        return tup

    def _trees(self, anchors: Anchors) -> tuple[Tree, ...]:
        """Return the tuples from outside that the anchors come of."""
        if not anchors and (anchors is None or isinstance(anchors, list | tuple)):
            return ()
        if isinstance(anchors, ChainTuples) and anchors.owner is self._member and not anchors.settled:
            return anchors.trees if anchors.open else ()
        given: Any = anchors
        if isinstance(given, str | Tuple) or not hasattr(given, "__iter__"):
            kind = Tuple if isinstance(given, Tuple) else type(given)
            raise LocalProtocolError(
                f"component {self._member.id!r}: anchors is a list of tuples, not {kind.__name__}; write anchors=[tup]"
            )
        return tuple({tree: None for each in given for tree in self.find(each, "anchor").trees})

    def find(self, tup: Tuple | str, what: str) -> ChainTuple:
        """Return the unfinished input that ``tup`` (or a copy, or its id) stands for, to "ack", "fail" or "anchor" it.

        Raises:
            LocalProtocolError: It was acked or failed before, or was never received.
        """
        member = self._member
        if isinstance(tup, ChainTuple) and tup.unfinished and tup.owner is member:
            return tup
        if not isinstance(tup, str | Tuple):
            raise LocalProtocolError(
                f"component {member.id!r}: {what} takes a tuple or its id, not {type(tup).__name__} ({tup!r:.100})"
            )
        id = tup if isinstance(tup, str) else tup.id
        found = member.named.get(id)
        if found is not None and found.unfinished:
            return found
        raise LocalProtocolError(
            f"component {member.id!r}: tuple {id!r} can't be {_PAST[what]}: it was acked or failed before, or never "
            "received. Each tuple is acked or failed once, after all that is anchored to it was emitted"
            + ("; a later emit says anchors=[]" if what == "anchor" else "")
        )

    # ---- acks and fails ----

    def _fast_ack(self) -> Settle:
        main, member, settle = self._running.main, self._member, self._settle
        done, kinds, stats = self._running.done, (ChainTuple, OuterTuple), self._member.stats
        calls = member.calls

        def ack(tup: Any) -> None:
            if (
                type(tup) in kinds
                and tup.unfinished
                and tup.owner is member
                and not calls
                and get_ident() == main
                and tup.trees
            ):
                tup.unfinished = False
                stats.acked += 1
                for tree in tup.trees:
                    tree.left -= 1
                    if not tree.left and not tree.failed:
                        done.append((tree, True))
                if member.named:
                    member.forget(tup)
            else:
                settle(tup, True)

        return ack

    def _settle(self, given: Tuple | str, ok: bool) -> None:
        trees = self._finish(given, "ack" if ok else "fail").trees
        self._running.here(self._member, lambda: self.settled(trees, 1, ok))

    def settle_many(self, tups: Iterable[Tuple], ok: bool) -> None:
        member = self._member
        if not isinstance(tups, ChainTuples) or tups.owner is not member:
            super().settle_many(tups, ok)
            return
        left, trees = tups.settle(), tups.trees
        if member.named:
            for tup in tups.made.values():
                member.forget(tup)
        if left:
            self._running.here(member, lambda: self.settled(trees, left, ok))

    def _finish(self, given: Tuple | str, what: str) -> ChainTuple:
        """Return the unfinished input, which is finished now as far as the component sees."""
        tup = self.find(given, what)
        tup.unfinished = False
        self._member.forget(tup)
        return tup

    def settled(self, trees: Sequence[Tree], tuples: int, ok: bool) -> None:
        """Count so many finished inputs, in the main thread.

        Args:
            trees: The tuples from outside that they came of.
            tuples: Their number.
            ok: Whether they were acked.
        """
        running, stats = self._running, self._member.stats
        if ok:
            stats.acked += tuples
        else:
            stats.failed += tuples
        if not trees:
            running.hold(-tuples)
        for tree in trees:
            tree.left -= tuples
            if tree.failed:
                continue
            if not ok:
                tree.failed = True
                running.done.append((tree, False))
            elif not tree.left:
                running.done.append((tree, True))

    def received(self, tup: Tuple | str) -> Tuple:
        return self.find(tup, "ack")

    def deferred_ack(self, kept: list[Any]) -> Settle:
        def ack(given: Tuple | str) -> None:
            tup = self.find(given, "ack")
            if tup.is_tick:
                self._settle(tup, True)
                return
            kept.append(self._finish(tup, "ack"))

        return ack

    def finish(self, kept: list[Any], ok: bool) -> None:
        finished = kept[:]
        kept.clear()

        def settle() -> None:
            for tup in finished:
                self.settled(tup.trees, 1, ok)

        self._running.here(self._member, settle)

    # ---- the rest, under the member's own name ----

    def log(self, message: str, level: int = 2) -> None:
        self._running.log(self._member, message, level)

    def report_error(self, message: str) -> None:
        self._running.report_error(self._member, message)

    def report_metric(self, name: str, params: Any) -> None:
        self._running.inner.report_metric(name, params)
