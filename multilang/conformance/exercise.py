"""A conversation with all kinds of ordinary work, in which the program may break any watched requirement."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from multilang.conformance.conversation import Conversation
from multilang.conformance.errors import CaseFailed
from multilang.conformance.world import DIRECT_TASKS, METRIC, storm_text

# A bolt that answers heartbeats in another thread may take so many seconds for its tuples, plus so many times the
# seconds since the start, because on a busy machine the tuples are slow, too.
_LATER = 2.0
_TIMES = 3
_EMITS: list[list[Any]] = [
    ["emit", ["plain"]],
    ["emit", ["naïve"]],
    ["emit", ['naïve 漢字 🐍 "q" \\ / \n end'], {"stream": "other"}],
    ["emit", [1, [2.5, None, {"a": True}]], {"stream": "pair"}],
]
_OTHERS: dict[str, list[list[Any]]] = {
    "log": [["log", "a line"], ["log", "two\nlines", 4]],
    "error": [["error", "an error"]],
    "metric": [["metric", METRIC, 1]],
    "direct": [["emit", ["direct"], {"stream": "direct", "task": DIRECT_TASKS[0]}]],
    "ids": [["emit", ["asked"], {"ids": True}]],
    "print": [["print", "a line of its own"]],
}


def exercise(t: Conversation, knows: Sequence[str]) -> None:
    """Have one conversation, to the end of the program's output."""
    rounds = [_EMITS, *(steps for step, steps in _OTHERS.items() if step in knows and step != "print")]
    if t.kind == "spout":
        _spout(t, rounds)
    elif t.world.contract:
        _bolt(t, rounds, knows)
    else:
        _any_bolt(t)
    t.leave()


def _bolt(t: Conversation, rounds: list[list[list[Any]]], knows: Sequence[str]) -> None:
    t.handshake()
    t.beat()
    t.perform(*rounds, [step for steps in rounds for step in steps])
    t.perform([["emit", ["loose"], {"anchors": []}], ["emit", ["tight"]]])
    if "fail" in knows:
        t.finished(t.steps(["emit", ["before"]], ["fail"]))
    if "keep" in knows:
        kept = t.steps(["keep", "k"])
        t.finished(t.steps(["emit", ["both"], {"anchors": ["k", "this"]}], ["ack", "k"]))
        t.finished(kept)
    t.finished(t.tuple([5], comp="__system", stream="__tick", task=-1))
    for _ in range(3):
        t.beat()
    t.barrier()


def _any_bolt(t: Conversation) -> None:
    start = monotonic()
    t.handshake()
    t.beat()
    for _ in range(3):
        for values in t.world.tuples:
            t.tuple(values)
            t.beat()
    limit, t.timeout = t.timeout, min(t.timeout, _LATER + _TIMES * (monotonic() - start))
    try:
        t.wait(lambda: not t.monitor.pending or None, "the ack of each tuple")
    except CaseFailed:
        pass  # a bolt may keep tuples as long as it likes
    t.timeout = limit
    t.beat()
    t.beat()


def _spout(t: Conversation, rounds: list[list[list[Any]]]) -> None:
    if t.world.contract:
        rounds = [*rounds, [["emit", ["reliable"], {"id": "r1"}], ["emit", ["other"], {"id": 2, "stream": "other"}]]]
        emits = [["emit", ["again"]]]
        t.handshake(storm_text(rounds), on={"ack": emits, "fail": emits, "activate": emits, "deactivate": emits})
    else:
        t.handshake()
    t.command("activate")
    for _ in range(len(rounds) + 3):
        for number, message in enumerate(t.next().emits):
            if "id" in message.value:
                t.command(["ack", "fail"][number % 2], message.value["id"])
    t.command("deactivate")
    t.command("activate")
    t.next()
    t.command("deactivate")
