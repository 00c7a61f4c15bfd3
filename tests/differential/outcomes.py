"""The outcome of a run, and the comparison of two outcomes."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.differential.components import TICK
from tests.differential.shapes import Shape, is_settled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Record = Counter[tuple[Any, ...]]


class Outcome:
    """``record``: what each component got (and its task, where that is settled) and each spout was told; ``end``: how it ended.

    ``figures``: by spout, how many tuples were acked, failed and are pending.
    """

    def __init__(
        self, where: str, record: Record, end: str = "drained", figures: dict[str, tuple[int, ...]] | None = None
    ) -> None:
        self.where = where
        self.record = record
        self.end = end
        self.figures = figures


def counted(shape: Shape, lines: Iterable[Sequence[Any]], prefix: str = "") -> Record:
    """A record's lines, without those of ticks alone, and without what is not the same twice on a correct engine."""
    settled = {part["id"]: is_settled(part) for part in shape["components"]}
    found: Record = Counter()
    for component, index, *what in lines:
        if not component.startswith(prefix):
            continue
        component = component.removeprefix(prefix)
        if len(what) == 5:  # a tuple, with where it came from
            source, stream, id, key, n = what
            if key.startswith(TICK):
                continue
            what = [source.removeprefix(prefix), stream, id, key, n]
        found[(component, index if settled[component] else None, *what)] += 1
    return found


def check_same(shape: Shape, one: Outcome, other: Outcome) -> None:
    """Fail with what differs, and with the description that repeats it."""
    problems = []
    if one.end != other.end:
        problems.append(f"{one.where}: {one.end}\n{other.where}: {other.end}")
    for mine, theirs in ((one, other), (other, one)):
        problems.extend(
            f"{number} more on {mine.where} than on {theirs.where}: {line}"
            for line, number in sorted((mine.record - theirs.record).items(), key=repr)
        )
    if one.figures is not None and other.figures is not None and one.figures != other.figures:
        problems.append(f"acked, failed, pending: {one.where} {one.figures}, {other.where} {other.figures}")
    if problems:
        shown = "\n".join(problems[:20])
        raise AssertionError(f"{shown}\nrun it again with\nMULTILANG_SHAPE='{json.dumps(shape)}'")
