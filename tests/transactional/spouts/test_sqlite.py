"""Queries of SQLite by ranges of a key: what is wrong with one is said before anything runs."""

from __future__ import annotations

import sqlite3

import pytest

from multilang.component.errors import ConfigError, ReportedFailedException
from multilang.transactional.spouts.sqlite import TransactionalSqliteSpout
from tests.transactional.spouts.sources import FilledSqlite
from tests.transactional.spouts.test_sources import Reader

QUERY = "SELECT id, word FROM words WHERE id > :after AND id <= :to ORDER BY id"


@pytest.fixture
def source(tmp_path):
    return FilledSqlite(tmp_path)


def test_one_partition_reads_all_rows_with_all_columns(source):
    source.add(0, ["moon"])
    source.add(1, ["sun"])
    emitter = TransactionalSqliteSpout(source.path, QUERY, ["id", "word"]).get_emitter({}, None)
    rows = []

    class Collector:
        def emit_many(self, values):
            rows.extend(values)

    emitter.emit_partition_batch_new("1:5", Collector(), 0, None)
    assert rows == [["1:5", 0, "moon"], ["1:5", 1, "sun"]]
    emitter.close()


def test_the_fields_are_those_that_are_declared(source):
    spout = TransactionalSqliteSpout(source.path, QUERY, ["id", "word"])
    assert list(spout.declared_streams()["default"].fields) == ["tx", "id", "word"]


@pytest.mark.parametrize(
    ("query", "fields", "message"),
    [
        (QUERY.replace("words", "nix"), ["id", "word"], "can't be run in .*words.sqlite: no such table: nix"),
        (QUERY.replace("word ", "nix "), ["id", "word"], "no such column: nix"),
        (QUERY, ["word"], "the spout has 1 fields, and its query 2 columns: id, word"),
    ],
)
def test_a_query_that_can_not_be_run_is_named_when_the_topology_starts(source, query, fields, message):
    with pytest.raises(ConfigError, match=message):
        TransactionalSqliteSpout(source.path, query, fields).get_emitter({}, None)


def test_a_database_that_is_not_there_is_named_and_not_made(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no database .*nix.*make it, or name another"):
        TransactionalSqliteSpout(tmp_path / "nix", QUERY, ["id", "word"]).get_coordinator({}, None)
    assert not (tmp_path / "nix").exists()


def test_a_query_without_its_range_is_refused_where_it_is_declared():
    with pytest.raises(ConfigError, match="no :after and no :to"):
        TransactionalSqliteSpout("x", "SELECT id FROM words", ["id"])
    with pytest.raises(ConfigError, match="no :partition and no :partitions"):
        TransactionalSqliteSpout("x", QUERY, ["id", "word"], partitions=2)
    with pytest.raises(ConfigError, match="partitions is 0"):
        TransactionalSqliteSpout("x", QUERY, ["id", "word"], partitions=0)


def test_rows_in_the_wrong_order_are_reported(source):
    source.add(0, ["moon", "sun"])
    reader = Reader(TransactionalSqliteSpout(source.path, f"{QUERY} DESC", ["id", "word"]))
    with pytest.raises(ReportedFailedException, match="an integer key that grows from row to row, and 0 follows 3"):
        reader.new(0)
    reader.emitter.close()


def test_a_reader_holds_up_no_writer(source):
    source.add(0, [str(number) for number in range(100)])
    reader = Reader(source.spout(take=3))
    assert reader.new(0) == ["0", "1", "2"]
    connection = sqlite3.connect(source.path, timeout=0)
    with connection:
        connection.execute("DELETE FROM words WHERE id = 3")
    connection.close()
    with pytest.raises(ReportedFailedException, match=r"had 3 rows .* has 2 now"):
        reader.again(0, reader.last[0])
    reader.emitter.close()
