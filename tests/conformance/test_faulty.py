"""Each faulty program is failed by the section whose requirement it breaks, and by no other."""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import Case, selected
from tests.conformance.faulty import FaultyProgram, programs
from tests.soak import SOAK

HERE = Path(__file__).parent / "faulty"
SOURCES = {language: (HERE / f"component.{language}").read_text() for language in ("py", "js")}
PROGRAMS = [(language, each) for language, source in SOURCES.items() for each in programs(source)]
# A fault that is silence takes the whole limit. A sample is judged by the cases of its section, and what is watched; the soak
# adds those of the sections that a fault shows in first, and others at random, and judges every tenth program by all cases.
SILENT = re.compile(
    "silent|hang|writes_much|outlives|spins|ignores|no_|never|holds|tear|torn|drops|stderr|helper|while|wait|timer|every|few_heart"
)
SAMPLE, LIMIT = 2, 20.0
# Faults that got through once, each until a case was added for it or one looked further. The first few are in the sample.
LATE = 7
FOUND_LATE = (
    ("contract-spout", "begins_anew_when_activated"),
    ("ordinary-spout", "reads_ids_of_reliable_emits"),
    ("contract-bolt", "one_stream"),
    ("contract-bolt", "dates_are_read"),
    ("contract-spout", "acks_are_fails"),
    ("contract-spout", "loses_acks_while_waiting"),
    ("contract-bolt", "equal_tuples_are_one"),
    ("contract-spout", "dies_of_escapes"),
    ("contract-bolt", "all_numbers_are_texts"),
    ("contract-spout", "logs_are_formats"),
    ("contract-spout", "hears_nothing_while_inactive"),
    ("contract-bolt", "texts_are_trimmed"),
    ("contract-bolt", "keeps_the_last_50"),
    ("contract-spout", "task_that_is_not_there"),
    ("ordinary-spout", "acks_come_in_order"),
)
OTHERS, WHOLE = 20, 10
FIRST = {
    "bolt": ("bolt/ordinary", "bolt/heartbeat/1", "common/handshake"),
    "spout": ("spout/ordinary", "spout/commands/1", "common/handshake"),
}
KNOWS = {
    "bolt": "emit ids direct log error metric conf context print throw sleep ack fail keep tuple",
    "spout": "emit ids direct log error metric conf context print throw sleep heard",
}


def chosen() -> list[tuple[str, FaultyProgram]]:
    if SOAK:
        return PROGRAMS
    late = [each for each in PROGRAMS if each[0] == "py" and each[1][:2] in FOUND_LATE[:LATE]]
    quick = [
        each
        for each in PROGRAMS
        if each not in late and not SILENT.search(each[1].fault) and each[1].section != "common/sizes"
    ]
    return late + random.Random(28).sample(quick, SAMPLE)


def command(language: str, program: FaultyProgram) -> list[str]:
    interpreter: str | None = sys.executable
    if language == "js":
        interpreter = shutil.which("node")
        if interpreter is None:
            if os.environ.get("CI"):
                pytest.fail("there is no node here, though scripts/test installs it in CI")
            pytest.skip("there is no node on the path")
    return [str(interpreter), str(HERE / f"component.{language}"), program.program, program.fault]


def cases_for(language: str, program: FaultyProgram) -> list[Case]:
    cases = all_cases(program.kind)
    chosen = {case.path for case in cases if case.path.startswith(f"{program.section}/") or case.run is None}
    if SOAK:
        if PROGRAMS.index((language, program)) % WHOLE == 0:
            return cases
        chosen |= {case.path for case in selected(cases, FIRST[program.kind])}
        rest = [case.path for case in cases if case.path not in chosen]
        chosen.update(random.Random(f"{language} {program}").sample(rest, OTHERS))
    return [case for case in cases if case.path in chosen]


@pytest.mark.parametrize(
    ("language", "program"),
    chosen(),
    ids=lambda each: each if isinstance(each, str) else f"{each.program}-{each.fault}",
)
def test_a_faulty_program_is_failed_by_the_section_of_its_fault(language: str, program: FaultyProgram) -> None:
    target = Target(
        command(language, program),
        program.kind,
        timeout=LIMIT,
        contract=program.contract,
        knows=tuple(KNOWS[program.kind].split()) if program.contract else (),
    )
    result = Run(target, again=False).run(cases_for(language, program))
    must = {case.path.rpartition("/")[0] for case in result.cases if case.status == "failed" and case.is_must}
    should = {case.path.rpartition("/")[0] for case in result.cases if case.status == "failed"}
    if program.is_should:
        assert (must, program.section in should) == (set(), True), should
    else:
        why = [(case.path, case.why) for case in result.cases if case.status == "failed"]
        assert must == {program.section}, why


@pytest.mark.parametrize("language", SOURCES)
def test_bytes_that_are_not_utf8_fail_no_text(language: str) -> None:
    program = next(each for _, each in PROGRAMS if (each.program, each.fault) == ("contract-bolt", "writes_latin1"))
    target = Target(command(language, program), "bolt", timeout=3 * LIMIT, contract=True, knows=("emit",))
    sections = ("common/framing", "common/unicode")
    result = Run(target).run(selected(all_cases("bolt"), sections))
    assert [case.path for case in result.cases if case.status == "failed" and case.is_must] == ["common/framing/8"]
    assert "common/framing/8" in next(case.why for case in result.cases if case.path == "common/unicode/6")


def test_what_is_blocked_by_what_is_blocked_itself_fails_nothing() -> None:
    program = next(each for _, each in PROGRAMS if (each.program, each.fault) == ("contract-bolt", "acks_the_newest"))
    target = Target(command("py", program), "bolt", timeout=3 * LIMIT, contract=True, knows=("emit", "ids"))
    result = Run(target).run(
        selected(all_cases("bolt"), ("bolt/task_ids/7", "bolt/task_ids/8", "bolt/anchors", "bolt/ack"))
    )
    # A tuple's emit is anchored to what has been acked in its place, and bolt/anchors/8 waits for what acks do wrong.
    assert [case.path for case in result.cases if case.status == "failed" and case.is_must] == ["bolt/ack/6"]


@pytest.mark.parametrize(
    ("fault", "program", "section", "elsewhere"),
    [
        ("number_texts_are_numbers", "contract-spout", "common/numbers", ("spout/task_ids", "spout/commands")),
        ("all_numbers_are_texts", "contract-bolt", "common/numbers", ("bolt/task_ids", "common/sizes/4")),
        ("maps_are_texts", "contract-bolt", "common/json", ("common/sizes/5", "common/unicode/8")),
    ],
)
def test_an_altered_value_fails_the_one_case_that_speaks_of_it(
    fault: str, program: str, section: str, elsewhere: tuple[str, ...]
) -> None:
    found = next(each for _, each in PROGRAMS if (each.program, each.fault) == (program, fault))
    knows = tuple(KNOWS[found.kind].split())
    target = Target(command("py", found), found.kind, timeout=3 * LIMIT, contract=True, knows=knows)
    result = Run(target).run(selected(all_cases(found.kind), (section, *elsewhere)))
    [failed] = [case.path for case in result.cases if case.status == "failed" and case.is_must]
    assert failed.startswith(section)


@pytest.mark.parametrize("language", SOURCES)
def test_the_switches_of_a_component_are_the_faults_of_the_table(language: str) -> None:
    used = {
        name for call in re.findall(r"\bhas\(([^()]*)\)", SOURCES[language]) for name in re.findall(r'"(\w+)', call)
    }
    known = {each.fault for _, each in PROGRAMS} | {re.sub("_on_.*", "_on_", each.fault) for _, each in PROGRAMS}
    assert used - known == set()


def test_there_are_faulty_programs_of_every_section() -> None:
    sections = {each.section for _, each in PROGRAMS}
    assert {case.path.rpartition("/")[0] for case in all_cases()} - sections == {"bolt/order"}
    assert len(PROGRAMS) >= 150
