"""A DRPC topology wired by hand, of the parts that the manual names, answers as the builder's does."""

from __future__ import annotations

from random import Random

import pytest

from multilang import BasicBolt, FailedException, TopologyBuilder
from multilang.coordination import CoordinatedBolt
from multilang.drpc import DRPCExecutionException, DRPCSpout, JoinResult, LocalDRPC, PrepareRequest, ReturnResults
from tests.drpc import by_hand


def expected(url):
    return str(len({each for person in by_hand.tweeters(url) for each in by_hand.followers(person)}))


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_each_request_is_answered_from_all_of_its_tuples(mode):
    rng = Random(0)
    urls = [f"foo.com/{rng.random()}" for _ in range(20)]
    assert {"0", "1"} < set(
        map(expected, urls)
    )  # of nobody's tweets, and of one person's who has no follower but herself
    with LocalDRPC(mode) as drpc:
        drpc.submit(by_hand.reach)
        futures = [drpc.start("reach", url) for url in urls]
        drpc.wait(futures)
        assert [future.result() for future in futures] == [*map(expected, urls)]


class Refuses(BasicBolt):
    """Emits twice, and fails at its end what it is told to."""

    output_fields = ["id", "result"]

    def initialize(self, conf, context):
        self.kept, self.let_go = {}, []
        LET_GO.append(self.let_go)

    def process(self, tup):
        self.kept[tup["request"]] = tup["args"]
        if tup["args"] == "fails":
            raise FailedException("not this one")

    def finished_id(self, id):
        if self.kept[id] == "refused":
            raise FailedException("not at its end")
        self.emit([id, self.kept.pop(id)])

    def timeout_id(self, id):
        self.let_go.append(self.kept.pop(id))


LET_GO: list[list[str]] = []


def test_what_fails_is_told_to_the_client_and_the_bolt_lets_it_go():
    builder = TopologyBuilder()
    builder.set_spout("requests", DRPCSpout("refuse"))
    builder.set_bolt("prepare", PrepareRequest).none_grouping("requests")
    builder.set_bolt("only", CoordinatedBolt(Refuses()), 2).fields_grouping("prepare", "request")
    join = builder.set_bolt("join", JoinResult("prepare", "refuse"))
    join.fields_grouping("only", "id").fields_grouping("prepare", "request", stream="ret")
    builder.set_bolt("return", ReturnResults).none_grouping("join")
    LET_GO.clear()
    with LocalDRPC("inprocess") as drpc:
        drpc.submit(builder.build("refuse"))
        for arguments in ("fails", "refused"):
            with pytest.raises(DRPCExecutionException, match=r"'refuse' failed: a tuple of the request failed"):
                drpc.execute("refuse", arguments)
        assert drpc.execute("refuse", "kept") == "kept"
    assert sorted(each for task in LET_GO for each in task) == ["fails", "refused"]
