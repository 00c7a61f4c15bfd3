"""A file that grows: each line once, through rotations, truncations and restarts."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.connectors import TailSpout
from multilang.testing import run_spout

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("lines"), st.integers(1, 100)),
        st.tuples(st.just("part"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["rotate", "copy and truncate", "read", "restart", "crash"]), st.just(0)),
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
        self.has_lines = False  # the file under the name

    def write(self, text: str) -> None:
        with open(self.path, "a") as file:
            file.write(text)

    def add(self, count: int) -> None:
        for _ in range(count):
            line = f"{self.open_line}line {len(self.lines)}"
            self.write(f"{line.removeprefix(self.open_line)}\n")
            self.open_line = ""
            self.lines.append(line)
            self.has_lines = True

    def part(self, count: int) -> None:
        self.open_line += "x" * count
        self.write("x" * count)

    def rotate(self) -> None:
        if self.path.exists():
            self._rotate(os.rename)

    def copy_and_truncate(self) -> None:
        self._rotate(shutil.copyfile)
        os.truncate(self.path, 0)

    def pack(self) -> None:
        """Pack what was rotated last."""
        plain = Path(f"{self.path}.{self.rotated}")
        packed = Path(f"{plain}.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        os.utime(packed, (self.rotated, self.rotated))

    def _rotate(self, move) -> None:
        if self.open_line:
            self.add(1)
        self.rotated += 1
        name = f"{self.path}.{self.rotated}"
        move(self.path, name)
        self.has_lines = False
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
@example([("lines", 2), ("read", 0), ("lines", 2), ("copy and truncate", 0), ("lines", 1)])
@example([("lines", 2), ("read", 0), ("lines", 2), ("copy and truncate", 0), ("lines", 5), ("restart", 0)])
def test_each_line_is_emitted_and_what_was_acked_only_once(tmp_path_factory, steps) -> None:
    folder = tmp_path_factory.mktemp("tail")
    log = Log(folder)
    run = started(log, folder)
    seen: list[str] = []
    may_rotate = False  # a file that came and went before anything was read is nobody's
    may_copy = False  # a copy is known by what was read of it
    for kind, number in [*steps, ("read", 0)]:
        if kind == "lines":
            log.add(number)
        elif kind == "part":
            log.part(number)
        elif kind == "rotate":
            if may_rotate:
                log.rotate()
        elif kind == "copy and truncate":
            if may_copy and log.path.exists():
                log.copy_and_truncate()
        elif kind == "read":
            read(run)
            may_rotate = may_rotate or log.path.exists()
            may_copy = log.has_lines
        else:
            if kind == "crash":
                read(run, acks=False)
            run.close()
            seen += [
                row[0]
                for row in (run.values if kind == "restart" else run.values[: len(run.values) - len(run.pending)])
            ]
            run = started(log, folder)
            may_copy = False
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


def test_a_file_that_is_truncated_before_all_of_it_was_read_is_read_from_its_new_beginning(tmp_path) -> None:
    path = tmp_path / "app.log"
    old, new = [[f"old {number}"] for number in range(200)], [[f"new {number}"] for number in range(300)]
    path.write_text("".join(f"{line}\n" for (line,) in old))
    run = run_spout(TailSpout(path))
    run.next()
    before = len(run.values)
    path.write_text("".join(f"{line}\n" for (line,) in new))
    read(run)
    run.close()
    assert 0 < before < 200
    assert run.values == old[:before] + new


def test_a_file_that_is_rotated_while_it_takes_over_is_read(tmp_path) -> None:
    log = Log(tmp_path)

    class Rotated(TailSpout):
        def emit(self, values, *args, **kwargs):
            if values == ["half"]:
                log.rotate()
                log.add(1)
            return super().emit(values, *args, **kwargs)

    log.write("half")
    run = run_spout(Rotated(log.path))
    read(run)
    os.rename(log.path, f"{log.path}.0")
    os.utime(f"{log.path}.0", (0, 0))
    log.add(1)
    read(run)
    run.close()
    assert run.values == [["half"], ["line 0"], ["line 1"]]


@pytest.mark.parametrize("names", [["app.log.10", "app.log.9", "app.log.1"], ["app.log-20260131", "app.log-20260201"]])
def test_rotated_files_of_one_moment_are_read_in_the_order_of_their_names(tmp_path, names) -> None:
    log = Log(tmp_path)
    log.add(1)
    run = run_spout(TailSpout(log.path))
    read(run)
    for name in names:
        os.rename(log.path, tmp_path / name)
        os.utime(tmp_path / name, (1, 1))
        log.add(1)
    read(run)
    run.close()
    assert run.values == [[line] for line in log.lines]


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


@pytest.mark.parametrize("packed", [1, 2])
def test_what_was_rotated_and_packed_before_it_was_read_is_told(tmp_path, packed) -> None:
    log = Log(tmp_path)
    log.add(1)
    run = started(log, tmp_path)
    read(run)
    for number in range(1, 4):
        log.rotate()
        if number <= packed + 1:
            log.pack()
        log.add(1)
    read(run)
    run.close()
    assert run.values == [[line] for line in [log.lines[0], *log.lines[packed + 1 :]]]
    names = ", ".join(f"app.log.{number}.gz" for number in range(2, packed + 2))
    assert [error.partition(" beside")[0] for error in run.errors] == [names]


def test_a_file_that_can_not_be_opened_for_the_moment_is_not_taken_for_one_that_is_gone(tmp_path, monkeypatch) -> None:
    """The whole new file would be read again."""
    log = Log(tmp_path)
    log.add(2)
    run = started(log, tmp_path)
    read(run)
    run.close()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Full(TailSpout):
        def seek(self, position):
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit[1]))  # no more files
            try:
                super().seek(position)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limit)

    conf = {"multilang.positions": str(tmp_path / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    with pytest.raises(OSError, match="Too many open files"):
        run_spout(Full(log.path), conf=conf)


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
