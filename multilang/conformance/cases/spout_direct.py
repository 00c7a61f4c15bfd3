"""Direct emits of a spout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import PAGE, Section
from multilang.conformance.cases.direct import TO, one_that_asks_behind, two_tasks, watched

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("spout/direct", "Direct emits", f"{PAGE}, Spouts: task")

two_tasks(section)


@section.must(
    "a reliable direct emit",
    "A direct emit has an id as any other, and no task ids come.",
    steps="emit direct",
    after=("spout/emit/2", "spout/emit/17"),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", ["x"], {"stream": "direct", "task": TO, "id": "d1"}]])
    t.same([[message.task, message.value.get("id")] for message in out.emits], [[TO, "d1"]], "task or id are others")


one_that_asks_behind(section)
watched(section, plain="spout_task_int, spout_task_long")
