"""Log records on a terminal: one line each, in colours, with the rest of their text below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import click

from multilang.cli.output import echo
from multilang.helpers.masked import harmless, masked_text
from multilang.shipping.log_records import LEVELS

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from multilang.shipping.log_records import Record

_COLOURS = ("cyan", "green", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta", "bright_blue")
_LEVEL = {"warn": "yellow", "error": "red"}
_WARN = LEVELS.index("warn")


@dataclass(frozen=True)
class Chosen:
    """The records that are shown.

    Attributes:
        component: Those of this component; None: of all.
        level: The lowest level.
        grep: What is found in their text; None: anything.
        storm: Whether Storm's own are shown below warnings, too.
    """

    component: str | None
    level: str
    grep: re.Pattern[str] | None
    storm: bool

    def takes(self, record: Record) -> bool:
        """Return whether a record is shown."""
        level = LEVELS.index(record.level)
        if level < LEVELS.index(self.level) or (self.component is not None and record.component != self.component):
            return False
        if not (record.is_own or self.storm or level >= _WARN):
            return False
        return self.grep is None or self.grep.search(record.text) is not None


class LogView:
    """Shows records.

    Args:
        stream: The output; colours are for a terminal alone.
        chosen: The records that are shown.
    """

    def __init__(self, stream: Any, chosen: Chosen) -> None:
        self.chosen = chosen
        self._stream = stream
        self._colours = stream.isatty()
        self._workers: set[str] = set()
        self._left_out = 0

    def leaves_out(self, record: Record) -> None:
        """Count a record that is left out because Storm wrote it."""
        self._left_out += not record.is_own

    def note_left_out(self) -> None:
        """Print how many of Storm's own records were left out, unless something was chosen by its text."""
        if self._left_out and self.chosen.grep is None and self._stream.isatty():
            echo(f"({self._left_out:,} lines of Storm's own; --storm shows them)", err=True)

    def show(self, records: Sequence[tuple[str, Record]]) -> None:
        """Show records with the names of their workers."""
        self._workers.update(worker for worker, _ in records)
        for worker, record in records:
            first, *rest = record.lines or [""]
            if not record.time:
                self._print(_shown(first))
                continue
            component = record.component or "(worker)"
            parts = [self._dim(record.time.split(" ")[-1] if self._colours else record.time)]
            parts.append(self._styled(f"{record.level.upper():5}", _LEVEL.get(record.level)))
            if len(self._workers) > 1:
                parts.append(self._dim(worker))
            parts.append(self._styled(component, _COLOURS[crc32(component.encode()) % len(_COLOURS)]))
            by = "" if record.is_own or self.chosen.storm else self._dim("Storm: ")
            self._print(f"{' '.join(parts)} {by}{self._styled(_shown(first), _LEVEL.get(record.level))}")
            for line in rest:
                self._print(f"    {_shown(line)}")
            if record.java and not record.is_own:
                self._print(self._dim(f"    ({record.java} lines of Java's stack)"))
        self._stream.flush()

    def _print(self, line: str) -> None:
        print(line, file=self._stream)

    def _styled(self, text: str, colour: str | None) -> str:
        return click.style(text, fg=colour) if self._colours and colour else text

    def _dim(self, text: str) -> str:
        return click.style(text, dim=True) if self._colours else text


def _shown(line: str) -> str:
    return harmless(masked_text(line))
