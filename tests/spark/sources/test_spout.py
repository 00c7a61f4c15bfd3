"""PartitionSpout: every row at least once, from where it stopped, with no more in memory than what is under way."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang import LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.helpers.checksums import extended
from multilang.local import LocalClusterError
from multilang.store import open_store
from multilang.store.memory import MemoryStore
from multilang.topology import TopologyError
from spark_bridge import (
    ConnectorError,
    ListSource,
    PartitionSource,
    PartitionSpout,
    Progress,
    ReplayablePartitionSpout,
    SourceUnavailable,
    forget_progress,
    rename_progress,
)
from spark_bridge.sources.readahead import ReadAhead
from spark_bridge.sources.source import Mark, described
from spark_bridge.sources.store import Marks
from tests.patience import patient
from tests.spark.sources.topologies import Asked, Echo, FailsAlways, FailsFirst, TooMuch, through

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from multilang.helpers.plain import Row
    from multilang.store import Store


class Moody(ListSource):
    """Out of reach now and then; remembers what it was told."""

    waits = True

    def __init__(self, *arguments: Any, every: int = 3, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.every = every
        self.reads = 0
        self.told: dict[int, Progress] = {}

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        self.reads += 1
        if not self.reads % self.every:
            raise SourceUnavailable("not now")
        return super().read(partition, offset, min(limit, 50))

    def report(self, progress: Sequence[Progress]) -> None:
        self.told.update({each.partition: each for each in progress})


def run(topology: Any, mode: Any = "inprocess", capture: Any = ("echo",), timeout: float = 120) -> Any:
    with LocalCluster(mode=mode) as cluster:
        running = cluster.submit(topology, capture=capture)
        running.wait(timeout=timeout)
        return running


def echoed(running: Any) -> list[Any]:
    return [tup["row"][0] for tup in running.captured("echo")]


def watermarks(store: Store, group: str) -> dict[int, int]:
    return {each: mark.watermark for each, mark in Marks(store, group).load().items()}


def mark_of(source: PartitionSource, partition: int, watermark: int) -> Mark:
    return Mark(watermark, extended(0, source.read(partition, 0, watermark)), described(source))


def test_partitions_are_dealt_over_the_tasks() -> None:
    parts = [[f"{part}-{n}" for n in range(part * 3)] for part in range(7)]
    running = run(through(PartitionSpout(ListSource(parts)), tasks=3), capture=["rows", "echo"])
    assert sorted(echoed(running)) == sorted(row for part in parts for row in part)
    by_task: dict[int, set[str]] = {}
    for tup in running.captured("rows"):
        by_task.setdefault(tup.task, set()).add(tup[0].partition("-")[0])
    assert sorted(map(sorted, by_task.values())) == [["1", "4"], ["2", "5"], ["3", "6"]]


@pytest.mark.parametrize("mode", ["inprocess", "process", "simulated"])
def test_failed_rows_are_read_again_until_they_are_acked(mode: str) -> None:
    rows = [f"row {n}" for n in range(500)]
    spout = PartitionSpout(ListSource([rows[:300], rows[300:]]))
    running = run(
        through(spout, FailsFirst, multilang_exchange="root"), mode
    )  # else others fail with them, and come twice
    assert sorted(echoed(running)) == sorted(rows)
    assert running.counters["rows"].failed >= 500 // 3


@pytest.mark.parametrize("ackers", [0, 1, 3])
def test_it_ends_with_any_number_of_ackers(ackers: int) -> None:
    topology = through(PartitionSpout(ListSource([range(100), [], range(100, 150)])), topology_acker_executors=ackers)  # type: ignore[list-item]
    assert sorted(echoed(run(topology))) == list(range(150))


def test_a_row_that_fails_for_ever_is_given_up_when_that_is_asked_for() -> None:
    spout = PartitionSpout(store=MemoryStore(), source=ListSource([["a", "poison", "b"]]), group="g")
    spout.max_replays = 2
    running = run(through(spout, FailsAlways))
    assert sorted(echoed(running)) == ["a", "b"]
    assert "on tuple 0:1 (partition:offset), after 3 failures" in running.errors[0].message


def test_the_watermark_stops_at_the_first_row_that_is_not_acked() -> None:
    store = MemoryStore()
    spout = PartitionSpout(ListSource([["a", "b", "poison", *"cdefgh"], ["i"]]), store=store, group="g")
    spout.save_secs = 0
    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(through(spout, FailsAlways), capture=["echo"])
        running.wait(until=lambda run: watermarks(store, "g/rows").get(1) == 1, timeout=patient(60))
    assert sorted(echoed(running)) == list("abcdefghi")
    assert watermarks(store, "g/rows") == {0: 2, 1: 1}


def test_a_later_run_of_the_same_group_goes_on_and_another_group_starts_anew(tmp_path: Path) -> None:
    source = ListSource([list(range(100)), list(range(100, 200))])
    path = str(tmp_path / "kept.sqlite")
    with closing(open_store(f"sqlite://{path}")) as store:
        marks = Marks(store, "nightly/rows")
        marks.claim([0, 1], "a run", "a topology")
        marks.save({0: mark_of(source, 0, 90), 1: mark_of(source, 1, 100)})
        marks.release()
    one = run(through(PartitionSpout(source, store=path, group="nightly")))
    assert sorted(echoed(one)) == list(range(90, 100))
    two = run(through(PartitionSpout(source, store=f"sqlite://{path}", group="nightly")))
    assert echoed(two) == []
    other = run(through(PartitionSpout(source, store=path, group="daily")))
    assert sorted(echoed(other)) == list(range(200))


@pytest.mark.parametrize("given", [None, "multilang.store", "multilang.source.store"])
@pytest.mark.parametrize("named", ["path", "object", "multilang.store", "multilang.source.store"])
def test_a_simulated_run_leaves_the_marks_of_real_ones_alone(tmp_path: Path, named: str, given: str | None) -> None:
    real, copied = (f"sqlite://{tmp_path / name}.sqlite" for name in ("real", "copied"))
    store: Any = {"path": real, "object": open_store(real)}.get(named)
    topology = through(PartitionSpout(ListSource([list(range(20))]), store=store, group="g"))
    topology.conf.update({named: real} if store is None else {})
    for _ in range(2):
        with LocalCluster("simulated", seed=7, conf={} if given is None else {given: copied}) as cluster:
            running = cluster.submit(topology, capture=["echo"])
            running.wait(timeout=patient(600))
            rows = sorted(echoed(running))
    # The second run resumes where it was given the key that counts: of the topology's keys, the marks' own goes first.
    resumes = given is not None and (given == "multilang.source.store" or named != "multilang.source.store")
    assert rows == ([] if resumes else list(range(20)))
    assert [path.name for path in tmp_path.glob("real*")] == []


def test_each_submission_starts_anew_unless_it_has_a_group(tmp_path: Path) -> None:
    source = ListSource([list(range(20))])
    for _ in range(2):
        topology = through(PartitionSpout(source), multilang_source_store=str(tmp_path / "kept.sqlite"))
        assert sorted(echoed(run(topology))) == list(range(20))


def test_a_process_that_is_killed_goes_on_from_the_sqlite_file(tmp_path: Path) -> None:
    rows = 6000
    spout = PartitionSpout(ListSource([list(range(rows // 2)), list(range(rows // 2, rows))]))
    spout.save_secs = 0.02
    kept = tmp_path / "kept.sqlite"

    def acked() -> int:
        with closing(open_store(f"sqlite://{kept}")) as store:
            return sum(sum(watermarks(store, place.partition("/")[2]).values()) for place in store.places("source/"))

    with LocalCluster() as cluster:
        running = cluster.submit(through(spout, TooMuch, multilang_source_store=str(kept)), capture=["rows", "echo"])
        for part in (500, 2000, 3500):
            running.wait(until=lambda _, part=part: acked() > part, timeout=patient(60))
            pid = next(task.pid for task in running.tasks if task.component == "rows")
            os.kill(pid, signal.SIGKILL)
            running.wait(until=lambda run, pid=pid: pid not in [task.pid for task in run.tasks], timeout=patient(60))
        running.wait(timeout=patient(120))
        assert set(echoed(running)) == set(range(rows))
        assert len(running.captured("rows")) < rows + 3 * 1500  # from the watermark on, not from the start


def test_a_source_that_is_out_of_reach_now_and_then_is_asked_again() -> None:
    source = Moody([list(range(100)), list(range(100, 200))])
    running = run(through(PartitionSpout(source), FailsFirst))
    assert sorted(echoed(running)) == list(range(200))
    assert sorted(source.told.items()) == [(0, Progress(0, 100, True)), (1, Progress(1, 100, True))]


def test_a_source_that_stays_out_of_reach_ends_the_task_with_its_words() -> None:
    spout = PartitionSpout(Moody([[1]], every=1))
    spout.patience_secs = 0.1
    with LocalCluster(mode="inprocess", fail_fast=True) as cluster:
        running = cluster.submit(through(spout))
        with pytest.raises(Exception, match=r"SourceUnavailable.*not now"):
            running.wait(timeout=patient(60))


def test_the_next_partition_is_begun_when_there_are_rows_of_this_one() -> None:
    told: list[Any] = []

    class Telling(ListSource):
        def read(self, partition: int, offset: int, limit: int) -> Any:
            told.append(("read", partition, offset))
            return super().read(partition, offset, limit)

        def soon(self, partition: int, offset: int) -> None:
            told.append(("soon", partition, offset))

    reader = ReadAhead(Telling([[["a"]], [["b"]]], fields=["value"]), [(0, 0), (1, 0)], 1.0, print)
    while not reader.finished:
        reader.take()
    reader.close()
    assert told[:3] == [("read", 0, 0), ("soon", 1, 0), ("read", 0, 1)]
    assert told.count(("soon", 1, 0)) == 1


def test_memory_is_bounded_by_what_is_under_way_not_by_the_partition() -> None:
    class Endless(PartitionSource):
        waits = False
        name = "endless"
        fields = ("n",)
        partitions = 1

        def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
            return [(n,) for n in range(offset, min(offset + limit, 10**9))]

    class Said:
        emitted = 0

        def emit(self, values: Sequence[Any], tup_id: str) -> None:
            self.emitted += 1

        emit_many = None

    spout = PartitionSpout(Endless(), store=MemoryStore(), group="g")
    said = Said()
    spout._attach(said, {}, {})  # type: ignore[arg-type]
    spout.output_fields = ["n"]  # type: ignore[misc]

    class Here(dict[str, Any]):
        component = "rows"
        task_index = 0
        task_component = {1: component}

        def tasks(self, component: str) -> list[int]:
            return [1]

    spout.initialize({"topology.max.spout.pending": 100}, Here())  # type: ignore[arg-type]
    sizes = []
    tracemalloc.start()
    for rows in (20_000, 200_000):
        first = "0:0"  # never acked, so that the watermark stays where it is
        while said.emitted < rows:
            spout.next_tuple()
            for tup_id in [each for each in spout._pending if each != first]:
                spout.ack(tup_id)
        assert list(spout._pending) == [first]
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[1] < sizes[0] + 200_000
    spout.close()


def test_at_most_so_many_rows_are_under_way() -> None:
    spout = PartitionSpout(ListSource([list(range(1000))]))
    spout.max_pending = 30
    most = 0

    class Watched(Echo):
        def process(self, tup: Any) -> None:
            super().process(tup)

    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(through(spout, Watched))

        def look(run: Any) -> bool:
            nonlocal most
            most = max(most, run.counters["rows"].pending)
            return bool(run.counters["rows"].acked == 1000)

        running.wait(until=look, timeout=patient(60))
    assert most <= 30


def test_the_source_may_come_with_the_conf() -> None:
    with pytest.raises(ConfigError, match=r"give its fields: fields=\[\.\.\.\]"):
        through(PartitionSpout())
    topology = through(PartitionSpout(fields=["n"]))
    with (
        LocalCluster(mode="inprocess", fail_fast=True) as cluster,
        pytest.raises(Exception, match=r"multilang\.source"),
    ):
        cluster.submit(topology)


OTHERS = r"the source 'list' has the fields \['value'\], the spout declares \['n'\]: give the spout fields="


@pytest.mark.parametrize("kind", [PartitionSpout, ReplayablePartitionSpout])
def test_other_fields_than_the_sources_are_refused_when_the_topology_is_built(kind: Any) -> None:
    for source in (ListSource([[1]]), ListSource([[1]]).until({0: 1})):
        with pytest.raises(TopologyError, match=OTHERS):
            through(kind(source, fields=["n"]))


@pytest.mark.parametrize("kind", [PartitionSpout, ReplayablePartitionSpout])
@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_other_fields_of_a_source_that_tasks_ask_end_the_topology_without_another_start(kind: Any, mode: Any) -> None:
    with LocalCluster(mode=mode) as cluster:
        with pytest.raises(LocalClusterError, match=OTHERS) as caught:
            cluster.submit(through(kind(Asked([[1]]), fields=["n"]))).wait(timeout=patient(60))
        assert "Traceback" not in str(caught.value)
        for run in cluster.topologies.values():
            assert len([error for error in run.errors if error.fatal]) == 1
            assert run.counters["rows"].restarts == 0


def test_a_spout_without_a_source_ends_the_topology_without_another_start() -> None:
    with LocalCluster(mode="process") as cluster:
        run = cluster.submit(through(PartitionSpout(fields=["n"])))
        with pytest.raises(
            LocalClusterError, match=r"the spout has no source; put its URL into the conf as 'multilang\.source'"
        ):
            run.wait(timeout=patient(60))
        assert run.counters["rows"].restarts <= 1


def test_a_list_whose_rows_have_another_length_is_refused() -> None:
    with pytest.raises(ConnectorError, match="row 1 of partition 0 has 1 values for 2 fields"):
        ListSource([[(1, 2), (3,)]], fields=["a", "b"])


def test_a_store_keeps_marks_and_is_made_anew_where_it_is_needed(tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path / 'kept.sqlite'}")
    marks, other = Marks(store, "g"), Marks(store, "other")
    marks.claim([0, 1], "run", "topology")
    other.claim([0], "run", "topology")
    marks.save({0: Mark(5, 1), 1: Mark(7, 2)})
    marks.save({1: Mark(9, 3, {"name": "list"})})
    other.save({0: Mark(1, 4)})
    again = pickle.loads(pickle.dumps(store))
    assert Marks(again, "g").load() == {0: Mark(5, 1), 1: Mark(9, 3, {"name": "list"})}
    assert Marks(again, "nobody's").load() == {}
    marks.release()
    other.release()
    store.close()
    again.close()


@pytest.mark.parametrize(
    ("conf", "file"),
    [
        ({}, "home/sources/watermarks.sqlite"),
        ({"multilang.store": "sqlite://{}/common"}, "common"),
        ({"multilang.store": "sqlite://{}/common", "multilang.source.store": "{}/own"}, "own"),
        ({"multilang.source.store": "sqlite://{}/own"}, "own"),
    ],
)
def test_the_conf_names_the_store(
    conf: dict[str, str], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path / "home"))
    named: Any = {key.replace(".", "_"): value.format(tmp_path) for key, value in conf.items()}
    assert echoed(run(through(PartitionSpout(ListSource([[1, 2]])), **named))) == [1, 2]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / file]
    assert (tmp_path / file).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / file).parent.stat().st_mode & 0o777 == 0o700


def test_a_spouts_process_loads_neither_spark_nor_what_files_need() -> None:
    import subprocess

    program = (
        "import sys\n"
        "from spark_bridge import PartitionSpout, ListSource\n"
        "spout = PartitionSpout('served://127.0.0.1:1', fields=['a'])\n"
        "spout.declared_streams()\n"
        "names = 'pyspark py4j pyarrow fsspec pandas rich sqlite3 threading multiprocessing socket typing logging json'\n"
        "print([name for name in names.split() if name in sys.modules])"
    )
    unmeasured = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=unmeasured)
    assert shown.stdout == "[]\n"


def test_closing_ends_a_read_that_hangs() -> None:
    from threading import Event

    class Hanging(ListSource):
        waits = True

        def __init__(self) -> None:
            super().__init__([[1]])
            self.closed = Event()

        def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
            assert self.closed.wait(60)
            raise SourceUnavailable("closed")

        def close(self) -> None:
            self.closed.set()

    reader = ReadAhead(Hanging(), [(0, 0)], 60, lambda text: None)
    assert reader.take() is None
    began = time.monotonic()
    reader.close()
    assert time.monotonic() - began < 30
    assert reader._thread is not None
    assert not reader._thread.is_alive()


parts = st.lists(
    st.one_of(st.lists(st.integers(0, 50), max_size=4), st.just(list(range(60))), st.just([7] * 25)), max_size=6
)


@given(parts=parts, tasks=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_whatever_the_partitions_are_like_each_row_arrives_once(parts: list[list[int]], tasks: int, seed: int) -> None:
    source = ListSource(parts)
    with LocalCluster(mode="simulated", seed=seed) as cluster:
        spout = PartitionSpout(source, store=MemoryStore(), group="g")
        running = cluster.submit(through(spout, FailsFirst, tasks=tasks), capture=["echo"])
        running.wait(timeout=patient(600))
        assert sorted(echoed(running)) == sorted(row for part in parts for row in part)


def test_a_component_that_was_renamed_does_not_begin_again_beside_its_progress(tmp_path: Path) -> None:
    path = str(tmp_path / "marks.sqlite")

    def read(component: str, name: str = "shop", group: str = "nightly") -> int:
        builder = TopologyBuilder()
        rows = ListSource([[[n] for n in range(50)]], ["n"])
        builder.set_spout(component, PartitionSpout(rows, store=path, group=group))
        builder.set_bolt("echo", Echo).shuffle_grouping(component)
        with LocalCluster(mode="inprocess") as cluster:
            run = cluster.submit(builder.build(name), capture=["echo"])
            run.wait(timeout=patient(60))
        return len(run.captured("echo"))

    assert read("rows") == 50
    with pytest.raises(
        Exception,
        match=r"progress of 'rows', which topology 'shop' does not have.*rename_progress\(STORE, 'nightly', 'rows', NEW",
    ):
        read("orders")
    assert read("orders", name="other") == 50  # another topology, whose group has the same name
    assert read("orders", group="daily") == 50
    with pytest.raises(ConnectorError, match="has progress of 'nightly/orders' already"):
        rename_progress(path, "nightly", "rows", "orders")
    assert read("orders", name="other") == 0  # and nothing was changed
    with pytest.raises(ConnectorError, match="has no progress of 'nightly/nothing'"):
        rename_progress(path, "nightly", "nothing", "lines")
    assert rename_progress(path, "nightly", "rows", "lines") == 1
    assert read("lines") == 0
    assert forget_progress(f"sqlite://{path}", "nightly", "lines") == 1
    assert read("lines") == 50
    assert read("lines") == 0


def test_a_group_with_a_slash_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the group 'prod/orders' has a '/'.*write another sign"):
        PartitionSpout(ListSource([[[1]]], ["n"]), group="prod/orders")
