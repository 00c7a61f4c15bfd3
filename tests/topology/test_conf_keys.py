"""A misspelt key of a conf is refused, and a user's own one is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multilang import BasicBolt, Spout, TopologyBuilder, settings
from multilang.engine.settings import DEFAULTS
from multilang.local import LocalCluster
from multilang.topology import TopologyError
from multilang.topology.conf import known, nearest, storm_default
from tests.soak import sampled

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


class Words(Spout):
    output_fields = ["word"]


def built(conf=None, spout_conf=None):
    builder = TopologyBuilder()
    builder.set_spout("words", Words, conf=spout_conf)
    builder.set_bolt("count", BasicBolt).shuffle_grouping("words")
    return builder.build("t", conf=conf)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("topology.max.spout.pendng", "topology.max.spout.pending"),
        ("topology.max_spout_pending", "topology.max.spout.pending"),
        ("max.spout.pending", "topology.max.spout.pending"),
        ("topology.message.timeout", "topology.message.timeout.secs"),
        ("topology.worker", "topology.workers"),
        ("multilang.loglevel", "multilang.log.level"),
        ("multilang.transaction.store", "multilang.transactional.store"),
        ("topologie.workers", "topology.workers"),
        ("storm.zookeper.servers", "storm.zookeeper.servers"),
        ("storm.zookeeper.topology.auth.schema", "storm.zookeeper.topology.auth.scheme"),
        ("storm.zookeeper.superAcl", "storm.zookeeper.superACL"),
        ("transactional.zookeeper.server", "transactional.zookeeper.servers"),
        ("drpc.invocation.port", "drpc.invocations.port"),
        ("nimbus.seed", "nimbus.seeds"),
    ],
)
def test_a_misspelt_key_is_told_wherever_a_conf_is_given(wrong, right):
    said = f"{re.escape(repr(wrong))} is read by nobody; did you mean {right!r}"
    with pytest.raises(TopologyError, match=f"the topology's conf: {said}"):
        built({wrong: 1})
    with pytest.raises(TopologyError, match=f"spout 'words': conf: {said}"):
        built(spout_conf={wrong: 1})
    with LocalCluster(mode="simulated") as cluster, pytest.raises(TopologyError, match=said):
        cluster.submit(built(), conf={wrong: 1})


@pytest.mark.parametrize(
    "key",
    [
        "name",
        "workers",
        "shop.max.orders",
        "topology.x",
        "topology.debug.x",
        "test.fail",
        "my",
        "server.port",
        "nimbus.host",
    ],
)
def test_a_key_of_ones_own_is_none_of_ours(key):
    assert nearest(key) is None
    assert built({key: 1}).conf == {key: 1}


@pytest.mark.parametrize("key", ["worker.childopts", "storm.zookeeper.auth.payload", "drpc.http.port", "ui.port"])
def test_a_key_of_storms_that_is_read_elsewhere_is_taken(key):
    assert built({key: "x"}).conf == {key: "x"}


def test_every_key_that_the_manual_names_is_known():
    named = set(re.findall(r"^\| `((?:topology|multilang)\.[^`]+)`", DOCS.read_text(), re.M))
    assert len(named) > 20
    assert named <= known()


@pytest.mark.parametrize("key", ["multilang.x", "multilang.quality", "multilang.state.folder", "multilang."])
def test_an_unknown_key_of_ours_is_refused_wherever_a_conf_is_given(key):
    said = (
        f"{re.escape(repr(key))} is read by nobody; the keys that begin with 'multilang.' are in docs/configuration.md"
    )
    with pytest.raises(TopologyError, match=f"the topology's conf: {said}"):
        built({key: 1})
    with pytest.raises(TopologyError, match=f"spout 'words': conf: {said}"):
        built(spout_conf={key: 1})
    with pytest.raises(TopologyError, match=f"conf: {said}"):
        built().with_conf({key: 1})


@pytest.mark.parametrize(("key", "instead"), settings.REMOVED.items())
def test_a_key_that_was_removed_is_refused_with_what_to_do_instead(key, instead):
    with pytest.raises(TopologyError, match=re.escape(f"the topology's conf: {key!r} was removed; {instead}")):
        built({key: 1})


def test_there_are_few_keys_for_users_and_none_is_in_two_places():
    assert len(settings.SETTINGS) <= 25
    assert settings.ROWS.keys() == settings.SETTINGS.keys() | settings.SET_HERE.keys()
    assert len(settings.ROWS) == len(settings.SETTINGS) + len(settings.SET_HERE)
    assert not settings.REMOVED.keys() & known()


def test_what_engines_have_where_nothing_is_said_is_storm_s():
    assert DEFAULTS["topology.message.timeout.secs"] == storm_default("topology.message.timeout.secs") == 30
    assert DEFAULTS["topology.shellbolt.max.pending"] == 100
    assert DEFAULTS["topology.stats.sample.rate"] == 0.05
    assert DEFAULTS["multilang.parent"] == "local"


@pytest.mark.parametrize(
    "key", sampled(sorted(key for key in known() if key.startswith(("topology.", "multilang."))), 5)
)
def test_any_single_slip_in_a_key_is_seen(key):
    first = len(key.partition(".")[0]) + 1
    for place in range(first, len(key)):
        for wrong in (key[:place] + key[place + 1 :], key[:place] + "x" + key[place:]):
            if wrong not in known() and not wrong.endswith("."):
                assert nearest(wrong) is not None, wrong


def test_old_storm_s_name_of_the_ackers_is_taken_as_today_s(caplog):
    old = built(conf={"topology.ackers": 2})
    assert old.conf == {"topology.acker.executors": 2}
    assert "topology.ackers is the old name of topology.acker.executors in Storm, and is read as that" in caplog.text
    assert old.with_conf({"topology.ackers": 0}).conf == {"topology.acker.executors": 0}
    assert built(conf={"topology.ackers": 2, "topology.acker.executors": 2}).conf == {"topology.acker.executors": 2}
    with pytest.raises(
        TopologyError, match=r"'topology\.ackers': 2 and 'topology.acker.executors': 3 .* keep the second"
    ):
        built(conf={"topology.ackers": 2, "topology.acker.executors": 3})
