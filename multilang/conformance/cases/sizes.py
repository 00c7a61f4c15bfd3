"""Large sizes: messages longer than a pipe's buffer, many values, many messages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.errors import CaseFailed
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.talk import Talk

section = Section("common/sizes", "Sizes", f"{PAGE}, The Protocol (no limit is given); {MEASURED} (big)")


def echoes(t: Talk, text: str) -> None:
    """Check that a long text comes out as it went in; a report has only its length."""
    came = t.echo(storm_text(text))
    if came != text:
        size = len(came) if isinstance(came, str) else came
        raise CaseFailed("the text came out changed", f"{len(text)} characters", f"{size} characters, or others")


@section.must(
    "a value larger than a pipe", "A message of 80 KB, more than a pipe holds, passes both ways.", steps="emit"
)
def _(t: Talk) -> None:
    echoes(t, "0123456789abcdef" * 5000)


@section.must("a value of 1 MB", "There is no limit in the protocol; Storm passes 1 MB and more.", steps="emit")
def _(t: Talk) -> None:
    echoes(t, "é漢🐍x" * 100_000)


@section.must(
    "a value as long as a buffer, and one more",
    "Sizes around 4, 8 and 64 KiB, where buffers end, are as any other.",
    steps="emit",
)
def _(t: Talk) -> None:
    sizes = [4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537]
    outs = t.perform(*([["emit", ["y" * size]]] for size in sizes))
    t.same([len(out.values[0][0]) for out in outs], sizes, "texts came out with other lengths")


@section.must("a list of 10,000 values", "A value may be a long list.", steps="emit")
def _(t: Talk) -> None:
    values = list(range(10_000))
    if t.echo(storm_text(values)) != values:
        raise CaseFailed("the list came out changed", "the numbers 0 to 9999", "something else")


@section.must("a map of 1,000 keys", "A value may be a large map.", steps="emit")
def _(t: Talk) -> None:
    value = {f"key {n}": n for n in range(1000)}
    if t.echo(storm_text(value)) != value:
        raise CaseFailed("the map came out changed", "1,000 keys with their numbers", "something else")


@section.must("1,000 emits at once", "One input may make any number of outputs.", steps="emit")
def _(t: Talk) -> None:
    [out] = t.perform([["emit", [n]] for n in range(1000)])
    t.emitted(out, [[n] for n in range(1000)], "emits are missing, or out of order")


@section.should("a value of 8 MB", "Memory is the only limit.", steps="emit")
def _(t: Talk) -> None:
    echoes(t, "01234567" * (1 << 20))


def resources(t: Talk) -> tuple[int, int]:
    """Return how many descriptors the program has open and its memory in MB; (0, 0) where that can't be seen."""
    try:
        with open(f"/proc/{t.monitor.pid}/statm") as file:
            pages = int(file.read().split()[1])
        return len(os.listdir(f"/proc/{t.monitor.pid}/fd")), pages * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return 0, 0


@section.must(
    "5,000 inputs",
    "A component works for months: it neither falls silent, nor does each input leave a descriptor or much memory behind.",
    steps="emit",
)
def _(t: Talk) -> None:
    count, early = 5000, 500
    t.handshake(storm_text([[["emit", [n]]] for n in range(count)]))
    if t.kind == "spout":
        t.command("activate")
    before = (0, 0)
    for number in range(0, count, 100):
        if t.kind == "spout":
            for _ in range(100):
                t.next()
        else:
            for id in [t.steps(["emit", [number + n]]) for n in range(100)]:
                t.finished(id)
        if number + 100 == early:
            before = resources(t)
    came = sum(message.command == "emit" for message in t.received)
    t.same(came, count, "emits are missing, or there are more of them")
    descriptors, memory = (after - start for start, after in zip(before, resources(t), strict=True))
    t.check(descriptors < 200, "each input leaves descriptors open", "as many as before", f"{descriptors} more")
    t.check(memory < 150, "each input leaves memory behind", "hardly more than before", f"{memory} MB more")
