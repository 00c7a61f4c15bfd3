"""A file that grows: each line once, through rotations, truncations and restarts."""

from __future__ import annotations

import gzip
import os
import re
import resource
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.connectors import TailSpout
from multilang.connectors.rotation import like, looks_rotated, usual
from multilang.testing import run_spout

if TYPE_CHECKING:
    from multilang.testing import SpoutRun

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


MOVED_ON = [
    "app.log.{}",
    "app.{}.log",
    "app-{}.log",
    "{}_app.log",
    "server{}.txt",
    "app (copy {}).log",
]  # the largest is the oldest
DATED = [
    "app.log-2026010{}",
    "app-11-0{}-2026.log",
    "app-2026-01-01T10-00-0{}Z.log",
    "app.log.{}",  # a number for each, too
    "app.log-0{}Jan2026-x{}f",
    "app 0{} Feb 2026.log",
]
ONE = ["app.log.old", "app-previous.log", "app.log~", "old.app.log", "server.bak"]


class Renamed:
    """A file that is rotated, in one of the ways in which programs name what was rotated."""

    def __init__(self, folder: Path, kind: str, name: str) -> None:
        self.folder, self.kind, self.name = folder, kind, name
        self.path = folder / "app.log"
        self.now = 0  # files are written faster than a file system's clock ticks
        self.count = 0
        self.dated = 0

    def named(self, number: int) -> Path:
        return self.folder / self.name.replace("{}", str(number))

    def add(self, number: int) -> list[str]:
        lines = [f"line {each}" for each in range(self.count, self.count + number)]
        self.count += number
        with open(self.path, "a") as file:
            file.writelines(f"{each}\n" for each in lines)
        self.now += 1
        os.utime(self.path, (self.now, self.now))
        return lines

    def rotate(self) -> None:
        if self.kind == "moved on":
            for number in range(8, 0, -1):
                if self.named(number).exists():
                    self.named(number).rename(self.named(number + 1))
        self.dated += 1
        self.path.rename(self.named(self.dated if self.kind == "dated" else 1))

    def rotated(self) -> list[Path]:
        return [self.named(number) for number in range(1, 9) if self.named(number).exists()]


STYLES = st.sampled_from(
    [("moved on", each) for each in MOVED_ON] + [("dated", each) for each in DATED] + [("one", each) for each in ONE]
)
ROTATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("lines"), st.integers(1, 70)),
        st.tuples(st.just("rotate"), st.just(0)),
        st.tuples(st.sampled_from(["pack", "remove"]), st.integers(0, 3)),
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=12,
)


DOWN = [("rotate", 0), ("lines", 2), ("rotate", 0), ("lines", 1), ("restart", 0)]  # twice while nobody reads


@settings(max_examples=30, deadline=None)
@given(STYLES, ROTATIONS)
@example(("moved on", "app-{}.log"), [("restart", 0), *DOWN])
@example(("dated", "app-2026-01-01T10-00-0{}Z.log"), DOWN)
@example(("one", "app.log.old"), DOWN)
@example(("one", "old.app.log"), DOWN)
@example(("moved on", "app.{}.log"), [*DOWN[:4], ("pack", 0), ("restart", 0)])
@example(("moved on", "app-{}.log"), [*DOWN[:4], ("pack", 1), ("restart", 0)])
@example(("moved on", "app-{}.log"), [*DOWN[:4], ("remove", 1), ("restart", 0)])
def test_whatever_rotation_names_them_each_line_is_read_once_or_it_is_reported_what_is_missing(
    tmp_path_factory, style, steps
) -> None:
    folder = tmp_path_factory.mktemp("tail")
    (folder / "app-error.log").write_text("of somebody else\n")
    (folder / "application.log.1").write_text("of somebody else\n")
    log = Renamed(folder, *style)
    lines, seen, told = log.add(1), [], []
    run = started(log, folder)
    read(run)
    touched = False
    for kind, number in [*steps, ("lines", 1), ("read", 0)]:
        if kind == "lines":
            lines += log.add(number)
        elif kind == "rotate":
            if log.path.exists() and log.dated < 8:
                log.rotate()
        elif kind == "read":
            read(run)
        elif kind == "restart":
            run.close()
            seen += [row[0] for row in run.values]
            told += [*run.errors, *(text for _, text in run.logged if "is left out" in text)]
            run = started(log, folder)
        elif number < len(log.rotated()):
            path = log.rotated()[number]
            found = path.stat()
            read_already = {*seen, *(row[0] for row in run.values)}
            if kind == "remove" and read_already.isdisjoint(path.read_text().splitlines()):
                continue  # nothing shows that it was ever there
            touched = True
            if kind == "pack":
                packed = Path(f"{path}.gz")
                packed.write_bytes(gzip.compress(path.read_bytes()))
                os.utime(packed, ns=(found.st_atime_ns, found.st_mtime_ns))
            path.unlink()
    run.close()
    seen += [row[0] for row in run.values]
    told += [*run.errors, *(text for _, text in run.logged if "is left out" in text)]
    assert "of somebody else" not in seen
    places = [int(line.split()[1]) for line in seen]
    assert places == sorted(set(places))
    if not touched and style[0] != "one":
        assert seen == lines
    elif seen != lines:
        assert told


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize(
    "style", [("moved on", each) for each in MOVED_ON] + [("dated", each) for each in DATED], ids=str
)
def test_a_copy_is_known_by_its_content_whatever_its_name_is(tmp_path, style, down) -> None:
    """Only the copy of a file of which something was read; those after it follow by their names."""
    log = Renamed(tmp_path, *style)
    (tmp_path / "app-error.log").write_text("of somebody else\n")
    lines = log.add(200)  # more than what a file is known by
    run = started(log, tmp_path)
    read(run)
    seen = run.values
    if down:
        run.close()
    writer = os.open(log.path, os.O_RDWR)  # whose inode stays
    for number in range(2):
        lines += log.add(30 + number)
        shutil.copy2(log.path, tmp_path / "copy")
        log.path.rename(tmp_path / "real")
        (tmp_path / "copy").rename(log.path)
        log.rotate()
        (tmp_path / "real").rename(log.path)
        os.truncate(writer, 0)
    os.close(writer)
    if down:
        run = started(log, tmp_path)
    lines += log.add(3)
    read(run)
    run.close()
    assert (seen if down else []) + run.values == [[line] for line in lines]


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
def test_what_was_rotated_and_packed_before_it_was_read_is_reported(tmp_path, packed) -> None:
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


def test_a_file_that_was_rotated_away_while_nobody_read_is_reported(tmp_path) -> None:
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


@pytest.mark.parametrize("name", ["other.log", "app.log.1.gz", "app.log.1", "app.1.log", "app.log"])
def test_a_file_that_has_the_inode_of_one_of_which_nothing_was_read_is_no_other(tmp_path, name) -> None:
    log = Log(tmp_path)
    log.write("")
    read(run := started(log, tmp_path))
    run.close()
    os.rename(log.path, tmp_path / name)  # as if it were another one, which got the inode of the removed one
    (tmp_path / name).write_text("line\n")
    with open(log.path, "a") as file:
        file.write("new\n")
    read(run := started(log, tmp_path))
    run.close()
    assert run.values == [["new"]] if name in ("other.log", "app.log.1.gz") else [["line"], ["new"]]


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


@settings(max_examples=200, deadline=None)
@given(
    st.from_regex(r"[a-z]{1,4}[0-9]?(-[a-z]{2})?(\.log)?", fullmatch=True),
    st.sampled_from(["{n}", "{d}", "{t}", "0{n}-{m}-2026", "v{n}b", "{d}.{n}"]),
    st.sampled_from(["{base}.{s}", "{base}-{s}", "{stem}.{s}{end}", "{stem}-{s}{end}", "{s}_{base}", "{stem}_{s}.txt"]),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_a_rotated_name_shows_the_others_and_not_those_of_another_file(base, stamp, form, one, other) -> None:
    stem, end = os.path.splitext(base)

    def name(number, of=base):
        stem, end = os.path.splitext(of)
        month = ["Jan", "Feb", "May", "Oct"][number % 4]
        date = f"2026-01-{number:02}"
        made = stamp.format(n=number, d=date, t=f"{date}T10-0{number}-00Z", m=month)
        return form.format(base=of, stem=stem, end=end, s=made)

    pattern = re.compile(like(base, name(one)))
    assert pattern.fullmatch(name(other))
    for strange in (base, f"{stem}x{end}", name(other, f"{stem}x{end}"), name(other, f"z{base}"), f"{stem}-error{end}"):
        assert not pattern.fullmatch(strange)
        assert not re.fullmatch(usual(base), strange)
    assert not looks_rotated(base, f"{stem}-error{end}")


def test_a_file_is_followed_through_a_link(tmp_path) -> None:
    """A program gives each day's file a name of its own, and the link leads to the newest."""
    (tmp_path / "days").mkdir()
    link, days = tmp_path / "app.log", [tmp_path / "days" / f"app-{number}.log" for number in range(3)]

    def write(number):
        days[number].write_text(f"day {number}\n")
        os.utime(days[number], (number, number))
        link.unlink(missing_ok=True)
        link.symlink_to(days[number])

    write(0)
    run = started(Log(tmp_path), tmp_path)
    read(run)
    run.close()
    write(1)
    write(2)
    again = started(Log(tmp_path), tmp_path)
    read(again)
    again.close()
    assert run.values + again.values == [["day 0"], ["day 1"], ["day 2"]]


@pytest.mark.parametrize("at", [3, 5000, 50_000_000], ids=["a few", "a block", "a hole"])
@pytest.mark.parametrize("before", [b"", b"new\n"])
def test_nuls_that_a_writer_leaves_in_a_truncated_file_are_no_text(tmp_path, at, before) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"old\n")
    run = run_spout(TailSpout(path))
    read(run)
    with open(path, "wb") as file:
        file.write(before)
        file.seek(at + len(before))
        file.write(b"behind\n")
    read(run)
    with open(path, "ab") as file:
        file.write(b"more\n")
    read(run)
    run.close()
    assert run.values == [["old"], *([["new"]] if before else []), ["behind"], ["more"]]
    assert any("are NULs" in text for _, text in run.logged)


def test_lines_that_are_written_into_a_place_that_was_reserved_are_read_once(tmp_path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(bytes(20_000))
    run = run_spout(TailSpout(path))
    read(run)
    for number in range(3):
        with open(path, "r+b") as file:
            file.seek(len("line 0\n") * number)
            file.write(b"line %d\n" % number)
        read(run)
    run.close()
    assert run.values == [["line 0"], ["line 1"], ["line 2"]]
    assert run.logged == []


@pytest.mark.parametrize("when", ["before", "later"])
def test_a_pipe_is_refused_and_never_waited_for(tmp_path, when) -> None:
    path = tmp_path / "app.log"
    if when == "before":
        os.mkfifo(path)
        with pytest.raises(ConfigError, match=r"app\.log is a pipe"):
            TailSpout(path).check_start({})
        return
    os.mkfifo(tmp_path / "app.log.1")
    path.write_text("one\n")
    run = run_spout(TailSpout(path))
    read(run)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"app\.log is a pipe"):
        read(run)
    run.close()
    assert run.values == [["one"]]


class HeldOpen:
    """A file of a program that has several descriptors of it, from before and after its rotations, and writes to any of them."""

    def __init__(self, folder: Path, style: str) -> None:
        self.path = folder / "app.log"
        self.style = style
        self.elsewhere = folder.parent / f"{folder.name} elsewhere"
        self.elsewhere.mkdir()
        self.now = 1_700_000_000  # files are written faster than a file system's clock ticks
        self.rotated = 0
        self.lines: list[str] = []
        self.ends: list[int] = []
        self._open()

    def write(self, age: int, count: int) -> None:
        end = self.ends[-1 - age]
        for _ in range(count):
            self.lines.append(f"{len(self.lines)} of {len(self.ends) - age}")
            self._write(end, f"{self.lines[-1]}\n".encode())

    def write_half(self, age: int, secs: float, run: SpoutRun) -> None:
        """Write a line in two parts; the spout looks in between."""
        self.lines.append(f"{len(self.lines)} of {len(self.ends) - age}")
        end, text = self.ends[-1 - age], f"{self.lines[-1]}\n".encode()
        self._write(end, text[:1])
        run.advance(secs)
        run.next(3)
        self._write(end, text[1:])

    def rotate(self) -> None:
        self.rotated += 1
        folder = self.elsewhere if self.style == "elsewhere" else self.path.parent
        if self.style == "dates":
            new = folder / f"app.log-{20260100 + self.rotated}"
        else:
            for number in range(self.rotated, 0, -1):
                if (folder / f"app.log.{number}").exists():
                    (folder / f"app.log.{number}").rename(folder / f"app.log.{number + 1}")
            new = folder / "app.log.1"
        self.path.rename(new)
        if self.style == "removed" and (folder / "app.log.2").exists():
            (folder / "app.log.2").unlink()
        self._open()

    def _open(self) -> None:
        self.ends.append(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
        self._write(self.ends[-1], b"")

    def _write(self, end: int, data: bytes) -> None:
        os.write(end, data)
        self.now += 1
        os.utime(end, (self.now, self.now))


AGES = st.integers(0, 3)
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), AGES, st.integers(1, 3)),
        st.tuples(st.just("half"), AGES, st.sampled_from([0.1, 1.0])),
        st.tuples(st.just("many"), AGES, st.just(150)),
        st.tuples(st.sampled_from(["rotate", "poll", "restart"]), st.just(0), st.just(0)),
    ),
    max_size=14,
)


@given(st.sampled_from(["numbers", "dates", "elsewhere", "removed"]), TURNS)
@example("numbers", [("rotate", 0, 0), ("write", 0, 1), ("poll", 0, 0), ("write", 1, 1)])
@example("numbers", [("rotate", 0, 0), ("write", 0, 1), ("rotate", 0, 0), ("write", 0, 1), ("write", 2, 1)])
@example("elsewhere", [("rotate", 0, 0), ("write", 0, 1), ("rotate", 0, 0), ("write", 0, 1)])
@example("numbers", [("rotate", 0, 0), ("write", 0, 1), ("poll", 0, 0), ("write", 1, 1), ("restart", 0, 0)])
def test_what_is_written_to_a_rotated_file_that_a_program_has_open_is_read_once(tmp_path_factory, style, turns) -> None:
    folder = tmp_path_factory.mktemp("held")
    log = HeldOpen(folder, style)
    log.write(0, 1)
    seen: list[str] = []
    run = started(log, folder)
    read(run)
    for kind, age, number in [*turns, ("write", 0, 1), ("poll", 0, 0)]:
        if kind == "rotate":
            if log.rotated < 5 and (style != "removed" or log.path.stat().st_size):
                if style == "removed":
                    read(run)  # what is removed before it is read is nobody's
                log.rotate()
        elif kind == "poll":
            read(run)
        elif kind == "restart":
            read(run)  # so that it is known which files there are
            if style != "removed":
                run.close()
                seen += [row[0] for row in run.values]
                assert run.errors == []
                run = started(log, folder)
        elif age < min(len(log.ends), 2 if style == "removed" else 9):  # older ones are nowhere
            if kind == "half":
                log.write_half(age, number, run)
            else:
                log.write(age, number)
    run.close()
    seen += [row[0] for row in run.values]
    assert run.errors == []
    assert sorted(seen) == sorted(log.lines)
    for file in {line.split()[-1] for line in seen}:
        of_file = [int(line.split()[0]) for line in seen if line.split()[-1] == file]
        assert of_file == sorted(of_file), "in the order in which the file has them"
    for end in log.ends:
        os.close(end)


def test_files_that_were_rotated_long_ago_are_closed_and_nothing_is_lost_of_them(tmp_path) -> None:
    (tmp_path / "held").mkdir()
    log = HeldOpen(tmp_path / "held", "numbers")
    run = started(log, tmp_path)
    for number in range(20):
        log.write(0, 100)
        read(run)
        log.rotate()
        log.write(1, 70)
        log.write(len(log.ends) - 1, 1)  # of a program that is never told
        if number % 3 == 0:
            log.lines.append(f"end of {number}")
            log._write(log.ends[-2], log.lines[-1].encode())  # and the program dies
    log.write(0, 1)
    for _ in range(12):  # a minute, and more
        read(run)
    watched = [each for each in os.listdir("/proc/self/fd") if "app.log." in os.path.realpath(f"/proc/self/fd/{each}")]
    run.close()
    assert sorted(row[0] for row in run.values) == sorted(log.lines)
    assert len(watched) == len(log.ends) - 1 + 5
    for end in log.ends:
        os.close(end)


def test_a_rotated_file_is_not_kept_open_when_it_was_removed(tmp_path) -> None:
    (tmp_path / "held").mkdir()
    log = HeldOpen(tmp_path / "held", "removed")
    log.write(0, 1)
    run = started(log, tmp_path)
    read(run)
    log.rotate()
    os.write(log.ends[-2], b"the end")  # of a program that dies
    log.write(0, 1)
    read(run)
    assert ["the end"] in run.values
    Path(f"{log.path}.1").unlink()
    read(run)
    os.write(log.ends[-2], b", but one\n")
    read(run)
    assert [", but one"] in run.values
    before = len(os.listdir("/proc/self/fd"))
    run.advance(60)
    run.next(2)
    assert len(os.listdir("/proc/self/fd")) == before - 1
    run.close()
    for end in log.ends:
        os.close(end)


def test_what_can_not_be_found_between_two_files_is_reported_by_the_byte(tmp_path) -> None:
    log = Log(tmp_path)
    log.add(3)
    run = run_spout(TailSpout(log.path))
    read(run)
    size = log.path.stat().st_size
    log.path.unlink()
    log.add(1)
    read(run)
    run.close()
    (told,) = (text for _, text in run.logged)
    assert f"after {size} bytes of it were read; app.log comes next, from its first byte" in told
