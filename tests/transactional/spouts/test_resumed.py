"""A resumed source is the one that was, or it is refused: pairs of a source before and after, in each kind of source.

The law: whatever became of the source between two runs, either the second run is refused, or both together have read
each row of the source as it is now exactly once. Rows that come behind are never refused.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from multilang.component.errors import ChangedRowsError, ReportedFailedException
from multilang.local import LocalCluster, LocalClusterError
from multilang.protocol.codec import loads
from multilang.transactional import (
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    OpaqueTransactionalFileSpout,
    OpaqueTransactionalRedisSpout,
    OpaqueTransactionalSqliteSpout,
    SqliteBacking,
    TransactionalFileSpout,
    TransactionalMap,
    TransactionalRedisSpout,
    TransactionalSqliteSpout,
    TransactionAttempt,
)
from multilang.transactional.executors import coordinator_of, emitter_of
from multilang.transactional.names import CURRENT, USER
from multilang.transactional.spouts import history, source
from multilang.transactional.spouts.files import INDEX
from multilang.transactional.spouts.history import KEY
from tests.patience import patient
from tests.soak import SOAK
from tests.transactional.kept import Kept, kept_conf
from tests.transactional.spouts.topologies import word_count
from tests.transactional.test_executors import context

many = settings(
    max_examples=3000 if SOAK else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
_numbers = itertools.count()


class Out:
    def __init__(self):
        self.rows = []

    def emit_many(self, rows):
        self.rows += [tuple(values[1:]) for values in rows]

    def report_error(self, message):
        raise ReportedFailedException(message)


class Refused(Exception):
    pass


@pytest.fixture(autouse=True)
def never_idle(monkeypatch):
    monkeypatch.setattr(source, "IDLE_SECS", 0.0)
    monkeypatch.setattr(source, "UNKNOWN_SECS", 0.0)


def run(spout, conf, batches=None):
    """Run the spout for so many batches, or to its end, and return the rows."""
    store = Kept(conf, "words")
    epoch = store.claim()
    rows = []
    coordinator = coordinator_of(spout, store, conf, context())
    emitter = emitter_of(spout, Kept(conf, "words"), conf, context())
    try:
        coordinator.resume()
        emitter.enter(epoch)
        attempts = itertools.count(TransactionAttempt.first_of(epoch))
        for _ in itertools.count() if batches is None else range(batches):
            ended = coordinator.exhausted(None)
            if ended is not False:
                if ended is None:
                    raise Refused("a partition can't be read")
                break
            txid = store.get_data(CURRENT) or 1
            out, attempt = Out(), TransactionAttempt(txid, next(attempts))
            emitter.emit_batch(attempt, coordinator.initialize_transaction(txid, None), out)
            rows += out.rows
            if hasattr(emitter, "commit"):
                emitter.commit(attempt)
            store.set_data(CURRENT, txid + 1)
            emitter.cleanup_before(txid)
    except (ChangedRowsError, ReportedFailedException) as problem:
        raise Refused(str(problem)) from problem
    finally:
        emitter.close()
        coordinator.close()
        store.close()
    return rows


def new_conf():
    return {**kept_conf(f"resumed-{next(_numbers)}"), "topology.transactional.id": "words"}


class Memory:
    """Partitions in memory: lists of rows."""

    def __init__(self, folder):
        pass

    def put(self, parts):
        self.parts = parts

    def spout(self, opaque):
        kind = OpaqueMemoryTransactionalSpout if opaque else MemoryTransactionalSpout
        return kind({n: [[row] for row in part] for n, part in enumerate(self.parts)}, ["word"], 3)


class Files:
    """A file for each partition."""

    def __init__(self, folder):
        self.folder = folder / f"folder-{next(_numbers)}"
        self.folder.mkdir()

    def put(self, parts):
        for n in range(10):
            (self.folder / f"{n}.txt").unlink(missing_ok=True)
        for n, part in enumerate(parts):
            (self.folder / f"{n}.txt").write_text("".join(f"{row}\n" for row in part))

    def spout(self, opaque):
        kind = OpaqueTransactionalFileSpout if opaque else TransactionalFileSpout
        return kind(self.folder, 3, "*.txt")


words = st.lists(st.sampled_from(["a", "b", "cc"]), max_size=12)


@st.composite
def changed(draw, parts):
    """Draw what becomes of the partitions, and whether only rows or partitions came behind."""
    parts = [list(part) for part in parts]
    kind = draw(st.sampled_from(["append", "insert", "delete", "change", "swap", "drop", "add", "other", "move"]))
    at = draw(st.integers(0, len(parts) - 1))
    part, place = parts[at], draw(st.integers(0, len(parts[at])))
    if kind == "append":
        part += draw(words)
    elif kind == "insert":
        part[place:place] = draw(words)
    elif kind == "delete":
        del part[place : place + draw(st.integers(1, 4))]
    elif kind == "change" and place < len(part):
        part[place] = "d"
    elif kind == "swap":
        parts.append(parts.pop(at))
    elif kind == "drop" and len(parts) > 1:
        del parts[at]
    elif kind == "add":
        parts.append(draw(words))
    elif kind == "other":
        parts[at] = draw(words)
    elif kind == "move":
        parts[draw(st.integers(0, len(parts) - 1))] += [part.pop() for _ in range(min(2, len(part)))]
    return parts


@pytest.mark.parametrize("opaque", [False, True], ids=["same", "opaque"])
@pytest.mark.parametrize("kind", [Memory, Files])
def test_the_source_is_read_as_it_is_or_refused(kind, opaque, tmp_path):
    @many
    @given(data=st.data(), parts=st.lists(words, min_size=1, max_size=3), batches=st.integers(0, 5))
    def check(data, parts, batches):
        conf, place = new_conf(), kind(tmp_path)
        place.put(parts)
        first = run(place.spout(opaque), conf, batches)
        after = parts
        for _ in range(data.draw(st.integers(1, 2))):
            after = data.draw(changed(after))
        place.put(after)
        takes = Counter(row for (row,) in first)
        read = [part[: batches * 3] for part in parts]
        behind = len(after) >= len(parts) and all(now[: len(r)] == r for now, r in zip(after, read, strict=False))
        try:
            second = run(place.spout(opaque), conf)
        except Refused:
            assert not behind, "rows came only behind those that were read"
            event("refused")
        else:
            takes.update(row for (row,) in second)
            assert takes == Counter(itertools.chain(*after))
            event("read")

    check()


class Sqlite:
    """Rows of a query by their key."""

    query = "SELECT id, word FROM words WHERE id > :after AND id <= :to ORDER BY id"

    def __init__(self, folder, request):
        self.path = folder / f"{next(_numbers)}.sqlite"

    def put(self, rows):
        self.path.unlink(missing_ok=True)
        connection = sqlite3.connect(self.path)
        with connection:
            connection.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)")
            connection.executemany("INSERT INTO words VALUES (?, ?)", rows.items())
        connection.close()

    def spout(self, opaque):
        kind = OpaqueTransactionalSqliteSpout if opaque else TransactionalSqliteSpout
        return kind(self.path, self.query, ["id", "word"], 4)


class Streams:
    """Entries of a stream of Redis by their id."""

    def __init__(self, folder, request):
        import redis

        self.port = request.getfixturevalue("redis").port
        self.client = redis.Redis(port=self.port)
        self.name = f"resumed-{next(_numbers)}"

    def put(self, rows):
        self.client.delete(self.name)
        with self.client.pipeline() as pipeline:
            pipeline.xadd(self.name, {"id": 0}, id="0-1")
            pipeline.xdel(self.name, "0-1")
            for key, word in sorted(rows.items()):
                pipeline.xadd(self.name, {"id": key, "word": word}, id=f"{key}-0")
            pipeline.execute()

    def spout(self, opaque):
        kind = OpaqueTransactionalRedisSpout if opaque else TransactionalRedisSpout
        return kind([self.name], ["id", "word"], 4, port=self.port)


@pytest.mark.parametrize("opaque", [False, True], ids=["same", "opaque"])
@pytest.mark.parametrize("kind", [Sqlite, Streams])
def test_rows_with_keys_are_read_as_they_are_or_refused_and_may_be_deleted(kind, opaque, tmp_path, request):
    keys = st.dictionaries(st.integers(1, 40), st.sampled_from(["a", "b"]), min_size=1, max_size=25)

    @many
    @given(data=st.data(), before=keys, batches=st.integers(0, 5))
    def check(data, before, batches):
        conf, place = new_conf(), kind(tmp_path, request)
        place.put(before)
        first = run(place.spout(opaque), conf, batches)
        last = max((int(key) for key, _ in first), default=0)
        after = dict(before)
        how = data.draw(st.sampled_from(["append", "insert", "change", "trim", "mixed", "other"]))
        if how == "append":
            after.update({max(before) + n: "c" for n in range(1, data.draw(st.integers(2, 6)))})
        elif how == "insert":
            after.update(dict.fromkeys(data.draw(st.lists(st.integers(1, 40), max_size=3)), "c"))
        elif how == "change":
            after[data.draw(st.sampled_from(sorted(before)))] = "c"
        elif how == "trim":
            upto = data.draw(st.integers(0, last))
            after = {key: word for key, word in after.items() if key > upto}
        elif how == "mixed":  # rows are deleted anywhere, and others come between those that are left
            gone = data.draw(st.sets(st.sampled_from(sorted(before)), min_size=1))
            after = {key: word for key, word in after.items() if key not in gone}
            after.update(dict.fromkeys(data.draw(st.lists(st.integers(1, 40), max_size=2)), "c"))
        else:
            after = data.draw(st.dictionaries(st.integers(1, 40), st.just("c"), min_size=1, max_size=25))
        place.put(after)
        done = {(int(key), word) for key, word in first}
        try:
            second = [(int(key), word) for key, word in run(place.spout(opaque), conf)]
        except Refused:
            gone = kind is Streams and max(after, default=0) < last  # such a stream was made anew
            assert gone or not {each for each in after.items() if each[0] <= last} <= done, (
                "nothing that was read changed"
            )
            event("refused")
        else:
            assert sorted(second) == sorted(set(after.items()) - done)
            event("read")

    check()


@pytest.mark.parametrize("before", [7, 8, 9, 30, 600])
def test_of_many_rows_samples_are_compared(before, monkeypatch):
    monkeypatch.setattr(history, "WHOLE", 0)
    rows = [str(number) for number in range(before * 3)]

    def resumed(after):
        conf, place = new_conf(), Memory(None)
        place.put([rows])
        assert len(run(place.spout(False), conf)) == before * 3
        stored = loads(Kept(conf, "words").last_of_each(USER)["0"][KEY])
        assert len(stored["blocks"]) <= 5
        place.put([after])
        return run(place.spout(False), conf)

    assert resumed([*rows, "new"]) == [("new",)]
    for wrong in (
        ["new", *rows],
        rows[1:],
        rows[: before * 3 - 4] + rows[before * 3 - 3 :],
        ["x", *rows[1:]],
        rows[::-1],
    ):
        with pytest.raises(Refused, match="has other rows"):
            resumed(wrong)


@pytest.mark.parametrize("opaque", [False, True], ids=["same", "opaque"])
def test_another_kind_of_source_another_number_of_partitions_and_other_fields_are_refused(opaque, tmp_path):
    place = Sqlite(tmp_path, None)
    place.put({1: "a", 2: "b"})
    kind = type(place.spout(opaque))
    parted = place.query.replace("ORDER", "AND id % :partitions = :partition ORDER")
    files = Files(tmp_path)
    files.put([["a", "b", "c"]])
    others = {
        "has partitions 2, and had 1": kind(place.path, parted, ["id", "word"], 4, 2),
        "has the fields word, id, and had id, word": kind(
            place.path, "SELECT id, word FROM words WHERE id > :after AND id <= :to", ["word", "id"], 4
        ),
        "is not there any more": files.spout(opaque),
    }
    for said, spout in others.items():
        conf = new_conf()
        run(place.spout(opaque), conf)
        with pytest.raises(
            Refused, match=f"partition 0 of the spout's source, .*, {said}.*another id, and its maps other"
        ):
            run(spout, conf)
    conf = new_conf()
    run(files.spout(opaque), conf)
    with pytest.raises(Refused, match=r"is one of another kind: it has no file, which was '0\.txt'"):
        run(place.spout(opaque), conf)
    conf = new_conf()
    run(place.spout(opaque), conf)
    renamed = kind(place.path, place.query, ["key", "word"], 4)
    assert run(renamed, conf) == []


def test_files_keep_their_numbers_or_are_refused(tmp_path):
    conf, place = new_conf(), Files(tmp_path)
    place.put([["a"], ["b"]])
    run(place.spout(False), conf)
    (place.folder / INDEX).unlink()
    (place.folder / "-first.txt").write_text("c\n")
    with pytest.raises(Refused, match=rf"folder .*{INDEX} there has the numbers of its files.*is not there any more"):
        run(place.spout(False), conf)
    place.spout(False).open({}).discover()
    with pytest.raises(Refused, match=r"has file '-first\.txt', and had '0\.txt'"):
        run(place.spout(False), conf)


def test_a_position_that_another_kind_of_spout_stored_is_refused(tmp_path):
    conf, place = new_conf(), Files(tmp_path)
    place.put([["a", "b"]])
    run(place.spout(False), conf)
    stored = Kept(conf, "words")
    stored.claim()
    stored.update({path: [0, 2] for path in stored.stored if path.startswith(USER)})
    stored.close()
    with pytest.raises(Refused, match=r"position of partition 0, \[0, 2\], is that of a spout of another kind"):
        run(place.spout(False), conf)


def test_a_batch_whose_rows_are_others_in_its_replay_is_not_emitted(tmp_path):
    conf, place = new_conf(), Files(tmp_path)
    place.put([["a", "b"]])
    spout = place.spout(False)
    spout.open({}).discover()
    emitter = spout.get_emitter(conf, None)
    metadata = emitter.emit_partition_batch_new("1:1", Out(), 0, None)
    place.put([["a", "c"]])
    out = Out()
    with pytest.raises(
        ReportedFailedException, match="had 2 rows from 0 to 4 when they were emitted, and has others now"
    ):
        emitter.emit_partition_batch("1:2", out, 0, metadata)
    assert out.rows == []


def test_a_file_that_is_replaced_while_it_is_read_is_noticed(tmp_path):
    place = Files(tmp_path)
    place.put([["a", "b"]])
    spout = place.spout(False)
    spout.open({}).discover()
    emitter = spout.get_emitter(new_conf(), None)
    last = emitter.emit_partition_batch_new("1:1", Out(), 0, None)
    path = place.folder / "0.txt"
    path.rename(place.folder / "old")
    path.write_text("a\nb\nc\n")
    out = Out()
    last = emitter.emit_partition_batch_new("2:1", out, 0, last)
    assert out.rows == [("c",)]
    path.rename(place.folder / "older")
    path.write_text("x\ny\nz\nu\n")
    with pytest.raises(ChangedRowsError, match=r"partition 0 of .* has other rows"):
        emitter.emit_partition_batch_new("3:1", Out(), 0, last)


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_topology_whose_source_is_another_ends_before_it_counts_anything(mode, tmp_path):
    place, found = Files(tmp_path), TransactionalMap(SqliteBacking(tmp_path / "counts.sqlite"))
    place.put([["a"] * 30])
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}

    def count():
        with LocalCluster(mode=mode, conf=conf) as cluster:
            cluster.submit(word_count(place.spout(False), found)).wait(timeout=patient(60))

    count()
    place.put([["b"] * 10 + ["a"] * 30])
    with pytest.raises(LocalClusterError, match=r"partition 0 of the spout's source, folder .* has other rows"):
        count()
    assert found.multi_get(["a", "b"]) == {"a": 30}
    place.put([["a"] * 30 + ["b"] * 10])
    count()
    assert found.multi_get(["a", "b"]) == {"a": 30, "b": 10}
    found.close()
