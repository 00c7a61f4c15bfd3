"""Records of workers' logs: whose they are, what of them is Java's, and how they are followed."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.shipping.log_records import RecordReader
from multilang.shipping.worker_logs import FollowedFile, FollowedLogviewer, WorkerPlace
from tests.cli.command import COMMAND, LIMIT, multilang
from tests.shipping.test_worker_logs import logviewer, write

# As a Storm 2.8.3 writes it.
LOG = """\
2026-05-01 02:40:02.268 o.a.s.v.ConfigValidation main [INFO] Will use [class org.apache.storm.Config] for validation
2026-05-01 02:40:29.947 o.a.s.t.ShellBolt Thread-20-count-executor[2, 2] [INFO] Launched subprocess with pid 13612
2026-05-01 02:40:29.948 o.a.s.t.ShellBolt Thread-21-parse-executor[3, 3] [INFO] Launched subprocess with pid 16257
2026-05-01 02:42:14.903 o.a.s.t.ShellBolt Thread-29 [WARN] ShellLog pid:16257, name:parse no visit: 'hello'
2026-05-01 02:42:14.904 o.a.s.s.ShellSpout Thread-20-visits-executor[1, 1] [ERROR] ShellLog pid:16259, name:visits ValueError in component 'visits'
Traceback (most recent call last):
  File "spouts.py", line 3, in next_tuple
    raise ValueError("no queue")
ValueError: no queue

\tat org.apache.storm.task.ShellBolt.handleError(ShellBolt.java:232)
\tat java.base/java.lang.Thread.run(Thread.java:840)
2026-05-01 02:42:15.662 o.a.s.e.e.ReportError Thread-20-visits-executor[1, 1] [ERROR] Error
java.lang.RuntimeException: pid:16259, name:visits exitCode:-1, errorString:
\tat org.apache.storm.spout.ShellSpout.querySubprocess(ShellSpout.java:223)
Caused by: java.lang.RuntimeException: Pipe to subprocess seems to be broken!
Serializer Exception:


\tat org.apache.storm.utils.ShellProcess.readShellMsg(ShellProcess.java:121)
\t... 7 more
2026-05-01 02:42:16.000 o.a.s.t.ShellBolt Thread-29 [INFO] ShellLog pid:16257, name:parse fine again
"""


def read(text: str):
    reader = RecordReader()
    return [*reader.add(text.splitlines()), *reader.rest()]


def test_records_know_their_component_and_their_own_lines() -> None:
    found = read(LOG)
    assert [(each.level, each.component, each.task, each.is_own) for each in found] == [
        ("info", None, None, False),
        ("info", "count", 2, False),
        ("info", "parse", 3, False),
        ("warn", "parse", 3, True),
        ("error", "visits", 1, True),
        ("error", "visits", 1, False),
        ("info", "parse", 3, True),
    ]
    assert found[3].lines == ["no visit: 'hello'"]
    assert found[4].lines[0] == "ValueError in component 'visits'"
    assert "ValueError: no queue" in found[4].lines
    assert not any("java" in line for line in found[4].lines)
    assert found[5].lines == [
        "Error",
        "java.lang.RuntimeException: pid:16259, name:visits exitCode:-1, errorString:",
        "Caused by: java.lang.RuntimeException: Pipe to subprocess seems to be broken!",
    ]


@given(st.lists(st.integers(0, len(LOG)), max_size=6))
def test_records_are_the_same_however_the_log_is_cut(tmp_path_factory, cuts) -> None:
    path = tmp_path_factory.mktemp("logs") / "worker.log"
    reader, followed, found = RecordReader(), FollowedFile(path), []
    at = 0
    for cut in [*sorted(cuts), len(LOG)]:
        with path.open("a") as file:
            file.write(LOG[at:cut])
        at = cut
        found += reader.add(followed.lines())
    assert [*found, *reader.rest()] == read(LOG)


def test_what_a_bolt_reports_is_known_by_its_text_or_by_the_thread_that_reads_from_it() -> None:
    reported = """\
2026-05-01 02:42:17.000 o.a.s.e.e.ReportError Thread-29 [ERROR] Error
java.lang.Exception: Shell Process Exception: no visit
\tat org.apache.storm.task.ShellBolt.handleError(ShellBolt.java:232)
2026-05-01 02:42:18.000 o.a.s.e.e.ReportError Thread-31 [ERROR] Error
java.lang.Exception: Shell Process Exception: KeyError in component 'count' (task 2) on tuple 7 from 'parse'
\tat org.apache.storm.task.ShellBolt.handleError(ShellBolt.java:232)
"""
    assert [(each.component, each.task) for each in read(LOG + reported)[-2:]] == [("parse", 3), ("count", 2)]


def test_lines_of_another_pattern_are_shown_as_they_are() -> None:
    assert [each.lines for each in read("hello\nworld\n")] == [["hello"], ["world"]]


def test_a_log_that_was_rolled_over_begins_anew(tmp_path) -> None:
    path = tmp_path / "worker.log"
    path.write_text("one\ntwo\n")
    followed = FollowedFile(path)
    assert followed.lines() == ["one", "two"]
    os.rename(path, tmp_path / "worker.log.1")
    assert followed.lines() == []
    path.write_text("three, which is longer\n")
    assert followed.lines() == ["three, which is longer"]
    assert followed.lines() == []


def test_what_came_before_a_log_was_rolled_over_is_shown_too(tmp_path) -> None:
    """Storm packs the old file, and removes it; the last line may have no end."""
    path = tmp_path / "worker.log"
    path.write_text("one\n")
    followed = FollowedFile(path)
    assert followed.lines() == ["one"]
    with path.open("a") as file:
        file.write("two\nthr")
    path.unlink()
    path.write_text("four\n")
    assert [*followed.lines(), *followed.lines()] == ["two", "thr", "four"]
    assert followed.lines() == []


@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_a_log_that_is_longer_than_what_is_read_at_once_is_read_to_its_end(tmp_path, most) -> None:
    path = tmp_path / "worker.log"
    text = "".join(f"line {number}\n" for number in range(20))
    path.write_text(text)
    assert [line for lines in FollowedFile(path, most).every() for line in lines] == text.splitlines()


def test_a_logviewers_log_is_followed(tmp_path) -> None:
    write(tmp_path, "t-1-5", 6700, "one\ntwo\n")
    path = tmp_path / "t-1-5" / "6700" / "worker.log"
    with logviewer(tmp_path) as port:
        followed = FollowedLogviewer(WorkerPlace("127.0.0.1", 6700), "t-1-5", port)
        assert followed.lines() == ["one", "two"]
        assert followed.lines() == []
        with path.open("a") as file:
            file.write("three\n")
        assert followed.lines() == ["three"]
        path.write_text("anew\n")
        assert followed.lines() == ["anew"]
        path.write_text("again\nand longer\n")
        assert followed.lines() == ["again", "and longer"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "workers-artifacts", "t-1-5", 6700, LOG)
    other = LOG.replace("02:42:1", "02:42:0").replace("fine again", "fine there")
    write(tmp_path / "workers-artifacts", "t-1-5", 6701, other)
    return tmp_path


def logs(folder: Path, *options: object) -> list[str]:
    shown = multilang("logs", "t", "--folder", folder, *options)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.splitlines()


def test_components_lines_of_all_workers_are_in_the_order_of_time(folder: Path) -> None:
    lines = [line for line in logs(folder) if not line.startswith("    ")]
    times = [line[:23] for line in lines]
    assert times == sorted(times)
    assert len(lines) == 8  # of each worker, two of parse, visits' error, and Storm's about it
    assert "worker 6700" in lines[-1]
    assert not any("ConfigValidation" in line or "Will use" in line for line in lines)
    assert any("Will use" in line for line in logs(folder, "--storm"))


def test_lines_are_chosen_by_component_level_text_and_number(folder: Path) -> None:
    assert len(logs(folder, "--component", "parse")) == 4
    assert len(logs(folder, "--component", "parse", "--level", "warning")) == 2
    assert [line[-10:] for line in logs(folder, "--grep", "fine (again|there)")] == ["fine there", "fine again"]
    assert [line[-10:] for line in logs(folder, "--component", "parse", "-n", "1")] == ["fine again"]
    assert logs(folder, "-n", "0") == []
    wrong = multilang("logs", "t", "--folder", folder, "--grep", "(")
    assert wrong.returncode == 2
    assert "'(' is no regular expression" in wrong.stderr


def test_what_comes_is_shown_while_it_is_followed(folder: Path) -> None:
    command = [COMMAND, "logs", "t", "--folder", folder, "-f", "-n", "1", "--component", "parse"]
    following = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert following.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(line) for line in following.stdout], daemon=True)  # type: ignore[union-attr]
    reader.start()
    try:
        assert "fine again" in lines.get(timeout=LIMIT)
        with (folder / "workers-artifacts" / "t-1-5" / "6701" / "worker.log").open("a") as file:
            file.write("2026-05-01 03:00:00.000 o.a.s.t.ShellBolt Thread-29 [INFO] ShellLog pid:1, name:other hidden\n")
            file.write(
                "2026-05-01 03:00:01.000 o.a.s.t.ShellBolt Thread-29 [INFO] ShellLog pid:1, name:parse seen\nmore\n"
            )
        assert "parse seen" in lines.get(timeout=LIMIT)
        assert lines.get(timeout=LIMIT) == "    more\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(LIMIT) == 130
    finally:
        following.kill()
        following.wait()
        reader.join()
        following.stdout.close()
