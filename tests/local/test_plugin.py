"""The fixtures, and the functions behind them, as users have them."""

from __future__ import annotations

import copy
import pickle

import pytest

from multilang.component import BasicBolt, BatchingBolt, Bolt, FailedException, ReliableSpout, Spout, Stream
from multilang.protocol import LocalProtocolError, UnserializableValue
from multilang.testing import make_tuple, tick

pytest_plugins = ["pytester"]


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup):
        if not tup["sentence"]:
            raise FailedException("nothing to split")
        self.log(f"splits {len(tup['sentence'])} letters")
        for word in tup["sentence"].split():
            self.emit([word])


def test_a_bolt_s_emits_acks_and_fails_are_recorded(run_bolt):
    run = run_bolt(Split, [{"sentence": "the cow"}, {"sentence": ""}, {"sentence": "jumped"}])
    assert run.values == [["the"], ["cow"], ["jumped"]]
    assert [emitted["word"] for emitted in run.emitted] == ["the", "cow", "jumped"]
    assert [tup["sentence"] for tup in run.acked] == ["the cow", "jumped"]
    assert [tup["sentence"] for tup in run.failed] == [""]
    assert [emitted.anchors for emitted in run.emitted] == [[run.acked[0]], [run.acked[0]], [run.acked[1]]]
    assert run.logged[0] == (2, "splits 7 letters")
    assert run.unfinished == []


def test_conf_streams_sources_and_direct_emits(run_bolt):
    class Sorts(Bolt):
        output_streams = {"even": ["n"], "odd": Stream(["n"], direct=True)}

        def process(self, tup):
            n = tup["n"] + self.conf["offset"]
            if n % 2:
                self.emit([n], "odd", [tup], direct_task=self.context.tasks("sink")[1])
            else:
                self.emit([n], "even")
            if tup.component == "first":
                self.ack(tup)

    tuples = [make_tuple({"n": 1}, component="first"), make_tuple({"n": 2}, component="second", stream="s")]
    run = run_bolt(Sorts(), tuples, conf={"offset": 10}, sink_tasks=2)
    odd, even = run.emitted
    assert (odd.stream, odd.values, odd.anchors, odd.direct_task is None) == ("odd", [11], run.acked, False)
    assert (even.stream, even.values, even.anchors, even.direct_task) == ("even", [12], [], None)
    assert [tup.component for tup in run.unfinished] == ["second"]
    assert [emitted.values for emitted in run.emitted_on("odd")] == [[11]]


def test_ticks_hand_over_batches(run_bolt):
    class Sums(BatchingBolt):
        output_fields = ["sum"]

        def process_batch(self, key, tups):
            self.emit([sum(tup["n"] for tup in tups)])

    run = run_bolt(Sums, [{"n": 1}, {"n": 2}])
    assert (run.values, len(run.unfinished)) == ([], 2)
    run.process([5], tick())
    assert (run.values, len(run.acked)) == ([[8]], 3)
    assert len(run.emitted[0].anchors) == 3
    run.tick()
    assert run.values == [[8]]


def test_what_would_end_a_task_is_raised_in_the_test(run_bolt):
    class Twice(Bolt):
        output_fields = ["n"]

        def process(self, tup):
            self.ack(tup)
            self.ack(tup)

    with pytest.raises(LocalProtocolError, match=r"component 'bolt': tuple .* can't be acked"):
        run_bolt(Twice, [[1]])


def test_basic_bolts_report_and_fail(run_bolt):
    class Sets(BasicBolt):
        output_fields = ["set"]

        def process(self, tup):
            self.emit([{1, 2}])

    run = run_bolt(Sets, [[1]], expect=UnserializableValue)
    assert len(run.failed) == 1
    assert UnserializableValue.__name__ in run.errors[0]


def test_task_ids_of_emits(run_bolt):
    class Asks(BasicBolt):
        output_fields = ["n"]

        def process(self, tup):
            asked.append(self.emit([1], need_task_ids=True))
            self.emit([2], on_task_ids=asked.append)
            asked.append("emitted")

    asked: list[object] = []
    run_bolt(Asks, [[1]])
    (task,) = asked[0]
    assert asked == [[task], "emitted", [task]]


def test_a_spout_is_asked_and_told(run_spout):
    class Lines(ReliableSpout):
        output_fields = ["line"]

        def initialize(self, conf, context):
            self.lines = list(conf["lines"])

        def next_tuple(self):
            if self.lines:
                self.emit([self.lines.pop(0)])

        def exhausted(self):
            return not self.lines

    run = run_spout(Lines, 2, {"lines": ["a", "b", "c"]})
    assert run.values == [["a"], ["b"]]
    assert run.pending == [1, 2]
    assert run.exhausted is False
    run.ack(1)
    run.fail(2)
    again, third = run.next(2)
    assert (again.tup_id, again["line"]) == (2, "b")
    assert third.values == ["c"]
    assert (run.pending, run.exhausted) == ([2, 3], True)
    with pytest.raises(ValueError, match="not in list"):
        run.ack(1)


def test_unreliable_tuples_have_no_message_id(run_spout):
    class Once(Spout):
        output_fields = ["n"]

        def activate(self):
            self.emit([0])

        def next_tuple(self):
            self.emit([1])

    run = run_spout(Once(), 1)
    assert [(emitted.values, emitted.tup_id) for emitted in run.emitted] == [([0], None), ([1], None)]
    assert run.pending == []


def test_a_tuple_needs_a_field_for_each_value():
    with pytest.raises(ValueError, match="2 values for 1 fields"):
        make_tuple([1, 2], ["n"])
    assert make_tuple([1, 2])["field1"] == 2


def test_the_plugin_is_there_without_being_asked_for(pytester):
    pytester.makepyfile(
        """
        from multilang import BasicBolt, ReliableSpout, TopologyBuilder
        from multilang.local import Faults, LocalCluster

        class Numbers(ReliableSpout):
            output_fields = ["n"]
            left = 5

            def next_tuple(self):
                if self.left:
                    self.left -= 1
                    self.emit([self.left])

            def exhausted(self):
                return not self.left

        class Square(BasicBolt):
            output_fields = ["square"]

            def process(self, tup):
                self.emit([tup["n"] ** 2])

        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers)
        builder.set_bolt("square", Square).shuffle_grouping("numbers")
        topology = builder.build("squares")

        def test_one_bolt(run_bolt):
            assert run_bolt(Square, [{"n": 3}]).values == [[9]]

        def test_in_process(run_topology):
            run = run_topology(topology, capture=["square"])
            assert sorted(tup["square"] for tup in run.captured("square")) == [0, 1, 4, 9, 16]

        def test_with_processes(run_topology):
            assert run_topology(topology, "process").counters["numbers"].acked == 5

        def test_many_seeds(each_seed):
            def check(seed):
                with LocalCluster("simulated", seed=seed, faults=Faults()) as cluster:
                    run = cluster.submit(topology)
                    run.wait()
                    assert run.counters["numbers"].acked == 5

            each_seed(check, seeds=20)

        def test_that_fails(each_seed):
            def check(seed):
                assert seed != 7

            each_seed(check)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*seed 7 fails, after 7 that passed*"])
    result.stdout.fnmatch_lines(["*MULTILANG_SEED=7*"])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tup: pickle.loads(pickle.dumps(tup))])
def test_a_copy_of_a_tuple_stands_for_it_as_on_the_wire(run_bolt, copied):
    refused = []

    class Part(Bolt):
        output_fields = ["value"]

        def process(self, tup):
            mine = copied(tup)
            self.emit([mine["value"]], anchors=[mine])
            self.ack(mine)
            for each in (tup, mine):
                for again in (self.ack, self.fail, lambda tup: self.emit([2], anchors=[tup])):
                    with pytest.raises(LocalProtocolError):
                        again(each)
                    refused.append(again)

    run = run_bolt(Part, [{"value": 1}])
    assert run.values == [[1]]
    assert len(refused) == 6
