"""``multilang run``: its output and its exit status."""

from __future__ import annotations

import re
import subprocess

import pytest

from multilang.cli.view import totals
from multilang.engine.status import ComponentStatus, RunStatus
from tests.cli.command import COMMAND, ROOT, figures, multilang, topology
from tests.local import watched
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS


@EVERY_MODE
def test_a_run_in_which_everything_is_acked_exits_with_0(mode: str) -> None:
    document = figures(topology("small"), "--mode", mode)
    assert document["status"] == 0
    assert document["end"] == "drained"
    assert document["reliability"] == {
        "acked": 40,
        "failed": 0,
        "timed_out": 0,
        "pending": 0,
        "lost": 0,
        "errors": 0,
        "restarts": 0,
    }
    assert document["components"]["remainder"]["executed"] == 40


@EVERY_MODE
def test_a_short_run_has_the_components_own_metrics(mode: str, tmp_path) -> None:
    document = figures("tests.local.watched:counting", "--mode", mode, MULTILANG_STATE_HOME=str(tmp_path))
    own = {each["name"]: each["value"] for each in document["components"]["counting"]["by_task"][0]["metrics"]}
    assert own["tuples"] == watched.TUPLES
    assert own["sum"] == sum(range(watched.TUPLES))


@MOSTLY_IN_PROCESS
def test_failures_that_were_replayed_and_acked_are_no_failure_of_the_run(mode: str) -> None:
    document = figures(topology("replayed"), "--mode", mode, "--exchange", "root")  # none is failed by another one
    assert document["status"] == 0
    assert document["reliability"]["acked"] == 40
    assert document["reliability"]["failed"] == 14
    assert document["reliability"]["lost"] == 0


@MOSTLY_IN_PROCESS
def test_tuples_that_failed_for_good_make_the_status_1(mode: str) -> None:
    document = figures(topology("lossy"), "--mode", mode)
    assert document["status"] == 1
    assert document["reliability"]["acked"] == 5
    assert document["reliability"]["lost"] == 5


@MOSTLY_IN_PROCESS
def test_what_timed_out_is_told_apart_from_what_a_bolt_failed(mode: str) -> None:
    shown = multilang("run", topology("forgetful"), "--mode", mode)
    assert "5 failed (3 of them timed out)" in shown.stdout
    assert re.search(r"failed +timed out +pending", shown.stdout)
    assert re.search(r"numbers .* 5 +5 +3 +0 ", shown.stdout), shown.stdout
    numbers = ComponentStatus(id="numbers", kind="spout", tasks=1, failed=5, timed_out=3)
    status = RunStatus(topology="t", engine=mode, state="active", seconds=1.0, components=(numbers,))
    assert "(3 timed out)" in totals(status)
    document = figures(topology("forgetful"), "--mode", "simulated")
    assert (document["reliability"]["failed"], document["reliability"]["timed_out"]) == (5, 3)
    assert document["components"]["numbers"]["timed_out"] == 3


def test_a_time_in_which_no_component_starts_makes_the_status_3() -> None:
    document = figures(topology("small"), "--for", "0.01")
    assert (document["status"], document["end"]) == (3, "not-started")
    assert document["problem"] == "no component had started after 0.01 s; give them more time with --for"


@EVERY_MODE
def test_a_component_that_never_starts_makes_the_status_3_and_is_named(mode: str) -> None:
    document = figures(topology("dies"), "--mode", mode)
    assert document["status"] == 3
    assert document["end"] == "not-started"
    assert "'remainder'" in document["problem"]
    assert "the database is not there" in document["problem"]


def test_a_run_for_some_seconds_ends_in_time_whatever_is_left() -> None:
    document = figures(topology("slow"), "--mode", "inprocess", "--for", "0.5")
    assert document["status"] == 0
    assert document["end"] == "time"
    assert document["seconds"] >= 0.5


def test_not_to_be_drained_in_time_makes_the_status_1() -> None:
    document = figures(topology("slow"), "--mode", "inprocess", "--for", "0.5", "--until-drained")
    assert document["status"] == 1
    assert "not everything was processed in 0.5 s:\n  - spout " in document["problem"]


def test_the_same_seed_gives_the_same_simulated_run() -> None:
    first = figures(topology("replayed"), "--mode", "simulated", "--seed", "7")
    assert figures(topology("replayed"), "--mode", "simulated", "--seed", "7") == first


def test_faults_are_drawn_from_the_seed_and_lose_nothing() -> None:
    first = figures(topology("small"), "--mode", "simulated", "--seed", "7", "--faults")
    assert first["reliability"]["acked"] == 40
    assert first["reliability"]["lost"] == 0
    assert first["reliability"]["failed"] > 0
    assert figures(topology("small"), "--mode", "simulated", "--seed", "7", "--faults") == first


def test_tuples_without_an_id_are_counted_by_their_emits() -> None:
    shown = multilang("run", topology("unreliable"), "--mode", "inprocess")
    assert shown.returncode == 0
    assert "10 tuples emitted, none of them with an id to be acked by, in " in shown.stdout


@pytest.mark.parametrize("command", ["run", "show"])
def test_a_reader_that_goes_away_is_told_of_by_the_status_alone(command: str) -> None:
    shown = subprocess.run(
        ["bash", "-c", '"$0" "$1" "$2" | true; echo "${PIPESTATUS[0]}"', COMMAND, command, topology("small")],
        capture_output=True,
        text=True,
    )
    assert (shown.stdout, shown.stderr) == ("141\n", "")


def test_top_ranks_by_the_last_value_of_a_field() -> None:
    document = figures(topology("small"), "--mode", "inprocess", "--top", "remainder:remainder:number", "--rows", "3")
    assert document["top"] == [
        {"remainder": 3, "number": 39},
        {"remainder": 2, "number": 38},
        {"remainder": 1, "number": 37},
    ]


def test_top_counts_tuples_when_it_is_given_one_field() -> None:
    document = figures(topology("small"), "--mode", "inprocess", "--top", "remainder:remainder", "--rows", "1")
    assert document["top"] == [{"remainder": 0, "tuples": 10}]


def test_conf_entries_are_json_or_text_and_reach_the_components() -> None:
    document = figures(topology("small"), "--mode", "inprocess", "-c", "topology.max.spout.pending=1")
    assert document["reliability"]["acked"] == 40


@MOSTLY_IN_PROCESS
def test_what_a_pipe_gets_is_plain_text(mode: str) -> None:
    shown = multilang("run", topology("small"), "--mode", mode)
    assert "\x1b" not in shown.stdout + shown.stderr
    assert re.search(r"^numbers +spout +1 +40 +40 +0 +0 ", shown.stdout, re.M)
    assert "40 tuples acked" in shown.stdout


@EVERY_MODE
def test_the_log_of_components_goes_to_standard_error_from_warnings_on(mode: str) -> None:
    shown = multilang("run", topology("logs"), "--mode", mode)
    assert "WARNING remainder: " in shown.stderr
    assert "number 39" in shown.stderr
    assert "in detail" not in shown.stderr
    assert "number" not in shown.stdout.partition("component")[0]


def test_verbose_shows_more_of_the_log_and_quiet_none() -> None:
    assert "in detail 39" in multilang("run", topology("logs"), "-v").stderr
    assert multilang("run", topology("logs"), "-q").stderr == ""


def test_files_are_given_to_the_spouts_by_their_whole_path(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("one two two\n")
    (tmp_path / "b.txt").write_text("two three\n")
    shown = multilang(
        "run", "word_count.py", "--input", tmp_path / "a.txt", tmp_path / "b.txt", "--top", "count:word:count", "-q",
        cwd=multilang_examples(),
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^two +3$", shown.stdout, re.M)


LOGGED = """
        try:
            int('x')
        except ValueError:
            self.logger.exception('no %s', tup[0])
"""


def multilang_examples():

    return ROOT / "examples"


@pytest.mark.parametrize("call", ["raise ValueError(f'no {tup[0]}')", LOGGED])
def test_one_fault_that_every_tuple_meets_is_shown_once_in_full_and_then_counted(tmp_path, call):
    (tmp_path / "faulty.py").write_text(
        "from multilang import BasicBolt, TopologyBuilder\n"
        "from tests.cli.topologies import Numbers\n"
        "class Faulty(BasicBolt):\n"
        "    def process(self, tup):\n"
        f"        {call}\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('numbers', Numbers)\n"
        "builder.set_bolt('faulty', Faulty).shuffle_grouping('numbers')\n"
        "topology = builder.build('t', conf={'multilang.max.replays': 3})\n"
    )
    path = tmp_path / "faulty.py"
    shown = multilang("run", path, "--mode", "inprocess", PYTHONPATH=str(ROOT))
    assert shown.returncode in (0, 1)
    assert shown.stderr.count("Traceback") == 1
    *_, last = (line for line in shown.stderr.splitlines() if "ERROR faulty: " in line)
    every = multilang("run", path, "--mode", "inprocess", "-vv", PYTHONPATH=str(ROOT))
    tracebacks = every.stderr.count("Traceback")
    assert tracebacks > 5
    assert f"; {tracebacks:,} times in all)" in last


def test_the_pace_of_a_recording_needs_the_recording() -> None:
    shown = multilang("run", topology("small"), "--pace", "recorded", "--for", "1")
    assert shown.returncode == 2
    assert "--pace recorded needs --replay FILE" in shown.stderr


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_a_conf_that_a_component_refuses_is_said_once_and_not_tried_again(mode):
    shown = multilang("run", "examples/exclamation.py", "--mode", mode, cwd=ROOT)
    assert shown.returncode == 3
    problem = "names no DRPC servers for the function 'exclamation': set drpc.servers to a list of hosts"
    assert (shown.stdout.count(problem), shown.stderr.count(problem)) == (1, 1)
    assert "Traceback" not in shown.stdout + shown.stderr


@pytest.mark.parametrize(("output", "status"), [("/dev/full", 4), ("&-", 0)])
def test_output_that_can_not_be_written_is_no_failed_tuple(output, status):
    command = f'"{COMMAND}" run "{topology("small")}" --mode inprocess >{output}'
    shown = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert shown.returncode == status
    assert "Traceback" not in shown.stderr


PRINTS = """
from multilang import BasicBolt, TopologyBuilder
from tests.cli.topologies import Numbers
class Prints(BasicBolt):
    def process(self, tup):
        print("seen", tup[0])
builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("prints", Prints).shuffle_grouping("numbers")
topology = builder.build("t")
"""


def test_what_a_component_prints_is_shown_or_it_is_said_once_how(tmp_path):
    (tmp_path / "prints.py").write_text(PRINTS)
    shown = multilang("run", tmp_path / "prints.py", PYTHONPATH=str(ROOT))
    assert shown.returncode == 0, shown.stderr
    (line,) = (line for line in shown.stderr.splitlines() if "seen" in line)
    assert line.startswith("WARNING prints: what it prints is not shown here")
    assert "with -v" in line
    every = multilang("run", tmp_path / "prints.py", "-v", PYTHONPATH=str(ROOT))
    assert "INFO prints: stdout: seen 7" in every.stderr
    assert "not shown here" not in every.stderr


def test_brackets_of_values_and_of_code_are_shown_as_they_are(tmp_path) -> None:
    (tmp_path / "brackets.py").write_text(BRACKETS)
    shown = multilang("run", tmp_path / "brackets.py", "--mode", "inprocess", "-q", "--top", "rows:row")
    assert shown.returncode == 0, shown.stderr
    assert re.findall(r"^(\S+) +1$", shown.stdout, re.M) == ["[/b]", "[b]", "[red]x[/red]"]
    shown = multilang("run", tmp_path / "brackets.py", "--mode", "inprocess", "-q", "-c", "test.wrong=true")
    assert "self.emit([self.missing])" in shown.stdout + shown.stderr


BRACKETS = """
from multilang import Spout, TopologyBuilder


class Rows(Spout):
    output_fields = ["row"]

    def initialize(self, conf, context):
        self.rows = ["[b]", "[/b]", "[red]x[/red]"]
        self.wrong = "test.wrong" in conf

    def next_tuple(self):
        if self.wrong:
            self.emit([self.missing])
        elif self.rows:
            self.emit([self.rows.pop(0)])

    def exhausted(self):
        return not self.rows


builder = TopologyBuilder()
builder.set_spout("rows", Rows)
topology = builder.build("brackets")
"""
