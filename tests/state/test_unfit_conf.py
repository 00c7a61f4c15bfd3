"""A setting that a topology can't run with is refused before anything is sent or started, by the same sentence everywhere."""

from __future__ import annotations

import pytest

from multilang.local import LocalCluster
from multilang.settings import ALIGNMENT
from multilang.shipping.errors import ShippingError
from multilang.shipping.shippable import check_can_run, check_shippable
from multilang.state import settings
from multilang.topology import TopologyError
from tests.cli.command import multilang
from tests.state import topologies

PROVIDER, CONFIG = settings.PROVIDER, settings.CONFIG
# The conf of build, the conf that is given later, and a part of what is said.
UNFIT = [
    ({}, {ALIGNMENT: "exact"}, "built for 'at-least-once': it can't change after build"),
    ({ALIGNMENT: "exact"}, {ALIGNMENT: "at-least-once"}, "built for 'exact'"),
    ({ALIGNMENT: "exact"}, {ALIGNMENT: None}, "built for 'exact'"),
    ({ALIGNMENT: "exact"}, {PROVIDER: "memory"}, "needs states that outlive their tasks"),
    ({}, {PROVIDER: "sqlite", CONFIG: {"pth": "x"}}, "knows no 'pth'"),
    ({}, {PROVIDER: "redis", CONFIG: {"jedisPoolConfig": {"hst": "x"}}}, "'hst'"),
    ({}, {PROVIDER: "memory", CONFIG: '{"path": "x"}'}, "knows no 'path'"),
    ({}, {CONFIG: "no JSON"}, "is not JSON"),
    ({}, {CONFIG: "[1]"}, "is a JSON object"),
    ({}, {"topology.message.timeout.secs": 1}, "they would time out before"),
    ({}, {settings.INTERVAL: 60_000}, "they would time out before"),
    ({}, {"topology.acker.executors": 0}, "without ackers"),
    ({}, {"multilang.traces": "x"}, "did you mean 'multilang.trace'"),
    ({}, {"multilang.state.folder": "x"}, "'multilang.state.folder' is read by nobody; the keys that begin"),
    ({}, {"multilang.redis.access": {"usr": "x"}}, "use an object with any of user, password"),
]


def built(conf):
    return topologies.build(conf, topologies.Lines)


@pytest.mark.parametrize(("before", "given", "said"), UNFIT)
def test_it_is_refused_on_the_way_to_a_cluster_and_in_every_mode(before, given, said):
    topology = built(before)
    with pytest.raises((TopologyError, ShippingError)) as sent:
        check_shippable(topology.with_conf(given))
    assert said in str(sent.value)
    for mode in ("process", "inprocess", "simulated"):
        with LocalCluster(mode=mode) as cluster, pytest.raises(TopologyError) as run:
            cluster.submit(topology, conf=given)
        assert str(run.value) == str(sent.value)


def test_what_the_clusters_own_settings_make_of_a_conf_is_checked_with_them():
    exact = built({ALIGNMENT: "exact"})
    check_can_run(exact)  # nobody knows yet where the states are
    check_can_run(exact, {PROVIDER: "redis", CONFIG: None})
    with pytest.raises(ShippingError, match="needs states that outlive their tasks"):
        check_can_run(exact, {PROVIDER: "org.apache.storm.state.InMemoryKeyValueStateProvider"})
    with pytest.raises(ShippingError, match="they would time out before"):
        check_can_run(built({}), {"topology.message.timeout.secs": 1})


@pytest.mark.parametrize("command", ["run", "submit --dry-run"])
def test_the_commands_say_it_in_one_sentence(command):
    refused = multilang(*command.split(), "tests/state/topologies.py:topology", "-c", "topology.message.timeout.secs=1")
    assert refused.returncode == 2
    assert "they would time out before" in refused.stderr
    assert "Traceback" not in refused.stderr
