"""Direct emits of a bolt: to one task, without task ids as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import PAGE, Section
from multilang.conformance.cases.direct import STREAM, TO, one_that_asks_behind, two_tasks, watched

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/direct", "Direct emits", f"{PAGE}, Bolts: task")

two_tasks(section)


@section.must(
    "no task ids come",
    "A direct emit has no answer: the bolt does not wait for one.",
    steps="emit direct",
    after=(STREAM[section.path],),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", ["x"], {"stream": "direct", "task": TO}])
    t.finished(id)
    t.settle()


one_that_asks_behind(section)


@section.must(
    "an anchored direct emit",
    "A direct emit is anchored as any other.",
    steps="emit direct",
    after=(
        "bolt/anchors/1",
        "bolt/anchors/2",
        "bolt/anchors/5",
        "bolt/anchors/13",
        STREAM[section.path],
    ),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(
        ["emit", ["x"], {"stream": "direct", "task": TO}],
        ["emit", ["y"], {"stream": "direct", "task": TO, "anchors": []}],
    )
    t.finished(id)
    t.same([message.anchors for message in t.received.emits], [[id], []], "the anchors are others")


watched(section, plain="task_int")
