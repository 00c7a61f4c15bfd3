"""The type and range of each conf key: a wrong value is refused by its key's name, wherever a conf is given."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.cli.arguments import conf_entries
from multilang.component import BasicBolt, Spout
from multilang.local import LocalCluster
from multilang.protocol.codec import dumps
from multilang.shipping.conf import storm_conf
from multilang.testing import run_bolt, run_spout
from multilang.topology import TopologyBuilder, TopologyError
from multilang.topology.conf import kinds, known


class Words(Spout):
    output_fields = ["word"]

    def next_tuple(self):
        pass


def built(conf=None, bolt_conf=None):
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("count", BasicBolt, conf=bolt_conf).shuffle_grouping("words")
    return builder.build("t", conf=conf)


# By the last words of what a key may be: values that it may not have, and one that it may.
BY_KIND = {
    "true or false": (["no", "false", "true", "maybe", 0, 1, []], False),
    "a whole number from 0": (["1", -1, 1.5, True, [1]], 0),
    "a whole number from 1": (["1", 0, -1, 1.5, True, [1]], 1),
    "a whole number": (["1", 1.5, True, [1]], -1),
    "a number": (["1", True, [1]], 0.5),
    "a number from 0": (["1", -1, True, [1]], 0.5),
    "a number above 0": (["1", 0, -0.5, True, [1]], 0.5),
    "seconds from 0": (["1", -1, True, [1]], 0),
    "seconds above 0": (["30", 0, -1, True, [1]], 30),
    "seconds above 0, or 0 for no deadline": (["30", -1, True], 0),
    "a number of milliseconds from 0": (["1", -1, True], 500),
    "a whole number of milliseconds from 0": (["1", -1, 0.5, True], 0),
    "a whole number of milliseconds from 1": (["1", 0, 0.5, True], 1),
    "milliseconds, from 100 on": (["1s", 0, -1, True], 100),
    "a port number from 1 to 65535": (["3773", 0, 65536, True], 3773),
    "a port number, or 0 for any free one": (["3773", -1, 65536, True], 0),
    "a port number, or 0 for none": (["3773", -1, 65536, True], 0),
    "a number of bytes above 0": (["1", 0, 1.5, True], 1 << 20),
    "a number of keys, from 0": (["1", -1, True], 0),
    "text, in quotation marks": ([5, True, ["x"], {"a": 1}], "x"),
    "a name as a topology may have, printable text without / . : \\": (
        [5, True, ["x"], "", " ", " x", "..", "a/b", "a:b", "a\\b", "a\nb", "a\0b", "a\ud800"],
        "x" * 300,
    ),
    'the path of a node, such as "/transactional"': (
        [5, True, ["x"], "", " ", "x", "x/y", "/x/../y", "/.", "//", "/x//y", "/a\0b", "/a\ud800"],
        "/x/y/",
    ),
    "a dotted name, as text": ([5, True, ["x"]], "memory"),
    "the URL of a source": ([5, True, ["x"]], "served://127.0.0.1:1"),
    "the URL of a store": ([5, True], "memory:"),
    "the URL of a store, or the path of an SQLite file": ([5, True], "x.sqlite"),
    'text, {"env": NAME} or {"file": PATH}': ([5, True, ["x"]], {"env": "NAME"}),
    "text, or a list of texts": ([5, True, [5]], ["x"]),
    "a list of texts": (["x", 5, [5]], ["x"]),
    "an address, such as 127.0.0.1": ([5, True, ["x"], ""], "localhost"),
    "a list of names": (["x", 5, [5], [""]], ["x"]),
    "a list of dotted names": (["x", 5, [5], [""]], []),
    'a list of hosts, ["host1", "host2"]': (["host", [], [5], 5], ["localhost"]),
    "a list of class names, or of {class: serializer}": (["x", 5, [5]], ["x", {"a": "b"}]),
    "a list": (["x", 5, {}], []),
    "a map": (["x", 5, []], {}),
    "an object with any of user, password, tls, ca, cert, key": (["x", 5, {"usr": "x"}], {"user": "x"}),
    "a map, or its JSON as text": ([5, [], True], {}),
    "a map of texts to texts": (["x", {"a": 1}], {"a": "b"}),
    "a map of texts to numbers": (["x", {"a": "b"}], {"a": 1}),
    "one of trace, debug, info, warn, warning, error": (["loud", 5], "Info"),
    "'auto', 'tuple', 'root' or 'block'": (["blocks", 5], "tuple"),
    "'at-least-once' or 'exact'": (["exactly", 5], "exact"),
    "'S0', 'S1', 'S2' or 'S3'": (["S4", 5], "S0"),
}
KINDS = kinds()
KEYS = st.sampled_from(sorted(KINDS))


WHOLE_ON_STORM = [
    "topology.message.timeout.secs",
    "topology.sleep.spout.wait.strategy.time.ms",
    "topology.state.checkpoint.interval.ms",
    "topology.state.synchronization.timeout.secs",
    "topology.subprocess.timeout.secs",
    "topology.tick.tuple.freq.secs",
    "topology.worker.timeout.secs",
]


def said(key, value):
    shown = "'\\*\\*\\*'" if key.endswith("payload") else re.escape(repr(value))
    return rf"{re.escape(key)} is {shown}; use {re.escape(KINDS[key].allowed)}"


def test_every_key_of_a_topology_or_of_ours_is_declared():
    assert {key for key in known() if key.startswith(("topology.", "multilang."))} - set(KINDS) == {
        "topology.ras.constraints"  # a map or a list of lists, which Storm's scheduler alone reads
    }
    assert set(KINDS) <= known()
    assert {kind.allowed for kind in KINDS.values()} == set(BY_KIND)


@given(KEYS, st.data())
def test_a_wrong_value_is_refused_by_name_wherever_a_conf_is_given(key, data):
    value = data.draw(st.sampled_from(BY_KIND[KINDS[key].allowed][0]))
    with pytest.raises(TopologyError, match=f"the topology's conf: {said(key, value)}"):
        built({key: value})
    with pytest.raises(TopologyError, match=f"bolt 'count': conf: {said(key, value)}"):
        built(bolt_conf={key: value})
    with pytest.raises(TopologyError, match=f"conf: {said(key, value)}"):
        built().with_conf({key: value})
    with pytest.raises(Exception, match=said(key, value)):
        conf_entries(None, None, (f"{key}={dumps(value)}",))


@pytest.mark.parametrize("key", sorted(KINDS))
def test_a_right_value_and_none_are_taken(key):
    for value in (BY_KIND[KINDS[key].allowed][1], None):
        assert key in built({key: value}).conf or key == "topology.ackers"
        assert conf_entries(None, None, (f"{key}={dumps(value)}",)) == {key: value}
        if key == "multilang.state.alignment" and value is not None:
            with pytest.raises(TopologyError, match=r"was built for 'at-least-once': it can't change after build"):
                built().with_conf({key: value})
        else:
            assert key in built().with_conf({key: value}).conf or key == "topology.ackers"


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_each_mode_of_the_embedded_cluster_refuses_a_wrong_value(mode):
    key, value = "topology.enable.message.timeouts", "false"
    with LocalCluster(mode=mode) as cluster, pytest.raises(TopologyError, match=said(key, value)):
        cluster.submit(built(), conf={key: value})
    with LocalCluster(mode=mode, conf={key: value}) as cluster, pytest.raises(TopologyError, match=said(key, value)):
        cluster.submit(built())


def test_a_test_of_one_component_refuses_a_wrong_value():
    with pytest.raises(TopologyError, match=said("topology.debug", "maybe")):
        run_bolt(BasicBolt, [], conf={"topology.debug": "maybe"})
    with pytest.raises(TopologyError, match=said("topology.max.spout.pending", 0)):
        run_spout(Words, conf={"topology.max.spout.pending": 0})


def test_spark_refuses_a_wrong_value_before_it_is_asked_for_anything():
    pytest.importorskip("pyspark")
    from spark_bridge.job import run_topology
    from spark_bridge.stream import stream_topology

    with pytest.raises(TopologyError, match=said("topology.workers", 0)):
        run_topology(built(), {}, None, conf={"topology.workers": 0})
    with pytest.raises(TopologyError, match=said("topology.workers", 0)):
        stream_topology(built(), {}, checkpoint="/nowhere", conf={"topology.workers": 0})


@pytest.mark.parametrize("key", WHOLE_ON_STORM)
def test_a_fraction_is_taken_here_and_refused_for_storm(key):
    topology = built({key: 101.5})
    with pytest.raises(
        TopologyError, match=rf"topology 't': {re.escape(key)} is 101.5; Storm takes whole .* write 102"
    ):
        storm_conf(topology)
    assert storm_conf(built({key: 102}))[key] == 102
