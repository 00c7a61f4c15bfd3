"""A conformance run for people: a line for each section, and each failure with what was expected and received."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from multilang.conformance.result import BLOCKED, FAILED, PASSED, SKIPPED
from multilang.conformance.values import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from multilang.conformance.case import Case
    from multilang.conformance.replay import Difference
    from multilang.conformance.result import CaseResult, Result

_STYLES = {PASSED: "green", FAILED: "bold red", BLOCKED: "dim", SKIPPED: "dim"}
_CONTROLS = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_MOST_REASONS = 4  # reasons for skipped cases in the closing line
_LAST_SENT = 3  # messages to the program that are shown for a failure


def word_of(case: CaseResult) -> tuple[str, str]:
    """Return the word for a case's result, and its colour."""
    if case.status == FAILED and not case.is_must:
        return "warning", "yellow"
    return case.status, _STYLES[case.status]


def write_result(
    result: Result, console: Console, verbose: bool = False, strict: bool = False, required: int | None = None
) -> None:
    """Write the whole report."""
    console.print(_title(result), soft_wrap=True)
    console.print()
    console.print(_cases(result) if verbose else _sections(result))
    failures = [case for case in result.cases if case.status == FAILED]
    for case in failures:
        console.print()
        console.print(_failure(case, verbose))
    console.print()
    for note in result.notes:
        console.print(note, style="yellow" if console.is_terminal else "", soft_wrap=True)
    console.print(summary(result, strict), soft_wrap=True)
    if required is not None and result.judged < required:
        text = f"{result.judged} of the {required} cases that are required have a verdict"
        console.print(Text(text, style="bold red"), soft_wrap=True)


def _title(result: Result) -> Text:
    text = Text(f"{result.name}: a {result.kind}, ")
    if result.contract is None:
        text.append("which does not keep the conformance contract: only what can be seen from outside is tested")
    else:
        text.append(f"which keeps the conformance contract ({len(result.contract)} steps)")
    return text


def _sections(result: Result) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("section", ""):
        table.add_column(title, no_wrap=True)
    for title in ("passed", "failed", "warnings", "blocked", "skipped"):
        table.add_column(title, justify="right", no_wrap=True)
    for path, group in groupby(result.cases, key=lambda case: case.path.rpartition("/")[0]):
        cases = list(group)
        words = [word_of(case)[0] for case in cases]
        counts = {word: words.count(word) for word in (PASSED, FAILED, "warning", BLOCKED, SKIPPED)}
        styles = {**_STYLES, "warning": "yellow"}
        numbers = [Text(str(count or ""), style=styles[word] if count else "") for word, count in counts.items()]
        table.add_row(path, cases[0].section, *numbers)
    return table


def _cases(result: Result) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("case", "level", "", "requirement"):
        table.add_column(title, no_wrap=title != "requirement")
    for case in result.cases:
        word, style = word_of(case)
        text = case.title if case.status in (PASSED, FAILED) else f"{case.title} ({case.why})"
        table.add_row(case.path, case.level, Text(word, style=style), text)
    return table


def _failure(case: CaseResult, verbose: bool) -> RenderableType:
    word, style = word_of(case)
    head = Text.assemble((word, style), f"  {case.path}  {case.level}  ", (case.title, "bold"))
    pair = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    pair.add_column(style="dim", no_wrap=True)
    pair.add_column(overflow="fold")
    sent = [(direction, text) for direction, text in case.transcript if verbose or direction == "sent"]
    for direction, text in sent if verbose else sent[-_LAST_SENT:]:
        pair.add_row(direction, _visible(text))
    pair.add_row("expected", Text(printable(case.expected or ""), style="green"))
    pair.add_row("received", Text(printable(case.received or ""), style="red"))
    return Group(
        head,
        Padding(
            Group(Text(case.requirement), Text(case.source, style="dim"), Text(printable(case.why)), pair), (0, 0, 0, 2)
        ),
    )


def _visible(text: str) -> Text:
    return Text(cut(printable(text).replace("\n", "\\n"), 400))


def printable(text: str) -> str:
    """Return a program's text without characters that control the terminal."""
    return text.translate(_CONTROLS)


def summary(result: Result, strict: bool) -> Text:
    """Return the last line of a report, with the numbers."""
    failed, warned = result.count(FAILED, "MUST"), result.count(FAILED, "SHOULD")
    text = Text(f"{result.count(PASSED)} passed, ")
    text.append(f"{failed} failed", style="bold red" if failed else "")
    text.append(", ")
    text.append(f"{warned} {'failed a SHOULD' if strict else 'warnings'}", style="yellow" if warned else "")
    blocked, skipped = result.count(BLOCKED), result.count(SKIPPED)
    text.append(f", {blocked} blocked, {skipped} skipped in {result.seconds:.1f} s")
    for number, (why, count) in enumerate(result.left_out().items()):
        if number == _MOST_REASONS:
            text.append("; others skipped for other reasons (-v)")
            break
        text.append(f"; {count} skipped: {printable(why)}")
    return text


def listed(cases: Sequence[Case], verbose: bool) -> Iterator[str]:
    """Return the cases for ``--list``: a line each, with -v also requirement and source."""
    for case in cases:
        steps = f"  [{' '.join(case.steps)}]" if case.steps else ""
        yield f"{case.path:<22} {case.level:<6} {case.title}{'  (watched throughout)' if case.run is None else steps}"
        if verbose:
            yield f"{'':<30}{case.requirement}"
            yield f"{'':<30}{case.source}"


def difference_shown(difference: Difference, recording: str) -> RenderableType:
    """Return the first difference between a replay and its recording, for the terminal."""
    pair = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    pair.add_column(style="dim", no_wrap=True)
    pair.add_column(overflow="fold")
    pair.add_row("sent", _visible(difference.sent))
    pair.add_row("recorded", Text(printable(difference.expected), style="green"))
    pair.add_row("received", Text(printable(difference.received), style="red"))
    return Group(Text(f"{recording}, line {difference.line}: {difference.why}", style="bold red"), pair)
