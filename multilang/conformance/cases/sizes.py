"""Large sizes: messages longer than a pipe's buffer, many values, many messages."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.spout_ordinary import begin
from multilang.conformance.differences import case_of_difference
from multilang.conformance.errors import CaseFailed, NotApplicable
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

_INPUTS, _ROUND, _BEAT = 5000, 100, 20
_EACH = 7  # one tuple of so many fails
# Seconds of inputs that an ordinary program is given, if it is slow: so many on a quiet machine, more on a busy one.
_ENOUGH, _LONGEST = 5.0, 60.0
_ROUNDS_OF_HELD, _LEFT = 4, 10  # a program holds that many things more after each round, or it gives them back
_WORKS = (
    *(f"bolt/ordinary/{number}" for number in (1, 3, 5)),
    *(f"spout/ordinary/{number}" for number in (1, 2, 3, 4, 7)),
    "spout/commands/17",
)
# What can't put a message together from two reads can't read a long one either, and a torn one can't be read.
WHOLE = ("common/io/2", "bolt/heartbeat/14")

section = Section("common/sizes", "Sizes", f"{PAGE}, The Protocol (no limit is given); {MEASURED} (big)")


def echoes(t: Conversation, text: str) -> None:
    """Check that a long text comes out as it went in; a report has only its length."""
    came = t.echo(storm_text(text))
    if came != text:
        size = len(came) if isinstance(came, str) else came
        raise CaseFailed(
            "the text came out changed",
            f"{len(text)} characters",
            f"{size} characters, or others",
            culprit=case_of_difference(came, text),
        )


@section.must(
    "a value larger than a pipe",
    "A message of 80 KB, more than a pipe holds, passes both ways.",
    steps="emit",
    after=WHOLE,
)
def _(t: Conversation) -> None:
    echoes(t, "0123456789abcdef" * 5000)


@section.must(
    "a value of 1 MB",
    "There is no limit in the protocol; Storm passes 1 MB and more.",
    steps="emit",
    after=(*WHOLE, "common/unicode/1", "common/io/5"),
)
def _(t: Conversation) -> None:
    echoes(t, "é漢🐍x" * 100_000)


@section.must(
    "a value as long as a buffer, and one more",
    "Sizes around 4, 8 and 64 KiB, where buffers end, are as any other.",
    steps="emit",
    after=WHOLE,
)
def _(t: Conversation) -> None:
    sizes = [4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537]
    outs = t.perform(*([["emit", ["y" * size]]] for size in sizes))
    t.same([len(out.values[0][0]) for out in outs], sizes, "texts came out with other lengths")


@section.must("a list of 10,000 values", "A value may be a long list.", steps="emit", after=WHOLE)
def _(t: Conversation) -> None:
    values = list(range(10_000))
    t.same(t.echo(storm_text(values)), values, "the list came out changed")


@section.must("a map of 1,000 keys", "A value may be a large map.", steps="emit", after=(*WHOLE, "common/json/12"))
def _(t: Conversation) -> None:
    value = {f"key {n}": n for n in range(1000)}
    t.same(t.echo(storm_text(value)), value, "the map came out changed")


@section.must("1,000 emits at once", "One input may make any number of outputs.", steps="emit", after=WHOLE)
def _(t: Conversation) -> None:
    [out] = t.perform([["emit", [n]] for n in range(1000)])
    t.emitted(out, [[n] for n in range(1000)], "emits are missing, or out of order")


@section.should("a value of 8 MB", "Memory is the only limit.", steps="emit", after=WHOLE)
def _(t: Conversation) -> None:
    echoes(t, "abcdefgh" * (1 << 20))


@section.must(
    "5,000 inputs",
    "A component works for months: it does not fall silent.",
    after=(*_WORKS, "common/sizes/9"),
)
def _(t: Conversation) -> None:
    if t.kind == "spout":
        begin(t, _INPUTS)
    else:
        t.handshake()
    limit = min(_LONGEST, _ENOUGH * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    for number in range(0, _INPUTS, _ROUND):
        if not t.world.contract and monotonic() - t.start > limit:
            break
        spout_round(t, limit) if t.kind == "spout" else bolt_round(t, number)


@section.must(
    "nothing is left of each input",
    "Processes, threads and open files of the inputs before are given back, and ended processes waited for: a system has limits for "
    "them all, and a component works for months.",
    source="Linux: RLIMIT_NOFILE, RLIMIT_NPROC",
    after=_WORKS,
)
def _(t: Conversation) -> None:
    if t.child.processes() is None:
        raise NotApplicable("what a program holds is seen on Linux alone")
    if t.kind == "spout":
        begin(t, _INPUTS)
    else:
        t.handshake()
    held = []
    for number in range(0, _ROUNDS_OF_HELD * _ROUND, _ROUND):
        spout_round(t, t.timeout) if t.kind == "spout" else bolt_round(t, number)
        held.append(t.child.held())
    until = monotonic() + t.timeout
    while left := piled_up(held):
        if monotonic() > until:
            counts = [" ".join(f"{counter[name]}" for counter in held) + f" {name}" for name in left]
            raise CaseFailed(
                f"with each {_ROUND} inputs it holds more {' and '.join(left)}: give back what is needed for one input",
                "as many as before",
                f"after each {_ROUND} inputs {', '.join(counts)}",
            )
        t.child.pump(monotonic() + 0.05)
        held[-1] = t.child.held()


def piled_up(held: Sequence[Counter[str]]) -> list[str]:
    """Return what each round but the first one has left more of."""
    pairs = list(itertools.pairwise(held[1:]))
    return [name for name in held[-1] if all(after[name] - before[name] >= _LEFT for before, after in pairs)]


def bolt_round(t: Conversation, number: int) -> None:
    """Give a bolt tuples, and wait until it has worked on them."""
    if t.world.contract:
        emits, before = len(t.received.emits), t.syncs
        ids = [t.steps(["emit", [number + n]]) for n in range(_ROUND)]
        for _ in range(_ROUND // _BEAT):
            t.heartbeat()
        for id in ids:
            t.finished(id)
        t.wait_sync(before + _ROUND // _BEAT)
        t.same(len(t.received.emits) - emits, _ROUND, "emits are missing, or there are more of them")
    else:
        before = t.syncs
        with t.at_once():
            for n in range(_ROUND):
                t.tuple(t.world.tuples[n % len(t.world.tuples)])
                if n % _BEAT == _BEAT - 1:
                    t.heartbeat()
        for beats in range(_ROUND // _BEAT):
            t.wait_sync(before + beats + 1)
    t.received.clear()
    t.answers.clear()


def spout_round(t: Conversation, limit: float) -> None:
    """Send nexts to a spout, and the acks of what it emits, until so many seconds behind the beginning of the conversation."""
    emits = 0
    for number in range(_ROUND):
        if not t.world.contract and monotonic() - t.start > limit:
            return
        out = t.next()
        emits += len(out.emits)
        for message in out.emits:
            if (id := message.value.get("id")) is not None:
                finish(t, id, number)
        t.received.clear()
        t.answers.clear()
    if t.world.contract:
        t.same(emits, _ROUND, "emits are missing, or there are more of them")


def finish(t: Conversation, id: Any, number: int) -> None:
    """Ack a tuple of a spout, or fail it, and ack what it emits again then; some of those with a script, which forget nothing."""
    if number % _EACH == 0:
        for message in t.command("fail", id).emits:
            if (again := message.value.get("id")) is not None:
                t.command("ack", again)
    elif not t.world.contract or number % _EACH == 1:
        t.command("ack", id)
