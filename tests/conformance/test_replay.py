"""The captures of a real Storm replayed to components, and conversations recorded and replayed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, all_cases
from multilang.conformance.case import selected
from multilang.conformance.errors import BadFile
from multilang.conformance.replay import read_recording, replay
from multilang.conformance.target import Target
from tests.soak import soak_only

ROOT = Path(__file__).parents[2]
CAPTURES = sorted((ROOT / "fixtures" / "wire").glob("*.jsonl"))
COMPONENTS = Path(__file__).parent / "replayed.py"
LIMIT = 60.0
MAIN = "import sys; from multilang.cli import main; sys.exit(main())"
RECORD = [sys.executable, "-c", MAIN, "conformance", "record"]


def component(name: str) -> Target:
    return Target([sys.executable, str(COMPONENTS), name], timeout=LIMIT)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_a_component_that_does_the_same_gives_the_same_conversation(capture: Path) -> None:
    recording = read_recording(capture)
    assert recording.kind == ("spout" if capture.name.startswith("src") else "bolt")
    assert replay(recording, component(capture.name.partition(".")[0])) is None


def test_another_answer_is_told_with_its_line_and_both_messages() -> None:
    difference = next(
        found
        for capture in CAPTURES
        if capture.name.startswith("split.task")
        if (found := replay(read_recording(capture), component("forgets"))) is not None
    )
    assert '"fail"' in difference.expected
    assert '"ack"' in difference.received
    assert difference.line > 1


def test_messages_that_the_recording_does_not_have_are_told_unless_they_are_ignored() -> None:
    capture = next(path for path in CAPTURES if path.name == "split.task5.jsonl")
    difference = replay(read_recording(capture), component("much"))
    assert difference is not None
    assert "a tick" in difference.received
    assert replay(read_recording(capture), component("much"), ignore=["log"]) is None


@pytest.mark.parametrize("name", ["sink.task2", "src.task7"])
def test_what_a_recording_was_too_short_for_is_no_difference(tmp_path: Path, name: str) -> None:
    lines = (ROOT / "fixtures" / "wire" / f"{name}.jsonl").read_text("utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if json.loads(line)["d"] == "in")
    file = tmp_path / "short.jsonl"
    file.write_text("\n".join(lines[: last + 1]), "utf-8")
    assert replay(read_recording(file), component(name.partition(".")[0])) is None


@pytest.mark.parametrize("options", [[], ["--ignore", "log"]])
def test_the_command_takes_the_program_behind_two_dashes(options: list[str]) -> None:
    capture = ROOT / "fixtures" / "wire" / "sink.task2.jsonl"
    command = [*RECORD[:-1], "replay", str(capture), *options, "--", sys.executable, str(COMPONENTS), "sink"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_recording_holds_every_message_and_replays(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    source = ROOT / "fixtures" / "wire" / "sink.task2.in.txt"
    handshake, *rest = source.read_bytes().split(b"\nend\n")[:-1]
    where = json.dumps(str(tmp_path)).encode()
    handshake = b'{"pidDir":' + where + handshake[handshake.index(b',"context"') :]
    command = [*RECORD, "-o", str(file), "--"]
    ran = subprocess.run(
        [*command, sys.executable, str(COMPONENTS), "sink"],
        input=b"".join(text + b"\nend\n" for text in (handshake, *rest)),
        capture_output=True,
        timeout=LIMIT,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert "".join(row["raw"] for row in rows if row["d"] == "out").encode() == ran.stdout
    assert [row["raw"] for row in rows if row["d"] == "in"][1:] == [text.decode() + "\nend\n" for text in rest]
    assert rows[-1]["d"] == "exit"
    assert replay(read_recording(file), component("sink")) is None


def test_a_recorder_that_gets_sigterm_ends_its_component_and_stores_the_messages(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    command = [*RECORD, "-o", str(file), "--"]
    recorder = subprocess.Popen(
        [*command, sys.executable, str(COMPONENTS), "sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert recorder.stdin is not None
    assert recorder.stdout is not None
    handshake = {"pidDir": str(tmp_path), "conf": {}, "context": {"taskid": 1, "task->component": {"1": "sink"}}}
    recorder.stdin.write(json.dumps(handshake).encode() + b"\nend\n")
    recorder.stdin.flush()
    pid = json.loads(recorder.stdout.readline())["pid"]
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(LIMIT) == 128 + signal.SIGTERM
    assert pid != recorder.pid
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [row["d"] for row in rows] == ["in", "out", "out-eof", "exit"]
    assert rows[-1]["raw"] == "-15"
    recorder.stdin.close()
    recorder.stdout.close()


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(("common/pid", "common/handshake", "common/end"), marks=soak_only),
        ("common/io", "common/framing", "bolt/heartbeat/4"),
    ],
)
def test_a_recorder_keeps_all_that_the_program_behind_it_keeps(tmp_path: Path, cases: tuple[str, ...]) -> None:
    plain = ROOT / "examples" / "conformance" / "plain.py"
    command = [*RECORD, "-o", str(tmp_path / "talk.jsonl"), "--", sys.executable, str(plain), "bolt"]
    result = Run(Target(command, "bolt", timeout=LIMIT)).run(selected(all_cases("bolt"), cases))
    assert [f"{case.path}: {case.why}" for case in result.cases if case.status != "passed"] == []


def test_a_tuple_with_a_command_in_it_makes_no_spout(tmp_path: Path) -> None:
    handshake, tup = '{"pidDir":"/x","conf":{}}', '{"id":"1","stream":"a","tuple":[{"command":"next"}]}'
    file = tmp_path / "bolt.jsonl"
    file.write_text("\n".join(json.dumps({"t": 0, "d": "in", "raw": f"{raw}\nend\n"}) for raw in (handshake, tup)))
    assert read_recording(file).kind == "bolt"


@pytest.mark.parametrize(
    "text",
    ["", "no json\n", '{"d": "in"}\n', '{"t": 0, "d": "out", "raw": "{}\\nend\\n"}\n', "[]", '{"d": "in", "raw": "x"}'],
)
def test_what_is_no_recording_is_said_so(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(BadFile, match=r"x\.jsonl"):
        read_recording(file)
