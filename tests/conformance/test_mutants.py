"""A correct component passes; with one fault it fails the case that is meant for that fault.

A fault of each section here, if there is one that shows at once, and every fault with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from tests.conformance.mutants import MUTANTS, Bolt, Spout
from tests.soak import chosen

MUTANT = Path(__file__).parent / "mutant.py"
# Where the fault is silence, only the time limit shows it; a correct component is given much more of it.
LIMIT = 5.0
# Those take the whole limit, or several: they wait for an answer, a file, an end, or what else never comes.
SILENT = (
    *("HeartbeatsNeedAComponent", "NoSync", "NeverAcksTicks", "WaitsForATask", "DropsTuplesWhileItWaits", "NoAnchors"),
    *("OneAnchor", "AlwaysAnchors", "AcksBeforeEmits", "WaitsForIdsOfDirectEmits", "KeepsSixtyTuplesWhileItWaits"),
    *("SwallowsExceptions", "WaitsByRecursion", "UnknownMetric", "LogsObjects", "HoldsOutputBack", "IgnoresSigterm"),
    *("TalksOnStandardErrorAtItsStart", "TalksOnStandardErrorAtWork", "LivesOnWithoutInput", "FallsSilent"),
    *(
        "LeavesAHelper",
        "LeavesAHelperAtAnException",
        "PidFileOfAnotherName",
        "NoPidFile",
        "SpoutWithoutSync",
        "DoesNotKnowActivate",
    ),
    *("BlocksForTaskIds", "WaitsForTaskIdsWithoutInput"),
)
OF_EACH_SECTION = 1


def section(name: str) -> str:
    return MUTANTS[name][1].rpartition("/")[0]


def few() -> list[str]:
    found: dict[str, list[str]] = {}
    for name in sorted(MUTANTS, key=lambda name: name in SILENT):
        of_section = found.setdefault(section(name), [])
        if len(of_section) < OF_EACH_SECTION and not (of_section and name in SILENT):
            of_section.append(name)
    return [name for names in found.values() for name in names]


@pytest.mark.parametrize("name", chosen(MUTANTS, *few()))
def test_the_case_that_is_meant_for_a_fault_fails(name: str) -> None:
    kind, path, _ = MUTANTS[name]
    target = Target([sys.executable, str(MUTANT), name], kind, timeout=LIMIT, contract=True, knows=_knows(kind))
    result = Run(target, again=False).run(selected(all_cases(kind), (path,)))
    [case] = result.cases
    assert case.status == "failed", (case.status, case.why)


def _knows(kind: str) -> tuple[str, ...]:
    return tuple({"bolt": Bolt, "spout": Spout}[kind].knows)


def test_there_are_mutants_of_each_section() -> None:
    sections = {section(name) for name in few()}
    sections |= {"bolt/ordinary", "spout/ordinary"}  # test_ordinary.py has theirs
    assert sections == {case.path.rpartition("/")[0] for case in all_cases()}
    assert set(SILENT) < set(MUTANTS)
    assert len(MUTANTS) >= 40
