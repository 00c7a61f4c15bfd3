"""pystorm's semantics on this library's engines: over the wire, and in every mode of the embedded cluster."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from multilang.compat.pystorm import Bolt
from multilang.compat.pystorm.running import adapted
from multilang.component import ConfigError
from multilang.local import LocalCluster
from multilang.protocol.messages import Ack, Emit, Error, Fail, Log
from tests.compat.pystorm_words import SENTENCES, TOTAL, topology
from tests.component.harness import context
from tests.patience import patient

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

IMPORTS = "from multilang.compat.pystorm import BatchingBolt, Bolt, ReliableSpout, Spout, TicklessBatchingBolt\n"


def part(start: Starter, body: str, conf=None, ctx=None, **how) -> Child:
    """The process of a script that runs its class Part."""
    import textwrap

    source = IMPORTS + textwrap.dedent(body) + "\nPart().run()\n"
    return start.raw(source, script=True, **how).set_up(conf, ctx)


def said(child: Child, *kinds: type) -> list[object]:
    return [message for message in child.messages if isinstance(message, kinds)]


def test_values_are_a_namedtuple_and_emits_are_anchored_before_the_ack(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(Bolt):
            def process(self, tup):
                assert tup == (tup.id, "source", "default", 6, tup.values)
                self.emit([[*tup.values._fields], tup.values.value, type(tup.values).__name__])
        """,
        ctx=context(outputs={"default": ["a", "b", "c"]}, inputs={"default": ["value", "class", "_x"]}),
    )
    id = child.give("v", 2, 3)
    child.until(lambda: child.acked)
    values = [["value", "_1", "_2"], "v", "SourceDefaultTuple"]
    assert said(child, Emit, Ack) == [Emit(values, anchors=[id], need_task_ids=False), Ack(id)]


def test_values_go_as_simplejson_sends_them(start: Starter) -> None:
    child = part(
        start,
        """
        from collections import namedtuple
        from decimal import Decimal
        Point = namedtuple("Point", "x y")
        class Part(Bolt):
            def process(self, tup):
                self.emit([{1: b"\\xc3\\xa9", None: Decimal("1.50"), False: Decimal("7"), 0.5: (1,), b"k": Point(1, b"p")}])
                self.emit(Point(b"one", 2)[:1])
        """,
    )
    child.give("v")
    child.until(lambda: child.acked)
    assert child.emitted == [[{"1": "é", "null": 1.5, "false": 7, "0.5": [1], "k": [1, "p"]}], ["one"]]


@pytest.mark.parametrize("value", ["{1, 2}", "object()", "float('nan')", "b'\\xff'"])
def test_a_value_that_cannot_be_sent_fails_its_tuple_instead_of_being_lost(start: Starter, value: str) -> None:
    child = part(start, f"class Part(Bolt):\n    def process(self, tup): self.emit([{value}])")
    id = child.give("v")
    child.ended(1)
    assert (child.failed, child.acked, child.emitted) == ([id], [], [])


def test_initialize_may_put_another_method_in_the_place_of_process(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(Bolt):
            def initialize(self, conf, context):
                self.process = self.shout

            def shout(self, tup):
                self.emit([tup.values[0].upper()])
        """,
    )
    child.give("v")
    child.until(lambda: child.acked)
    assert child.emitted == [["V"]]


def test_an_exception_fails_the_tuple_and_ends_the_process(start: Starter) -> None:
    child = part(start, "class Part(Bolt):\n    def process(self, tup): raise KeyError('no such price')")
    id = child.give("v")
    child.ended(1)
    assert child.failed == [id]
    assert "no such price" in child.errors[0]
    assert len(child.errors) == 1


@pytest.mark.parametrize(
    ("conf", "more"), [({}, "exit_on_exception = False"), ({"multilang.compat.mild": True}, "auto_fail = True")]
)
def test_an_exception_fails_the_tuple_alone_if_the_class_or_the_conf_says_so(start: Starter, conf, more) -> None:
    child = part(
        start,
        f"""
        class Part(Bolt):
            {more}
            def process(self, tup):
                if tup.values[0] == "bad":
                    raise KeyError("no such price")
                self.emit(list(tup.values))
        """,
        conf,
    )
    bad, good = child.give("bad"), child.give("good")
    child.until(lambda: child.acked)
    assert (child.failed, child.acked, child.emitted) == ([bad], [good], [["good"]])
    assert "no such price" in child.errors[0]


def test_without_its_automatic_calls_a_bolt_anchors_acks_and_fails_by_itself(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(Bolt):
            auto_ack = auto_anchor = auto_fail = False
            def initialize(self, conf, context):
                self.kept = []
            def process(self, tup):
                self.kept.append(tup)
                if len(self.kept) == 3:
                    self.emit([1])
                    self.emit([2], anchors=self.kept[:2])
                    self.emit([3], anchors=[self.kept[2].id])
                    self.ack(self.kept[0])
                    self.ack(self.kept[1].id)
                    self.fail(self.kept[2])
        """,
    )
    a, b, c = child.give("a"), child.give("b"), child.give("c")
    child.until(lambda: child.failed)
    assert [list(emit.anchors) for emit in child.all(Emit)] == [[], [a, b], [c]]
    assert said(child, Ack, Fail) == [Ack(a), Ack(b), Fail(c)]


def test_a_tuple_that_process_failed_is_not_acked_after_it(start: Starter) -> None:
    """Storm halts the worker when a tuple is settled twice."""
    child = part(start, "class Part(Bolt):\n    def process(self, tup): self.fail(tup)")
    id = child.give("v")
    child.beat()
    assert said(child, Ack, Fail) == [Fail(id)]


def test_a_batch_is_handed_over_at_the_tick_after_the_next(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(BatchingBolt):
            ticks_between_batches = 2
            def group_key(self, tup):
                return tup.values[0][0]
            def process_batch(self, key, tups):
                self.emit([f"{key}{len(tups)}"])
        """,
    )
    tuples = [child.give(word) for word in ("ab", "c", "ad")]
    ticks = [child.tick() for _ in range(2)]
    child.beat()
    assert (child.acked, child.emitted) == (ticks, [])
    third = child.tick()
    child.until(lambda: len(child.acked) == 6)
    assert [(emit.values, emit.anchors) for emit in child.all(Emit)] == [
        (["a2"], [tuples[0], tuples[2]]),
        (["c1"], [tuples[1]]),
    ]
    assert child.acked == [*ticks, third, tuples[0], tuples[2], tuples[1]]


def test_a_failed_batch_fails_what_is_not_acked_and_ends_the_process(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(BatchingBolt):
            def group_key(self, tup):
                return tup.values[0]
            def process_batch(self, key, tups):
                assert key != "b", "no more"
        """,
    )
    a, b, c = child.give("a"), child.give("b"), child.give("c")
    ticks = [child.tick(), child.tick()]
    child.ended(1)
    assert (child.acked, child.failed) == ([*ticks, a], [b, c])
    assert "no more" in child.errors[0]


def test_a_batch_without_ticks_is_handed_over_after_its_seconds(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(TicklessBatchingBolt):
            secs_between_batches = 0.05
            def process_batch(self, key, tups):
                self.emit([len(tups)])
                assert tups[0].values[0] != "bad", "no more"
        """,
    )
    id = child.give("v")
    child.until(lambda: child.acked)
    assert said(child, Emit, Ack) == [Emit([1], anchors=[id], need_task_ids=False), Ack(id)]
    bad = child.give("bad")
    child.ended(1)
    assert child.failed == [bad]


def test_a_reliable_spout_emits_again_at_once_until_it_gives_up(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(ReliableSpout):
            max_fails = 2
            def next_tuple(self):
                self.emit(["v"], tup_id=7)
        """,
        spout=True,
    ).started()
    emit = Emit(["v"], id=7, need_task_ids=False)
    assert child.ask() == [emit]
    assert [child.ask("fail", 7) for _ in range(2)] == [[emit], [emit]]
    (log,) = child.ask("fail", 7)
    assert isinstance(log, Log)
    assert "exceeded retry limit" in log.message
    (log,) = child.ask("ack", 7)
    assert isinstance(log, Log)
    assert "unknown tuple ID" in log.message


def test_what_a_spout_emits_before_storm_listens_goes_with_the_next_command(start: Starter) -> None:
    child = part(
        start,
        """
        import threading
        class Part(Spout):
            def initialize(self, conf, context):
                self.emit(["early"], tup_id="e")
                thread = threading.Thread(target=lambda: self.emit([b"beside"]))
                thread.start()
                thread.join()
            def next_tuple(self):
                self.emit(["next"])
        """,
        spout=True,
    ).started()
    assert child.ask("activate") == [
        Emit(["early"], id="e", need_task_ids=False),
        Emit(["beside"], need_task_ids=False),
    ]
    assert child.ask() == [Emit(["next"], need_task_ids=False)]


def test_task_ids_come_when_they_are_asked_for(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(Bolt):
            def process(self, tup):
                self.log(self.emit([1], need_task_ids=True), "no such level")
                self.log(self.emit([1]))
        """,
    )
    child.give("v")
    child.until(lambda: child.acked)
    assert [log for log in child.all(Log) if "[" in log.message or log.message == "None"] == [
        Log("[2]", 2),
        Log("None", 2),
    ]


def test_a_class_that_overrides_send_message_sees_every_message(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(Bolt):
            def send_message(self, message):
                if message["command"] == "emit":
                    message["tuple"] = [message["tuple"][0].upper()]
                super().send_message(message)
            def process(self, tup):
                self.emit([tup.values[0]])
        """,
    )
    id = child.give("v")
    child.until(lambda: child.acked)
    assert said(child, Emit, Ack) == [Emit(["V"], anchors=[id], need_task_ids=False), Ack(id)]


def test_an_exception_is_reported_by_the_class_that_overrides_how(start: Starter) -> None:
    child = part(
        start,
        """
        class Part(Bolt):
            exit_on_exception = False
            def process(self, tup):
                raise KeyError("secret")
            def raise_exception(self, exception, tup=None):
                self.send_message({"command": "error", "msg": f"own: {tup.values[0]}"})
        """,
    )
    id = child.give("v")
    child.until(lambda: child.failed == [id])
    assert child.all(Error) == [Error("own: v")]


def test_the_level_of_the_conf_holds_for_the_log(start: Starter) -> None:
    body = """
        class Part(Bolt):
            def process(self, tup):
                for level in ("debug", "info", "warning"):
                    getattr(self.logger, level)(level)
        """
    for level, expected in (("debug", 3), ("warning", 1)):
        child = part(start, body, {"pystorm.log.level": level})
        child.give("v")
        child.until(lambda child=child: child.acked)
        assert (
            len([log for log in child.all(Log) if log.message.split()[-1] in ("debug", "info", "warning")]) == expected
        )


def test_the_log_goes_to_the_file_that_the_conf_names(start: Starter) -> None:
    body = "class Part(Bolt):\n    def process(self, tup): self.logger.info('into the file')"
    child = part(start, body, {"pystorm.log.path": str(start.folder), "pystorm.log.file": "{component_name}.log"})
    child.give("v")
    child.until(lambda: child.acked)
    assert "into the file" not in child.log_text
    assert "into the file" in (start.folder / "part.log").read_text()
    assert (start.folder / "part.log").stat().st_mode & 0o777 == 0o600, "its user's alone"


def test_the_log_is_written_through_no_link_that_somebody_put_under_its_name(start: Starter) -> None:
    body = "class Part(Bolt):\n    def process(self, tup): self.logger.info('into the file')"
    victim = start.folder / "precious"
    victim.write_text("precious")
    (start.folder / "part.log").symlink_to(victim)
    child = part(start, body, {"pystorm.log.path": str(start.folder), "pystorm.log.file": "{component_name}.log"})
    child.give("v")
    child.until(lambda: child.acked)
    assert victim.read_text() == "precious"
    assert "can't be written to, so that this is the log" in child.log_text


def test_a_class_with_a_loop_of_its_own_is_refused() -> None:
    class Own(Bolt):
        def read_tuple(self):
            return None

    from multilang.topology import TopologyBuilder

    builder = TopologyBuilder()
    builder.set_spout("sentences", topology["sentences"].component)
    builder.set_bolt("own", adapted(Own)).shuffle_grouping("sentences")
    with LocalCluster("inprocess") as cluster, pytest.raises(Exception, match="Own defines read_tuple"):
        cluster.submit(builder.build("refused")).wait(timeout=20)


@pytest.mark.parametrize("serializer", ["msgpack", "pickle"])
def test_other_serializers_are_refused(serializer: str) -> None:
    with pytest.raises(ValueError, match='write serializer="json"'):
        Bolt(serializer=serializer)


def test_what_is_no_component_is_refused() -> None:
    with pytest.raises(ConfigError, match="int is neither a Bolt nor a Spout"):
        adapted(int)


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_topology_counts_the_same_in_every_mode(mode: str) -> None:
    expected = Counter(word for n in range(TOTAL) for word in SENTENCES[n % 3].split())
    with LocalCluster(mode, conf={"topology.message.timeout.secs": 60}) as cluster:
        run = cluster.submit(topology, capture=["count"])
        run.wait(lambda run: run.counters["sentences"].acked == TOTAL, timeout=patient(60))
        counts: dict[str, int] = {}
        for tup in run.captured("count"):
            counts[tup.values[0]] = max(counts.get(tup.values[0], 0), tup.values[1])
        assert counts == expected
        assert run.counters["sentences"].failed == 0
