"""A stream that can't work is refused when it is declared or built; one that is declared keeps its names."""

from __future__ import annotations

import pytest

from multilang.streams import StreamBuilder
from multilang.topology import TopologyError
from multilang.windowing import Sliding, Tumbling, seconds
from tests.streams.pipelines import Values


def words():
    s = StreamBuilder()
    return s, s.source(["the cow", "the moon"]).flat_map(str.split)


def test_stages_without_an_exchange_between_them_are_one_bolt() -> None:
    s, stream = words()
    stream.map(str.upper).filter(str.isalpha).peek(len, name="looks").key_by(len).count(name="lengths")
    topology = s.build("lengths")
    assert list(topology.components) == ["source", "flat_map", "lengths"]
    assert "stages: flat_map > map > filter > looks > key_by" in topology.explain()
    assert "combines for 'lengths' before it sends" in topology.explain()


def test_a_merge_costs_no_hop_and_runs_in_both_units() -> None:
    s = StreamBuilder()
    s.source([1], name="a").map(str).merge(s.source(["b"], name="b")).map(str.upper, name="up").for_each(len)
    topology = s.build("merged")
    assert list(topology.components) == ["a", "b", "map", "b-merge"]
    assert topology.explain().count("> up >") == 2


def test_names_are_the_same_each_time() -> None:
    def names():
        s, stream = words()
        left, _ = stream.branch(str.isalpha)
        left.map(len).map(abs).repartition(3).key_by(str).count().map(len)
        return s.build("names").to_json()

    assert names() == names()


def test_an_equal_name_is_refused() -> None:
    _, stream = words()
    stream.map(len, name="n")
    with pytest.raises(TopologyError, match="there is already a stage 'n'"):
        stream.map(len, name="n")


def test_a_stream_of_another_builder_is_refused() -> None:
    (_, one), (_, other) = words(), words()
    with pytest.raises(TopologyError, match="another StreamBuilder"):
        one.merge(other)


def test_a_source_that_can_be_gone_through_once_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"only once.*give a function"):
        StreamBuilder().source(iter([1]))
    with pytest.raises(TopologyError, match="a source is a spout"):
        StreamBuilder().source(5)


def test_an_init_that_partial_results_would_count_again_is_refused() -> None:
    _, stream = words()
    keyed = stream.key_by(len)
    with pytest.raises(TopologyError, match="let init return what changes nothing"):
        keyed.aggregate(lambda: 10, lambda n, _: n + 1, lambda a, b: a + b)
    keyed.aggregate(lambda: 10, lambda n, _: n + 1)


def test_group_and_join_without_windows_are_refused_with_the_way_out() -> None:
    _, stream = words()
    keyed = stream.key_by(len)
    with pytest.raises(TopologyError, match=r"write window\(...\).group\(\)"):
        keyed.group()
    for kind in ("join", "left_join", "right_join", "full_join", "co_group"):
        with pytest.raises(TopologyError, match=rf"write a.window\(...\).{kind}"):
            getattr(keyed, kind)(keyed)


def test_windows_are_sent_to_no_bolt_without_an_operation() -> None:
    _, stream = words()
    with pytest.raises(TopologyError, match=r"write window\(...\).group\(\).to\(bolt\)"):
        stream.key_by(len).window(Tumbling(2)).to(object)


def test_windows_that_differ_are_not_joined() -> None:
    _, stream = words()
    keyed = stream.key_by(len)
    with pytest.raises(TopologyError, match="windows that differ"):
        keyed.window(Tumbling(seconds(1))).join(keyed.window(Tumbling(seconds(2))))


def test_an_aggregate_without_merge_is_for_tumbling_windows() -> None:
    _, stream = words()
    windows = stream.key_by(len).window(Sliding(seconds(2), seconds(1)))
    with pytest.raises(TopologyError, match="give aggregate a merge="):
        windows.aggregate(list, lambda seen, word: [*seen, word])


def test_tuples_of_a_spout_are_not_sent_as_values() -> None:
    s, stream = words()
    tuples = stream.through(Values)
    keyed = tuples.key_by(lambda t: t["value"])
    keyed.count()
    with pytest.raises(TopologyError, match=r"take out what you need.*map_values\(lambda t: t\['value'\]\)"):
        keyed.reduce(lambda a, b: a)
    keyed.to(Values, name="end")
    with pytest.raises(TopologyError, match="take out what you need"):
        s.build("tuples")


def test_a_builder_without_streams_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"begin with source"):
        StreamBuilder().build("nothing")


def test_what_is_no_function_is_refused() -> None:
    _, stream = words()
    with pytest.raises(TopologyError, match="map takes a function, not 'upper'"):
        stream.map("upper")
