"""The reason for which a program fell silent.

What is sent here to find that out, Storm does not send. So it ends the conversation, it only names what has failed already,
and nothing that is found meanwhile counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.errors import CaseFailed, Halted
from multilang.conformance.world import SINK_TASKS, framed, storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

# The cases of an emit whose task ids are declined, and of many tuples, each of which is acked.
DECLINED = {"bolt": "bolt/task_ids/16", "spout": "spout/task_ids/11"}
LOST = "bolt/ack/5"
_GLANCE = 1.0  # seconds in which it continues after what it is sent; no verdict depends on it, only its name


def why_silent(t: Conversation) -> tuple[str, str] | None:
    """Find out why a program sends nothing more. This ends the conversation.

    Args:
        t: The conversation in which it fell silent.

    Returns:
        The path of the case that it fails, and the reason; None: it is not known.
    """
    found, limit = len(t.findings), t.timeout
    t.timeout = min(limit, _GLANCE)
    try:
        if _waits_for_declined_ids(t):
            return DECLINED[t.kind], "it waits for task ids that its emit declined"
        if _has_lost_a_tuple(t):
            return LOST, "it neither acks nor fails a tuple, and acks the same one when it is sent again"
    except (CaseFailed, Halted):
        pass
    finally:
        t.timeout = limit
        del t.findings[found:]
    return None


def _waits_for_declined_ids(t: Conversation) -> bool:
    """Return whether it continues when it gets task ids that its last emit declined."""
    t.linger()
    last = next((message for message in reversed(t.received) if message.command != "sync"), None)
    if last is None or last.command != "emit" or last.task is not None or last.value.get("need_task_ids") is not False:
        return False
    before = _messages(t)
    t.send(framed(storm_text(SINK_TASKS[:1])))
    try:
        t.wait(lambda: _messages(t) > before or None, "what it does with task ids that it declined")
    except CaseFailed as failure:
        if not failure.timed_out:
            raise
        return False
    return True


def _has_lost_a_tuple(t: Conversation) -> bool:
    """Return whether it acks or fails the last tuple when it is sent once more, but not its first copy."""
    if t.kind == "spout" or not t.world.contract or len(t.monitor.pending) != 1:
        return False
    [id] = t.monitor.pending
    of_tuple = (data for way, data in reversed(t.transcript) if way == "sent" and data.count(id.encode()) == 1)
    sent = next(of_tuple, None)
    if sent is None:
        return False
    again = t.new_id()
    t.will_finish(again)
    t.send(sent.replace(id.encode(), again.encode()))
    t.finished(again)
    return id not in t.monitor.finished


def _messages(t: Conversation) -> int:
    """Return the number of messages, for a bolt without its syncs."""
    return len(t.received) - (t.syncs if t.kind == "bolt" else 0)
