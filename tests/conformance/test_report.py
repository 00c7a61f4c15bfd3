"""The result of a run as data, as a page and as text: every case with its bytes, its duration and its source."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from multilang.cli.conformance_view import write_result
from multilang.cli.view import console
from multilang.conformance import Run, Target, all_cases
from multilang.conformance import result as results
from multilang.conformance.case import PAGE, selected
from multilang.conformance.page import to_page
from multilang.conformance.result import CaseResult, Result, TranscriptEntry, from_json
from multilang.conformance.sources import PROTOCOL, parts

PLAIN = Path(__file__).parents[2] / "examples" / "conformance" / "plain.py"
MUTANT = Path(__file__).parent / "mutant.py"
SCHEMA = json.loads(Path(results.__file__).with_name("result.schema.json").read_text("utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}


def result_of(program: list[object], *paths: str) -> Result:
    target = Target([sys.executable, *map(str, program)], "bolt", name="it", timeout=60, contract=True)
    return Run(target).run(selected(all_cases("bolt"), paths))


@pytest.fixture(scope="module")
def good() -> Result:
    return result_of([PLAIN, "bolt"], "bolt/ack", "common/pid/1")


@pytest.fixture(scope="module")
def bad() -> Result:
    return result_of([MUTANT, "AcksFailures"], "bolt/fail")


def faults(value: Any, schema: dict[str, Any], where: str = "result") -> Iterator[str]:
    """Return where a value breaks the schema, for the words that our schema uses."""
    wanted = schema.get("type", [])
    names = [wanted] if isinstance(wanted, str) else wanted
    if names and not isinstance(value, tuple(type for name in names for type in _types(name))):
        yield f"{where} is {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r}"
    if "const" in schema and value != schema["const"]:
        yield f"{where} is {value!r}"
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        yield from (f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            rule = known.get(name, others)
            if rule is False:
                yield f"{where} has {name}"
            elif isinstance(rule, dict):
                yield from faults(inner, rule, f"{where}.{name}")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from faults(inner, schema.get("items", {}), f"{where}[{number}]")


def _types(name: str) -> tuple[type, ...]:
    found = TYPES[name]
    return found if isinstance(found, tuple) else (found,)


def test_the_data_is_as_its_schema_says_and_comes_back(good: Result, bad: Result) -> None:
    for result in (good, bad):
        text = result.to_json()
        assert list(faults(json.loads(text), SCHEMA)) == []
        assert from_json(text, "x") == result


def test_the_schema_names_what_there_is() -> None:
    case = SCHEMA["properties"]["cases"]["items"]
    entry = case["properties"]["transcript"]["items"]
    for schema, kind in ((SCHEMA, Result), (case, CaseResult), (entry, TranscriptEntry)):
        names = {field.name for field in fields(kind)} | ({"format"} if kind is Result else set())
        assert set(schema["properties"]) == set(schema["required"]) == names
    assert SCHEMA["properties"]["format"]["const"] == results.FORMAT


def test_what_breaks_the_schema_is_noticed(good: Result) -> None:
    data = json.loads(good.to_json())
    data["cases"][0]["seconds"] = "1"
    del data["name"]
    assert sorted(faults(data, SCHEMA)) == ["result lacks name", "result.cases[0].seconds is '1'"]


def test_a_case_that_passed_has_its_bytes_both_ways_and_its_duration(good: Result) -> None:
    played = [case for case in good.cases if case.transcript]
    assert "bolt/ack/5" in {case.path for case in played}
    for case in played:
        assert case.status == "passed"
        assert case.seconds > 0
        for direction, total in (("sent", case.bytes_sent), ("received", case.bytes_received)):
            sizes = [entry.size for entry in case.transcript if entry.direction == direction]
            whole = all(entry.direction != "…" for entry in case.transcript)
            assert sum(sizes) == total if whole else 0 < sum(sizes) < total
        times = [entry.seconds for entry in case.transcript]
        assert times == sorted(times)
    long = next(case for case in played if case.path == "bolt/ack/5")
    assert sum(entry.size for entry in long.transcript) == long.bytes_sent + long.bytes_received


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.outside: list[str] = []
        self.links: list[str] = []
        self.rules = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "details":
            self.ids.append(found["id"] or "")
        self.outside += [value or "" for name, value in attrs if name in ("src", "srcset", "action")]
        self.outside += [found["href"] or ""] if tag == "link" else []
        self.links += [found["href"] or ""] if tag == "a" else []
        if found.get("http-equiv") == "Content-Security-Policy":
            self.rules = found["content"] or ""


@pytest.mark.parametrize("which", ["good", "bad"])
def test_the_page_has_every_case_and_needs_nothing_from_outside(which: str, request: pytest.FixtureRequest) -> None:
    result: Result = request.getfixturevalue(which)
    page = _Page()
    page.feed(to_page([result]))
    assert page.ids == [f"f0-{case.path.replace('/', '-')}" for case in result.cases]
    assert page.outside == []
    assert page.rules.startswith("default-src 'none'")
    assert any(link.startswith(f"{PROTOCOL}#:~:text=") for link in page.links)
    failed = [f"#f0-{case.path.replace('/', '-')}" for case in result.cases if case.status == "failed" and case.is_must]
    assert [link for link in page.links if link.startswith("#f0-")] == failed[:10]  # at the top, before all cases
    assert bool(failed) == (which == "bad")


def test_what_a_program_wrote_is_no_html(bad: Result) -> None:
    bad.cases[0].transcript.append(TranscriptEntry("received", "<script>alert(1)</script>", 0.0, 25))
    bad.cases[0].why = "<b>"
    page = to_page([bad])
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>" not in page


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_text_for_a_pipe_has_no_blanks_at_its_ends_and_no_broken_lines(bad: Result, verbose: int) -> None:
    written = io.StringIO()
    write_result(bad, console(written), verbose)
    lines = written.getvalue().split("\n")
    assert [line for line in lines if line != line.rstrip()] == []
    assert any(line.startswith("failed  bolt/fail/1" if verbose == 0 else "bolt/fail/1") for line in lines)
    shown = sum(bool(re.match(r" +\d+\.\d{3} [→←] ", line)) for line in lines)
    assert (shown > 0) is (verbose > 0)
    if verbose == 2:
        assert shown == sum(len(case.transcript) for case in bad.cases)


def test_the_closing_line_says_what_was_not_judged_and_why(bad: Result) -> None:
    target = Target(["sh", "-c", "echo hello; echo end; cat >/dev/null"], "bolt", timeout=5, contract=False)
    result = Run(target).run(selected(all_cases("bolt"), ("common/framing", "common/log")))
    written = io.StringIO()
    write_result(result, console(written))
    assert re.search(r"; \d+ blocked: by common/framing/1$", written.getvalue().strip()), written.getvalue()


def test_each_requirement_of_the_page_is_linked_to_its_sentence() -> None:
    unlinked = [
        (case.path, text)
        for case in all_cases()
        for text, link in parts(case.path, case.source)
        if (text.startswith(PAGE) and "#:~:text=" not in (link or "")) or (text.startswith("RFC 8259") and not link)
    ]
    assert unlinked == []
