"""A source that is read on is the one that was read, or it is refused: nothing is lost or given twice in silence."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from multilang.helpers.checksums import extended
from multilang.store import FencedError, InUseError, open_store
from multilang.store.claims import stored_owner
from multilang.store.memory import MemoryStore
from spark_bridge import (
    ChangedRowsError,
    ListSource,
    PartitionSource,
    PartitionSpout,
    RDDSource,
    forget_progress,
    publish,
    rename_progress,
)
from spark_bridge.sources.source import Comparison, Mark, Sums, described
from spark_bridge.sources.store import Marks, components
from tests.patience import patient
from tests.soak import SOAK
from tests.spark.sources.topologies import Echo, through

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from multilang.helpers.plain import Row
    from multilang.store import Store

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
    spout = PartitionSpout(source, store=str(store), group=group)
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


def test_rows_that_can_not_be_compared_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    source = ListSource([[1], [2], [3], [4]])
    older = {**described(source), "form": 0}
    marks = {0: Mark(1, 7, older), 1: Mark(1, extended(0, [[2]]), described(source)), 2: Mark(1, 7, older), 3: Mark(0)}
    assert Comparison(source, marks, "the test", "nothing").finish()[0] == extended(0, [[1]])
    (record,) = caplog.records
    assert "read before by the test can't be compared in partitions 0, 2, since another version" in record.getMessage()


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


def marks(store: Store, group: str, run: str, partitions: Sequence[int], topology: str = "orders") -> Marks:
    """Return the marks of a task that has claimed its partitions."""
    found = Marks(store, group)
    found.claim(partitions, run, topology)
    return found


def at(store: Store, group: str) -> dict[int, int]:
    return {each: mark.watermark for each, mark in Marks(store, group).load().items()}


def test_a_task_that_was_replaced_while_it_was_stopped_keeps_nothing() -> None:
    store = MemoryStore()
    stopped = marks(store, "g", "run", [0, 1])
    stopped.save({0: Mark(5, 1)})
    other = marks(store, "g", "run", [1, 2])  # as when tasks are dealt anew
    with pytest.raises(FencedError, match=r"partition 1 of group 'g' is read by another task by now"):
        stopped.save({0: Mark(9, 2), 1: Mark(9, 3)})
    stopped.save({0: Mark(6, 4)})
    other.save({2: Mark(1, 4)})
    assert at(store, "g") == {0: 6, 2: 1}
    for each in (stopped, other):
        each.release()


class Held(MemoryStore):
    """Calls something before one of its calls, as if the process had been stopped there."""

    left = 0
    meanwhile: Callable[[], object] | None = None

    def get(self, place: str, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        self._step()
        return super().get(place, table, keys)

    def compare_and_write(self, *given: Any, **named: Any) -> bool:
        self._step()
        return super().compare_and_write(*given, **named)

    def _step(self) -> None:
        if threading.current_thread() is threading.main_thread() and self.meanwhile is not None:
            self.left -= 1
            if self.left < 0:
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()


@pytest.mark.parametrize(
    "rivals",
    [[("run", 0)], [("run", 1)], [("other", 0)], [("other", 1)], [("other", 1), ("before", 1)]],
    ids=lambda rivals: " ".join(f"{run}:{partition}" for run, partition in rivals),
)
def test_a_task_that_was_stopped_anywhere_in_its_claim_keeps_nothing_behind_its_successor(
    rivals: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multilang.store.claims.LEASE_SECS", 0.0)  # another run need not wait
    steps, fenced = 0, 0
    run, partition = rivals[-1]
    while steps < 50:
        store = Held()
        marks(store, "g", "before", [1]).release()
        store.left = steps
        others: list[Marks] = []
        store.meanwhile = lambda: others.extend(marks(store, "g", run, [mine]) for run, mine in rivals)  # noqa: B023
        task = Marks(store, "g")
        with suppress(FencedError):
            task.claim([0], "run", "orders", may_return=False)
        if not others:  # it was held at each of its steps
            break
        kept = []
        for each, its, rows in ((task, 0, 5), (others[-1], partition, 9)):
            with suppress(FencedError):
                each.save({its: Mark(rows, 1)})
                kept.append(each)
        fenced += task not in kept
        owner = stored_owner(store, "source/g")
        assert owner is not None
        if rivals == [("run", 1)]:
            assert kept == [task, others[-1]], steps  # a task of the same run with other partitions takes nothing away
        else:
            assert len(kept) == 1, steps
            assert run == "run" or (kept == [task]) is (owner.run == "run"), steps
        for each in (task, *others):
            each.release()
        steps += 1
    assert 4 <= steps < 50
    assert rivals == [("run", 1)] or 0 < fenced < steps


def test_many_tasks_of_a_run_claim_at_once() -> None:
    store = MemoryStore()
    marks(store, "g", "run before", [0, 1]).release()
    with ThreadPoolExecutor(16) as pool:
        tasks = list(pool.map(lambda number: marks(store, "g", "run", [number, number + 16]), range(16)))
    for number, task in enumerate(tasks):
        task.save({number: Mark(1, 1), number + 16: Mark(2, 1)})
    assert at(store, "g") == {each: 1 + each // 16 for each in range(32)}
    for task in tasks:
        task.release()


def test_a_second_run_at_once_is_refused_by_name_and_one_that_was_stopped_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multilang.store.claims.CLAIM_SECS", 0.5)
    with (
        closing(open_store(f"sqlite://{tmp_path / 'kept'}")) as store,
        closing(open_store(f"sqlite://{tmp_path / 'kept'}")) as again,
    ):
        first = marks(store, "g", "run 1", [0])
        sibling = marks(store, "g", "run 1", [1])
        first.save({0: Mark(5, 1)})  # another task of the same run takes nothing away
        with pytest.raises(
            InUseError, match=r"the group 'g' in .*kept is in use by topology 'orders' \(process \d+ on .*, since .*\)"
        ):
            marks(again, "g", "run 2", [0, 1], "invoices")
        sibling.release()
        second = marks(again, "g", "run 2", [1], "invoices")
        with pytest.raises(FencedError, match="group 'g' is read by topology 'invoices'"):
            first.save({0: Mark(9, 2)})
        assert second.load()[0] == Mark(5, 1)
        first.release()
        second.release()


def test_a_topology_ends_when_another_one_took_its_group(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    spout = PartitionSpout(ListSource(THEN), store=kept, group="nightly")
    spout.save_secs = 0.01
    with LocalCluster(mode="inprocess") as cluster, closing(open_store(f"sqlite://{kept}")) as store:
        run = cluster.submit(through(spout))
        run.wait(until=lambda run: run.counters["rows"].acked > 100, timeout=patient(60))
        owner = stored_owner(store, "source/nightly/rows")
        assert owner is not None
        taken = marks(store, "nightly/rows", owner.run, range(5))  # as a task that was started in its place does
        with pytest.raises(Exception, match=r"ends: FencedError .* is read by another task by now"):
            run.wait(timeout=patient(60))
        assert run.counters["rows"].restarts == 0
        taken.release()


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
def test_a_reader_of_long_ago_that_wakes_after_a_rename_changes_nothing(name: str) -> None:
    store = MemoryStore()

    def read(name: str, run: str, rows: int) -> None:
        task = marks(store, f"g/{name}", run, [0])
        task.save({0: Mark(rows)})
        task.release()

    stopped = marks(store, f"g/{name}", "first", [0])
    read(name, "first", 10)  # another process of the same run, after which it is not in use any more
    if name == "old":
        rename_progress(store, "g", "old", "new")
        read("old", "second", 7)
    else:
        forget_progress(store, "g", "new")
        read("old", "second", 7)
        rename_progress(store, "g", "old", "new")
    with pytest.raises(FencedError):
        stopped.save({0: Mark(3)})
    assert at(store, f"g/{name}")[0] == 7
    assert components(store, "g", "orders") == (["new", "old"] if name == "old" else ["new"])
    read("new", "third", 20)
    assert at(store, "g/new")[0] == 20
    stopped.release()


@pytest.mark.parametrize("step", ["rename", "forget"])
def test_the_progress_of_a_component_that_is_read_stays(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multilang.store.claims.CLAIM_SECS", 0.5)
    store = MemoryStore()
    task = marks(store, "g/rows", "run", [0])
    task.save({0: Mark(3)})
    with pytest.raises(InUseError, match=r"the group 'g/rows' in .* is in use by topology 'orders'"):
        rename_progress(store, "g", "rows", "lines") if step == "rename" else forget_progress(store, "g", "rows")
    task.save({0: Mark(4)})
    assert at(store, "g/rows") == {0: 4}
    task.release()


def test_a_rename_that_was_interrupted_loses_nothing() -> None:
    steps = 0
    while steps < 50:
        store = Held()
        task = marks(store, "g/old", "run", [0, 1])
        task.save({0: Mark(3, 1), 1: Mark(4, 2)})
        task.release()
        store.left = steps

        store.meanwhile = partial(pytest.fail, "dies")
        try:
            rename_progress(store, "g", "old", "new")
            break
        except pytest.fail.Exception:
            pass
        if at(store, "g/old"):
            forget_progress(store, "g", "new")  # as the error says, if both have it
            rename_progress(store, "g", "old", "new")
        assert at(store, "g/new") == {0: 3, 1: 4}, steps
        assert at(store, "g/old") == {}, steps
        steps += 1
    assert 5 <= steps < 50
