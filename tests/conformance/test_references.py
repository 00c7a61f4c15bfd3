"""Correct components pass, again and again: ours every case, the ones without a library every MUST.

A part of the cases here, of which a bolt and a spout of ours take different ones; all with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from tests.soak import SOAK, sampled

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "conformance"
RUNS = range(20 if SOAK else 1)
# Of so many cases one is played, or all of them in the soak.
OF_OURS = 3
OF_PLAIN = 8
LIMIT = 60.0  # seconds for an answer: the machine may be busy with other things
# What the plain ones leave to libraries: a sign of life from beside user code; JavaScript's numbers are doubles.
PLAIN = {"bolt/heartbeat/13"}
NODE = {f"common/numbers/{n}" for n in (6, 7, 8, 9, 11)} | {"common/unicode/12", "spout/emit/13"}

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def failures(command: list[str], kind: str, every: int) -> dict[str, str]:
    cases = all_cases(kind)
    played = sampled(cases if SOAK or kind == "bolt" else cases[1:], every)  # most cases are there for both kinds
    result = Run(Target(command, kind, timeout=LIMIT)).run(played)
    assert result.contract is not None
    statuses = Counter(case.status for case in result.cases)
    assert statuses["blocked"] == 0
    assert statuses["skipped"] == 0
    return {case.path: f"{case.why} | {case.received}" for case in result.cases if case.status == "failed"}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["bolt", "spout"])
def test_ours_passes_every_case(kind: str, run: int) -> None:
    assert failures([sys.executable, str(EXAMPLES / "ours.py"), kind], kind, OF_OURS) == {}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["bolt", "spout"])
def test_plain_python_passes_every_must(kind: str, run: int) -> None:
    assert failures([sys.executable, str(EXAMPLES / "plain.py"), kind], kind, OF_PLAIN).keys() <= PLAIN


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["bolt", "spout"])
def test_plain_node_passes_every_must(kind: str, run: int) -> None:
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI"):
            pytest.fail("there is no node here, though scripts/test installs it in CI")
        pytest.skip("there is no node on the path")
    assert failures([node, str(EXAMPLES / "node.js"), kind], kind, OF_PLAIN).keys() <= NODE


def test_the_catalogue_is_as_large_as_it_says_and_each_case_has_its_text() -> None:
    cases = all_cases()
    assert sum(case.level == "MUST" for case in cases) >= 140
    assert sum(case.level == "SHOULD" for case in cases) >= 40
    assert len({case.path for case in cases}) == len(cases)
    for case in cases:
        assert case.requirement.endswith(".")
        assert case.source
        assert case.run is not None or case.watch
    texts = Counter((case.kind, case.requirement, case.title) for case in cases)
    assert max(texts.values()) == 1


def test_the_readme_says_how_many_cases_there_are() -> None:
    levels = Counter(case.level for case in all_cases())
    assert f"({levels['MUST']} MUST, {levels['SHOULD']} SHOULD)" in (ROOT / "README.md").read_text("utf-8")


def test_cases_are_selected_by_path_beginning_and_pattern() -> None:
    cases = all_cases("bolt")
    assert [case.path for case in selected(cases, ("bolt/heartbeat/2",))] == ["bolt/heartbeat/2"]
    assert {case.path.rpartition("/")[0] for case in selected(cases, ("bolt/ack", "*/log/*"))} == {
        "bolt/ack",
        "common/log",
    }
    with pytest.raises(LookupError, match="spout/sync"):
        selected(cases, ("spout/sync",))
