"""The report of a run that has ended: tables for people, or one JSON document for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multilang.cli.exits import BROKE_OFF, FAILED_TUPLES, NEVER_STARTED
from multilang.cli.view import components_table, top_table, work_done

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from multilang.cli.arguments import Top
    from multilang.local import Counters


@dataclass
class Outcome:
    """The outcome of a run. ``end``: drained, time, interrupted, terminated, not-started or broke-off."""

    topology: str
    mode: str
    seed: int | None
    faults: bool
    end: str
    status: int
    seconds: float
    counters: Mapping[str, Counters]
    lost: int
    """The number of tuples that failed and were not acked later."""
    top: Top | None = None
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    problem: str | None = None
    waiting_for: list[str] = field(default_factory=list)
    """The things that the run waited for when it was cut short."""

    def waited(self) -> str:
        """Return ``waiting_for`` as text that follows a sentence."""
        return ":" + "".join(f"\n  - {line}" for line in self.waiting_for) if self.waiting_for else ""

    def sum(self, name: str, kind: str | None = "spout") -> int:
        """Return the sum of a counter over all spouts, or over all components."""
        return sum(getattr(each, name) for each in self.counters.values() if kind in (None, each.kind))

    def reliability(self) -> dict[str, int]:
        """Return the counters that show whether anything was lost."""
        return {
            "acked": self.sum("acked"),
            "failed": self.sum("failed"),
            "timed_out": self.sum("timed_out"),
            "pending": self.sum("pending"),
            "lost": self.lost,
            "errors": self.sum("errors", None),
            "restarts": self.sum("restarts", None),
        }


def write_json(outcome: Outcome) -> None:
    """Write the document to standard output."""
    document: dict[str, Any] = {
        "topology": outcome.topology,
        "mode": outcome.mode,
        "seed": outcome.seed,
        "faults": outcome.faults,
        "end": outcome.end,
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
        "reliability": outcome.reliability(),
        "components": {id: each.as_dict() for id, each in outcome.counters.items()},
    }
    if outcome.top is not None:
        names = (outcome.top.key, outcome.top.value or "tuples")
        document["top"] = [dict(zip(names, row, strict=True)) for row in outcome.rows]
    if outcome.problem is not None:
        document["problem"] = outcome.problem
    if outcome.waiting_for:
        document["waiting_for"] = outcome.waiting_for
    print(json.dumps(document, ensure_ascii=False, indent=2))


def write_tables(outcome: Outcome, console: Console) -> None:
    """Write the tables and the summary."""
    if outcome.top is not None:
        console.print(top_table(outcome.top, outcome.rows, console))
        console.print()
    rates = {id: work_done(each) / outcome.seconds for id, each in outcome.counters.items() if outcome.seconds > 0}
    if outcome.counters:
        console.print(components_table(outcome.counters, rates, console))
        console.print()
    bad = outcome.status in (FAILED_TUPLES, NEVER_STARTED, BROKE_OFF)
    for line in summary(outcome):
        console.print(line, style="bold red" if bad and console.is_terminal else "", soft_wrap=True)


def summary(outcome: Outcome) -> Iterable[str]:
    """Return one line on the tuples, one on the end if it was not the usual one, and how to repeat a seeded run."""
    figures = outcome.reliability()
    acked, emitted = figures["acked"], outcome.sum("emitted")
    is_reliable = any(figures[name] for name in ("acked", "failed", "pending")) or not emitted
    done, what = (acked, "acked") if is_reliable else (emitted, "emitted, none of them with an id to be acked by,")
    rate = f", {done / outcome.seconds:,.0f} per second" if outcome.seconds > 0 else ""
    # Tuples that a dead spout has lost never failed, so this may be negative.
    replayed, timed_out = max(figures["failed"] - figures["lost"], 0), figures["timed_out"]
    parts = ((timed_out, "timed out"), (replayed, "replayed"))
    told = ", ".join(f"{number:,} of them {how}" for number, how in parts if number)
    seconds = f"{outcome.seconds:.1f} s{' of virtual time' if outcome.mode == 'simulated' else ''}"
    yield (
        f"{done:,} tuples {what} in {seconds}{rate}; {figures['failed']:,} failed"
        f"{f' ({told})' if told else ''}, {figures['pending']:,} pending, "
        f"{figures['lost']:,} lost; {figures['restarts']:,} restarts, {figures['errors']:,} errors"
    )
    if outcome.problem is not None:
        yield outcome.problem
    elif outcome.end in ("interrupted", "terminated"):
        yield f"{outcome.end} before everything was processed{outcome.waited()}"
    if outcome.seed is not None:
        yield f"the same run again: --mode {outcome.mode} --seed {outcome.seed}{' --faults' if outcome.faults else ''}"
