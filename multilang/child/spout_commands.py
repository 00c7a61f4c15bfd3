"""A spout's commands on the multi-lang wire, each answered with one sync."""

from __future__ import annotations

from multilang.component.timers import NEVER
from multilang.protocol.messages import Ack, Activate, Deactivate, Fail, Next

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.child.wire import Wire
    from multilang.child.wire_collectors import WireSpoutCollector
    from multilang.component.runner import SpoutRunner
    from multilang.protocol.messages import Message

# Seconds; "if you have no tuples to emit for a next, you should sleep for a small amount of time before syncing".
_IDLE_SLEEPS = (0.001, 0.002, 0.004, 0.008, 0.016)


def spout_commands(
    wire: Wire, runner: SpoutRunner, collector: WireSpoutCollector, local_parent: bool
) -> Callable[[Message], None]:
    """Return the function that handles a spout's commands and answers each with one sync."""
    work = wire.work
    connection = wire.connection
    timers = runner.timers
    pending = timers.heap
    idle = 0

    def handle(event: Message) -> None:
        nonlocal idle
        kind = type(event)
        outer, work.doing = work.doing, event
        exhausted = None
        if pending and outer is None and (kind is Ack or kind is Fail):  # outer: a command that came inside of an emit
            timers.run_due()
        if kind is Next:
            before = collector.emitted
            runner.next()
            if local_parent:
                exhausted = runner.exhausted()
            elif collector.emitted != before:
                idle = 0
            elif runner.full:
                pass  # an ack may be queued behind this command
            else:
                wire.flush()
                work.doing = outer
                secs = _IDLE_SLEEPS[min(idle, len(_IDLE_SLEEPS) - 1)]
                wire.sleep(max(0.0, min(secs, timers.next_due - timers.clock.monotonic())) if pending else secs)
                idle += 1
        elif kind is Ack:
            if not collector.acks_at_once:
                runner.ack(event.id)  # type: ignore[attr-defined]
        elif kind is Fail:
            idle = 0
            runner.fail(event.id)  # type: ignore[attr-defined]
        elif kind is Activate:
            runner.activate()
        elif kind is Deactivate:
            runner.deactivate()
        if local_parent:
            left = timers.next_due - timers.clock.monotonic() if pending else NEVER
            connection.sync(exhausted, wire.busy_to_report(), None if left == NEVER else max(0.0, left))
        else:
            connection.sync(exhausted)
        work.doing = outer

    return handle
