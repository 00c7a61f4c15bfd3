"""Rows that can't be read, in every format: one setting leaves them out, sends them to a stream, or ends the topology once."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from multilang import LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.connectors import CollectingSink, Csv, FileSpout, JsonLines, Lines, Parquet, SqlSpout, TailSpout
from multilang.local import LocalClusterError
from multilang.testing import run_spout
from tests.component.conftest import start  # noqa: F401  # a fixture
from tests.soak import SOAK

LINES = {
    "lines": [b"\xff\xfe", b"half \xe2\x82"],
    "json": [
        b'{"a"',
        b'{"b": 1}',
        b"[]",
        b"\xff",
        rb'{"a": "\ud83d"}',
        b'{"a": 18446744073709551615}',
        b'{"a": NaN}',
        b'{"a": [{"b": -1e999}]}',
    ],
    "csv": [b"1,2,3", b"1", b'"x"y,1', b'"never closed,1', b"\xff,1"],
}
VALUES = [2**63, 2**64 - 1]  # of a column of uint64


def by_lines(kind):
    """Return how to write rows as lines: a good one is its number, any other one is as it is."""
    good = {"lines": "{}", "json": '{{"a": "{}"}}', "csv": "{},x"}[kind]
    format = {"lines": Lines(), "json": JsonLines(["a"]), "csv": Csv(["a"])}[kind]

    def write(folder, rows):
        lines = [row if isinstance(row, bytes) else good.format(row).encode() for row in rows]
        path = folder / "rows.txt"
        path.write_bytes(b"".join(line + b"\n" for line in ([b"a,b"] if kind == "csv" else []) + lines))
        return lambda **how: FileSpout(path, format, **how), str(path), kind == "csv"

    return LINES[kind], write


def followed(folder, rows):
    _, path, _ = by_lines("lines")[1](folder, rows)
    return lambda **how: TailSpout(path, errors="strict", **how), path, False


def column(folder, rows):
    path = folder / "rows.parquet"
    values = [row if row in VALUES else int(row) for row in rows]
    parquet.write_table(pa.table({"a": pa.array(values, pa.uint64())}), path, row_group_size=3)
    return lambda **how: FileSpout(path, Parquet(["a"]), **how), str(path), False


def table(folder, rows):
    with sqlite3.connect(folder / "rows.sqlite") as connection:
        connection.execute("DROP TABLE IF EXISTS rows")
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a JSON)")
        connection.executemany(
            "INSERT INTO rows VALUES (?, ?)", [(n, json.dumps(row)) for n, row in enumerate(rows, 1)]
        )
    connection.close()
    url = f"sqlite:///{folder}/rows.sqlite"
    return lambda **how: SqlSpout(url, "rows", "id", ["a"], take=3, **how), f"table 'rows' of {url}", False


SOURCES = {
    **{kind: by_lines(kind) for kind in LINES},
    "followed": (LINES["lines"], followed),
    "column": (VALUES, column),
    "table": ([[2**64], "\ud800"], table),
}


@st.composite
def mixed(draw, source):
    """A list of good rows, which are texts of numbers, and bad ones."""
    bad, _ = SOURCES[source]
    kinds = draw(st.lists(st.one_of(st.none(), st.sampled_from(bad)), min_size=1, max_size=40))
    return [str(n) if kind is None else kind for n, kind in enumerate(kinds)]


def read(make, conf, at_once):
    """Read all, in several runs of the spout that each ack what they have read; return the tuples by stream."""
    found = {"default": [], "unreadable": []}
    for n in range(100):
        run = run_spout(make(), conf={**conf, "storm.id": f"t-{n}"})
        run.next(at_once)
        for each in run.emitted:
            found[each.stream].append(each.values)
        ended = not run.emitted and run.exhausted is not False
        for tup_id in list(run.pending):
            run.ack(tup_id)
        run.close()
        if ended:
            return found
    raise AssertionError("it never ends")


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=100 if SOAK else 8, deadline=None)
@given(st.data())
def test_good_rows_arrive_in_order_and_the_others_with_their_place(tmp_path_factory, source, data) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = data.draw(mixed(source))
    make, name, header = SOURCES[source][1](folder, rows)
    conf = {"multilang.positions": str(folder / "positions.sqlite"), "topology.name": "t"}
    found = read(lambda: make(on_unreadable="stream"), conf, data.draw(st.integers(2, 4)))
    good = [row for row in rows if isinstance(row, str) and row.isdigit()]
    assert [str(row[0]) for row in found["default"]] == good
    wrong = [n for n, row in enumerate(rows, 2 if header else 1) if row not in good]
    assert [row for _, row, _, _ in found["unreadable"]] == wrong
    for number, (place, row, reason, raw) in zip(wrong, found["unreadable"], strict=True):
        assert place == name
        assert name in reason
        assert str(row) in reason
        assert raw
        assert raw.isprintable() or raw.strip().isprintable(), number


@pytest.mark.parametrize("source", SOURCES)
def test_they_are_left_out_counted_and_reported(tmp_path, source) -> None:
    bad = SOURCES[source][0][0]
    make, name, header = SOURCES[source][1](tmp_path, ["1", bad, "3", bad, bad, "6"])
    run = run_spout(make(on_unreadable="skip"))
    run.next(3)
    run.close()
    assert [str(row[0]) for row in run.values] == ["1", "3", "6"]
    assert run.spout.metrics.counter("unreadable_rows").total == 3
    first, last = run.errors
    assert first.startswith(name)
    assert first.endswith("; it is left out")
    assert last.endswith("; it is left out, and 1 before it")
    for error, row in ((first, 2), (last, 5)):
        assert str(row + header) in error.removeprefix(name)


@pytest.mark.parametrize("source", SOURCES)
def test_the_topology_ends_once_and_a_later_run_goes_on_where_it_ended(tmp_path, source) -> None:
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite")}
    bad, write = SOURCES[source]
    for wanted in (["1", "2"], []):
        sink = CollectingSink()
        builder = TopologyBuilder()
        builder.set_spout("rows", write(tmp_path, ["1", "2", bad[-1], "4"])[0]())
        builder.set_bolt("sink", sink).shuffle_grouping("rows")
        with LocalCluster("inprocess") as cluster:
            run = cluster.submit(builder.build("reads", conf))
            with pytest.raises(LocalClusterError, match=r"rows\W.* on_unreadable='skip' or 'stream'"):
                run.wait(timeout=60)
            assert run.counters["rows"].restarts == 0
        assert [str(row[0]) for row in sink.rows] == wanted
    make, *_ = write(tmp_path, ["1", "2", bad[-1], "4"])
    rest = run_spout(
        make(on_unreadable="skip"), conf={**conf, "topology.name": "reads", "storm.id": "reads-9"}, component="rows"
    )
    rest.next(4)
    rest.close()
    assert [str(row[0]) for row in rest.values] == ["4"]


def test_on_storm_the_task_stays_and_reports_it(tmp_path, start) -> None:  # noqa: F811
    path = tmp_path / "app.log"
    path.write_bytes(b"one\n\xff\ntwo\n")
    child = start(
        f"from multilang.connectors import TailSpout\nclass Part(TailSpout):\n"
        f"    def __init__(self):\n        super().__init__({str(path)!r}, field='value', errors='strict')\n",
        spout=True,
    ).started()
    for _ in range(5):
        child.ask()
    assert child.emitted == [["one"]]
    (error,) = child.errors
    assert f"{path}: line 2 (byte 4) is no utf-8" in error
    assert error.endswith("Until then this task emits nothing")


def test_a_file_that_can_t_be_read_at_all_is_left_out_with_its_rest(tmp_path) -> None:
    """No format, no column, a compressed file that ends too early: the next file is read."""
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("other\n2\n")
    whole = gzip.compress(b"a\n" + b"".join(b"%d\n" % n for n in range(10, 4000)))
    (tmp_path / "c.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "d.csv.gz").write_bytes(b"no gzip")
    (tmp_path / "e.csv").write_text("a\n3\n")
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite"), "topology.name": "t"}
    found = read(lambda: FileSpout(tmp_path / "*.csv*", Csv(["a"]), on_unreadable="stream"), conf, 7)
    assert [place.rpartition("/")[2] for place, *_ in found["unreadable"]] == ["b.csv", "c.csv.gz", "d.csv.gz"]
    values = [row[0] for row in found["default"]]
    assert (values[0], values[-1]) == ("1", "3")
    assert values[1:-1] == [str(n) for n in range(10, 10 + len(values) - 2)]
    assert f"behind line or row {len(values) - 1}: " in found["unreadable"][1][2]
    with pytest.raises(UnrecoverableError, match=r"b\.csv has no column 'a'"):
        run_spout(FileSpout(tmp_path / "*.csv*", Csv(["a"]))).next(9)


def test_a_stream_that_nobody_gets_is_refused(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n")
    builder = TopologyBuilder()
    builder.set_spout("rows", FileSpout(path, on_unreadable="stream"))
    builder.set_bolt("sink", CollectingSink()).shuffle_grouping("rows")
    with (
        LocalCluster("inprocess") as cluster,
        pytest.raises(LocalClusterError, match=r"shuffle_grouping\('rows', 'unreadable'\)"),
    ):
        cluster.submit(builder.build("reads")).wait(timeout=60)


def test_the_setting_has_three_values() -> None:
    with pytest.raises(ConfigError, match="on_unreadable is 'ignore'; use 'fail', 'skip' or 'stream'"):
        TailSpout("app.log", on_unreadable="ignore")
