"""A source that is read on is the one that was read, or it is refused: nothing is lost or given twice in silence."""

from __future__ import annotations

import random
import re
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from multilang.checksums import extended
from multilang.state.errors import FencedError, InUseError
from multilang.state.sqlite_file import SqliteConnection
from spark_bridge import ChangedRowsError, ListSource, PartitionSource, PartitionSpout, RDDSource, SQLiteStore, publish
from spark_bridge.sources.identity import Comparison, Mark, Sums, described
from spark_bridge.sources.store import GroupReader
from tests.patience import patient
from tests.soak import SOAK
from tests.spark.sources.topologies import Echo, through

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from multilang.plain import Row

ROWS = 20_000
STOPPED = 8_000


def divided(rows: Sequence[Any], partitions: int) -> list[list[Any]]:
    """As Spark's parallelize divides them."""
    size = len(rows)
    return [list(rows[size * n // partitions : size * (n + 1) // partitions]) for n in range(partitions)]


def dealt(rows: Sequence[Any], partitions: int) -> list[list[Any]]:
    """As repartition deals them."""
    return [list(rows[n::partitions]) for n in range(partitions)]


NUMBERS = list(range(ROWS))
THEN = divided(NUMBERS, 5)


def read(source: PartitionSource, store: Path, acked: int | None = None, tasks: int = 2, group: str = "nightly") -> Any:
    """Return what arrives until so many rows are acked (None: all)."""
    spout = PartitionSpout(source, store=SQLiteStore(str(store)), group=group)
    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(through(spout, Echo, tasks=tasks), capture=["echo"])
        if acked is None:
            running.wait(timeout=patient(120))
        else:
            running.wait(until=lambda run: run.counters["rows"].acked >= acked, timeout=patient(120))
    return [tup["row"][0] for tup in running.captured("echo")]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (divided(NUMBERS, 3), r"partition \d of the source 'list', which had 5 partitions and has 3,"),
        (dealt(NUMBERS, 5), r"partition \d of the source 'list' has other rows: .*read by group 'nightly/rows'"),
        (divided([-1] * 1000 + NUMBERS, 5), r"partition \d of the source 'list' has other rows"),
        (THEN[:-1], r"partition 4 of the source 'list', which had 5 partitions and has 4, is not there any more"),
        ([part[:100] for part in THEN], r"partition \d of the source 'list' ends at row 100: .* rows were read by"),
    ],
    ids=["fewer partitions", "repartitioned", "rows before them", "the last is gone", "cut short"],
)
def test_another_source_under_the_same_group_is_refused_by_the_partition_that_differs(
    now: list[list[int]], said: str, tmp_path: Path
) -> None:
    before = read(ListSource(THEN), tmp_path / "kept", STOPPED)
    with pytest.raises(Exception, match=said):
        read(ListSource(now), tmp_path / "kept")
    # Nothing was changed by that: with the source that was, each row arrives, and few of them twice.
    after = read(ListSource(THEN), tmp_path / "kept", tasks=3)
    assert set(before) | set(after) == set(NUMBERS)
    assert len(before) + len(after) <= ROWS + 3 * 200  # what was under way


def test_rows_and_partitions_that_were_added_at_the_end_are_read(tmp_path: Path) -> None:
    before = read(ListSource(THEN), tmp_path / "kept", STOPPED)
    more = [[*part, f"new in {number}"] for number, part in enumerate(THEN)] + [["a partition", "more"]]
    after = read(ListSource(more), tmp_path / "kept")
    assert set(before) | set(after) == {*NUMBERS, *(f"new in {n}" for n in range(5)), "a partition", "more"}
    assert read(ListSource(more), tmp_path / "kept") == []


def test_a_partition_that_is_gone_is_refused_although_nothing_was_read_of_it() -> None:
    """It was seen to be left out without a word: 8,000 of 20,000 rows were never read."""
    marks = {0: Mark(1, extended(0, [[1]]), described(ListSource([[1], [2]])))}
    with pytest.raises(
        ChangedRowsError, match=r"partition 1 .* is not there .* of which 1 rows of partition 0 were read"
    ):
        Comparison(ListSource([[1]]), marks, "the test", "nothing").finish()


def test_columns_may_be_renamed_and_are_refused_when_they_are_others(tmp_path: Path) -> None:
    rows = [[(n, f"customer {n}") for n in range(100)]]

    def of(*fields: str, given: Any = rows) -> list[Any]:
        return read(ListSource(given, fields), tmp_path / "kept")

    assert len(of("id", "customer")) == 100
    assert of("id", "client") == []
    with pytest.raises(Exception, match="has the fields client, id, and had id, client"):
        of("client", "id")
    with pytest.raises(Exception, match="has the fields id, client, amount, and had id, client"):
        of("id", "client", "amount", given=[[(*row, 7) for row in rows[0]]])


def test_a_name_says_nothing_of_the_rows(tmp_path: Path) -> None:
    assert len(read(ListSource([[1, 2]], name="orders"), tmp_path / "kept")) == 2
    assert read(ListSource([[1, 2, 3]], name="all orders"), tmp_path / "kept") == [3]
    with pytest.raises(Exception, match="'orders' has other rows"):
        read(ListSource([[1, 3, 2]], name="orders"), tmp_path / "kept")


# ---- the law: refused exactly when the rows up to the watermark differ ----

rows = st.integers(0, 3)
partitioned = st.lists(st.lists(rows, max_size=12), min_size=1, max_size=4)


@st.composite
def changed(draw: Any, parts: list[list[int]]) -> list[list[int]]:
    """Return a source after some random changes."""
    now = [list(part) for part in parts]
    for _ in range(draw(st.integers(0, 3))):
        part = draw(st.sampled_from(now)) if now else []
        what = draw(st.sampled_from(["append", "prepend", "replace", "swap", "cut", "add", "drop", "again", "deal"]))
        if what == "append":
            part += draw(st.lists(rows, max_size=4))
        elif what == "prepend":
            part.insert(0, draw(rows))
        elif what == "replace" and part:
            part[draw(st.integers(0, len(part) - 1))] = draw(rows)
        elif what == "swap" and len(part) > 1:
            at = draw(st.integers(0, len(part) - 2))
            part[at], part[at + 1] = part[at + 1], part[at]
        elif what == "cut":
            del part[draw(st.integers(0, len(part))) :]
        elif what == "add":
            now.append(draw(st.lists(rows, max_size=4)))
        elif what == "drop":
            del now[-1:]
        elif what in ("again", "deal"):
            count = draw(st.integers(1, 5))
            flat = [row for each in now for row in each]
            now = (divided if what == "again" else dealt)(flat, count)
    return now


@settings(max_examples=20_000 if SOAK else 100, deadline=None)
@given(data=st.data(), parts=partitioned)
def test_a_source_is_refused_exactly_when_the_rows_up_to_the_watermarks_differ(
    data: st.DataObject, parts: list[list[int]]
) -> None:
    source = ListSource(parts)
    at = [data.draw(st.integers(0, len(part))) for part in parts]
    marks = {n: Mark(end, extended(0, parts_of(parts, n, end)), described(source)) for n, end in enumerate(at)}
    now = data.draw(changed(parts))
    same = all(
        part[:end] == (now[n][:end] if n < len(now) else [])
        for n, (part, end) in enumerate(zip(parts, at, strict=False))
    ) and (len(now) >= len(parts) or not any(at))  # of a partition that is gone nothing more would be read
    comparison = Comparison(ListSource(now), marks, "the test", "nothing")
    if same:
        assert comparison.finish() == {n: mark.total for n, mark in marks.items()}
    else:
        with pytest.raises(ChangedRowsError, match=r"partition \d+ of the source 'list'"):
            comparison.finish()


def parts_of(parts: list[list[int]], number: int, end: int) -> list[Row]:
    return [[row] for row in parts[number][:end]]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=5000 if SOAK else 60, deadline=None)
@given(given=st.lists(st.lists(values, min_size=2, max_size=2), max_size=8), cut=st.integers(0, 8))
def test_a_checksum_does_not_depend_on_how_rows_are_divided_and_tells_kinds_apart(given: list[Any], cut: int) -> None:
    whole = extended(0, given)
    assert extended(extended(0, given[:cut]), [tuple(row) for row in given[cut:]]) == whole
    assert extended(0, [*given, [1, 2]]) != whole
    kinds = [1, 1.0, True, "1", None, [1], [[1]], {"1": 1}, {"1": 1.0}, ""]
    assert len({extended(whole, [[kind]]) for kind in kinds}) == len(kinds)


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Whole(int):
    pass


class Fraction(float):
    pass


def as_python_may_have_it(value: Any, chance: random.Random) -> Any:
    """Return a value of other Python types with the same JSON text."""
    if isinstance(value, list):
        return (list if chance.random() < 0.5 else tuple)(as_python_may_have_it(each, chance) for each in value)
    if isinstance(value, dict):
        return {as_python_may_have_it(key, chance): as_python_may_have_it(each, chance) for key, each in value.items()}
    if isinstance(value, bool) or value is None or chance.random() < 0.5:
        return value
    return {str: Text, int: Whole, float: Fraction}[type(value)](value)


@settings(max_examples=3000 if SOAK else 60, deadline=None)
@given(st.lists(st.tuples(values, values), max_size=8), st.integers(0, 8), st.integers(0, 99))
@example([([1, [2]], {"a": [1]})], 0, 0)
def test_rows_that_json_has_the_same_text_for_are_the_same_rows(given: list[Any], cut: int, seed: int) -> None:
    chance = random.Random(seed)
    there = [as_python_may_have_it(list(row), chance) for row in given]
    source = ListSource([there], ["a", "b"])
    assert extended(extended(0, source.read(0, 0, cut)), source.read(0, cut, 8)) == extended(0, given)
    flat = [
        [Text(value) if isinstance(value, str) else value for value in row] for row in given
    ]  # of a source of one's own
    assert extended(extended(0, flat[:cut]), flat[cut:]) == extended(0, given)


def test_a_list_whose_values_are_tuples_once_and_lists_the_next_time_is_the_same_source(tmp_path: Path) -> None:
    rows = [[(n, [n]) for n in range(500)], [(n, (n, "x")) for n in range(500)]]
    again = [[[n, (n,)] for n in range(500)], [[n, [n, "x"]] for n in range(500)]]
    first = read(ListSource(rows, ["row", "more"]), tmp_path / "kept", 300)
    rest = read(ListSource(again, ["row", "more"]), tmp_path / "kept")
    assert sorted({*first, *rest}) == list(range(500))
    other = [[[n, (n, 1)] for n in range(500)], again[1]]
    with pytest.raises(Exception, match="partition 0 of the source 'list' has other rows"):
        read(ListSource(other, ["row", "more"]), tmp_path / "kept")


@settings(max_examples=2000 if SOAK else 40, deadline=None)
@example(lengths=[9000, 9000, 9000], asked=[0, 5, 26_999])
@given(
    lengths=st.lists(st.sampled_from([1, 100, 511, 512, 513, 5000, 9000]), min_size=1, max_size=5),
    asked=st.lists(st.integers(0, 10**5), max_size=6),
)
def test_sums_are_known_wherever_it_is_acked_and_little_is_held_for_it(lengths: list[int], asked: list[int]) -> None:
    numbers = [(n,) for n in range(sum(lengths))]
    sums = Sums()
    sums.begin(0, 0, 0)
    sums.begin(1, 3, 17)
    read, last = 0, 0
    for length, offset in zip(lengths, [*asked, *[0] * 5], strict=False):
        sums.read(0, read, numbers[read : read + length])
        sums.read(1, 3 + read, numbers[:length])
        read += length
        last = max(last, min(offset, read))
        at, total = sums.at(0, last)
        assert at <= last < at + 512 or at == last
        assert total == extended(0, numbers[:at])
        if read <= 8192:
            assert at == last
        last = at
    assert sums.at(1, 3) == (3, 17)
    assert sums._rows <= 16384 + 9000


# ---- the store: who reads for a group, and who did ----


def test_a_task_that_was_replaced_while_it_was_stopped_keeps_nothing(tmp_path: Path) -> None:
    stopped, other = SQLiteStore(str(tmp_path / "kept")), SQLiteStore(str(tmp_path / "kept"))
    run = GroupReader("run", "orders", lasting=False)
    before = stopped.claim("g", [0, 1], run)
    stopped.save("g", {0: Mark(5, 1)}, before)
    after = other.claim("g", [1, 2], run)  # as when tasks are dealt anew
    assert after > before
    with pytest.raises(FencedError, match=r"partition 1 of group 'g' is read by another task by now"):
        stopped.save("g", {0: Mark(9, 2), 1: Mark(9, 3)}, before)
    stopped.save("g", {0: Mark(6, 4)}, before)
    assert {each: mark.watermark for each, mark in other.load("g").items()} == {0: 6, 1: 0, 2: 0}
    stopped.close()
    other.close()


@pytest.mark.parametrize("lasting", [False, True])
def test_a_task_that_was_stopped_anywhere_in_its_claim_keeps_nothing_behind_its_successor(
    lasting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = GroupReader("run", "orders", lasting)
    writing = SqliteConnection.writing
    steps = 0
    while steps < 20:
        path = str(tmp_path / f"kept {steps}")
        stopped, other = SQLiteStore(path), SQLiteStore(path)
        stopped.claim("g", [0], run)
        left, epochs = steps, []

        def held(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == -1:
                epochs.append(other.claim("g", [0], run))  # noqa: B023
            return writing(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(SqliteConnection, "writing", held)
            before = None
            with suppress(FencedError):
                before = stopped.claim("g", [0], run)
        if not epochs:  # it was held at each of its writes
            break
        if before is None or before < epochs[0]:
            other.save("g", {0: Mark(9, 1)}, epochs[0])
            with pytest.raises(FencedError):
                stopped.save("g", {0: Mark(5, 1)}, 0 if before is None else before)
        else:  # it claimed behind the other
            stopped.save("g", {0: Mark(9, 1)}, before)
            assert before > epochs[0]
            with pytest.raises(FencedError):
                other.save("g", {0: Mark(5, 1)}, epochs[0])
        assert other.load("g")[0].watermark == 9
        stopped.close()
        other.close()
        steps += 1
    assert steps >= 1 + lasting


def test_a_second_run_at_once_is_refused_by_name_and_one_that_was_stopped_changes_nothing(tmp_path: Path) -> None:
    first, second = SQLiteStore(str(tmp_path / "kept")), SQLiteStore(str(tmp_path / "kept"))
    epoch = first.claim("g", [0], GroupReader("run 1", "orders", lasting=True))
    sibling = SQLiteStore(str(tmp_path / "kept"))
    sibling.claim("g", [1], GroupReader("run 1", "orders", lasting=True))
    first.save("g", {0: Mark(5, 1)}, epoch)  # another task of the same run takes nothing away
    with pytest.raises(
        InUseError, match=r"the group 'g' is in use by topology 'orders' \(process \d+ on .*, since .*\)"
    ):
        second.claim("g", [0, 1], GroupReader("run 2", "invoices", lasting=True))
    sibling.close()
    second.claim("g", [1], GroupReader("run 2", "invoices", lasting=True))
    with pytest.raises(FencedError, match="group 'g' is read by topology 'invoices'"):
        first.save("g", {0: Mark(9, 2)}, epoch)
    assert second.load("g")[0] == Mark(5, 1)
    first.close()
    second.close()


def test_a_topology_ends_when_another_one_took_its_group(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    spout = PartitionSpout(ListSource(THEN), store=SQLiteStore(kept), group="nightly")
    spout.save_secs = 0.01
    with LocalCluster(mode="inprocess") as cluster:
        run = cluster.submit(through(spout))
        run.wait(until=lambda run: run.counters["rows"].acked > 100, timeout=patient(60))
        with closing(sqlite3.connect(kept)) as file, file:  # what somebody who takes over does
            file.execute("UPDATE marks SET epoch = epoch + 1")
        with pytest.raises(Exception, match=r"ends: FencedError .* is read by another task by now"):
            run.wait(timeout=patient(60))
        assert run.counters["rows"].restarts == 0


def old_file(path: Path, kept: dict[tuple[str, int], int]) -> None:
    """As the first layout had it."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "CREATE TABLE watermarks (grouped TEXT NOT NULL, partition INTEGER NOT NULL, watermark INTEGER NOT NULL, "
            "saved REAL NOT NULL, PRIMARY KEY (grouped, partition)) WITHOUT ROWID"
        )
        file.executemany("INSERT INTO watermarks VALUES (?, ?, ?, 1)", [(*key, value) for key, value in kept.items()])


def test_what_older_versions_kept_is_taken_over_and_can_be_told_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    old_file(path, {("nightly/rows/list", 0): 90, ("nightly/rows/list", 1): 100, ("nightly/rows/other", 0): 7})
    parts = [list(range(100)), list(range(100, 200))]
    assert read(ListSource(parts), path) == list(range(90, 100))
    with pytest.raises(Exception, match="partition 0 of the source 'list' has other rows"):
        read(ListSource([parts[1], parts[0]]), path)
    with closing(sqlite3.connect(path)) as file:  # a process of the older version, which knows no epochs
        assert file.execute("SELECT watermark FROM watermarks WHERE grouped = 'nightly/rows/other'").fetchall() == [
            (7,)
        ]
        with pytest.raises(sqlite3.OperationalError, match="view"):
            file.execute("INSERT INTO watermarks VALUES ('g', 0, 1, 1)")


def test_an_older_version_read_more_of_a_partition_than_there_is(tmp_path: Path) -> None:
    old_file(tmp_path / "kept", {("nightly/rows/list", 0): 90})
    with pytest.raises(Exception, match="partition 0 of the source 'list' ends at row 50"):
        read(ListSource([list(range(50))]), tmp_path / "kept")


def test_files_that_are_somebody_elses_are_left_alone(tmp_path: Path) -> None:
    for statement, said in [
        ("CREATE TABLE bank (account TEXT)", "another's tables"),
        ("PRAGMA user_version = 9", "another's tables"),
        (f"PRAGMA application_id = {0x4D4C574D}", "layout 0, and this version knows 2"),
    ]:
        path = tmp_path / re.sub(r"\W", "", statement)
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(statement)
        with pytest.raises(Exception, match=said):
            SQLiteStore(str(path)).load("g")


# ---- what Spark makes of the same rows ----


def test_the_same_rows_live_and_published_anew_are_the_same_source(spark: SparkSession, tmp_path: Path) -> None:
    def rdd(more: int = 0) -> Any:
        parts = [[*part[:50], *range(100_000, 100_000 + more)] for part in THEN[:2]]
        return spark.sparkContext.parallelize(parts, 2).flatMap(lambda part: part)

    kept, url = tmp_path / "kept", str(tmp_path / "published")
    live = RDDSource(rdd(), block_rows=7)
    assert len(read(live, kept)) == 100
    assert read(live, kept) == []
    live.close()
    for number, more in enumerate([0, 0, 1]):
        source = publish(rdd(more), url, overwrite=number > 0)
        assert read(source, kept) == [100_000] * 2 * more
        assert read(source, kept) == []
    with pytest.raises(Exception, match=r"partition \d of the source .* has other rows: .* 51 rows"):
        read(publish(rdd(2).map(lambda n: -n), url, overwrite=True), kept)


def test_rows_in_the_order_of_chance_are_refused_by_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    def by_chance() -> RDDSource:
        return RDDSource(
            spark.sparkContext.parallelize(range(60), 2).map(lambda n: (n, random.random())), fields=["n", "x"]
        )

    first = by_chance()
    assert len(read(first, tmp_path / "kept")) == 60
    second = by_chance()
    with pytest.raises(
        Exception, match=r"partition \d of the source .* has other rows.* sorted, checkpointed or published"
    ):
        read(second, tmp_path / "kept")
    first.close()
    second.close()


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_reader_of_long_ago_that_wakes_after_a_rename_changes_nothing(tmp_path: Path, name: str) -> None:
    file = str(tmp_path / "kept")

    def claimed(name: str, run: str) -> tuple[SQLiteStore, int]:
        store = SQLiteStore(file)
        return store, store.claim(f"g/{name}", [0], GroupReader(run, "orders", lasting=True))

    def read(name: str, run: str, rows: int) -> None:
        store, epoch = claimed(name, run)
        store.save(f"g/{name}", {0: Mark(rows, None, {})}, epoch)
        store.close()

    stopped, epoch = claimed(name, "first")
    read(name, "first", 10)  # another process of the same run, after which it is not in use any more
    manager = SQLiteStore(file)
    if name == "old":
        manager.rename("g", "old", "new")
        read("old", "second", 7)
    else:
        manager.forget("g", "new")
        read("old", "second", 7)
        manager.rename("g", "old", "new")
    with pytest.raises(FencedError):
        stopped.save(f"g/{name}", {0: Mark(3, None, {})}, epoch)
    assert manager.load(f"g/{name}")[0].watermark == 7
    assert manager.components("g", "orders") == (["new", "old"] if name == "old" else ["new"])
    read("new", "third", 20)
    assert manager.load("g/new")[0].watermark == 20
    stopped.close()
    manager.close()
