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
            name = f"{self.path}.{self.rotated}"
            os.rename(self.path, name)
            os.utime(name, (self.rotated, self.rotated))  # they are written faster than a file system's clock ticks


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
    may_rotate = False  # a file that came and went before anything was read is nobody's
    for kind, number in [*steps, ("read", 0)]:
        if kind == "lines":
            log.add(number)
        elif kind == "part":
            log.part(number)
        elif kind == "rotate":
            if may_rotate:
                log.rotate()
        elif kind == "read":
            read(run)
            may_rotate = may_rotate or log.path.exists()
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


def test_a_file_that_was_truncated_and_is_longer_now_is_read_from_its_beginning(tmp_path) -> None:
    path = tmp_path / "app.log"
    path.write_text("one\n")
    run = run_spout(TailSpout(path))
    read(run)
    path.write_text("three, which is longer\nfour\n")
    read(run)
    run.close()
    assert run.values == [["one"], ["three, which is longer"], ["four"]]


@pytest.mark.parametrize("names", [["app.log.2", "app.log.1"], ["app-2026-01-30.log", "app-2026-01-31.log"]])
@pytest.mark.parametrize("down", [False, True])
def test_files_that_were_rotated_between_are_read_in_their_order(tmp_path, names, down) -> None:
    log = Log(tmp_path)
    others = [tmp_path / "app-2.log", tmp_path / "app.log.0.gz", tmp_path / "application.log.1"]
    log.add(1)
    run = started(log, tmp_path)
    read(run)
    values = run.values
    if down:
        run.close()
    for number, name in enumerate(names):
        log.add(1)
        os.rename(log.path, tmp_path / name)
        os.utime(tmp_path / name, (number, number))
    for other in others:
        other.write_text("of somebody else\n")
    log.add(1)
    if down:
        run = started(log, tmp_path)
    read(run)
    run.close()
    assert (values if down else []) + run.values == [[line] for line in log.lines]


def test_what_a_program_writes_to_the_old_file_until_it_has_a_new_one_is_read(tmp_path) -> None:
    """The order of logrotate with ``create``: the new file is there before the program is told."""
    log = Log(tmp_path)
    log.add(1)
    run = started(log, tmp_path)
    read(run)
    with open(log.path, "a") as writer:
        log.rotate()
        log.path.touch()
        read(run)
        writer.write("line 1\n")
    read(run)
    log.lines.append("line 1")
    log.add(1)
    read(run)
    run.close()
    assert run.values == [[line] for line in log.lines]


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


def test_a_file_that_is_followed_from_its_end_is_known_again_by_what_came_before(tmp_path) -> None:
    log = Log(tmp_path)
    log.add(2)
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    run = run_spout(TailSpout(log.path, from_end=True), conf=conf)
    read(run)
    run.close()
    log.path.write_text("another file, with the inode of the old one\n")
    again = run_spout(TailSpout(log.path, from_end=True), conf=conf)
    read(again)
    again.close()
    assert again.values == [["another file, with the inode of the old one"]]


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere/app.log", "there is no folder .*nowhere"), ("", "is a folder"), ("s3://a/b", "is a URL")],
)
def test_what_can_not_be_followed_is_refused(tmp_path, path, message) -> None:
    with pytest.raises(ConfigError, match=message):
        TailSpout(path if "://" in path else tmp_path / path).check_start({})


def test_the_mark_at_the_beginning_of_a_file_is_no_text(tmp_path) -> None:
    """Programs of Windows write one; FileSpout drops it, too."""
    path = tmp_path / "app.log"
    path.write_bytes("\ufefffirst\nsecond \ufeff\n\ufeffthird\n".encode())
    run = run_spout(TailSpout(path))
    run.next(2)
    run.close()
    assert run.values == [["first"], ["second \ufeff"], ["\ufeffthird"]]
