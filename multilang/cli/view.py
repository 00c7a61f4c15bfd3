"""The display of a run: the table of components while a topology runs and at its end, and the lines below it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from multilang.cli.output import HarmlessConsole
from multilang.engine.readable import UNKNOWN, milliseconds, number, per_second
from multilang.helpers.masked import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any

    from rich.console import RenderableType

    from multilang.cli.arguments import Top
    from multilang.engine.status import ComponentStatus, RunStatus

PLAIN_WIDTH = 200  # columns of output to a file or a pipe, enough that no row is broken
NARROW = 100  # on a terminal with fewer columns, the table has no less important columns
WIDE = 124  # with fewer, it has neither p99 nor capacity
PLAIN_EVERY = 10.0  # seconds between two lines of progress where nothing can be drawn


def console(stream: Any) -> Console:
    """Return a console for ``stream``: with colours and its own width on a terminal, else plain text of any width.

    What is in brackets is text, since a user's values and code have them, too.
    """
    if stream.isatty():
        return HarmlessConsole(file=stream, highlight=False)
    return HarmlessConsole(file=stream, highlight=False, color_system=None, width=PLAIN_WIDTH)


_BUSY = 0.9  # the capacity from which on a component is a bottleneck


def components_table(status: RunStatus, console: Console) -> Table:
    """Return a table with one row for each component."""
    plain, narrow, wide = not console.is_terminal, console.width < NARROW, console.width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="" if plain else "bold", padding=(0, 2 - narrow, 0, 0))
    table.add_column("component", no_wrap=True)
    if not narrow:
        table.add_column("kind")
    some_timed_out = any(each.timed_out for each in status.components)
    own = ("timed out",) if some_timed_out else ()
    last = ("p99", "capacity", "rate") if wide else ("rate",)
    for title in ("tasks", "emitted", "processed", "acked", "failed", *own, "pending", "latency", *last):
        table.add_column(title, justify="right", no_wrap=True)
    for each in status.components:
        is_spout = each.kind == "spout"
        row: list[str | Text] = [each.id, *([] if narrow else [each.kind]), number(each.tasks), number(each.emitted)]
        row += ["" if is_spout else number(each.executed), number(each.acked)]
        row.append(Text(number(each.failed), style="bold red" if each.failed and not plain else ""))
        if some_timed_out:
            row.append(number(each.timed_out) if is_spout else "")
        row += [number(each.waiting), milliseconds(each.latency_ms)]
        if wide:
            row.append(milliseconds(each.latency_p99_ms))
            row.append(capacity(each, plain))
        row.append(per_second(each.rate))
        table.add_row(*row)
    return table


def capacity(component: ComponentStatus, plain: bool) -> Text:
    """Return the share of the time in which the busiest task of a component is busy, as text."""
    share = component.capacity
    if share is None:
        return Text(UNKNOWN)
    return Text(f"{share:.0%}", style="bold yellow" if share >= _BUSY and not plain else "")


def top_table(top: Top, rows: Sequence[tuple[Any, Any]], console: Console) -> Table:
    """Return the table of ``--top``."""
    table = Table(box=None, pad_edge=False, header_style="bold" if console.is_terminal else "", padding=(0, 2, 0, 0))
    table.add_column(top.key, no_wrap=True)
    table.add_column(top.value or "tuples", justify="right", no_wrap=True)
    for key, value in rows:
        shown = f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        table.add_row(Text(str(key)), shown)
    return table


class RunView:
    """Shows a run's progress: a table redrawn on a terminal, a line now and then elsewhere, nothing when quiet."""

    def __init__(self, name: str, mode: str, quiet: bool) -> None:
        self._title = f"{name} ({mode})"
        self._console = console(sys.stderr)
        self._quiet = quiet
        self._display: Live | None = None
        self._start = self._last_line = time.monotonic()

    def __enter__(self) -> RunView:  # noqa: PYI034 - Self is not in Python 3.10
        if not self._quiet and self._console.is_terminal:
            # Only update draws, so that nothing is drawn while another thread has read only a part of the counters.
            self._display = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
            self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None

    def update(self, status: RunStatus, note: str = "") -> None:
        """Show the present status, and ``note`` (what the run waits for)."""
        elapsed = time.monotonic() - self._start
        if self._display is not None:
            self._display.update(self._drawn(status, elapsed, note), refresh=True)
        elif not self._quiet and time.monotonic() - self._last_line >= PLAIN_EVERY:
            self._last_line = time.monotonic()
            self._console.print(f"{self._title} {elapsed:.0f} s: {totals(status)}{f'; {note}' if note else ''}")

    def message(self, text: str, style: str = "") -> None:
        """Show a line of the components' log, or of the command's own, above the table."""
        text = harmless(text)
        if self._display is not None:
            self._display.console.print(Text(text, style=style))
        else:
            print(text, file=sys.stderr, flush=True)

    def _drawn(self, status: RunStatus, elapsed: float, note: str) -> RenderableType:
        head = Text(f"{self._title}  {elapsed:.0f} s", style="bold")
        foot = Text(f"{note}  Ctrl-C ends it".strip(), style="dim")
        return Group(head, components_table(status, self._console), foot)


def totals(status: RunStatus) -> str:
    """Return the spouts' counts in a few words."""
    acked, failed, pending, timed_out = map(status.total, ("acked", "failed", "pending", "timed_out"))
    late = f" ({timed_out:,} timed out)" if timed_out else ""
    return f"{number(acked)} acked, {number(failed)} failed{late}, {number(pending)} pending"
