"""A program that fell silent: does it wait for what nobody sends?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.errors import CaseFailed, Halted
from multilang.conformance.world import SINK_TASKS, framed, storm_text

if TYPE_CHECKING:
    from multilang.conformance.talk import Talk

# The cases that an emit without an answer is not waited for.
DECLINED = {"bolt": "bolt/task_ids/16", "spout": "spout/task_ids/11"}
_GLANCE = 1.0  # seconds in which it goes on with what it waited for; no verdict depends on it, only its name


def waits_for_declined_ids(t: Talk) -> bool:
    """Return whether the program goes on when it gets task ids that its last emit declined. This ends the conversation.

    Args:
        t: The conversation in which the program fell silent.
    """
    last = next((message for message in reversed(t.received) if message.command != "sync"), None)
    if last is None or last.command != "emit" or last.task is not None or last.value.get("need_task_ids") is not False:
        return False
    found, limit = len(t.findings), t.timeout
    before = _said(t)
    t.timeout = min(limit, _GLANCE)
    try:
        t.say(framed(storm_text(SINK_TASKS[:1])))
        t.wait(lambda: _said(t) > before or None, "what it does with task ids that it declined")
    except (CaseFailed, Halted):
        return False
    finally:
        t.timeout = limit
        del t.findings[found:]  # of a program that was sent what Storm never sends
    return True


def _said(t: Talk) -> int:
    """Return the number of messages, for a bolt without its signs of life."""
    return len(t.received) - (t.syncs if t.kind == "bolt" else 0)
