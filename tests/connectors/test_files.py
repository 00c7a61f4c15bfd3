"""Files: what is written is read, each row once where nothing dies, and from where it was after a stop."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
from collections import Counter
from contextlib import closing
from datetime import date, datetime, timedelta
from importlib import import_module
from stat import S_ISDIR
from zlib import crc32

import pyarrow as pa
import pytest
from fsspec.core import url_to_fs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from multilang import FailedException, LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.connectors import (
    CollectingSink,
    ConnectorError,
    Csv,
    FileSink,
    FileSpout,
    FromIterable,
    JsonLines,
    Lines,
    Parquet,
    TailSpout,
)
from multilang.connectors.urls import matching
from multilang.local import Faults
from multilang.testing import run_bolt, run_spout
from tests.patience import patient
from tests.soak import SOAK

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=20)
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), max_size=10)


def read(spout, tasks=1):
    """Return the rows that a topology with the spout gets, in any order."""
    sink = CollectingSink()
    builder = TopologyBuilder()
    builder.set_spout("files", spout, tasks)
    builder.set_bolt("sink", sink).shuffle_grouping("files")
    with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
        cluster.submit(builder.build("reads")).wait(timeout=600)
    return sink.rows


def refused(spout, message):
    """Check that a spout ends with a message."""
    run = run_spout(spout)
    try:
        with pytest.raises(UnrecoverableError, match=message):
            run.next(20)
    finally:
        run.close()


def write(sink, rows, fields=("value",)):
    from multilang.streams import StreamBuilder

    s = StreamBuilder()
    s.source(rows).to(sink, fields=list(fields), name="sink")
    with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
        cluster.submit(s.build("writes")).wait(timeout=600)


# ---- formats ----


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, max_size=30), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_lines_are_those_of_the_file(tmp_path_factory, lines, end, ended) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    text = end.join(lines) + (end if ended and lines else "")
    path.write_bytes(text.encode())
    wanted = text.split("\n")
    wanted = [line.removesuffix("\r") for line in (wanted[:-1] if wanted[-1] == "" else wanted)]
    wanted[:1] = [line.removeprefix("\ufeff") for line in wanted[:1]]
    assert [row[0] for row in read(FileSpout(path))] == wanted


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(CELL, CELL), max_size=20), st.data())
def test_csv_goes_on_anywhere_also_behind_line_breaks_in_values(tmp_path_factory, rows, data) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("first", "second"), *rows])
    format = Csv(["second", "first"])
    with open(path, "rb") as file:
        reader = format.reader(file, "a")
        cut = data.draw(st.integers(0, len(rows)))
        before = [reader.row() for _ in range(cut)]
        position = json.loads(json.dumps(reader.position()))
    with open(path, "rb") as file:
        reader = format.reader(file, "a")
        reader.seek(position)
        after = []
        while (row := reader.row()) is not None:
            after.append(row)
    assert [*before, *after] == [[second, first] for first, second in rows]


@pytest.mark.parametrize(
    "format", [JsonLines(["n", "text"]), Csv(["n", "text"]), Parquet(["n", "text"])], ids=["json", "csv", "parquet"]
)
def test_what_a_sink_wrote_is_read(tmp_path, format) -> None:
    rows = [[n, f"line {n}" + "\n\r"[n % 2] + "of two\r"] for n in range(100)]
    write(FileSink(tmp_path / "out", format, roll_rows=30), rows, ["n", "text"])
    files = list((tmp_path / "out").iterdir())
    assert len(files) == 4
    assert all(file.name.startswith("sink-0000-") for file in files)
    found = read(FileSpout(tmp_path / "out" / "*", format), tasks=2)
    assert sorted([int(n), text] for n, text in found) == rows


@pytest.mark.parametrize("pack", ["gzip", "bz2"])
def test_packed_files_are_read_and_gone_on_with(tmp_path, pack) -> None:
    module = import_module(pack)
    path = tmp_path / f"a.csv.{'gz' if pack == 'gzip' else 'bz2'}"
    with module.open(path, "wt") as file:
        file.write("n,text\n" + "".join(f"{n},row {n}\n" for n in range(100)))
    assert sorted(read(FileSpout(path, Csv(["n"])))) == sorted([str(n)] for n in range(100))
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    seen = []
    for n in range(2):
        run = run_spout(FileSpout(path, Csv(["n"])), conf={**conf, "storm.id": f"t-{n}"})
        run.next(2 if n == 0 else 20)
        for each in list(run.pending):
            run.ack(each)
        run.close()
        seen += run.values
    assert seen == [[str(n)] for n in range(100)]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(FileSpout(path, Csv(["n"])), r"can't be read(?: behind line or row \d+)?: ")
    other = tmp_path / "a.log"
    other.write_bytes(gzip.compress(b"line\n"))
    refused(FileSpout(other), r"the file is packed; give it a name that ends in \.gz")


def test_a_value_that_no_tuple_can_have_is_reported_with_its_place(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n": NaN}\n')
    refused(
        FileSpout(path, JsonLines()),
        r"a\.jsonl: line 2 \(byte 9\), field 'value', can't be a tuple: nan has no JSON form",
    )


def test_a_csv_has_json_where_a_value_is_no_text_or_number(tmp_path) -> None:
    write(FileSink(tmp_path, Csv(["a", "b"])), [[True, [1, "x,y"]], [None, {"k": None}], [1.5, "text"]], ("a", "b"))
    rows = [row for file in tmp_path.glob("*.csv") for row in read(FileSpout(file, Csv(["a", "b"])))]
    assert sorted(rows) == sorted([["true", '[1,"x,y"]'], ["", '{"k":null}'], ["1.5", "text"]])


def test_files_of_any_file_system_of_fsspec_are_written_and_read() -> None:
    rows = [[n] for n in range(20)]
    write(FileSink("memory://shop/out", roll_rows=7), [n for (n,) in rows])
    assert sorted(read(FileSpout("memory://shop/out/*", JsonLines(["value"])))) == rows


# ---- resumed ----


@settings(max_examples=100 if SOAK else 20, deadline=None)
@given(st.lists(st.lists(TEXT.filter(bool), max_size=40), min_size=1, max_size=4), st.integers(0, 12))
def test_a_task_that_is_started_again_goes_on_where_it_was(tmp_path_factory, files, calls) -> None:
    folder = tmp_path_factory.mktemp("files")
    for number, lines in enumerate(files):
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines), newline="")
    conf = {"multilang.positions": str(folder / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    spout = FileSpout(folder / "*.txt")
    run = run_spout(spout, conf=conf)
    for _ in range(calls):
        run.next()
        for tup_id in list(run.pending):
            run.ack(tup_id)
    run.close()
    again = run_spout(FileSpout(folder / "*.txt"), conf=conf)
    while not again.exhausted:
        again.next()
    again.close()
    wanted = [line.removeprefix("\ufeff") if not n else line for lines in files for n, line in enumerate(lines)]
    assert [row[0] for row in [*run.values, *again.values]] == wanted


class AddsAndDies(FileSpout):
    """Adds a file after the second row of a task, and dies, once."""

    added = None

    def next_tuple(self):
        super().next_tuple()
        if self.added and self.context.task_index == 0 and not self.added.exists():
            self.added.write_text("b0\n")
            raise OSError("dies")


def test_a_file_that_is_added_moves_no_other_file_to_another_task(tmp_path) -> None:
    def named(letter, index):
        return next(file for n in range(99) if crc32(str(file := tmp_path / f"{letter}{n}.txt").encode()) % 2 == index)

    for letter, index in (("a", 0), ("c", 1)):
        named(letter, index).write_text("".join(f"{letter}{n}\n" for n in range(30)))
    spout, sink = AddsAndDies(tmp_path / "*.txt"), CollectingSink()
    spout.added = named("b", 1)
    builder = TopologyBuilder()
    builder.set_spout("files", spout, 2)
    builder.set_bolt("sink", sink).shuffle_grouping("files")
    with LocalCluster("inprocess") as cluster:
        cluster.submit(builder.build("files")).wait(timeout=patient(60))
    read = Counter(sink.values)
    assert {value for value in read if value[0] == "a"} == {f"a{n}" for n in range(30)}
    assert {value: count for value, count in read.items() if value[0] != "a"} == {f"c{n}": 1 for n in range(30)}


class Seen(CollectingSink):
    """Collects, and fails each seventh row the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: list[list[object]] = []

    def process(self, tup):
        row = list(tup.values)
        if int(row[-1][1:]) % 7 == 3 and row not in self.failed:
            self.failed.append(row)
            raise FailedException("the first time")
        super().process(tup)


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("seed", range(60 if SOAK else 3))
def test_no_row_of_any_file_is_lost_whatever_dies(tmp_path, seed, positions) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("".join(f"r{n}\n" for n in range(40 * number, 40 * number + 40)))
    sink = Seen()
    builder = TopologyBuilder()
    builder.set_spout("files", FileSpout(tmp_path / "*.txt"), 2)
    builder.set_bolt("sink", sink, 2).shuffle_grouping("files")
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite")} if positions else {}
    faults = Faults(crash=0.02, acker_crash=0.005, spouts=True, limit=20)
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(builder.build("files"))
        run.wait(timeout=24 * 3600)
        assert run.faults_so_far
    assert {int(value[1:]) for value in sink.values} == set(range(160))
    assert len(sink.failed) == 23


@pytest.mark.parametrize("seed", range(60 if SOAK else 4))
def test_exact_alignment_counts_each_line_once_whatever_dies(tmp_path, seed) -> None:
    from multilang.state.providers import provider_of
    from multilang.streams import StreamBuilder
    from tests.state.topologies import stored

    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("word\n" + "".join(f"w{n % 7}\n" for n in range(50 * number)))
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
        "multilang.state.alignment": "exact",
        "topology.max.spout.pending": 8,
    }
    s = StreamBuilder()
    s.source(FileSpout(tmp_path / "*.csv", Csv(["word"])), parallelism=2).key_by(lambda t: t["word"]).count()
    faults = Faults(crash=0.02, late=0.0005, spouts=True, limit=15)
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        cluster.submit(s.build("counts", conf)).wait(timeout=24 * 3600)
    counts = {
        key: value[0] for key, value in stored(provider_of({**conf, "topology.name": "counts"}), "count", 2).items()
    }
    assert counts == Counter(f"w{n % 7}" for number in range(3) for n in range(50 * number))


@pytest.mark.parametrize("seed", range(30 if SOAK else 3))
def test_files_of_a_sink_have_each_row_whatever_dies(tmp_path, seed) -> None:
    faults = Faults(crash=0.02, acker_crash=0.001, limit=15)
    sink = FileSink(tmp_path / "out", roll_rows=10, roll_secs=0.5)
    builder = TopologyBuilder()
    builder.set_spout("numbers", FromIterable(range(200)))
    builder.set_bolt("sink", sink, 2).shuffle_grouping("numbers")
    with LocalCluster("simulated", seed=seed, faults=faults) as cluster:
        cluster.submit(builder.build("writes")).wait(timeout=24 * 3600)
    found = [
        json.loads(line)["value"]
        for file in (tmp_path / "out").glob("sink-*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert set(found) == set(range(200))
    assert not [file for file in (tmp_path / "out").iterdir() if file.name.startswith(".")]


# ---- columns ----

PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TIMES = st.one_of(
    st.tuples(
        st.builds(pa.timestamp, st.sampled_from(["ms", "us", "ns"]), st.sampled_from([None, "UTC", "Europe/Berlin"])),
        st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(10**14), 10**14),
    ),
    st.tuples(st.just(pa.time32("ms")), st.integers(0, 86_400_000 - 1)),
    st.tuples(st.just(pa.time64("us")), st.integers(0, 86_400 * 10**6 - 1)),
    st.tuples(st.just(pa.time64("ns")), st.integers(0, 86_400 * 10**9 - 1)),
    st.tuples(st.just(pa.date32()), st.integers(-(2**31), 2**31 - 1) | st.integers(-10_000, 40_000)),
)
NESTED = {
    "alone": (lambda kind: kind, lambda value: value),
    "list": (pa.list_, lambda value: [value, value]),
    "struct": (lambda kind: pa.struct([("a", kind), ("b", kind)]), lambda value: {"a": value, "b": value}),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: {"a": value, "b": value}),
    "map in a list": (
        lambda kind: pa.list_(pa.map_(pa.string(), kind)),
        lambda value: [{"a": value}, {}, {"b": value}],
    ),
}


def counted(text, kind):
    """Return the number that Arrow has for a time in the form of ISO 8601."""
    if pa.types.is_date(kind):
        return (date.fromisoformat(text) - date(1970, 1, 1)).days
    whole, _, fraction = text.removesuffix("Z").partition(".")
    assert text.endswith("Z") == (getattr(kind, "tz", None) is not None)
    whole = whole if "T" in whole else f"1970-01-01T{whole}"
    seconds = (datetime.fromisoformat(whole) - datetime(1970, 1, 1)) // timedelta(seconds=1)  # noqa: DTZ001
    nanoseconds = seconds * 10**9 + int(fraction.ljust(9, "0"))
    return nanoseconds // (10**9 // PARTS[kind.unit])


@settings(max_examples=150, deadline=None)
@given(TIMES, st.sampled_from(sorted(NESTED)))
@example((pa.time64("ns"), 1), "alone")
@example((pa.timestamp("us"), 2**62), "map")
def test_no_time_of_a_column_loses_a_digit_and_what_has_no_text_is_refused(tmp_path_factory, time, nested) -> None:
    (kind, number), (type_of, nest) = time, NESTED[nested]
    path = tmp_path_factory.mktemp("times") / "a.parquet"
    value = pa.scalar(number, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    column = pa.array([None, nest(value)], type_of(kind))
    parquet.write_table(pa.table({"other": [1, 2], "c": column}), path)
    with closing(Parquet(["c"]).reader(open(path, "rb"), str(path))) as reader:
        assert reader.row() == [None]
        part = PARTS[kind.unit] if hasattr(kind, "unit") else 1 / 86_400
        if not -62_135_596_800 <= number / part < 253_402_300_800:
            with pytest.raises(ConnectorError, match=rf"{path}: row 2, column 'c': .* outside of the years 1 to 9999"):
                reader.row()
            return
        (found,) = reader.row()
        assert reader.row() is None
    text = re.search(r"[-\d]+T?[\d:.]*Z?", json.dumps(found).replace("null", ""))[0]
    assert found == nest(text)
    assert counted(text, kind) == number


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (lambda: pa.table([pa.array([1]), pa.array([2])], names=["c", "c"]), "has 2 columns 'c'; it has 'c', 'c'"),
        (
            lambda: pa.table({"c": pa.array([[(1, "a")]], pa.map_(pa.int64(), pa.string()))}),
            "column 'c' has the type map<int64, string.*, whose keys are no text",
        ),
        (lambda: pa.table({"c": pa.array([1], pa.duration("us"))}), r"column 'c' has the type duration\[us\], which has no"),
        (
            lambda: pa.table({"c": pa.array([[("a", 1), ("b", 2), ("a", 3)]], pa.map_(pa.string(), pa.int64()))}),
            "row 1, column 'c': the map has the key 'a' twice",
        ),
        (
            lambda: pa.table({"c": pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])}),
            "row 1, column 'c': 'utf-8' codec can't decode",
        ),
    ],
    ids=["twice", "keys", "duration", "a key twice", "no text"],
)  # fmt: skip
def test_what_a_column_can_not_give_is_refused_by_its_name(tmp_path, table, said) -> None:
    parquet.write_table(table(), tmp_path / "a.parquet")
    refused(FileSpout(tmp_path / "a.parquet", Parquet(["c"])), rf"a\.parquet:? {said}")


# ---- names and patterns ----

NAME = st.text("ab1[]*?!-{},", min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAME, NAME), min_size=1, max_size=6), st.sampled_from(["", "file://", "memory://"]))
@example([("data [2024]", "b[1].csv"), ("data [2024]", "b1.csv"), ("data 2", "*")], "")
@example([("**", "[a]"), ("a", "a")], "memory://")
def test_an_existing_name_is_a_name_and_what_is_none_is_a_pattern(tmp_path_factory, files, scheme) -> None:
    root = f"{scheme}{tmp_path_factory.mktemp('names')}"
    fs, inner = url_to_fs(root)
    for folder, name in files:
        fs.makedirs(f"{inner}/{folder}", exist_ok=True)
        fs.pipe_file(f"{inner}/{folder}/{name}", b"x")
    for folder, name in files:
        assert matching(f"{root}/{folder}/{name}") == [f"{root}/{folder}/{name}"]
        assert matching(f"{root}/{folder}/[!z]*") == sorted({f"{root}/{folder}/{n}" for f, n in files if f == folder})
        within = sorted({f"{root}/{f}/{n}" for f, n in files if n == name})
        if all(f != "*" for f, _ in files):
            assert matching(f"{root}/*/{name}") == within
        if all(f != "**" for f, _ in files):
            assert matching(f"{root}/**/{name}") == within
    fs.rm(inner, recursive=True)


@pytest.mark.parametrize("scheme", ["", "file://", "memory://"])
def test_a_sink_writes_into_a_folder_whose_name_looks_like_a_pattern(tmp_path, scheme) -> None:
    fs, inner = url_to_fs(f"{scheme}{tmp_path}")
    for name in ("out1", "outx", "out[1x]"):
        fs.makedirs(f"{inner}/{name}", exist_ok=True)
        fs.pipe_file(f"{inner}/{name}/check", b"kept")
    sink = FileSink(f"{scheme}{tmp_path}/out[1x]")
    sink.check_start({})
    write(sink, [1, 2])
    assert [row[0] for row in read(FileSpout(f"{sink.folder}/sink-*", JsonLines(["value"])))] == [1, 2]
    assert [fs.cat_file(f"{inner}/{name}/check") for name in ("out1", "outx")] == [b"kept", b"kept"]
    assert not [each for each in fs.ls(f"{inner}/out[1x]", detail=False) if ".part" in each]


# ---- refused ----


def at_line(folder, line, format=None):
    """Return a conf whose position is behind some lines of all files in a folder."""
    conf = {"multilang.positions": str(folder / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    run = run_spout(FileSpout(folder / "*.txt", format), conf=conf)
    while len(run.values) < line:
        run.next()
        for tup_id in list(run.pending):
            run.ack(tup_id)
    run.close()
    return conf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "b.txt").write_text("x\n" * 40),
            "b.txt is not the file that was read before: its first 64 bytes",
        ),
        (
            lambda folder: (folder / "b.txt").write_text("1\n"),
            "b.txt is not the file that was read before: 64 bytes of it were read",
        ),
        (
            lambda folder: (folder / "aa.txt").write_text("1\n"),
            "b.txt was file 2 of this task by name, and files before it were added",
        ),
        (lambda folder: (folder / "a.txt").unlink(), "have changed"),
    ],
    ids=["other bytes", "shorter", "added before", "removed before"],
)
def test_files_that_changed_are_refused(tmp_path, change, message) -> None:
    (tmp_path / "a.txt").write_text("0\n" * 16)
    (tmp_path / "b.txt").write_text("1\n" * 40)
    conf = at_line(tmp_path, 48)
    change(tmp_path)
    with pytest.raises(ConnectorError, match=message):
        run_spout(FileSpout(tmp_path / "*.txt"), conf=conf)


def test_files_that_were_added_behind_are_read(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("0\n" * 16)
    conf = at_line(tmp_path, 16)
    (tmp_path / "a.txt").write_text("0\n" * 16 + "grown\n")
    (tmp_path / "b.txt").write_text("added\n")
    run = run_spout(FileSpout(tmp_path / "*.txt"), conf=conf)
    run.next(5)
    run.close()
    assert run.values == [["grown"], ["added"]]


@pytest.mark.parametrize(
    ("name", "data", "format", "message"),
    [
        ("a.txt", b"good\n\xff\n", Lines(), r"a.txt: line 2 \(byte 5\) is no utf-8 .*errors='replace'"),
        ("a.txt", b'{"a": 1}\n{"b": 1}\n', JsonLines(["a"]), r"a.txt: line 2 \(byte 9\) has no 'a'"),
        ("a.txt", b'{"a": 1}\n{"a"\n', JsonLines(["a"]), r"a.txt: line 2 \(byte 9\) is no JSON"),
        ("a.txt", b"a,b\n1,2\n1\n", Csv(["a"]), r"a.txt: line 3 \(byte 8\) has 1 values for 2 columns"),
        ("a.txt", b'a,b\n1,"2\n', Csv(["a"]), r"a.txt: line 2 \(byte 4\) is no row: unexpected end of data"),
    ],
)
def test_a_row_that_can_not_be_is_named(tmp_path, name, data, format, message) -> None:
    (tmp_path / name).write_bytes(data)
    refused(FileSpout(tmp_path / name, format), message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: FileSpout(folder / "none.txt"), "there is no file .*none.txt"),
        (lambda folder: FileSpout("memory://none/*"), "there is no file memory://none"),
        (lambda folder: FileSpout("nosuch://none/*"), "nosuch://none.*can't be opened.*nosuch"),
        (lambda folder: FileSpout(folder / "a.csv", Csv(["c"])), "a.csv has no column 'c'; it has 'a', 'b'"),
        (lambda folder: FileSpout(folder / "b.csv", Csv(["a"])), "b.csv has 2 columns 'a'; it has 'a', 'a'"),
        (lambda folder: FileSpout(folder / "a.csv", Parquet(["c"])), "a.csv is no Parquet file"),
        (lambda folder: FileSpout(folder / "a.csv", Csv()), r"Csv\(\) of a source names its fields"),
        (lambda folder: FileSpout(folder / "a.csv", "csv"), r"format is 'csv'; use Lines\(\)"),
        (lambda folder: FileSpout([]), "paths is empty"),
    ],
)
def test_sources_that_can_not_be_are_refused_before_the_start(tmp_path, make, message) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a,a\n1,2\n")
    with pytest.raises((ConfigError, ConnectorError), match=message):
        make(tmp_path).check_start({})


@pytest.mark.parametrize(
    ("format", "wrong"),
    [
        (Lines(), "two\nlines"),
        (Lines(), "which would be read without its end\r"),
        (Lines(encoding="latin-1"), "\u20ac"),
        (Csv(encoding="latin-1", header=False), "\u20ac"),
    ],
)
def test_a_tuple_that_no_file_can_have_fails_alone(tmp_path, format, wrong) -> None:
    """Otherwise it would fail all others of its batch, again and again, until they are given up."""
    run = run_bolt(FileSink(tmp_path / "out", format), [["a"], [wrong], ["b"]], fields=["text"])
    run.advance(10.0)
    run.close()
    assert [tup.values for tup in run.failed] == [[wrong]]
    assert len(run.acked) == 2
    assert [file.read_text() for file in (tmp_path / "out").iterdir()] == ["a\nb\n"]
    assert run.errors[0].startswith(f"1 of 3 tuples can't be written to {tmp_path / 'out'}: ")


def test_tuples_of_other_fields_than_a_sink_is_declared_with_are_refused(tmp_path) -> None:
    run = run_bolt(FileSink(tmp_path / "out", JsonLines(["a", "b"])), [[1, 2]], fields=["a", "c"])
    run.advance(10.0)
    run.close()
    assert "declared with the fields a, b, and gets tuples of a, c" in run.errors[0]
    assert len(run.failed) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoding": "utf-16"}, "in which no line ends with the byte 10"),
        ({"encoding": "cp037"}, "in which no line ends with the byte 10"),
        ({"encoding": "utf9"}, "unknown encoding"),
        ({"errors": "skip"}, "unknown error handler"),
    ],
)
@pytest.mark.parametrize("make", [Lines, JsonLines, Csv, lambda **given: TailSpout("app.log", **given)])
def test_encodings_without_lines_are_refused(make, settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**settings)


def test_a_file_is_on_the_disk_with_its_name_before_its_tuples_are_acked(tmp_path, monkeypatch) -> None:
    synced = []

    def fsync(handle: int) -> None:
        synced.append((S_ISDIR(os.fstat(handle).st_mode), sorted(each.name for each in tmp_path.glob("sink-*"))))

    monkeypatch.setattr(os, "fsync", fsync)
    result = run_bolt(FileSink(tmp_path, Lines(), roll_rows=2), [["a"], ["b"]], fields=["line"], component="sink")
    assert len(result.acked) == 2
    (written,) = tmp_path.glob("sink-*")
    assert synced == [(False, []), (True, [written.name])]


def test_a_sink_whose_folder_can_not_be_is_refused_before_the_start(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/out can't be made"):
        FileSink(tmp_path / "file" / "out").check_start({})
