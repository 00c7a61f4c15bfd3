"""The report of a run that has ended: tables for people, or one JSON document for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multilang.cli.exits import BROKE_OFF, FAILED_TUPLES, NEVER_STARTED
from multilang.cli.output import echo_document
from multilang.cli.view import components_table, top_table
from multilang.engine.readable import number
from multilang.engine.status import RunStatus
from multilang.helpers.masked import masked, masked_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from multilang.cli.arguments import Top


@dataclass
class Outcome:
    """The outcome of a run. ``end``: drained, time, interrupted, terminated, not-started or broke-off."""

    run: RunStatus
    """The last status, with rates and capacities over the whole run."""
    mode: str
    seed: int | None
    faults: bool
    end: str
    status: int
    top: Top | None = None
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    problem: str | None = None
    waiting_for: list[str] = field(default_factory=list)
    """The things that the run waited for when it was cut short."""

    def waited(self) -> str:
        """Return ``waiting_for`` as text that follows a sentence."""
        return ":" + "".join(f"\n  - {line}" for line in self.waiting_for) if self.waiting_for else ""

    @property
    def lost(self) -> int:
        """The number of tuples that failed and were not acked later."""
        return self.run.total("lost", None) or 0

    def reliability(self) -> dict[str, int | None]:
        """Return the counters that show whether anything was lost; None: not known of the engine."""
        total = self.run.total
        return {
            "acked": total("acked"),
            "failed": total("failed"),
            "timed_out": total("timed_out"),
            "pending": total("pending"),
            "lost": total("lost", None),
            "errors": total("errors", None),
            "restarts": total("restarts", None),
        }


def status_document(status: RunStatus) -> dict[str, Any]:
    """Return a status as JSON, without the secrets in the texts of components."""
    document = status.as_json()
    return {**masked(document), "history": document["history"]}  # numbers by the ids of components, such as "token"


def write_json(outcome: Outcome) -> None:
    """Write the document to standard output."""
    run = status_document(outcome.run)
    del run["waiting_for"]  # here it is what the run waited for when it was cut short
    document: dict[str, Any] = {
        "topology": run.pop("topology"),
        "mode": outcome.mode,
        "seed": outcome.seed,
        "faults": outcome.faults,
        "end": outcome.end,
        "status": outcome.status,
        "seconds": round(run.pop("seconds"), 3),
        "reliability": outcome.reliability(),
        "components": {each["id"]: {"component": each["id"], **each} for each in run.pop("components")},
        **run,
    }
    if outcome.top is not None:
        names = (outcome.top.key, outcome.top.value or "tuples")
        document["top"] = [dict(zip(names, row, strict=True)) for row in outcome.rows]
    if outcome.problem is not None:
        document["problem"] = masked_text(outcome.problem)
    if outcome.waiting_for:
        document["waiting_for"] = masked(outcome.waiting_for)
    echo_document(document, 2)


def write_tables(outcome: Outcome, console: Console) -> None:
    """Write the tables and the summary."""
    if outcome.top is not None:
        console.print(top_table(outcome.top, outcome.rows, console))
        console.print()
    if outcome.run.components:
        console.print(components_table(outcome.run, console))
        console.print()
    bad = outcome.status in (FAILED_TUPLES, NEVER_STARTED, BROKE_OFF)
    for line in summary(outcome):
        console.print(line, style="bold red" if bad and console.is_terminal else "", soft_wrap=True)


def summary(outcome: Outcome) -> Iterable[str]:
    """Return one line on the tuples, one on the end if it was not the usual one, and how to repeat a seeded run."""
    figures = outcome.reliability()
    acked, emitted = figures["acked"] or 0, outcome.run.total("emitted") or 0
    is_reliable = any(figures[name] for name in ("acked", "failed", "pending")) or not emitted
    done, what = (acked, "acked") if is_reliable else (emitted, "emitted, none of them with an id to be acked by,")
    secs = outcome.run.seconds
    rate = f", {done / secs:,.0f} per second" if secs > 0 else ""
    # Tuples that a dead spout has lost never failed, so this may be negative.
    replayed, timed_out = max((figures["failed"] or 0) - outcome.lost, 0), figures["timed_out"]
    parts = ((timed_out, "timed out"), (replayed, "replayed"))
    details = ", ".join(f"{count:,} of them {how}" for count, how in parts if count)
    seconds = f"{secs:.1f} s{' of virtual time' if outcome.mode == 'simulated' else ''}"
    yield (
        f"{done:,} tuples {what} in {seconds}{rate}; {number(figures['failed'])} failed"
        f"{f' ({details})' if details else ''}, {number(figures['pending'])} pending, "
        f"{number(figures['lost'])} lost; {number(figures['restarts'])} restarts, {number(figures['errors'])} errors"
    )
    if outcome.problem is not None:
        yield masked_text(outcome.problem)
    elif outcome.end in ("interrupted", "terminated"):
        yield masked_text(f"{outcome.end} before everything was processed{outcome.waited()}")
    if outcome.seed is not None:
        yield f"the same run again: --mode {outcome.mode} --seed {outcome.seed}{' --faults' if outcome.faults else ''}"
