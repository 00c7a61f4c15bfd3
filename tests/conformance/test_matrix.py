"""The page of implementations: a small piece of what ``scripts/conformance-matrix`` does with all of them."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from multilang.conformance import all_cases

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", ROOT / "examples" / "conformance" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["results"] = module  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def test_the_page_has_a_row_and_a_chapter_for_each_and_says_what_is_missing(
    results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no node here
    page, matrix, folder = tmp_path / "page.md", tmp_path / "matrix.html", tmp_path / "results"
    cases = [text for path in ("bolt/heartbeat/13", "common/log") for text in ("--case", path)]
    arguments = [
        *cases,
        "--page",
        str(page),
        "--html",
        str(matrix),
        "--results",
        str(folder),
        "plain Python",
        "plain Node",
    ]
    assert results.main(arguments) == 0
    text = page.read_text("utf-8")
    assert "| plain Python | " in text
    assert "| plain Node | not tested here: there is no node here | |" in text
    assert "Better would be (SHOULD): a sign of life while user code is slow (bolt)." in text
    assert "| bolt/heartbeat/13 | SHOULD | *a sign of life while user code is slow*: " in text
    assert 'href="#f0-bolt-heartbeat-13"' in matrix.read_text("utf-8")

    files = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert set(files) == {"plain-Python-bolt.json", "plain-Python-spout.json"}
    assert results.main(arguments) == 0
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == files
    assert page.read_text("utf-8") == text


def test_a_library_of_every_registry_has_its_component(results: ModuleType) -> None:
    peers = {file.name for file in (ROOT / "examples" / "conformance" / "peers").iterdir() if "component" in file.name}
    source = (ROOT / "examples" / "conformance" / "results.py").read_text("utf-8")
    assert {name for name in peers if name not in source} == set()
    assert len(results.IMPLEMENTATIONS) >= 9


@pytest.mark.parametrize("kind", ["bolt", "spout"])
def test_the_page_was_made_with_all_cases_that_there_are(results: ModuleType, kind: str) -> None:
    cases = all_cases()
    levels = Counter(case.level for case in cases)
    text = results.PAGE.read_text("utf-8")
    run_again = "run scripts/conformance-matrix again: docs/conformance-results.md was made with other cases"
    assert f"({levels['MUST']} MUST and {levels['SHOULD']} SHOULD cases; " in text, run_again
    rows = re.findall(rf"^\| (.+?) \| .+ \| {kind} \| \d+ of (\d+) \| \d+ of (\d+) \| \d+ \| (\d+) \|$", text, re.M)
    asked = {name: sum(map(int, numbers)) for name, *numbers in rows}
    assert asked == dict.fromkeys(results.IMPLEMENTATIONS, len(all_cases(kind))), run_again
