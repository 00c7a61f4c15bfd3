"""A file that grows: each line once, through rotations, truncations and restarts."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.connectors import TailSpout
from multilang.testing import run_spout

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("lines"), st.integers(1, 100)),
        st.tuples(st.just("part"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["rotate", "read", "restart", "crash"]), st.just(0)),
    ),
    max_size=12,
)


class Log:
    """A file that a program writes, and logrotate renames."""

    def __init__(self, folder) -> None:
        self.path = folder / "app.log"
        self.rotated = 0
        self.lines: list[str] = []
        self.open_line = ""

    def write(self, text: str) -> None:
        with open(self.path, "a") as file:
            file.write(text)

    def add(self, count: int) -> None:
        for _ in range(count):
            line = f"{self.open_line}line {len(self.lines)}"
            self.write(f"{line.removeprefix(self.open_line)}\n")
            self.open_line = ""
            self.lines.append(line)

    def part(self, count: int) -> None:
        self.open_line += "x" * count
        self.write("x" * count)

    def rotate(self) -> None:
        if self.path.exists():
            if self.open_line:
                self.add(1)
            self.rotated += 1
            os.rename(self.path, f"{self.path}.{self.rotated}")


def started(log, folder):
    conf = {"multilang.positions": str(folder / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    return run_spout(TailSpout(log.path), conf=conf)


def read(run, acks=True):
    for _ in range(6):
        run.advance(1.0)
        run.next(4)
        for tup_id in list(run.pending) if acks else ():
            run.ack(tup_id)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_each_line_is_emitted_and_what_was_acked_only_once(tmp_path_factory, steps) -> None:
    folder = tmp_path_factory.mktemp("tail")
    log = Log(folder)
    run = started(log, folder)
    seen: list[str] = []
    may_rotate = False  # a file that came and went between two looks is nobody's
    for kind, number in [*steps, ("read", 0)]:
        if kind == "lines":
            log.add(number)
        elif kind == "part":
            log.part(number)
        elif kind == "rotate":
            if may_rotate:
                log.rotate()
                may_rotate = False
        elif kind == "read":
            read(run)
            may_rotate = log.path.exists()
        else:
            if kind == "crash":
                read(run, acks=False)
            run.close()
            seen += [
                row[0]
                for row in (run.values if kind == "restart" else run.values[: len(run.values) - len(run.pending)])
            ]
            run = started(log, folder)
    run.close()
    seen += [row[0] for row in run.values]
    assert seen == log.lines


def test_a_truncated_file_is_read_from_its_beginning(tmp_path) -> None:
    path = tmp_path / "app.log"
    path.write_text("one\ntwo\n")
    run = run_spout(TailSpout(path))
    read(run)
    path.write_text("3\n")
    read(run)
    run.close()
    assert run.values == [["one"], ["two"], ["3"]]
    assert any("was truncated to 2 bytes" in text for _, text in run.logged)


def test_a_file_that_was_rotated_away_while_nobody_read_is_told(tmp_path) -> None:
    log = Log(tmp_path)
    log.add(2)
    run = started(log, tmp_path)
    read(run)
    run.close()
    log.path.unlink()
    log.add(1)
    again = started(log, tmp_path)
    read(again)
    again.close()
    assert again.values == [["line 2"]]
    assert "the old file is not in its folder any more: what came behind byte 14" in again.errors[0]


def test_it_may_begin_at_the_end(tmp_path) -> None:
    path = tmp_path / "app.log"
    path.write_text("old\n")
    run = run_spout(TailSpout(path, from_end=True))
    read(run)
    with open(path, "a") as file:
        file.write("new\n")
    read(run)
    run.close()
    assert run.values == [["new"]]


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere/app.log", "there is no folder .*nowhere"), ("", "is a folder"), ("s3://a/b", "is a URL")],
)
def test_what_can_not_be_followed_is_refused(tmp_path, path, message) -> None:
    with pytest.raises(ConfigError, match=message):
        TailSpout(path if "://" in path else tmp_path / path).check_start({})
