"""The display of a run: the table of components while a topology runs and at its end, and the lines below it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from rich.console import RenderableType

    from multilang.cli.arguments import Top
    from multilang.local import Counters

PLAIN_WIDTH = 200  # columns of output to a file or a pipe, enough that no row is broken
NARROW = 100  # on a terminal with fewer columns, the table has no less important columns
PLAIN_EVERY = 10.0  # seconds between two lines of progress where nothing can be drawn


def console(stream: Any) -> Console:
    """Return a console for ``stream``: with colours and its own width on a terminal, else plain text of any width."""
    if stream.isatty():
        return Console(file=stream, highlight=False)
    return Console(file=stream, highlight=False, color_system=None, width=PLAIN_WIDTH)


def components_table(counters: Mapping[str, Counters], rates: Mapping[str, float], console: Console) -> Table:
    """Return a table with one row for each component.

    ``rates``: tuples per second, acked by a spout or processed by a bolt.
    """
    plain, narrow = not console.is_terminal, console.width < NARROW
    table = Table(box=None, pad_edge=False, header_style="" if plain else "bold", padding=(0, 2 - narrow, 0, 0))
    table.add_column("component", no_wrap=True)
    if not narrow:
        table.add_column("kind")
    some_timed_out = any(each.timed_out for each in counters.values())
    own = ("timed out",) if some_timed_out else ()
    for title in ("tasks", "emitted", "processed", "acked", "failed", *own, "pending", "latency", "rate"):
        table.add_column(title, justify="right", no_wrap=True)
    for id, each in counters.items():
        is_spout = each.kind == "spout"
        latency = each.complete_latency_ms if is_spout else (each.process_latency_ms or each.execute_latency_ms)
        table.add_row(
            id,
            *([] if narrow else [each.kind]),
            str(each.tasks),
            f"{each.emitted:,}",
            "" if is_spout else f"{each.executed:,}",
            f"{each.acked:,}",
            Text(f"{each.failed:,}", style="bold red" if each.failed and not plain else ""),
            *([f"{each.timed_out:,}" if is_spout else ""] if some_timed_out else []),
            f"{each.pending if is_spout else each.unfinished:,}",
            milliseconds(latency),
            f"{rates.get(id, 0):,.0f}/s",
        )
    return table


def top_table(top: Top, rows: Sequence[tuple[Any, Any]], console: Console) -> Table:
    """Return the table of ``--top``."""
    table = Table(box=None, pad_edge=False, header_style="bold" if console.is_terminal else "", padding=(0, 2, 0, 0))
    table.add_column(top.key, no_wrap=True)
    table.add_column(top.value or "tuples", justify="right", no_wrap=True)
    for key, value in rows:
        shown = f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        table.add_row(Text(str(key)), shown)
    return table


def milliseconds(latency: float | None) -> str:
    """Return a latency as text, with as many digits as are significant."""
    if latency is None:
        return ""
    if latency >= 10_000:
        return f"{latency / 1000:,.1f} s"
    if latency < 1:
        return f"{latency * 1000:.{1 if latency < 0.01 else 0}f} µs"
    return f"{latency:,.0f} ms" if latency >= 10 else f"{latency:.1f} ms"


class Rates:
    """The rates of components, in tuples per second, over the last few looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, looks: int = 8) -> None:
        self._clock = clock
        self._looks = looks
        self._seen: list[tuple[float, dict[str, int]]] = []

    def look(self, counters: Mapping[str, Counters]) -> dict[str, float]:
        """Return the rates now."""
        now, done = self._clock(), {id: work_done(each) for id, each in counters.items()}
        self._seen = [*self._seen[-self._looks :], (now, done)]
        then, before = self._seen[0]
        if now <= then:
            return {}
        return {id: (number - before.get(id, 0)) / (now - then) for id, number in done.items()}


def work_done(counters: Counters) -> int:
    """Return the number that a component's rate counts: a spout's finished tuples, or a bolt's processed ones."""
    if counters.kind == "bolt":
        return counters.executed
    reliable = counters.acked or counters.failed or counters.pending
    return counters.acked if reliable else counters.emitted


class RunView:
    """Shows a run's progress: a table redrawn on a terminal, a line now and then elsewhere, nothing when quiet."""

    def __init__(self, name: str, mode: str, quiet: bool) -> None:
        self._title = f"{name} ({mode})"
        self._console = console(sys.stderr)
        self._quiet = quiet
        self._live: Live | None = None
        self._rates = Rates()
        self._start = self._last_line = time.monotonic()

    def __enter__(self) -> RunView:  # noqa: PYI034 - Self is not in Python 3.10
        if not self._quiet and self._console.is_terminal:
            # Only update draws, so that nothing is drawn while another thread has read only a part of the counters.
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, counters: Mapping[str, Counters], note: str = "") -> None:
        """Show the present counters, and ``note`` (what the run waits for)."""
        rates = self._rates.look(counters)
        elapsed = time.monotonic() - self._start
        if self._live is not None:
            self._live.update(self._drawn(counters, rates, elapsed, note), refresh=True)
        elif not self._quiet and time.monotonic() - self._last_line >= PLAIN_EVERY:
            self._last_line = time.monotonic()
            self._console.print(f"{self._title} {elapsed:.0f} s: {totals(counters)}{f'; {note}' if note else ''}")

    def message(self, text: str, style: str = "") -> None:
        """Show a line of the components' log, or of the command's own, above the table."""
        if self._live is not None:
            self._live.console.print(Text(text, style=style))
        else:
            print(text, file=sys.stderr, flush=True)

    def _drawn(
        self, counters: Mapping[str, Counters], rates: Mapping[str, float], elapsed: float, note: str
    ) -> RenderableType:
        head = Text(f"{self._title}  {elapsed:.0f} s", style="bold")
        foot = Text(f"{note}  Ctrl-C ends it".strip(), style="dim")
        return Group(head, components_table(counters, rates, self._console), foot)


def totals(counters: Mapping[str, Counters]) -> str:
    """Return the spouts' counters in a few words."""
    spouts = [each for each in counters.values() if each.kind == "spout"]
    acked, failed, pending = (sum(getattr(each, name) for each in spouts) for name in ("acked", "failed", "pending"))
    timed_out = sum(each.timed_out for each in spouts)
    return (
        f"{acked:,} acked, {failed:,} failed{f' ({timed_out:,} timed out)' if timed_out else ''}, {pending:,} pending"
    )
