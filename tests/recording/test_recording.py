"""A recording holds what spouts emitted and what became of it, and a run on it emits the same, on every engine."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from pathlib import Path

import pytest

from multilang import LocalCluster
from multilang.component.errors import ConfigError
from multilang.local import Faults
from multilang.recording import RecordedSpout, Recording, new_recording, replayed
from multilang.testing import run_spout
from multilang.topology import TopologyError
from tests.cli.command import figures, multilang
from tests.recording import topologies

MODES = ["process", "inprocess", "simulated"]
HERE = Path(topologies.__file__)


def record(path, topology, mode, capture=(), **cluster):
    """Run a topology to its end, recorded; return the run and the recording's lines."""
    new_recording(path, topology)
    fail_fast = mode != "process" and "faults" not in cluster
    with LocalCluster(mode, fail_fast=fail_fast, **cluster) as started:
        conf = {"multilang.record": {"file": str(path), "start": 0.0}}
        run = started.submit(topology, conf=conf, capture=capture)
        run.wait(timeout=10_000 if mode == "simulated" else 60)
        counters = run.counters
        captured = {key: run.captured(*key) for key in capture}
    lines = [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]
    return counters, captured, lines


def emits(lines):
    """By task of a spout, its emits in order."""
    found = {}
    for each in lines[1:]:
        if "emit" in each and not each.get("again"):
            own = found.setdefault((each["spout"], each["task"]), [])
            own.append((each.get("stream", "default"), each["emit"], each.get("direct"), each["id"] is None))
    return found


STREAMS = [("mixed", "default"), ("mixed", "odd"), ("targeted", "default")]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_recorded_is_what_was_emitted_and_acked(tmp_path, mode) -> None:
    counters, captured, lines = record(tmp_path / "r", topologies.mixed(), mode, STREAMS, seed=1)
    for spout, stream in STREAMS:
        written = [
            each["emit"]
            for each in lines[1:]
            if "emit" in each and each["spout"] == spout and each.get("stream", "default") == stream
        ]
        assert sorted(map(repr, written)) == sorted(repr(tup.values) for tup in captured[spout, stream])
    assert sum("ack" in each and each["spout"] == "mixed" for each in lines) == counters["mixed"].acked == 76
    times = [each["at"] for each in lines[1:] if each["spout"] == "targeted"]
    assert times == sorted(times)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_on_a_recording_emits_the_same_from_the_same_tasks_in_the_same_order(tmp_path, mode) -> None:
    first = record(tmp_path / "r", topologies.mixed(), "inprocess", seed=1)[2]
    again = replayed(topologies.mixed(), Recording(tmp_path / "r"))
    counters, _, second = record(tmp_path / "again", again, mode, seed=2)
    assert emits(second) == emits(first)
    assert counters["sink"].executed == len([each for each in first[1:] if "emit" in each])


def test_fails_are_recorded_and_what_was_emitted_again_is_emitted_once_by_the_run_on_it(tmp_path) -> None:
    counters, _, lines = record(tmp_path / "r", topologies.failing(), "inprocess")
    fails = [each["fail"] for each in lines[1:] if "fail" in each]
    assert len(fails) == counters["numbers"].failed == 13
    assert sum(bool(each.get("again")) for each in lines[1:]) == 13
    assert sum("ack" in each for each in lines[1:]) == 40
    counters, captured, second = record(
        tmp_path / "again",
        replayed(topologies.failing(), Recording(tmp_path / "r")),
        "inprocess",
        [("fails", "default")],
    )
    assert sorted(tup["n"] for tup in captured["fails", "default"]) == list(range(1, 41))
    assert counters["numbers"].failed == 13  # the bolt fails them again, and they are replayed again
    assert emits(second) == emits(lines)


def test_the_same_seed_and_faults_repeat_a_run_on_a_recording(tmp_path) -> None:
    record(tmp_path / "r", topologies.failing(), "inprocess")

    def run(name, seed):
        again = replayed(topologies.failing(), Recording(tmp_path / "r"))
        return record(tmp_path / name, again, "simulated", seed=seed, faults=Faults())[2][1:]

    assert run("a", 7) == run("b", 7)
    assert run("c", 8) != run("d", 9)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_on_a_recording_is_exact_where_the_topology_is(tmp_path, seed) -> None:
    def conf(name):
        return {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": json.dumps({"path": str(tmp_path / name)}),
        }

    record(tmp_path / "r", topologies.exact().with_conf(conf("first")), "simulated", seed=seed)
    whole = replayed(topologies.exact().with_conf(conf("second")), Recording(tmp_path / "r"))
    with LocalCluster("simulated", seed=seed, faults=Faults(spouts=True)) as cluster:
        run = cluster.submit(whole, capture=["sum"])
        run.wait(timeout=10_000)
        assert max(tup["sum"] for tup in run.captured("sum")) == sum(range(1, 41))


def test_the_recorded_pace_is_replayed(tmp_path) -> None:
    path = tmp_path / "r"
    new_recording(path, topologies.failing())
    with path.open("a") as file:
        for n, at in enumerate([7.0, 7.1, 7.4], 1):
            file.write(json.dumps({"at": at, "spout": "numbers", "task": 2, "emit": [n], "id": n}) + "\n")
    counters, _, lines = record(
        tmp_path / "again", replayed(topologies.failing(), Recording(path), "recorded"), "simulated"
    )
    times = [each["at"] for each in lines[1:] if "emit" in each and not each.get("again")]
    assert counters["numbers"].acked == 3
    assert [time - times[0] for time in times] == pytest.approx([0.0, 0.1, 0.4], abs=0.01)
    fast = record(tmp_path / "fast", replayed(topologies.failing(), Recording(path)), "simulated")[2]
    assert max(each["at"] for each in fast[1:]) < 0.3


def test_a_line_that_was_cut_off_is_left_out_and_a_broken_one_is_named(tmp_path) -> None:
    path = tmp_path / "r"
    record(path, topologies.failing(), "inprocess")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at":9.0,"spout":"numb')
    assert len(list(Recording(path).emitted("numbers"))) == 40
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"{oh\n", *lines[5:]]))
    with pytest.raises(ConfigError, match=r"line 6 of .* is no line of a recording"):
        list(Recording(path).emitted("numbers"))


def test_a_line_that_another_one_stuck_to_is_left_out_and_the_other_one_is_not(tmp_path) -> None:
    path = tmp_path / "r"
    record(path, topologies.failing(), "inprocess")
    lines = path.read_bytes().splitlines(keepends=True)
    whole = [each.values for each in Recording(path).emitted("numbers")]
    emit = next(number for number, line in enumerate(lines) if b'"emit"' in line)
    for size in range(1, len(lines[emit])):  # the bytes that were written of it, before its task was killed
        path.write_bytes(b"".join([*lines[: emit + 1], lines[emit][:size], *lines[emit + 1 :]]))
        assert [each.values for each in Recording(path).emitted("numbers")] == whole


def test_a_value_that_looks_like_a_line_is_none_wherever_its_own_line_was_cut_off(tmp_path) -> None:
    path = tmp_path / "r"
    new_recording(path, topologies.failing())
    head = path.read_bytes()
    like = {"at": 9.0, "spout": "numbers", "task": 2, "emit": ["inside"]}
    line = json.dumps({**like, "emit": [like, [like]]}, separators=(",", ":")).encode() + b"\n"
    for size in range(1, len(line)):
        path.write_bytes(head + line[:size])
        assert [each.values for each in Recording(path).emitted("numbers")] == [[like, [like]]] * (
            size == len(line) - 1
        )
        path.write_bytes(head + line[:size] + line)
        assert [each.values for each in Recording(path).emitted("numbers")] == [[like, [like]]]


def test_a_run_that_is_continued_takes_no_other_recording_for_its_own(tmp_path) -> None:
    path = tmp_path / "r"
    record(path, topologies.failing(), "inprocess")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))
    run = run_spout(RecordedSpout(str(path), "numbers"))
    with pytest.raises(
        ConfigError, match=r"r has \d+ tuples of spout 'numbers' .* was after 40: restore the whole recording"
    ):
        run.spout.seek(40)
    before = RecordedSpout(str(path), "numbers").identity()
    path.write_text("".join([lines[0].replace('"began":"2', '"began":"3'), *lines[1:]]))
    assert RecordedSpout(str(path), "numbers").identity() != before


@pytest.mark.parametrize("value", [None, 5, "x", [], [5], {}, {"numbers": 5}, {"numbers": {"default": 5}}])
def test_whatever_stands_in_a_line_it_is_read_or_named(tmp_path, value) -> None:
    path = tmp_path / "r"
    record(path, topologies.failing(), "inprocess")
    whole = [json.loads(line) for line in path.read_text().splitlines()]
    first = next(number for number, entry in enumerate(whole) if "emit" in entry)
    messages: list[str] = []
    for number in (0, first):
        for key in whole[number]:
            lines = [dict(entry) for entry in whole]
            lines[number][key] = value
            path.write_text("".join(f"{json.dumps(entry)}\n" for entry in lines))
            try:
                assert len(list(Recording(path).emitted("numbers"))) >= 39
                replayed(topologies.failing(), Recording(path))
            except ConfigError as error:
                messages.append(str(error))
    assert messages
    assert all(str(path) in each for each in messages)


def test_a_recording_is_its_users_alone_and_is_not_overwritten(tmp_path) -> None:
    path = tmp_path / "r"
    new_recording(path, topologies.failing())
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(ConfigError, match="is there already, and is not overwritten"):
        new_recording(path, topologies.failing())
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ConfigError):
        new_recording(tmp_path / "link", topologies.failing())


def test_a_recording_that_does_not_fit_is_refused(tmp_path) -> None:
    path = tmp_path / "r"
    new_recording(path, topologies.failing())
    with pytest.raises(ConfigError, match=r"recorded of spout 'numbers', which topology 'mixed' does not have"):
        replayed(topologies.mixed(), Recording(path))
    head = json.loads(path.read_text())

    def changed(**what):
        path.write_text(json.dumps({**head, **what}) + "\n")
        return Recording(path)

    with pytest.raises(ConfigError, match="with the fields m of stream 'default', which has the fields n now"):
        replayed(topologies.failing(), changed(spouts={"numbers": {"default": ["m"]}}))
    with pytest.raises(ConfigError, match="nothing of spout 'numbers'"):
        replayed(topologies.failing(), changed(spouts={}))
    with pytest.raises(ConfigError, match="of format 2, and this version reads 1"):
        changed(recording=2)
    path.write_text("hello\n")
    with pytest.raises(ConfigError, match="is no recording"):
        Recording(path)
    with pytest.raises(ValueError, match="pace 'slow'"):
        replayed(topologies.failing(), changed(), "slow")


def test_spouts_of_another_builder_are_not_replaced(tmp_path) -> None:
    from examples.transactional_words import topology

    new_recording(tmp_path / "r", topology)
    with pytest.raises((TopologyError, ConfigError)):
        replayed(topology, Recording(tmp_path / "r"))


@pytest.mark.parametrize("mode", MODES)
def test_the_command_records_and_replays(tmp_path, mode) -> None:
    file = tmp_path / "r.jsonl"
    place = f"{HERE}:mixed"
    first = figures(place, "--mode", mode, "--record", file)
    assert first["status"] == 0
    again = figures(place, "--mode", mode, "--replay", file)
    assert again["status"] == 0
    for component in ("mixed", "targeted", "sink"):
        assert again["components"][component]["emitted"] == first["components"][component]["emitted"]
    shown = multilang("run", place, "--mode", mode, "--record", file)
    assert shown.returncode == 2
    assert "is not overwritten" in shown.stderr


def test_a_run_that_is_killed_leaves_whole_lines(tmp_path) -> None:
    import signal
    import subprocess
    import time

    from tests.cli.command import COMMAND, ROOT

    file = tmp_path / "r.jsonl"
    run = subprocess.Popen(
        [COMMAND, "run", ROOT / "examples" / "word_count.py", "-q", "--record", file],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not file.exists() or file.stat().st_size < 100_000:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    found = list(Recording(file).emitted("sentences"))
    assert len(found) > 100
    assert max(Counter(each.id for each in found).values()) == 1
