"""Folders of line files: whole lines alone, numbers that stay, and what went wrong in words."""

from __future__ import annotations

import pytest

from multilang.component.errors import ConfigError, ReportedFailedException
from multilang.transactional.spouts.files import INDEX, TransactionalFileSpout
from tests.servers import wait_for
from tests.transactional.spouts.sources import FilledFiles
from tests.transactional.spouts.test_sources import Reader, Rows


@pytest.fixture
def source(tmp_path):
    return FilledFiles(tmp_path / "words")


def discovered(spout):
    found = spout.open({})
    found.discover()
    return found


def opened(spout):
    discovered(spout)
    return Reader(spout)


def test_a_line_is_read_when_its_end_is_there(source):
    file = source.folder / "0.txt"
    file.write_bytes(b"whole\npar")
    reader = opened(source.spout(take=10))
    assert reader.new(0) == ["whole"]
    assert not discovered(source.spout(take=10)).has_more(0, reader.last[0]["to"])
    file.write_bytes(b"whole\npartial\r\n\nlast\rone\n")
    assert reader.new(0) == ["partial", "", "last\rone"]
    assert reader.again(0, reader.last[0]) == ["partial", "", "last\rone"]


def test_a_file_keeps_its_number_whatever_comes_later(source):
    reader = opened(source.spout(take=10))
    (source.folder / "1.txt").write_text("one\n")
    assert reader.new(1) == ["one"]
    for name in ("0-before.txt", ".hidden.txt", "other.csv", 'é "odd".txt'):
        (source.folder / name).write_text(f"{name}\n")
    (source.folder / "folder.txt").mkdir()
    found = discovered(source.spout(take=10))
    assert found.num_partitions() == 5
    assert discovered(source.spout(take=10)).num_partitions() == 5
    (source.folder / "1.txt").write_text("one\ntwo\n")
    assert reader.new(1) == ["two"]
    assert reader.new(3) == ["0-before.txt"]
    assert reader.new(4) == ['é "odd".txt']


def test_an_empty_folder_has_no_partitions_until_a_file_comes(tmp_path):
    found = discovered(TransactionalFileSpout(tmp_path))
    assert found.num_partitions() == 0
    (tmp_path / "first").write_text("moon\n")
    found.discover()
    assert found.num_partitions() == 1
    assert found.read(0, 0, 5) == ([["moon"]], 5)


def test_a_name_that_a_crash_cut_short_is_noted_anew(source):
    discovered(source.spout(take=10))
    index = source.folder / INDEX
    index.write_bytes(index.read_bytes()[:-4])
    found = discovered(source.spout(take=10))
    assert found.num_partitions() == 3
    assert index.read_text() == '"0.txt"\n"1.txt"\n"2.txt"\n'


def test_a_folder_that_is_not_there_is_named_before_anything_runs(tmp_path):
    spout = TransactionalFileSpout(tmp_path / "nowhere")
    for make in (spout.get_coordinator, spout.get_emitter):
        with pytest.raises(ConfigError, match=r"there is no folder .*nowhere.*make it, or name another"):
            make({}, None)


def test_a_file_that_shrank_is_reported_and_nothing_is_emitted(source):
    source.add(0, ["moon", "sun"])
    reader = opened(source.spout(take=10))
    reader.new(0)
    (source.folder / "0.txt").write_text("new\n")
    rows = Rows()
    with pytest.raises(ReportedFailedException, match=r"0\.txt has shrunk: 9 bytes of it were read, and it has 4"):
        reader.new(0, rows)
    assert rows.words == []


def test_a_file_that_vanished_is_reported_and_read_on_when_it_is_back(source):
    source.add(0, ["moon"])
    reader = opened(source.spout(take=10))
    reader.new(0)
    file = source.folder / "0.txt"
    file.rename(source.folder / "elsewhere")
    with pytest.raises(
        ReportedFailedException, match=r"0\.txt, of which 5 bytes were read, can't be read any more.*restore it"
    ):
        reader.new(0)
    (source.folder / "elsewhere").rename(file)
    source.add(0, ["sun"])
    assert reader.new(0) == ["sun"]


def test_an_opaque_spout_leaves_a_file_out_tells_so_once_and_reads_on_when_it_is_back(source):
    source.add(0, ["moon"])
    reader = opened(source.opaque(take=10))
    reader.new(0)
    known = reader.last[0]
    file = source.folder / "0.txt"
    file.rename(source.folder / "elsewhere")
    rows = Rows()
    for _ in range(3):
        assert reader.new(0, rows) == []
        assert reader.last[0] == known
    assert len(rows.errors) == 1
    assert "partition 0 is left out" in rows.errors[0]
    (source.folder / "elsewhere").rename(file)
    source.add(0, ["sun"])
    read: list[str] = []
    # A partition rests after a failed try, for twice as long as that took.
    wait_for(lambda: read.extend(reader.new(0, rows)) or read, "the row behind the rest")
    assert read == ["sun"]


@pytest.mark.parametrize("kind", ["spout", "opaque"])
def test_a_file_that_can_not_be_read_is_not_taken_for_one_that_is_at_its_end(source, kind, tmp_path, caplog):
    source.add(0, ["moon"])
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions", "topology.transactional.id": "x"}
    conf["multilang.parent"] = "local"
    coordinator = getattr(source, kind)(take=10).get_coordinator(conf, None)
    reader = opened(source.spout(take=10))
    assert reader.new(0) == ["moon"]
    ended = {0: reader.last[0]}
    assert not coordinator.exhausted({})
    assert coordinator.exhausted(ended)
    file = source.folder / "0.txt"
    file.rename(source.folder / "elsewhere")
    for _ in range(3):
        assert not coordinator.exhausted(ended)
    # The idempotent spout begins a batch all the same, whose emitter reports it.
    assert sum("can't be read" in each for each in caplog.messages) == (kind == "opaque")
    (source.folder / "elsewhere").rename(file)
    # A partition rests after a failed try, for twice as long as that took.
    wait_for(lambda: coordinator.exhausted(ended), "the file is at its end again")
    coordinator.close()


def test_what_is_no_text_is_reported_with_its_place_unless_it_is_to_be_read_over(source):
    (source.folder / "0.txt").write_bytes(b"moon\n\xff\n")
    with pytest.raises(ReportedFailedException, match=r"0\.txt: the line at byte 5 is no utf-8.*errors=\"replace\""):
        opened(source.spout(take=10)).new(0)
    assert opened(TransactionalFileSpout(source.folder, errors="replace")).new(0) == ["moon", "�"]
    assert opened(TransactionalFileSpout(source.folder, encoding="latin-1")).new(0) == ["moon", "ÿ"]


def test_a_partition_whose_reading_takes_long_to_fail_is_left_out_for_longer_without_a_try(source, monkeypatch):
    """Otherwise it would hold up the others at each batch."""
    from multilang.transactional.spouts import files

    now = [100.0]
    monkeypatch.setattr("multilang.transactional.spouts.source.monotonic", lambda: now[0])
    tries = []

    def slow(self, partition, position):
        tries.append(now[0])
        now[0] += 5
        raise files.SourceUnavailable("it does not answer")

    monkeypatch.setattr(files.FileSource, "_at", slow)
    reader = opened(source.opaque(take=10))
    for _ in range(30):
        assert reader.new(0) == []
        now[0] += 1
    assert tries == [100.0, 115.0, 130.0]
