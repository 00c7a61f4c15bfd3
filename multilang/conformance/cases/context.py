"""The context: old forms without the keys of 0.10, large ones, and what a component has to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.conformance.case import PAGE, Section

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/context", "The topology context", f"{PAGE}, Initial Handshake: context")


@section.should(
    "a context from before 0.10",
    "Only task->component and taskid are there in every Storm: the component works with these alone. One that chooses tasks by the streams "
    "of its context needs more.",
)
def _(t: Conversation) -> None:
    t.handshake(context=t.world.old_context())
    t.settle()


@section.must(
    "an emit under an old context", "A component emits also when the context has no streams and fields.", steps="emit"
)
def _(t: Conversation) -> None:
    if t.kind == "spout":
        t.handshake('[[["emit",["old"]]]]', context=t.world.old_context())
        out = t.next()
    else:
        t.handshake(context=t.world.old_context())
        [out] = t.perform([["emit", ["old"]]])
    t.emitted(out, [["old"]], "the emit did not come")


@section.must(
    "tasks of the system",
    "task->component lists acker, metrics and system tasks, which are no component's of the user.",
)
def _(t: Conversation) -> None:
    context = t.world.context()
    context["task->component"] |= {"-1": "__system", "10": "__acker", "11": "__metrics_org.example.Consumer"}
    t.handshake(context=context)
    t.settle()


@section.must("2,000 tasks", "A topology may be large.", after=("common/sizes/1",))
def _(t: Conversation) -> None:
    context = t.world.context()
    context["task->component"] |= {str(n): f"component-{n % 100}" for n in range(100, 2100)}
    t.handshake(context=context)
    t.settle()


@section.must("a task id of many digits", "Task ids are 32-bit integers; they need not be small.")
def _(t: Conversation) -> None:
    context = t.world.context()
    tasks = context["task->component"]
    tasks["2147483647"] = tasks.pop(str(context["taskid"]))
    context["taskid"] = 2147483647
    t.handshake(context=context)
    t.settle()


@section.must("a component without outputs", "streams may be empty: a sink has none.")
def _(t: Conversation) -> None:
    # A component without outputs is not asked to emit.
    empty: dict[str, Any] = {"streams": [], "stream->outputfields": {}, "stream->target->grouping": {}}
    t.handshake(context=t.world.context() | empty)
    t.settle()


@section.must("a global grouping", "Storm shows a global grouping as FIELDS with an empty list.")
def _(t: Conversation) -> None:
    context = t.world.context()
    context["stream->target->grouping"]["default"] = {"sink": {"type": "FIELDS", "fields": []}, "é": {"type": "ALL"}}
    t.handshake(context=context)
    t.settle()


@section.should("unknown keys in the context", "What a newer Storm adds to the context is ignored.")
def _(t: Conversation) -> None:
    t.handshake(context=t.world.context() | {"future->key": {"a": [None]}, "storm.version": "9.9"})
    t.settle()


@section.should("a grouping of an unknown type", "Groupings that a component has no name for are no reason to end.")
def _(t: Conversation) -> None:
    context = t.world.context()
    context["stream->target->grouping"]["default"] = {"sink": {"type": "FUTURE_GROUPING", "weight": 3}}
    t.handshake(context=context)
    t.settle()


@section.must(
    "the context reaches the component", "The context is handed to user code as it was sent.", steps="context"
)
def _(t: Conversation) -> None:
    context = t.world.context()
    for key, out in zip(context, t.perform(*([["context", key]] for key in context)), strict=True):
        t.emitted(out, [[context[key]]], f"context[{key!r}] came out changed")
