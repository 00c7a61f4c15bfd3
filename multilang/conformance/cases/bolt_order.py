"""Interleaving: a component's messages take effect in the order in which it writes them, whatever it reads
meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import PAGE, Section

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/order", "Interleaving", f"{PAGE}, Bolts: at any time")


@section.must(
    "all kinds of messages in their order",
    "Emits, logs, errors and acks come in the order of user code.",
    steps="emit log error ack",
    after=("common/log/1", "common/error/1"),
)
def _(t: Conversation) -> None:
    t.handshake()
    id = t.steps(["emit", [1]], ["log", "in its order"], ["emit", [2]], ["error", "e"], ["emit", [3]], ["ack"])
    t.finished(id)
    # A library may log, and send metrics, more than user code does.
    words = [
        message.command
        for message in t.received.of("emit", "log", "error", "ack")
        if message.command != "log" or "in its order" in str(message.value.get("msg"))
    ]
    t.same(words, ["emit", "log", "emit", "error", "emit", "ack"], "the order is another")


@section.must(
    "tuples, heartbeats and task ids mixed",
    "Whatever comes between, each gets its answer.",
    steps="emit ids",
    after=(
        "bolt/task_ids/5",
        "bolt/task_ids/7",
        "bolt/task_ids/8",
        "bolt/task_ids/13",
        "bolt/heartbeat/8",
        "common/json/10",
    ),
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = []
    for number in range(30):
        ids.append(t.steps(["emit", [number], {"ids": number % 3 == 0}]))
        if number % 4 == 0:
            t.heartbeat()
    for id in ids:
        t.finished(id)
    t.wait_sync(8)
    plain = [message.values[0] for message in t.received.emits if isinstance(message.values[0], int)]
    t.same(plain, list(range(30)), "emits are missing, or out of order")


@section.must(
    "both pipes full",
    "A parent that writes 2 MB while it reads as much is not locked out.",
    steps="emit",
    after=("bolt/heartbeat/14", "bolt/order/5", "common/sizes/1"),
)
def _(t: Conversation) -> None:
    t.handshake()
    ids = [t.steps(["emit", [f"{number:03}" + "w" * 8000]]) for number in range(250)]
    for id in ids:
        t.finished(id)
    came = [message.values[0][:3] for message in t.received.emits]
    t.same(came, [f"{number:03}" for number in range(250)], "emits are missing, or out of order")


@section.must("a tuple that comes while one is worked on", "It is worked on next, whole.", steps="emit log")
def _(t: Conversation) -> None:
    t.handshake()
    first = t.steps(*[["log", f"first {n}"] for n in range(100)])
    second = t.steps(["emit", ["second"]])
    t.finished(first)
    t.finished(second)
    t.emitted(t.received, [["second"]], "the tuple was not worked on")


@section.must(
    "tuples in the order of arrival",
    "Tuples are worked on one after the other, in the order in which they come, also when they come at once.",
    steps="emit",
    source="the conformance contract: a bolt",
    after=("common/io/8",),
)
def _(t: Conversation) -> None:
    t.handshake()
    with t.at_once():
        ids = [t.steps(["emit", [f"tuple {number}"]]) for number in range(50)]
    for id in ids:
        t.finished(id)
    t.emitted(t.received, [[f"tuple {number}"] for number in range(50)], "tuples were worked on in another order")
