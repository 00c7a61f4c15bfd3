"""``multilang conformance`` as its user runs it: reports, selection, exit statuses, and its messages on mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.command import multilang
from tests.patience import patient
from tests.soak import SOAK, sampled

ROOT = Path(__file__).parents[2]
PLAIN = ROOT / "examples" / "conformance" / "plain.py"
MUTANT = Path(__file__).parent / "mutant.py"
MUTE = ("sh", "-c", "echo '{\"pid\": 1}'; echo end; cat >/dev/null")  # sends its pid, and nothing else
LIMIT = patient(240)  # seconds: for a machine that is busy with other tests
PROGRAMS = Path(__file__).parent / "ordinary" / "programs.py"
COMPONENT = Path(__file__).parent / "faulty" / "component.py"
# Ordinary programs that a worker would die of: what is wrong, and the case that finds it.
DEADLY = {
    "dies on its first tuple": ([PROGRAMS, "DiesOnItsTuple"], "bolt/ordinary/1"),
    "dies of task ids": ([PROGRAMS, "TakesTaskIdsForATuple"], "bolt/ordinary/3"),
    "dies of a tick": ([PROGRAMS, "SplitsATick"], "bolt/ordinary/4"),
    "dies of 300 KB": ([PROGRAMS, "ReadsPartOfALongLine"], "bolt/ordinary/6"),
    "dies of letters": ([PROGRAMS, "KnowsAsciiAlone"], "bolt/ordinary/7"),
    "dies on an ack": ([PROGRAMS, "DiesOnAnAck"], "spout/ordinary/2"),
    "dies on a fail": ([PROGRAMS, "DiesOnAFail"], "spout/ordinary/3"),
    "never syncs, a bolt": ([COMPONENT, "ordinary-bolt", "no_sync"], "bolt/heartbeat/1"),
    "never syncs, a spout": ([COMPONENT, "ordinary-spout", "silent_on_next"], "spout/commands/1"),
}


def conformance(*arguments: object) -> subprocess.CompletedProcess[str]:
    return multilang("conformance", *arguments, limit=LIMIT)


def test_without_a_kind_it_finds_out_and_a_correct_program_passes() -> None:
    ran = conformance("--case", "bolt/ack", "--timeout", 60, "--", sys.executable, PLAIN, "bolt")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "a bolt, which keeps the conformance contract" in ran.stdout
    assert re.search(r"^[1-9]\d* passed, 0 failed, 0 warnings, 0 blocked, 0 skipped", ran.stdout, re.MULTILINE)
    ran = conformance("--case", "spout/sync", "--timeout", 60, "--", sys.executable, PLAIN, "spout")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "a spout, which keeps" in ran.stdout


@pytest.mark.parametrize("what", sampled(DEADLY, 3))
def test_an_ordinary_program_that_a_worker_would_die_of_ends_with_status_1(what: str) -> None:
    program, case = DEADLY[what]
    kind = case.partition("/")[0]
    cases = () if SOAK else ("--case", f"{kind}/ordinary", "--case", case)
    ran = conformance(kind, *cases, "--timeout", 20, "--", sys.executable, *program)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert f"failed {case} MUST" in " ".join(ran.stdout.split())


def test_a_fault_is_shown_with_what_was_sent_and_both_sides_and_in_every_report(tmp_path: Path) -> None:
    files = {name: tmp_path / f"result.{name}" for name in ("junit", "json", "html")}
    options = [text for name, file in files.items() for text in (f"--{name}", file)]
    command = [sys.executable, MUTANT, "AcksFailures"]
    ran = conformance("bolt", "--case", "bolt/fail", "--timeout", 60, *options, "--", *command)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert "failed bolt/fail/1 MUST a fail" in lines
    assert 'expected "fail"' in lines
    assert 'received "ack"' in lines
    assert any(line.startswith("sent") and '[["fail"]]' in line for line in lines)

    suite = ElementTree.parse(files["junit"]).getroot().find("testsuite")
    assert suite is not None
    failed = [case.get("classname") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert "bolt.fail.1" in failed
    assert suite.get("failures") == str(len(failed))

    result = json.loads(files["json"].read_text("utf-8"))
    statuses = {case["path"]: case["status"] for case in result["cases"]}
    assert (statuses["bolt/fail/1"], statuses["bolt/fail/4"]) == ("failed", "passed")
    page = files["html"].read_text("utf-8")
    assert 'id="f0-bolt-fail-1"' in page

    both = tmp_path / "matrix.html"
    assert conformance("matrix", files["json"], files["json"], "--html", both).returncode == 0
    page = both.read_text("utf-8")
    assert page.count("<th class=r>") == 3 + 2
    assert 'href="#f1-bolt-fail-1"' in page
    assert 'id="f1-bolt-fail-1"' in page


def test_a_should_is_a_warning_and_fails_a_strict_run() -> None:
    command = ["--case", "bolt/direct/9", "--timeout", 60, "--", sys.executable, MUTANT, "PlainTask"]
    ran = conformance("bolt", *command)
    assert (ran.returncode, "1 warnings" in ran.stdout) == (0, True), ran.stdout
    assert conformance("bolt", "--strict", *command).returncode == 1


def test_a_stray_text_is_one_failure_and_blocks_the_others() -> None:
    ran = conformance(
        *("bolt", "--contract", "--case", "bolt/tick", "--case", "common/framing", "--timeout", 60),
        *("-v", "--", sys.executable, MUTANT, "PrintsToStdout"),
    )
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert "common/framing/2 MUST failed no text before a message" in [line.partition(" (")[0] for line in lines]
    assert ran.stdout.count("blocked by common/framing/2") >= 3


@pytest.mark.parametrize(("step", "hint"), [("fail", True), ("emit", False)])
def test_a_bolt_that_fails_every_tuple_is_told_what_to_say_of_it(step: str, hint: bool) -> None:
    tup = json.dumps([[[step, ["x"]] if step == "emit" else [step]]])
    command = ["--case", "bolt/fail", "--timeout", 60, "--", sys.executable, PLAIN, "bolt"]
    ran = conformance("bolt", "--no-contract", "--tuple", tup, *command)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ("--tuple is for what it takes" in ran.stdout) is hint


@pytest.mark.parametrize("kind", ["auto", "bolt"])
def test_what_a_program_writes_has_no_power_over_the_terminal(kind: str) -> None:
    ran = conformance(kind, "--timeout", 60, "--", "sh", "-c", r"printf 'a\033[31mred\007b' >&2; exit 3")
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "\x07" not in ran.stdout + ran.stderr
    assert r"a\x1b[31mred\x07b" in ran.stdout + ran.stderr


def test_a_soak_says_its_seed_and_its_conversations_are_cases(tmp_path: Path) -> None:
    file = tmp_path / "soak.json"
    arguments = ["--seed", 7, "--number", 0, "--json", file, "--", sys.executable, PLAIN, "spout"]
    ran = conformance("spout", "--soak", "1m", *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "soak: seed 7, 1 conversations" in ran.stdout
    assert [case["path"] for case in json.loads(file.read_text("utf-8"))["cases"]] == ["soak/0"]


def test_what_it_knows_is_listed() -> None:
    ran = conformance("--list")
    assert len(ran.stdout.splitlines()) >= 180
    ran = conformance("spout", "--list", "--case", "spout/sync", "-v")
    assert "spout/sync/1" in ran.stdout
    assert "Multi-Lang Protocol 1.1.0" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["bolt"], 2, "no program is given"),
        (["bolt", "--case", "bolt/nosuch", "--", "true"], 2, "no case 'bolt/nosuch' for a bolt"),
        (["--strict", "bolt", "--", "true"], 2, "the kind comes before its options"),
        (["bolt", "--", "no-such-program"], 3, "can't be started: no-such-program"),
        (["--timeout", "3", "--", "true"], 1, "no valid first message came"),
        (["--timeout", "3", "--", "echo", "hello"], 1, "failed common/framing"),
        (["--timeout", "2", "--", *MUTE], 2, "it is unknown whether the program is a bolt or a spout"),
        (["bolt", "--soak", "soon", "--", "true"], 2, "'soon' is no duration; write for example 60s"),
        (["bolt", "--soak", "1s", "--fuzz", "1", "--", "true"], 2, "give one of them"),
        (["bolt", "--seed", "1", "--", "true"], 2, "--seed and --number are for --soak or --fuzz"),
        (["bolt", "--tuple", "word", "--", "true"], 2, "is not a JSON array of values"),
        (["bolt", "--output", "default", "--", "true"], 2, "is not STREAM=FIELD,FIELD"),
        (["bolt", "--html", "/no/such/folder/x.html", "--", "true"], 2, "there is no folder /no/such/folder"),
        (["matrix", "x.json", "--html", "x.html"], 2, "'x.json' does not exist"),
        (["matrix", sys.executable, "--html", "x.html"], 2, "is no result of multilang conformance --json"),
        (["replay", sys.executable, "--", "true"], 2, "is no recording"),
        (["matrix", str(PLAIN), "--html", "x.html"], 2, "is no result of multilang conformance --json"),
        (["replay", str(PLAIN), "--", "true"], 2, "is no recording"),
        (["record", "-o", "/dev/null"], 2, "no program is given"),
        (["bolt", "--timeout", "3", "--", "true"], 1, "common/handshake/1"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(arguments: list[str], status: int, message: str) -> None:
    ran = conformance(*arguments)
    assert ran.returncode == status, ran.stdout + ran.stderr
    assert message in " ".join((ran.stdout + ran.stderr).split())
    assert "Traceback" not in ran.stdout + ran.stderr
