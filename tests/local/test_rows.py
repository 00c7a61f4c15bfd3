"""Nobody notices that basic bolts emit rows in process: the same happens as simulated, where each tuple goes by itself."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from multilang import BasicBolt, Bolt, FailedException, LocalCluster, Spout, TopologyBuilder
from multilang.protocol import LocalProtocolError, UnserializableValue
from multilang.runtime import rows
from tests.patience import patient


class Scripts(Spout):
    """Emits the scripts, together or one by one, and notes which are acked and which fail."""

    output_fields = ["number", "script"]

    def __init__(self, scripts, together, told):
        self.scripts, self.together, self.told = scripts, together, told
        self.sent = False

    def __deepcopy__(self, _):
        return self

    def next_tuple(self):
        if self.sent:
            return
        self.sent = True
        rows = [[number, script] for number, script in enumerate(self.scripts)]
        if self.together:
            self.emit_many(rows, range(len(rows)))
        else:
            for row in rows:
                self.emit(row, row[0])

    def exhausted(self):
        return self.sent

    def ack(self, tup_id):
        self.told[tup_id].append("ack")

    def fail(self, tup_id):
        self.told[tup_id].append("fail")


class Follows(BasicBolt):
    """Does what the script says, one letter after the other."""

    output_fields = ["key", "value"]

    def __init__(self, got):
        self.got = got
        self.count = 0
        self.kept = []

    def __deepcopy__(self, _):
        return type(self)(self.got)  # a task that is started again begins anew

    def say(self, **how):
        self.count += 1
        return self.emit([f"k{self.count % 5}", f"{type(self).__name__} {self.count}"], **how)

    def process(self, tup):
        for letter in tup["script"]:
            getattr(self, f"do_{letter}")(tup)
        for kept, values in self.kept:
            assert kept.values == values

    def do_r(self, _):
        self.say()

    def do_l(self, _):
        for _ in range(150):
            self.say()

    def do_m(self, _):
        self.emit_many([["k1", "many"], ("k2", 1.5), ["k3", None]])

    def do_u(self, _):
        self.say(anchors=[])

    def do_a(self, tup):
        self.say(anchors=[tup])

    def do_t(self, _):
        assert self.say(need_task_ids=True)

    def do_c(self, _):
        self.say(on_task_ids=lambda ids: self.got["ids"].append(len(ids)))

    def do_n(self, _):
        values = ["kä", [1, {"a": ("b",)}]]
        self.emit(values)
        values[1].append("later")
        values[0] = "other"

    def do_w(self, _):
        with pytest.raises(UnserializableValue):
            self.emit(["k", float("nan")])
        with pytest.raises(UnserializableValue):
            self.emit([2**70, "v"])
        with pytest.raises(LocalProtocolError):
            self.emit(["k"])
        with pytest.raises(LocalProtocolError):
            self.emit(["k", "v"], stream="none")

    def do_i(self, tup):
        self.emit(["k0", "by id"], anchors=[tup.id])

    def do_k(self, tup):
        self.kept.append((tup, [*tup.values]))

    def do_s(self, tup):
        if tup.unfinished:
            self.ack(tup)

    def do_f(self, tup):
        if tup.unfinished:
            self.fail(tup)

    def do_x(self, _):
        raise FailedException

    def do_e(self, _):
        raise ValueError("of the script")


class Passes(Follows):
    """Emits what it gets."""

    def process(self, tup):
        self.emit(tup.values)
        self.emit([tup["key"], "again"])


class Ends(Follows):
    on_exception = "end"


class EndsFailed(Follows):
    on_exception = "fail and end"


class Shared:
    """A component whose tasks and whose test hold the same object."""

    def __init__(self, held):
        self.held = held

    def __deepcopy__(self, _):
        return self


class Named:
    """A component that notes under its name what it gets."""

    def __init__(self, got, name):
        self.got, self.name = got, name

    def __deepcopy__(self, _):
        return type(self)(self.got, self.name)


class Sink(Named, Bolt):
    def process(self, tup):
        self.got[self.name, self.context.task_index, tup.component].append(tup.values)
        self.ack(tup)


class BasicSink(Named, BasicBolt):
    def process(self, tup):
        self.got[self.name, self.context.task_index, tup.component].append(tup.values)
        if tup["value"] == "many":
            raise FailedException


def outcome(mode, scripts, together, kind, ackers, timeout_secs=600):
    got, told = defaultdict(list), defaultdict(list)
    builder = TopologyBuilder()
    builder.set_spout("scripts", Scripts(scripts, together, told))
    builder.set_bolt("follows", kind(got)).shuffle_grouping("scripts")
    builder.set_bolt("passes", Passes(got)).global_grouping("follows")
    builder.set_bolt("basic", BasicSink(got, "basic"), 2).fields_grouping("passes", "key")
    builder.set_bolt("plain", Sink(got, "plain"), 2).fields_grouping("passes", "key").all_grouping("follows")
    builder.set_bolt("one", BasicSink(got, "one")).shuffle_grouping("follows")
    conf = {"topology.acker.executors": ackers, "topology.message.timeout.secs": timeout_secs}
    with LocalCluster(mode, conf, seed=1, fail_fast=False) as cluster:
        run = cluster.submit(builder.build("rows"))
        run.wait(timeout=patient(60))
        counted = {
            name: (each.emitted, each.transferred, each.executed, each.acked, each.failed)
            for name, each in run.counters.items()
            if name != "__acker"
        }
        errors = sum(each.errors for each in run.counters.values())
    return dict(got), dict(told), counted, errors


LETTERS = "rrrlmuatcnwiksfxe"
SCRIPTS = st.lists(st.text(LETTERS, max_size=6), min_size=1, max_size=12)


@seeded(21)
@settings(max_examples=40, database=None, deadline=None)
@given(SCRIPTS, st.booleans(), st.sampled_from([0, 1, 2]))
def test_what_a_basic_bolt_does_is_the_same_in_rows(scripts, together, ackers):
    assert outcome("inprocess", scripts, together, Follows, ackers) == outcome(
        "simulated", scripts, together, Follows, ackers
    )


@pytest.mark.parametrize("kind", [Ends, EndsFailed])
@pytest.mark.parametrize("scripts", [["rr", "rer", "r", "lk"], ["le"], ["r", "fe", "r"]])
def test_a_task_that_ends_among_rows_loses_its_tuple_alone(kind, scripts):
    got, told, counted, errors = outcome("inprocess", scripts, True, kind, 1, timeout_secs=2)
    _, simulated_told, simulated, simulated_errors = outcome("simulated", scripts, True, kind, 1, timeout_secs=2)
    assert (told, errors) == (simulated_told, simulated_errors)
    assert [counted[name] for name in ("scripts", "follows")] == [simulated[name] for name in ("scripts", "follows")]
    # Simulated, what a task emitted for the tuple of which it died is lost; here it has gone.
    assert len(got["one", 0, "follows"]) == counted["follows"][0]


class Fans(Shared, BasicBolt):
    """Emits a number of words for each that it gets."""

    output_fields = ["word"]

    def process(self, _):
        for number in range(40):
            self.held[0] += 1
            self.emit([f"word {number}"])


class Takes(Shared, BasicBolt):
    def process(self, _):
        self.held[0] -= 1
        self.held[1] = max(self.held[1], self.held[0])


def test_what_is_emitted_is_processed_before_much_more_is():
    waiting = [0, 0]
    builder = TopologyBuilder()
    builder.set_spout("scripts", Scripts(["x"] * 500, True, defaultdict(list)))
    builder.set_bolt("fans", Fans(waiting)).shuffle_grouping("scripts")
    builder.set_bolt("takes", Takes(waiting)).shuffle_grouping("fans")
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(builder.build("fans"))
        run.wait(timeout=patient(60))
        assert run.counters["scripts"].acked == 500
    assert waiting[0] == 0
    assert waiting[1] < 1000


def run_of(spout, *bolts, secs=60, **conf):
    """Run a spout and bolts behind one another in process, and return the run and the sizes of its ackers."""
    builder = TopologyBuilder()
    builder.set_spout("scripts", spout)
    before = "scripts"
    for bolt in bolts:
        id = type(bolt).__name__.lower()
        builder.set_bolt(id, bolt).shuffle_grouping(before)
        before = id
    with LocalCluster("inprocess", {"topology.message.timeout.secs": 2, **conf}, seed=1, fail_fast=False) as cluster:
        run = cluster.submit(builder.build("rows"))
        run.wait(timeout=secs)
        return run, [len(acker) for acker in run._ackers_now]


class FansSome(BasicBolt):
    output_fields = ["n"]
    outputs = 5

    def process(self, tup):
        for n in range(self.outputs):
            self.emit([n])


class Slow(BasicBolt):
    def process(self, tup):
        if tup.component == "fanssome":
            time.sleep(0.0015)


@pytest.mark.parametrize("ticks", [{}, {"topology.tick.tuple.freq.secs": 1}])
def test_rows_and_single_tuples_are_all_counted_by_a_bolt_that_is_slow(ticks):
    builder = TopologyBuilder()
    builder.set_spout("scripts", Scripts(["x"] * 6, True, defaultdict(list)))
    builder.set_spout("single", Scripts(["x"] * 30, False, defaultdict(list)))
    builder.set_bolt("fanssome", FansSome()).shuffle_grouping("scripts")
    builder.set_bolt("slow", Slow()).shuffle_grouping("fanssome").shuffle_grouping("single")
    with LocalCluster("inprocess", ticks, seed=1) as cluster:
        run = cluster.submit(builder.build("slow"))
        run.wait(timeout=patient(60))
        assert (run.counters["slow"].executed, run.counters["slow"].acked) == (60, 60)


class StartsBadly(Shared, BasicBolt):
    """Dies of a number, and its next task can't be started at first."""

    output_fields = ["n"]
    on_exception = "end"

    def initialize(self, conf, context):
        self.held.append("")
        if len(self.held) == 2:
            raise OSError("the database is away for a moment")

    def process(self, tup):
        if tup["number"] == 8:
            raise ValueError("dies")
        self.emit([tup["number"]])


class Notes(Shared, BasicBolt):
    def process(self, tup):
        self.held.append(tup)


def test_a_task_that_dies_and_is_not_started_at_once_keeps_the_rows_of_others():
    told, got = defaultdict(list), []
    run_of(Scripts(["x"] * 10, True, told), StartsBadly([]), Notes(got))
    assert sorted(tup["n"] for tup in got) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert {number: ["fail" if number == 8 else "ack"] for number in range(10)} == told


class AcksAndDies(BasicBolt):
    output_fields = ["n"]
    on_exception = "end"

    def process(self, tup):
        self.emit([1])
        self.ack(tup)
        raise ValueError("dies")


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("scripts", [["x"], ["x"] * 3])
def test_a_tuple_that_is_acked_before_the_task_dies_is_acked(together, scripts):
    told = defaultdict(list)
    run_of(Scripts(scripts, together, told), AcksAndDies(), Notes([]))
    assert told == {number: ["ack"] for number in range(len(scripts))}


class Fails(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        raise FailedException


def test_a_tuple_that_fails_leaves_nothing_in_the_acker():
    run, left = run_of(
        Scripts(["x"] * 300, True, defaultdict(list)),
        Fails(),
        Notes([]),
        **{"topology.enable.message.timeouts": False},
    )
    assert run.counters["scripts"].failed == 300
    assert set(left) == {0}


@pytest.mark.parametrize("counts_references", [True, False])
def test_tuples_that_a_bolt_keeps_stay_as_they_are(monkeypatch, counts_references):
    if not counts_references:  # as where Python does not say how many there are
        monkeypatch.setattr(rows, "_references", rows._uncounted)
    got = []
    run_of(Scripts(["x"] * 20, True, defaultdict(list)), FansSome(), Notes(got))
    assert [tup["n"] for tup in got] == [*range(5)] * 20


class FansLater(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        number = tup["number"]
        for n in range(5 if 60 <= number < 120 else 1):
            self.emit([10 * number + n])


def test_a_bolt_that_fans_out_for_a_while_loses_nothing_and_keeps_the_order():
    told, got = defaultdict(list), []
    run_of(Scripts(["x"] * 180, False, told), FansLater(), Notes(got))
    assert [tup["n"] for tup in got] == [
        10 * number + n for number in range(180) for n in range(5 if 60 <= number < 120 else 1)
    ]
    assert told == {number: ["ack"] for number in range(180)}


class Keeps(BasicBolt):
    """Keeps some of its tuples, and notes those that were not finished when the next one came."""

    def __init__(self, got, unfinished):
        self.got, self.unfinished = got, unfinished

    def __deepcopy__(self, _):
        return self

    def process(self, tup):
        self.unfinished += [kept.values for kept in self.got if kept.unfinished]
        assert tup.unfinished
        if tup["n"] % 3:
            self.got.append(tup)


def test_tuples_that_a_bolt_keeps_are_finished_when_the_next_one_comes():
    got, unfinished, told = [], [], defaultdict(list)
    run_of(Scripts(["x"] * 20, True, told), FansSome(), Keeps(got, unfinished))
    assert [tup["n"] for tup in got] == [1, 2, 4] * 20
    assert not unfinished
    assert not any(tup.unfinished for tup in got)
    assert told == {number: ["ack"] for number in range(20)}
