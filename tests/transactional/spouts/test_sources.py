"""Every source: what was read once is read again exactly, what comes later comes later, and nothing is left out."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from multilang.component.errors import ConfigError, ReportedFailedException
from multilang.transactional import TransactionAttempt
from tests.transactional.spouts.sources import PARTITIONS, FilledFiles


class Rows:
    """The emitted rows, by transaction: the last value of each tuple."""

    def __init__(self):
        self.words = []
        self.errors = []

    def emit_many(self, rows):
        for attempt, *values in rows:
            assert type(attempt) is TransactionAttempt
            self.words.append(values[-1])

    def report_error(self, message):
        self.errors.append(message)


ATTEMPT = TransactionAttempt(1, 5)


class Reader:
    """One emitter, which is asked as the topology asks it."""

    def __init__(self, spout):
        self.emitter = spout.get_emitter({}, None)
        self.last = {}

    def new(self, partition, collector=None):
        rows = collector or Rows()
        emit = getattr(self.emitter, "emit_partition_batch_new", self.emitter.emit_partition_batch)
        self.last[partition] = emit(ATTEMPT, rows, partition, self.last.get(partition))
        return rows.words

    def again(self, partition, metadata):
        rows = Rows()
        self.emitter.emit_partition_batch(ATTEMPT, rows, partition, metadata)
        return rows.words


@pytest.fixture
def opened():
    readers = []

    def make(spout):
        source = spout.open({})
        source.discover()
        source.close()
        readers.append(Reader(spout))
        return readers[-1]

    yield make
    for each in readers:
        each.emitter.close()


def test_batches_have_the_rows_of_each_partition_in_order_and_no_more_than_asked(source, opened):
    words = [[f"{partition}-{number} é" for number in range(10 * partition)] for partition in range(PARTITIONS)]
    for partition in range(PARTITIONS):
        source.add(partition, words[partition])
    reader = opened(source.spout(take=7))
    for partition in range(PARTITIONS):
        batches = [reader.new(partition) for _ in range(4)]
        assert [len(batch) for batch in batches] == [min(7, max(0, 10 * partition - 7 * batch)) for batch in range(4)]
        assert list(chain(*batches)) == words[partition]


def test_a_batch_is_emitted_again_exactly_whatever_was_added(source, opened):
    source.add(1, ["a", "b"])
    reader = opened(source.spout(take=5))
    assert reader.new(1) == ["a", "b"]
    first = reader.last[1]
    source.add(1, ["c", "d"])
    empty = opened(source.spout(take=5))
    assert empty.again(1, first) == ["a", "b"]
    assert reader.again(1, first) == ["a", "b"]
    assert reader.new(1) == ["c", "d"]
    assert reader.again(1, reader.last[1]) == ["c", "d"]
    assert reader.new(1) == []
    assert reader.again(1, reader.last[1]) == []
    source.add(1, ["e"])
    assert reader.again(1, reader.last[1]) == []
    assert reader.new(1) == ["e"]


def test_an_opaque_spout_replays_what_there_is_then(source, opened):
    source.add(2, ["a", "b"])
    reader = opened(source.opaque(take=3))
    assert reader.emitter.num_partitions() == PARTITIONS
    assert reader.new(2) == ["a", "b"]
    source.add(2, ["c", "d", "e"])
    reader.last.clear()
    assert reader.new(2) == ["a", "b", "c"]
    assert reader.new(2) == ["d", "e"]


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_come_while_others_are_read_are_all_read_once_and_in_order(source, opened, seed):
    chance = random.Random(seed)
    added = [[] for _ in range(PARTITIONS)]
    reader = opened(source.spout(take=4))
    read = [[] for _ in range(PARTITIONS)]
    batches = []
    for number in range(60):
        partition = chance.randrange(PARTITIONS)
        if chance.random() < 0.5:
            words = [f"{number}-{index}" for index in range(chance.randint(1, 5))]
            source.add(partition, words)
            added[partition] += words
        elif batches and chance.random() < 0.3:
            partition, metadata, words = chance.choice(batches)
            assert reader.again(partition, metadata) == words
        else:
            words = reader.new(partition)
            batches.append((partition, reader.last[partition], words))
            read[partition] += words
    for partition in range(PARTITIONS):
        while words := reader.new(partition):
            read[partition] += words
    assert read == added


def test_whether_there_is_more_is_known(source, opened):
    source.add(0, ["a", "b"])
    reader = opened(source.spout(take=2))
    found = source.spout(take=2).open({})
    try:
        found.discover()
        assert found.num_partitions() == PARTITIONS
        assert [found.has_more(partition, found.first(partition)) for partition in range(PARTITIONS)] == [
            True,
            False,
            False,
        ]
        reader.new(0)
        assert not found.has_more(0, reader.last[0]["to"])
        source.add(0, ["c"])
        assert found.has_more(0, reader.last[0]["to"])
    finally:
        found.close()


def test_a_batch_whose_rows_have_gone_is_reported_and_not_replaced_by_another(tmp_path, opened):
    source = FilledFiles(tmp_path / "words")
    source.add(0, ["a", "b"])
    reader = opened(source.spout(take=5))
    reader.new(0)
    (source.folder / "0.txt").write_text("a-b\n")
    with pytest.raises(ReportedFailedException, match=r"had 2 rows from 0 to 4 .* has 1 now.*opaque"):
        reader.again(0, reader.last[0])


@pytest.mark.parametrize("take", [0, -1, "5", None, 2.0])
def test_a_batch_size_that_is_no_number_is_refused(source, take):
    with pytest.raises(ConfigError, match="batch_size is"):
        source.spout(take)
