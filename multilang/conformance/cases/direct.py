"""Direct emits: the cases that bolts and spouts share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, Section
from multilang.conformance.world import DIRECT_TASKS

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

TO, TOO = DIRECT_TASKS


STREAM = {"bolt/direct": "bolt/emit/3", "spout/direct": "spout/emit/5"}  # the cases of another stream
BEHIND = {"bolt/direct": "bolt/task_ids/2", "spout/direct": "spout/task_ids/2"}


def two_tasks(section: Section) -> None:
    """Add the case of two emits, each to another task."""

    @section.must(
        "a direct emit",
        "task names the task, of which Storm takes the lower 32 bits. A direct emit gets no task ids.",
        steps="emit direct",
        after=(STREAM[section.path],),
    )
    def _(t: Conversation) -> None:
        [out] = t.perform(
            [["emit", ["x"], {"stream": "direct", "task": TO}], ["emit", ["y"], {"stream": "direct", "task": TOO}]]
        )
        came = [[message.stream, message.task, message.values] for message in out.emits]
        t.same(came, [["direct", TO, ["x"]], ["direct", TOO, ["y"]]], "task, stream or values are others")


def one_that_asks_behind(section: Section) -> None:
    """Add the case of a direct emit, which has no answer, before an emit that wants one."""

    @section.must(
        "a direct emit before one that asks",
        "The task ids that come are those of the emit without a task.",
        steps="emit direct ids",
        after=(BEHIND[section.path], STREAM[section.path]),
    )
    def _(t: Conversation) -> None:
        [out] = t.perform([["emit", ["a"], {"stream": "direct", "task": TO}], ["emit", ["b"], {"ids": True}]])
        place = next(iter(t.answers))
        t.same(out.values[-1], [["ids", t.answers[place]]], "the task ids went astray")


def watched(section: Section, plain: str) -> None:
    """Add what is watched in all direct emits. ``plain``: the name of the measurement with a small task id."""
    section.watch(
        "MUST",
        "direct.type",
        "task is an integer",
        "Storm casts it: a string or 9.0 halts the worker.",
        "Storm's JsonSerializer",
    )
    section.watch(
        "MUST",
        "direct.grouping",
        "a direct emit goes to a direct grouping",
        "To a task whose grouping is another it halts the worker.",
        f"{MEASURED} (task_not_direct)",
        after=(STREAM[section.path],),
    )
    section.watch(
        "MUST",
        "direct.regular",
        "a direct stream has direct emits",
        "An emit without a task to a stream with a direct grouping halts the worker.",
        f"{MEASURED} (direct_without_task)",
        after=(STREAM[section.path],),
    )
    section.watch(
        "MUST",
        "direct.nobody",
        "the task exists",
        "Storm drops a tuple to a task that is not there, in silence: it is lost.",
        f"{MEASURED} (task_nobody)",
    )
    section.watch(
        "SHOULD",
        "direct.plain",
        "a form of the task that every Storm reads",
        "Storm 2.6.0 to 2.8.8 parses a small task id to an Integer, casts it to a Long, and halts; task + 2**32 is narrowed to the task.",
        f"{MEASURED} ({plain})",
    )
