"""A chain in its process: its members, and the queue of the tuples between them."""

from __future__ import annotations

import os
from _thread import get_ident
from collections import deque
from time import monotonic

from multilang.blocks.bolt import BlockBoltCollector
from multilang.blocks.names import BY_TUPLE, DEFAULT, EXCHANGE, MAX_TUPLES, TUPLES
from multilang.chains.collector import MemberCollector, Route
from multilang.chains.member import SAMPLE_EVERY, Member
from multilang.chains.names import chain_stream
from multilang.chains.tuples import Origin, OuterTuple, OuterTuples, Tree
from multilang.child.wire import Blocks
from multilang.component.runner import start_bolt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from multilang.chains.tuples import ChainTuple
    from multilang.chains.view import View
    from multilang.child.wire import Wire
    from multilang.component.base import Component
    from multilang.component.collector import BoltCollector
    from multilang.component.many import Tuples
    from multilang.protocol.messages import Tuple

_MOST_SECS = 0.005  # between two times that acks and blocks are sent, while the chain works


class Running(Blocks):
    """The members of a chain at work.

    A tuple's descendants are run before the next tuple; but members that take many tuples get those of a whole block
    together, or of as much of it as is done in a few milliseconds. Each member gets the tuples of another in the order in
    which they were emitted. No member is called while one works: what threads and callbacks bring waits until then.

    Args:
        components: The members by their ids, sources before subscribers.
        inner: The collector of the process.
        wire: The wire.
        view: The topology as declared.
        local: Whether the parent is our own.

    Attributes:
        out: The tuples that the member at work emitted to others.
        done: The tuples from outside that are to be acked (True) or failed.
        members: The members, sources before subscribers.
        current: The member at work, or the last one.
        local: Whether the parent is our own.
    """

    def __init__(
        self, components: Mapping[str, Component], inner: BoltCollector, wire: Wire, view: View, local: bool
    ) -> None:
        self.inner = inner
        self.emit = inner.emit
        self.wire = wire
        self.main = get_ident()
        self.out: list[tuple[Member, ChainTuple]] = []
        self.done: list[tuple[Tree, bool]] = []
        self.members = [Member(id, component, view) for id, component in components.items()]
        self.current = self.members[0]
        self._many: list[Member] = []  # those that take many tuples together
        self._ticking = [member for member in self.members if member.has_ticks]
        self.local = local
        self._called = False
        self._callbacks: deque[Callable[[], object]] = deque()
        self._held = self._held_told = 0
        self._busy = False
        self._broken = False
        self._settled_at = monotonic()
        self._in_blocks = isinstance(inner, BlockBoltCollector)
        if isinstance(inner, BlockBoltCollector):
            inner.before_acks = self._tell  # acks wait there for the blocks
        self._blocks = wire.blocks
        wire.blocks = self
        self._wakes, self._waker = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(self._waker, False)
        wire.wakes = self._wakes
        by_id = {member.id: member for member in self.members}
        for member in self.members:
            collector = MemberCollector(self, member, member.context)
            targets = view.joined.get(member.id, {})
            for name, fields in member.context.output_fields.items():
                inside = [by_id[target] for target in targets.get(name, ())]
                subscribers = member.context.targets.get(name, {})
                outside = chain_stream(member.id, name) if subscribers.keys() - {each.id for each in inside} else None
                direct = any(each.get("type") == "DIRECT" for each in subscribers.values())
                origin = Origin(member.id, name, member.task, fields)
                collector.routes[name] = route = Route(origin, -1 if direct else len(fields), inside, outside)
                if name == "default":
                    collector.routes[None] = route
                if outside is not None and isinstance(inner, BlockBoltCollector):
                    inner.count_tasks(outside, member.count_tasks)
            member.collector = collector

    def start(self) -> Callable[[Tuple], object]:
        """Start all members, and return the function that runs a tuple from outside."""
        for member in self.members:
            self.current = member
            member.execute = start_bolt(
                member.component,
                member.collector,
                member.conf,
                member.context,
            )
        conf = self.members[0].conf
        if conf.get(EXCHANGE, DEFAULT) != BY_TUPLE:
            for member in self.members:
                member.execute_many = member.collector.execute_many
                member.most = conf.get(TUPLES, MAX_TUPLES)
            self._many = [member for member in self.members if member.execute_many is not None]
        if self._many and self._in_blocks:
            self.inner.execute_many = self.receive_many
        return self.receive

    @property
    def working(self) -> Member:
        """The member that works, or worked last: the owner of a timer that was called, or the one with the last tuple."""
        owner = self.inner.scope.timers.owner
        return next((each for each in self.members if each.component is owner), self.current)

    # ---- tuples ----

    def receive(self, outer: Tuple) -> None:
        """Run a tuple from outside through the chain."""
        if self.out or self._called or self._many:
            self.drain()
        if outer.task < 0 and outer.is_tick:
            self._tick(outer)
        else:
            tup = OuterTuple.__new__(OuterTuple)
            tup.origin = outer
            tup.values = outer.values
            tup.stream = outer.stream
            tup.trees = (Tree(outer),)
            tup.owner = self.members[0]
            tup.unfinished = True
            self._work(((self.members[0], tup),))
        if self.done and (self._in_blocks or monotonic() - self._settled_at > _MOST_SECS):
            self._settle()

    def receive_many(self, block: Tuples) -> None:
        """Run the tuples of a block through the chain, some members of which take many together."""
        self.drain()
        first = self.members[0]
        tups = OuterTuples(first, block, (Tree(block[0], block),), block.rows)
        if first.execute_many is not None:
            first.runs.append(tups)
        else:
            since = monotonic()
            for index in range(len(tups)):
                self._work(((first, tups.make(index)),), many=False)
                if monotonic() - since > _MOST_SECS:
                    self._work(())
                    self._pause()
                    since = monotonic()
        self._work(())
        if self.done:
            self._settle()

    def _pause(self) -> None:
        """Run timers and send what waits, as without a chain between the tuples of a block."""
        if self.done:
            self._settle()
        assert isinstance(self.inner, BlockBoltCollector)
        self.inner.pause()
        self.drain()

    def _tick(self, outer: Tuple) -> None:
        tree = Tree(outer)
        tree.left = len(self._ticking)
        if not tree.left:
            self.done.append((tree, True))
        for member in self._ticking:
            tup = OuterTuple.__new__(OuterTuple)
            tup.origin = outer
            tup.values = [*outer.values]
            tup.stream = outer.stream
            tup.trees = (tree,)
            tup.owner = member
            tup.unfinished = True
            self._work(((member, tup),))

    def _work(self, items: Iterable[tuple[Member, ChainTuple]], many: bool = True) -> None:
        """Run tuples, and all that they lead to; with ``many``, also what waits for members that take many."""
        self._busy = True
        try:
            self._run(items)
            if many and self._many:
                self._run_many()
        except BaseException:
            self._broken = True  # the process ends; what the members have not got yet is lost with it
            raise
        finally:
            self._busy = False

    def _run(self, items: Iterable[tuple[Member, ChainTuple]]) -> None:
        out = self.out
        for member, tup in items:
            self.current = member
            member.stats.executed += 1
            member.countdown -= 1
            if member.countdown:
                member.execute(tup)
            else:
                start = monotonic()
                member.execute(tup)
                member.stats.secs += (monotonic() - start) * member.every
                member.countdown = member.every = SAMPLE_EVERY
            if out:
                mine = out[:]
                out.clear()
                self._run(mine)

    def _run_many(self) -> None:
        out = self.out
        for member in self._many:  # what one leads to waits for others behind it
            while member.runs:
                tups = member.runs.popleft()
                self.current = member
                member.stats.executed += len(tups)
                start = monotonic()
                member.execute_many(tups)  # type: ignore[misc]
                member.stats.secs += monotonic() - start
                if out:
                    mine = out[:]
                    out.clear()
                    self._run(mine)

    # ---- what comes from elsewhere ----

    def call(self, member: Member, call: Callable[[], object]) -> None:
        """Have the main thread make a call of a member's thread, between two tuples or before the member itself emits or acks.

        So what a thread emitted before the main thread emitted or acked something comes before that. While another member
        works, what this one emitted earlier may not have been run yet.
        """
        member.calls.append(call)
        self._called = True
        self._wake()

    def call_back(self, call: Callable[[], object]) -> None:
        """Have the main thread make a call into a component between two tuples."""
        self._callbacks.append(call)
        self._called = True
        if get_ident() != self.main:
            self._wake()

    def here(self, member: Member, call: Callable[[], object]) -> None:
        """Make a member's call now, or have the main thread make it."""
        if get_ident() == self.main:
            member.make_calls()
            call()
        else:
            self.call(member, call)

    def _wake(self) -> None:
        try:
            os.write(self._waker, b"!")
        except BlockingIOError:
            pass  # it is full, so that the main thread will wake in any case

    def drain(self) -> None:
        """Run what waits: tuples that timers and threads emitted, and calls that they left."""
        if self._busy or self._broken:
            return
        out, callbacks = self.out, self._callbacks
        while out or self._called or callbacks or any(member.runs for member in self._many):
            self._called = False
            for member in self.members:
                member.make_calls()
            if callbacks and not out:
                self._busy = True
                try:
                    callbacks.popleft()()
                except BaseException:
                    self._broken = True
                    raise
                finally:
                    self._busy = False
            # Timers of several members may have emitted: what was emitted farther behind goes before what comes of the rest.
            mine = sorted(out, key=self._place, reverse=True)
            out.clear()
            self._work(mine)

    def _place(self, item: tuple[Member, ChainTuple]) -> int:
        return self.members.index(item[0])

    # ---- acks ----

    def hold(self, more: int) -> None:
        """Count tuples inside that come of no tuple from outside."""
        self._held += more

    def _settle(self) -> None:
        """Tell the parent what the members did, and ack and fail the tuples from outside that are done."""
        if not self._in_blocks:
            self._settled_at = monotonic()
            self._tell()
        done = self.done
        if done:
            mine = done[:]
            done.clear()
            for tree, ok in mine:
                tree.settle(self.inner, ok)

    def _tell(self) -> None:
        if not self.local:
            return
        told = {member.id: member.stats.as_list() for member in self.members if any(member.stats.as_list())}
        held = self._held
        if told or held != self._held_told:
            self.wire.connection.chain(told, held)
            self._held_told = held
            for member in self.members:
                member.stats.clear()

    # ---- for the wire ----

    def close_blocks(self) -> None:
        """Run what waits, and send everything."""
        watchdog = self.wire.watchdog
        if not self._busy and not (watchdog is not None and watchdog.waiting):  # in a timer, an emit may wait
            self.drain()
            self._settle()
        self._blocks.close_blocks()

    def park(self) -> None:
        self._blocks.park()

    def unpark(self) -> None:
        self._blocks.unpark()

    # ---- under a member's name ----

    def log(self, member: Member, message: str, level: int) -> None:
        """Write a member's line to the log."""
        if self.local:
            self.wire.connection.log(message, level, member.id)
        else:
            self.inner.log(f"{member.id}: {message}", level)

    def report_error(self, member: Member, message: str) -> None:
        """Report a member's error."""
        if self.local:
            self.wire.connection.error(message, member.id)
        else:
            self.inner.report_error(f"{member.id}: {message}")
