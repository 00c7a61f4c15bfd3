"""A ReliableSpout replays the emitted values, whatever the program did with them since, and without end by default."""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, LocalCluster, ReliableSpout, TopologyBuilder
from multilang.compat.pystorm import ReliableSpout as PystormSpout
from multilang.compat.pystorm.running import adapted
from multilang.component.errors import ConfigError
from multilang.connectors import FromIterable
from multilang.local import NotDrainedError
from multilang.state import PositionSpout
from multilang.testing import run_spout
from multilang.topology import TopologyError
from multilang.topology.check import check_components
from spark_bridge import PartitionSpout

if TYPE_CHECKING:
    from typing import Any

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(-1e9, 1e9), st.text(max_size=3))
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=6,
)


def refill(there: Any, value: Any) -> Any:
    """Give a list or dict that is there already the content of ``value``, at each level where both are of one kind."""
    if isinstance(there, dict) and isinstance(value, dict):
        kept = {key: refill(there.get(key), each) for key, each in value.items()}
        there.clear()
        there.update(kept)
        return there
    if isinstance(there, list) and isinstance(value, list):
        there[:] = [refill(there[at] if at < len(there) else None, each) for at, each in enumerate(value)]
        return there
    return deepcopy(value)


class Refilled(ReliableSpout):
    """Emits the rows that it is given in the ways that it is told; all of them are in one list, that is filled again."""

    output_fields = ["a", "b"]
    replay_delay_secs = 1.0

    def __init__(self, turns: list[tuple[str, list[list[Any]]]]) -> None:
        self.turns = turns

    def next_tuple(self) -> None:
        if not self.turns:
            return
        how, rows = self.turns.pop(0)
        ids = self.ids
        if how == "emit":
            for row in self.refilled(rows):
                self.emit(row, next(ids))
        else:
            self.emit_many(self.refilled(rows), [next(ids) for _ in rows])
        refill(self.row, [None, {"changed": True}])

    def initialize(self, conf: Any, context: Any) -> None:
        super().initialize(conf, context)
        self.row: list[Any] = [{}, []]
        self.ids = count(1)

    def refilled(self, rows: list[list[Any]]) -> Any:
        for row in rows:
            yield refill(self.row, row)


class RefilledAtPositions(Refilled, PositionSpout):
    needs_positions = False

    def position(self) -> int:
        return len(self.turns)


class RefilledAtKeptPositions(RefilledAtPositions):
    """The turns are counted, as where the position is stored."""

    def _runner_started(self, conf: Any, context: Any) -> None:
        """Open no store."""

    def keeps_position(self, conf: Any) -> bool:
        return True


TURNS = st.lists(
    st.tuples(st.sampled_from(["emit", "many"]), st.lists(st.lists(VALUES, min_size=2, max_size=2), max_size=4)),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from([Refilled, RefilledAtPositions, RefilledAtKeptPositions]),
    turns=TURNS,
    most=st.sampled_from([None, 1, 3]),
    failures=st.integers(1, 3),
)
def test_what_is_replayed_is_what_was_emitted(
    kind: type[Refilled], turns: list[tuple[str, list[list[Any]]]], most: int | None, failures: int
) -> None:
    expected = dict(zip(count(1), [deepcopy(row) for _, rows in turns for row in rows]))  # endless
    run = run_spout(kind(deepcopy(turns)), conf={"topology.max.spout.pending": most})
    failed: dict[Any, int] = {}
    while len(run.emitted) < (failures + 1) * len(expected):
        before = len(run.emitted)
        run.next(20)
        assert len(run.emitted) > before
        for emitted in run.emitted[before:]:
            assert emitted.values == expected[emitted.tup_id]
            failed[emitted.tup_id] = failed.get(emitted.tup_id, 0) + 1
            (run.fail if failed[emitted.tup_id] <= failures else run.ack)(emitted.tup_id)
        run.advance(30)
    assert failed == dict.fromkeys(expected, failures + 1)


class RefilledPystorm(PystormSpout):
    def initialize(self, conf: Any, context: Any) -> None:
        self.order: dict[str, int] = {}
        self.n = 0

    def next_tuple(self) -> None:
        if self.n < 3:
            self.n = self.order["n"] = self.n + 1
            self.emit([self.order], tup_id=self.n)


def test_pystorms_spout_replays_what_was_emitted() -> None:
    spout: Any = adapted(RefilledPystorm, ["order"])
    run = run_spout(spout, 3)
    run.fail(1)
    run.next()
    assert [(each.tup_id, each.values) for each in run.emitted] == [(n, [{"n": n}]) for n in (1, 2, 3, 1)]


class Failing(BasicBolt):
    """Fails every tuple until an hour has passed."""

    output_fields = ["value"]

    def initialize(self, conf: Any, context: Any) -> None:
        self.calls = 0

    def process(self, tup: Any) -> None:
        self.calls += 1
        if self.clock() < 3600.0:
            raise ConnectionError("the database is away")
        self.emit([tup[0]])


def topology(bolt: type[BasicBolt]) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("items", FromIterable(list(range(5))))
    builder.set_bolt("store", bolt).shuffle_grouping("items")
    return builder.build("outage")


def test_an_outage_of_an_hour_loses_nothing_and_is_not_asked_all_the_time() -> None:
    with LocalCluster("simulated", seed=1) as cluster:
        run = cluster.submit(topology(Failing), capture=["store"])
        run.wait()
        (task,) = [each for each in run.tasks if each.component == "store"]
        assert sorted(tup[0] for tup in run.captured("store")) == list(range(5))
        assert task.instance.calls < 5 * 150


class Never(BasicBolt):
    def process(self, tup: Any) -> None:
        if tup[0] == 3:
            self.fail(tup)


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_a_tuple_that_always_fails_is_told_of_and_waited_for(mode: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Impatient(FromIterable):
        max_replay_delay_secs = 0.001

    builder = TopologyBuilder()
    builder.set_spout("items", Impatient(list(range(5))))
    builder.set_bolt("never", Never).shuffle_grouping("items")
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(builder.build("poison"))
        run.wait(lambda run: "failed 8 times" in caplog.text, timeout=60)
        with pytest.raises(NotDrainedError, match=r"'items'.*; 1 tuple failed and was not acked since"):
            run.wait(timeout=0.01)
    assert "tuple 3 of component 'items'" in caplog.text


class Once(ReliableSpout):
    """Emits one tuple, which is replayed without a pause."""

    output_fields = ["value"]
    max_replay_delay_secs = 0

    def next_tuple(self) -> None:
        if not self.under_way:
            self.emit([1], tup_id="only")


UNSET = object()


@pytest.mark.parametrize("of_instance", [False, True])
@pytest.mark.parametrize("of_conf", [None, 1, 3])
@pytest.mark.parametrize("own", [UNSET, None, 0, 2])
def test_what_a_spout_says_itself_of_giving_up_counts_before_the_conf(
    own: Any, of_conf: int | None, of_instance: bool
) -> None:
    made = type("Own", (Once,), {} if own is UNSET or of_instance else {"max_replays": own})()
    if own is not UNSET and of_instance:
        made.max_replays = own
    most = of_conf if own is UNSET else own
    run = run_spout(made, nexts=1, conf={} if of_conf is None else {"multilang.max.replays": of_conf})
    for replays in range(1, 6):
        run.fail("only")
        if most is not None and replays > most:
            (error,) = run.errors
            assert f"after {most + 1} failures" in error
            return
        run.next()
        assert len(run.emitted) == replays + 1
    assert most is None


SECONDS = ("replay_delay_secs", "max_replay_delay_secs")


@pytest.mark.parametrize("base", [ReliableSpout, PartitionSpout])
@pytest.mark.parametrize("of_instance", [False, True])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_replays", value) for value in ("3", -1, 2.5, True, [3], float("inf"))),
        *((name, value) for name in SECONDS for value in ("3", -1, -0.5, None, True, float("nan"))),
    ],
)
def test_when_a_spout_can_not_replay_is_refused_before_it_is_sent_and_in_its_task(
    base: Any, name: str, value: Any, of_instance: bool
) -> None:
    own = {"output_fields": ["value"], "next_tuple": lambda _: None}
    made = type("Own", (base,), own if of_instance else {**own, name: value})()
    if of_instance:
        setattr(made, name, value)
    builder = TopologyBuilder()
    builder.set_spout("own", made)
    topology = builder.build("wrong")
    message = rf"Own\.{name} is {re.escape(repr(value))}; use "
    with pytest.raises(TopologyError, match=rf"spout 'own': {message}"):
        check_components(topology)
    if base is ReliableSpout:
        with pytest.raises(ConfigError, match=message):
            run_spout(made)
