"""Tables: each row is read, from where it was after a stop; what was acked is in the table."""

from __future__ import annotations

import os
import re
import sqlite3

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import MetaData, Table, create_engine

from multilang import LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.connectors import CollectingSink, ConnectorError, FromIterable, SqlSink, SqlSpout, sql
from multilang.local import Faults
from multilang.streams import StreamBuilder
from multilang.testing import run_bolt, run_spout
from tests.soak import SOAK


@pytest.fixture
def shop(tmp_path):
    connection = sqlite3.connect(tmp_path / "shop.sqlite", isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, cents DECIMAL(10, 2), at TIMESTAMP, picture BLOB)"
    )
    connection.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, count INTEGER CHECK (count < 1000))")
    yield connection
    connection.close()


@pytest.fixture
def url(tmp_path, shop):
    return f"sqlite:///{tmp_path}/shop.sqlite"


def fill(shop, first, count):
    rows = [(n, f"c{n % 3}") for n in range(first, first + count)]
    shop.executemany("INSERT INTO orders (id, customer) VALUES (?, ?)", rows)


@pytest.mark.parametrize("tasks", [1, 3])
def test_each_row_comes_once_and_new_ones_when_they_are_there(shop, url, tasks) -> None:
    fill(shop, 1, 150)
    sink = CollectingSink()
    builder = TopologyBuilder()
    builder.set_spout("orders", SqlSpout(url, "orders", "id", ["id", "customer"], take=20), tasks)
    builder.set_bolt("sink", sink).shuffle_grouping("orders")
    with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
        run = cluster.submit(builder.build("sql"))
        run.wait(timeout=600)
        fill(shop, 151, 50)
        run.run_for(5)
        run.wait(timeout=600)
    assert sorted(sink.rows) == [[n, f"c{n % 3}"] for n in range(1, 201)]


def test_a_task_that_is_started_again_goes_on_behind_what_was_acked(shop, url, tmp_path) -> None:
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    fill(shop, 1, 10)
    first = run_spout(SqlSpout(url, "orders", "id", ["id"], take=4), conf=conf)
    first.next(2)
    for tup_id in list(first.pending):
        first.ack(tup_id)
    first.next()
    first.close()
    assert first.values == [[n] for n in range(1, 9)]
    again = run_spout(SqlSpout(url, "orders", "id", ["id"]), conf=conf)
    again.next(4)
    again.close()
    assert again.values == [[n] for n in range(5, 11)]


def test_tasks_divide_rows_with_negative_keys_too(shop, url) -> None:
    fill(shop, -20, 40)
    sink = CollectingSink()
    builder = TopologyBuilder()
    builder.set_spout("orders", SqlSpout(url, "orders", "id", ["id"], take=5), 3)
    builder.set_bolt("sink", sink).shuffle_grouping("orders")
    with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
        cluster.submit(builder.build("sql")).wait(timeout=600)
    assert sorted(sink.values) == list(range(-20, 20))


@pytest.mark.parametrize("take", [1, 2, 3, 10])
def test_a_key_that_is_there_twice_is_refused_before_a_row_is_left_out(shop, url, take) -> None:
    shop.executemany("INSERT INTO orders (customer) VALUES (?)", [("a",), ("b",), ("b",), ("c",)])
    run = run_spout(SqlSpout(url, "orders", "customer", ["id"], take=take))
    with pytest.raises(ConnectorError, match="several rows whose 'customer' is 'b'"):
        run.next(10)
    run.close()
    assert len(run.values) <= 1


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ("('a')", "('a')", "several rows whose 'word' is 'a'"),
        ("('a')", "(NULL)", "is None"),
        ("('a'), ('b')", "(NULL), ('a')", "is None"),
        ("('a'), ('B'), ('b')", "('c')", "several rows whose 'word' is '[Bb]'"),
    ],
)
@pytest.mark.parametrize("take", [1, 2, 10])
def test_a_key_that_is_not_unique_is_refused_also_later(shop, url, first, later, message, take) -> None:
    shop.execute("CREATE TABLE words (word TEXT COLLATE NOCASE)")
    shop.execute(f"INSERT INTO words VALUES {first}")
    run = run_spout(SqlSpout(url, "words", "word", ["word"], take=take))

    def polls():
        for number in range(6):
            run.advance(2.0)
            run.next(2)
            if number == 2:
                shop.execute(f"INSERT INTO words VALUES {later}")

    with pytest.raises(ConnectorError, match=message):
        polls()
    run.close()


@pytest.mark.parametrize("seed", range(30 if SOAK else 3))
def test_no_row_is_lost_whatever_dies(shop, url, tmp_path, seed) -> None:
    fill(shop, 0, 200)
    sink = CollectingSink()
    builder = TopologyBuilder()
    builder.set_spout("orders", SqlSpout(url, "orders", "id", ["id"], take=30), 2)
    builder.set_bolt("sink", sink, 2).shuffle_grouping("orders")
    faults = Faults(crash=0.02, acker_crash=0.005, spouts=True, limit=20)
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite")}
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        run = cluster.submit(builder.build("sql"))
        run.wait(timeout=24 * 3600)
        assert run.faults_so_far
    assert set(sink.values) == set(range(200))


def test_values_that_json_lacks_become_text(shop, url) -> None:
    shop.execute("INSERT INTO orders VALUES (1, NULL, 12.5, '2026-01-02 03:04:05', x'00ff')")
    run = run_spout(SqlSpout(url, "orders", "id", ["customer", "cents", "at", "picture"]))
    run.next(2)
    run.close()
    assert run.values == [[None, "12.50", "2026-01-02T03:04:05", "AP8="]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.datetimes(),
            st.none() | st.dates(),
            st.none() | st.times(),
            st.none()
            | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**6), max_value=10**6, places=2),
            st.none() | st.binary(max_size=8),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_was_read_from_a_table_is_written_to_another_as_it_was(tmp_path_factory, rows) -> None:
    """Times, decimals and bytes are text in between, since JSON lacks them."""
    import sqlalchemy as sa

    url = f"sqlite:///{tmp_path_factory.mktemp('tables') / 'shop.sqlite'}"
    engine, metadata = sa.create_engine(url), sa.MetaData()
    kinds = {
        "at": sa.DateTime,
        "day": sa.Date,
        "hour": sa.Time,
        "price": sa.Numeric(12, 2),
        "picture": sa.LargeBinary,
        "note": sa.Text,
    }
    there, here = (
        sa.Table(
            name, metadata, sa.Column("id", sa.Integer, primary_key=True), *(sa.Column(*each) for each in kinds.items())
        )
        for name in ("there", "here")
    )
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(there.insert(), [dict(zip(kinds, row, strict=True)) for row in rows])
    read = run_spout(SqlSpout(url, "there", "id", ["id", *kinds]))
    read.next(3)
    read.close()
    written = run_bolt(SqlSink(url, "here", key=["id"]), read.values, fields=["id", *kinds])
    written.advance(1.0)
    written.close()
    assert not written.failed, written.errors
    with engine.connect() as connection:
        assert connection.execute(here.select()).fetchall() == connection.execute(there.select()).fetchall()
    engine.dispose()


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "empty", "replace", "remove last", "restart"]), st.integers(1, 4)), max_size=8
)


@settings(max_examples=300 if SOAK else 20, deadline=None)
@given(CHANGES, st.sampled_from(["DELETE", "WAL"]))
@example([("add", 2), ("empty", 1), ("add", 1), ("add", 1)], "DELETE")
@example([("add", 1), ("empty", 1), ("add", 2)], "DELETE")
@example([("add", 2), ("replace", 1), ("add", 3)], "WAL")
@example([("add", 2), ("restart", 1), ("replace", 1), ("add", 2)], "DELETE")
def test_no_row_of_a_table_that_was_emptied_or_replaced_is_left_out_without_a_word(
    tmp_path_factory, changes, journal
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    conf = {"multilang.positions": str(folder / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    path, serial = folder / "shop.sqlite", 0

    def table(path):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT)")
        return connection

    def started():
        return run_spout(SqlSpout(f"sqlite:///{path}", "orders", "id", ["customer"]), conf=conf)

    def read(run):
        run.advance(11.0)
        run.next(3)
        for tup_id in list(run.pending):
            run.ack(tup_id)

    shop = table(path)
    run = started()
    seen, told = set(), []
    for what, number in [*changes, ("restart", 1)]:
        if what == "add":
            for _ in range(number):
                serial += 1
                shop.execute("INSERT INTO orders (customer) VALUES (?)", (f"c{serial}",))
        elif what == "empty":
            shop.execute("DELETE FROM orders")
        elif what == "remove last":
            shop.execute("DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)")
        elif what == "replace":
            shop.close()
            shop = table(folder / "new.sqlite")
            serial += 1
            shop.execute("INSERT INTO orders (customer) VALUES (?)", (f"c{serial}",))
            shop.close()  # which ends its -wal
            for end in ("-wal", "-shm"):
                (folder / f"shop.sqlite{end}").unlink(missing_ok=True)
            os.replace(folder / "new.sqlite", path)
            shop = sqlite3.connect(path, isolation_level=None)
        else:
            read(run)
            seen |= {customer for (customer,) in run.values}
            told += run.errors + [text for _, text in run.logged]
            run.close()
            run = started()
        read(run)
    run.close()
    told += run.errors + [text for _, text in run.logged]
    left = {customer for (customer,) in shop.execute("SELECT customer FROM orders")} - seen - {c for (c,) in run.values}
    shop.close()
    assert not left or any("are left out" in text or "are not read" in text for text in told)


def test_a_table_that_only_grows_and_is_updated_says_nothing(shop, url) -> None:
    run = run_spout(SqlSpout(url, "orders", "id", ["customer"]))
    for first in (1, 4, 7):
        fill(shop, first, 3)
        shop.execute("UPDATE orders SET customer = 'x' WHERE id = ?", (first,))
        shop.execute("DELETE FROM orders WHERE id < ?", (first,))
        run.advance(2.0)
        run.next(3)
    run.close()
    assert (len(run.values), run.errors, run.logged) == (9, [], [])


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize("how", ["delete", "rename", "replace"])
@pytest.mark.parametrize("key", [None, ["word"]])
def test_what_is_acked_is_in_the_database_that_has_the_name(tmp_path, journal, how, key) -> None:
    def made(path):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, count INTEGER)")
        connection.close()

    path, other = tmp_path / "shop.sqlite", tmp_path / "other.sqlite"
    made(path)
    sink = SqlSink(f"sqlite:///{path}", "counts", key=key)
    expected = () if how == "replace" else ConnectorError
    run = run_bolt(sink, [["a", 1]], fields=["word", "count"], expect=expected)
    run.advance(1.0)
    if how == "delete":
        path.unlink()
    elif how == "rename":
        path.rename(other)
    else:
        made(other)
        os.replace(other, path)
    run.process(["b", 2], ["c", 3])
    run.advance(1.0)
    run.close()
    assert len(run.acked) == (3 if how == "replace" else 1)
    if how != "replace":
        assert not path.exists()
        assert "shop.sqlite is not there" in run.errors[0]
        return
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT word FROM counts").fetchall() == [("b",), ("c",)]
    connection.close()


def test_a_file_that_is_replaced_while_it_is_written_fails_the_tuples(tmp_path, shop, url) -> None:
    class Replaced(SqlSink):
        def _statement(self, columns, rows):
            (tmp_path / "shop.sqlite").rename(tmp_path / "old.sqlite")
            sqlite3.connect(tmp_path / "shop.sqlite").execute("CREATE TABLE counts (word, count)").connection.close()
            return super()._statement(columns, rows)

    run = run_bolt(Replaced(url, "counts"), [["a", 1]], fields=["word", "count"], expect=ConnectorError)
    run.advance(1.0)
    run.close()
    assert (run.acked, len(run.failed)) == ([], 1)


def test_a_database_that_is_away_for_a_while_is_reported_and_asked_again(shop, url) -> None:
    fill(shop, 1, 1)
    run = run_spout(SqlSpout(url, "orders", "id", ["id"]))
    shop.execute("ALTER TABLE orders RENAME TO hidden")
    run.next(2)
    assert "can't be read now, and is tried again: no such table" in run.errors[0]
    shop.execute("ALTER TABLE hidden RENAME TO orders")
    run.advance(2.0)
    run.next(2)
    assert run.values == [[1]]
    assert len(run.errors) == 1
    run.advance(2.0)
    run.next(1)
    assert run.spout.exhausted() is None
    shop.execute("ALTER TABLE orders RENAME TO hidden")
    run.advance(2.0)
    run.next(2)
    assert run.spout.exhausted() is False, "nobody knows what came since"
    run.close()


@pytest.mark.parametrize("seed", range(30 if SOAK else 3))
def test_a_table_has_the_last_count_of_each_word_whatever_dies(shop, url, seed) -> None:
    """With a key, a replayed tuple writes the same row again."""
    s = StreamBuilder()
    numbers = s.source([[f"w{n}", n] for n in range(100)], parallelism=2)
    numbers.to(SqlSink(url, "counts", ["word", "count"], key=["word"], rows=7), fields=["word", "count"], parallelism=2)
    with LocalCluster("simulated", seed=seed, faults=Faults(crash=0.02, acker_crash=0.001, limit=15)) as cluster:
        cluster.submit(s.build("counts")).wait(timeout=24 * 3600)
    assert sorted(shop.execute("SELECT * FROM counts")) == sorted((f"w{n}", n) for n in range(100))


@settings(max_examples=40, deadline=None)
@example("TEXT", [1.0, 1, True, 0.0, False])
@example("", [0.0, 0, 0.0])
@example("INTEGER", [1, "1", 1])
@example("TEXT COLLATE NOCASE", ["a", "A", "a"])
@given(
    st.sampled_from(["TEXT", "INTEGER", "", "TEXT COLLATE NOCASE"]),
    st.lists(st.sampled_from([1, "1", True, 1.0, 0, False, 0.0, "0"]), min_size=2, max_size=8),
)
def test_rows_that_are_written_together_give_the_table_that_they_give_one_by_one(tmp_path_factory, kind, keys) -> None:
    """The database, and not Python, says which keys are equal."""
    path = tmp_path_factory.mktemp("keys") / "shop.sqlite"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    rows = [[key, number] for number, key in enumerate(keys)]
    for table in ("alone", "together"):
        database.execute(f"CREATE TABLE {table} (id {kind} PRIMARY KEY, n INTEGER)")
    for row in rows:
        database.execute("INSERT INTO alone VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET n = excluded.n", row)
    run = run_bolt(SqlSink(f"sqlite:///{path}", "together", key=["id"]), rows, fields=["id", "n"])
    run.advance(1.0)
    run.close()
    assert not run.failed
    # Of numbers that are equal, such as 0 and 0.0, a table has the one that was written first.
    spelled = "CASE typeof(id) WHEN 'text' THEN lower(id) ELSE CAST(id AS REAL) END"
    wanted, found = (
        dict(database.execute(f"SELECT {spelled}, n FROM {table}").fetchall()) for table in ("alone", "together")
    )
    assert found == wanted


def test_only_the_tuple_of_a_row_that_is_refused_fails(shop, url) -> None:
    run = run_bolt(
        SqlSink(url, "counts", key=["word"]),
        [["a", 1], ["b", 2000], ["a", 3], ["c", None]],
        fields=["word", "count"],
    )
    run.advance(1.0)
    run.close()
    assert [tup.values for tup in run.failed] == [["b", 2000]]
    assert len(run.acked) == 3
    assert "refuses {'word': 'b', 'count': 2000}: CHECK constraint failed" in run.errors[0]
    assert sorted(shop.execute("SELECT * FROM counts")) == [("a", 3), ("c", None)]


def test_only_the_tuple_fails_for_whose_value_the_driver_raises_an_error_of_its_own(shop, url) -> None:
    run = run_bolt(SqlSink(url, "counts", key=["word"]), [["a", 1], [["b"], 2], ["c", 3]], fields=["word", "count"])
    run.advance(1.0)
    run.close()
    assert [tup.values for tup in run.failed] == [[["b"], 2]]
    assert "refuses {'word': ['b'], 'count': 2}" in run.errors[0]
    assert sorted(shop.execute("SELECT * FROM counts")) == [("a", 1), ("c", 3)]


def test_only_the_tuple_whose_key_is_null_fails(shop, url) -> None:
    """No row is like one with NULL, so that it would be inserted again at each replay."""
    shop.execute("CREATE TABLE pages (page TEXT UNIQUE, visits INTEGER)")
    run = run_bolt(
        SqlSink(url, "pages", key=["page"]), [["a", 1], [None, 2], ["b", 3], [None, 4]], fields=["page", "visits"]
    )
    run.advance(1.0)
    run.close()
    assert [tup.values for tup in run.failed] == [[None, 2], [None, 4]]
    assert len(run.acked) == 2
    assert "has NULL there" in run.errors[0]
    assert sorted(shop.execute("SELECT * FROM pages")) == [("a", 1), ("b", 3)]


@pytest.mark.parametrize("key", [["id"], None])
def test_tuples_of_different_fields_are_all_written(shop, url, key) -> None:
    """A statement takes the columns of its first row, and what other rows have besides is dropped by SQLAlchemy."""
    shop.execute("CREATE TABLE wide (id INTEGER PRIMARY KEY, a TEXT, b TEXT)")
    run = run_bolt(SqlSink(url, "wide", key=key))
    run.process({"id": 1, "a": "x"}, {"id": 2, "a": "y", "b": "z"})
    if key:
        run.process({"id": 1, "b": "later"})
    run.advance(1.0)
    run.close()
    rows = shop.execute("SELECT * FROM wide ORDER BY id").fetchall()
    assert rows == [(1, "x", "later" if key else None), (2, "y", "z")]


def test_a_database_that_is_locked_fails_the_tuples_at_once(shop, url, monkeypatch) -> None:
    """Each row alone would wait as long as all together."""
    monkeypatch.setattr(sql, "_REFUSAL_SECS", 0.05)
    run = run_bolt(SqlSink(f"{url}?timeout=0.1", "counts", key=["word"]))
    shop.execute("BEGIN IMMEDIATE")
    run.process(*({"word": f"w{n}", "count": n} for n in range(9)))
    with pytest.raises(ConnectorError, match="can't be written: database is locked"):
        run.advance(1.0)
    run.close()
    assert len(run.failed) == 9
    assert len(run.errors) == 1


def test_a_tuple_without_the_key_is_reported(shop, url) -> None:
    run = run_bolt(SqlSink(url, "counts", key=["word"]))
    run.process({"count": 1})
    run.advance(1.0)
    run.close()
    assert "a tuple of 'source' has no 'word'; it has 'count'" in run.errors[0]
    assert len(run.failed) == 1


def test_without_a_key_each_tuple_is_inserted(shop, url) -> None:
    s = StreamBuilder()
    s.source([["ann", n] for n in range(9)]).to(SqlSink(url, "orders"), fields=["customer", "id"])
    with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
        cluster.submit(s.build("inserts")).wait(timeout=600)
    assert [id for (id,) in shop.execute("SELECT id FROM orders ORDER BY id")] == list(range(9))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda url: SqlSpout(url, "order", "id", ["id"]), "there is no table 'order' of sqlite"),
        (lambda url: SqlSpout(url, "orders", "key", ["id"]), "has no column 'key'; it has 'id', 'customer'"),
        (lambda url: SqlSpout(url, "orders", "id", ["name"]), "has no column 'name'"),
        (lambda url: SqlSpout("shop.sqlite", "orders", "id", ["id"]), "'shop.sqlite' is no URL of a database"),
        (
            lambda url: SqlSpout("nosuch://u:word@h/d", "orders", "id", ["id"]),
            r"of nosuch://u:\*\*\*@h/d needs the database's driver",
        ),
        (lambda url: SqlSpout(7, "orders", "id", ["id"]), "url is 7"),
        (lambda url: SqlSpout(url, "orders", "id", "id"), "give a list of their names"),
        (lambda url: SqlSink(url, "counts", ["count"], key=["word"]), "the key's column 'word' is none of the fields"),
        (lambda url: SqlSink(url, "counts", ["words"]), "has no column 'words'"),
        (
            lambda url: SqlSink(url, "counts", key=["count"]),
            "has no primary key or unique constraint of count, so that",
        ),
        (
            lambda url: SqlSpout(url.replace("shop", "none"), "orders", "id", ["id"]),
            "none.sqlite: its file .* is not there",
        ),
    ],
)
def test_what_can_not_be_is_refused_before_the_start(url, make, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make(url).check_start({})


@pytest.mark.parametrize(
    ("columns", "dialect", "message"),
    [
        ("a INTEGER PRIMARY KEY, b TEXT UNIQUE", "sqlite", None),
        ("a INTEGER, b TEXT, PRIMARY KEY (b, a)", "mysql", None),
        ("a INTEGER, b TEXT, UNIQUE (a, b)", "mysql", None),
        ("a INTEGER PRIMARY KEY, b TEXT", "mysql", "no primary key or unique constraint of a[+]b, .* it has a"),
        ("a INTEGER, b TEXT, UNIQUE (a, b), UNIQUE (b)", "mariadb", "a unique constraint of b besides the key a[+]b"),
    ],
)
def test_a_key_is_one_by_which_rows_are_unique_and_no_other(tmp_path, columns, dialect, message) -> None:
    """MySQL and MariaDB update the row of any unique constraint, whichever key was meant."""
    connection = sqlite3.connect(tmp_path / "keys.sqlite")
    connection.execute(f"CREATE TABLE keys ({columns})")
    connection.close()
    engine = create_engine(f"sqlite:///{tmp_path}/keys.sqlite")
    table = Table("keys", MetaData(), autoload_with=engine)
    engine.dispose()
    key = ["a"] if message is None and "UNIQUE (a" not in columns and "(b, a)" not in columns else ["a", "b"]
    reason = sql.unfit_key(table, key, dialect)
    assert reason is None if message is None else re.search(message, reason)


def test_a_key_of_text_is_for_one_task(url) -> None:
    builder = TopologyBuilder()
    builder.set_spout("orders", SqlSpout(url, "orders", "customer", ["id"]), 2)
    builder.set_bolt("sink", CollectingSink()).shuffle_grouping("orders")
    with LocalCluster("simulated", fail_fast=True) as cluster, pytest.raises(Exception, match="give it one task"):
        cluster.submit(builder.build("sql")).wait(timeout=60)


def test_a_tuple_without_the_columns_is_reported(shop, url) -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", FromIterable([1]))
    builder.set_bolt("sink", SqlSink(url, "counts")).shuffle_grouping("source")
    with LocalCluster("simulated") as cluster:
        run = cluster.submit(builder.build("sql"))
        run.wait(lambda run: run.errors, timeout=60)
        assert "it has no column 'value'; it has 'word', 'count': name the fields= to write" in str(run.errors[0])
