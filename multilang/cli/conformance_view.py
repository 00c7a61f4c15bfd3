"""A conformance run as people read it, with each failure's expected and received values, and as JUnit's XML for CI systems."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from multilang.cli.output import HarmlessConsole
from multilang.conformance.result import BLOCKED, FAILED, PASSED, SKIPPED, UNKNOWN, CaseResult, Result
from multilang.conformance.sources import parts
from multilang.conformance.values import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from multilang.conformance.case import Case
    from multilang.conformance.replay import Difference
    from multilang.conformance.result import CaseResult, Result, TranscriptEntry

_STYLES = {PASSED: "green", FAILED: "bold red", BLOCKED: "dim", SKIPPED: "dim"}
_CONTROLS = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_MOST_REASONS = 4  # reasons for skipped cases in the closing line
_LAST_SENT = 3  # messages to the program that are shown for a failure
_SHOWN, _SHOWN_WHOLE = 120, 400  # characters of a message that are shown, of one of a failure
_ENDS = 4  # messages from the beginning and from the end of a conversation that -v shows of a case that is no failure
_PIPE = 4000  # columns where nothing is drawn: no line is broken
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ARROWS = {"sent": "→", "received": "←"}


def word_of(case: CaseResult) -> tuple[str, str]:
    """Return the word for a case's result, and its colour."""
    if case.status == FAILED and not case.is_must:
        return "warning", "yellow"
    return case.status, _STYLES[case.status]


def write_result(
    result: Result, screen: Console, verbose: int = 0, strict: bool = False, required: int | None = None
) -> None:
    """Write the whole report, to a file or a pipe without colours, broken lines or blanks at their ends.

    Args:
        result: The result of the program.
        screen: The console to write to.
        verbose: 1: show each case, with the beginning and the end of its conversation. 2: show whole conversations.
        strict: Whether a SHOULD that is not kept counts as a failure.
        required: The number of cases that must have a verdict; None: any.
    """
    if screen.is_terminal:
        _write(result, screen, verbose, strict, required)
        return
    plain = HarmlessConsole(file=screen.file, width=_PIPE, highlight=False, color_system=None)
    with plain.capture() as written:
        _write(result, plain, verbose, strict, required)
    screen.file.write("".join(line.rstrip() + "\n" for line in written.get().splitlines()))


def _write(result: Result, console: Console, verbose: int, strict: bool, required: int | None) -> None:
    console.print(_title(result), soft_wrap=True)
    console.print()
    console.print(_cases(result, verbose) if verbose else _sections(result))
    failures = [case for case in result.cases if case.status == FAILED]
    for case in failures:
        console.print()
        console.print(_failure(case, bool(verbose)))
    console.print()
    for note in result.notes:
        console.print(note, style="yellow" if console.is_terminal else "", soft_wrap=True)
    console.print(summary(result, strict), soft_wrap=True)
    if required is not None and result.judged < required:
        text = f"{result.judged} of the {required} cases that are required have a verdict"
        console.print(Text(text, style="bold red"), soft_wrap=True)


def _title(result: Result) -> Text:
    if result.kind == UNKNOWN:
        return Text(f"{result.name}: what all programs are asked")
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


def _cases(result: Result, verbose: int) -> RenderableType:
    shown: list[RenderableType] = []
    for case in result.cases:
        word, style = word_of(case)
        text = f"{case.title} ({printable(case.why)})" if case.why and case.status != FAILED else case.title
        line = Text.assemble(f"{case.path:<22} {case.level:<6} ", (f"{word:<7}", style), f" {text}")
        if case.transcript:
            line.append(
                f"  {case.seconds:.3f} s, {case.bytes_sent:,} bytes sent, {case.bytes_received:,} received", style="dim"
            )
        shown.append(line)
        entries = case.transcript
        if verbose == 1 and len(entries) > 2 * _ENDS:
            shown += map(_line, entries[:_ENDS])
            shown.append(Text(f"    … {len(entries) - 2 * _ENDS} messages more (-vv)", style="dim"))
            entries = entries[-_ENDS:]
        shown += map(_line, entries)
    return Group(*shown)


def _line(entry: TranscriptEntry) -> Text:
    arrow = _ARROWS.get(entry.direction, entry.direction)
    return Text(f"    {entry.seconds:8.3f} {arrow} {_message(entry.text, _SHOWN)}", style="dim")


def _failure(case: CaseResult, verbose: bool) -> RenderableType:
    word, style = word_of(case)
    head = Text.assemble((word, style), f"  {case.path}  {case.level}  ", (case.title, "bold"))
    pair = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    pair.add_column(style="dim", no_wrap=True)
    pair.add_column(overflow="fold")
    entries = [each for each in case.transcript if verbose or each.direction == "sent"]
    for each in entries if verbose else entries[-_LAST_SENT:]:
        pair.add_row(each.direction, Text(_message(each.text, _SHOWN_WHOLE)))
    pair.add_row("expected", Text(printable(case.expected or ""), style="green"))
    pair.add_row("received", Text(printable(case.received or ""), style="red"))
    return Group(
        head,
        Padding(Group(Text(case.requirement), _source(case), Text(printable(case.why)), pair), (0, 0, 0, 2)),
    )


def _source(case: CaseResult) -> Text:
    """Return the source of a requirement; terminals that can do so link it to the sentence of the page."""
    text = Text(style="dim")
    for number, (words, link) in enumerate(parts(case.path, case.source)):
        text.append("; " if number else "")
        text.append(words, style=f"link {link}" if link else "")
    return text


def _message(text: str, most: int) -> str:
    return cut(printable(text).replace("\n", "\\n"), most)


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
    for number, ((status, why), count) in enumerate(result.left_out().items()):
        if number == _MOST_REASONS:
            text.append("; others for other reasons (-v)")
            break
        text.append(f"; {count} {status}: {printable(why)}")
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
    pair.add_row("sent", Text(_message(difference.sent, _SHOWN_WHOLE)))
    pair.add_row("recorded", Text(printable(difference.expected), style="green"))
    pair.add_row("received", Text(printable(difference.received), style="red"))
    return Group(Text(f"{recording}, line {difference.line}: {difference.why}", style="bold red"), pair)


def to_junit(result: Result, strict: bool = False) -> str:
    """Return one suite for each section. A SHOULD that is not kept counts as skipped, unless the run is strict."""
    root = ElementTree.Element("testsuites", name=_clean(f"multilang conformance {result.name}"))
    for path, cases in groupby(result.cases, key=lambda case: case.path.rpartition("/")[0]):
        _suite(root, path, list(cases), strict)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, path: str, cases: list[CaseResult], strict: bool) -> None:
    failures = sum(case.status == FAILED and (strict or case.is_must) for case in cases)
    skipped = sum(case.status != FAILED and case.status != "passed" for case in cases)
    skipped += sum(case.status == FAILED for case in cases) - failures
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=f"{path} {cases[0].section}",
        tests=str(len(cases)),
        failures=str(failures),
        skipped=str(skipped),
        errors="0",
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        _case(suite, case, strict)


def _case(suite: ElementTree.Element, case: CaseResult, strict: bool) -> None:
    name = f"{case.path} {case.level} {case.title}"
    element = ElementTree.SubElement(
        suite, "testcase", classname=case.path.replace("/", "."), name=_clean(name), time=f"{case.seconds:.3f}"
    )
    if case.status == FAILED and (strict or case.is_must):
        failure = ElementTree.SubElement(element, "failure", message=_clean(case.why), type=case.level)
        failure.text = _clean(
            f"{case.requirement} ({case.source})\nexpected: {case.expected}\nreceived: {case.received}\n\n"
            + "\n".join(f"{entry.direction}: {entry.text}" for entry in case.transcript)
        )
    elif case.status in (FAILED, BLOCKED, SKIPPED):
        word = "SHOULD, not kept: " if case.status == FAILED else ""
        ElementTree.SubElement(element, "skipped", message=_clean(word + case.why))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
