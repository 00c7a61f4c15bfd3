"""Components stand in layers from the spouts on, each in a place of its own."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from multilang.page.layout import layout

IDS = [f"component-{n}" for n in range(12)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    ids = draw(st.permutations(IDS[: draw(st.integers(0, 12))]))
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from(ids)) if ids else st.nothing()
    return ids, draw(st.lists(pairs, max_size=25)) if ids else []


def reachable(edges: set[tuple[str, str]], start: str) -> set[str]:
    found: set[str] = set()
    new = {start}
    while new:
        new = {target for source, target in edges if source in new} - found
        found |= new
    return found


@given(graphs())
def test_each_stands_behind_what_it_reads_unless_they_are_in_a_circle(graph):
    ids, edges = graph
    place = layout(ids, edges).places
    assert list(place) != [] or not ids
    assert set(place) == set(ids)
    assert len(set(place.values())) == len(ids)
    for source, target in edges:
        if source not in reachable(set(edges), target):
            assert place[source][0] < place[target][0], (source, target)


@given(graphs())
def test_a_layer_has_no_gaps_and_lies_around_the_middle(graph):
    plan = layout(*graph)
    layers: dict[int, list[float]] = {}
    for x, y in [*plan.places.values(), *(bend for bends in plan.bends.values() for bend in bends)]:
        layers.setdefault(x, []).append(y)
    assert sorted(layers) == list(range(len(layers)))
    for row in layers.values():
        assert sorted(row) == [n - (len(row) - 1) / 2 for n in range(len(row))]


@given(graphs())
def test_an_edge_passes_through_a_place_of_its_own_in_each_layer_between(graph):
    ids, edges = graph
    plan = layout(ids, edges)
    passed = [bend for bends in plan.bends.values() for bend in bends]
    assert len({*passed, *plan.places.values()}) == len(passed) + len(ids)
    for (source, target), bends in plan.bends.items():
        assert [x for x, _ in bends] == list(range(plan.places[source][0] + 1, plan.places[target][0]))


def test_parallel_ways_do_not_cross():
    ids = ["spout", *(f"{row}{n}" for n in (1, 2, 3) for row in "cab")]
    edges = [("spout", f"{row}1") for row in "abc"]
    edges += [(f"{row}{n}", f"{row}{n + 1}") for row in "abc" for n in (1, 2)]
    place = layout(ids, edges).places
    assert all(len({place[f"{row}{n}"][1] for n in (1, 2, 3)}) == 1 for row in "abc")


def test_hundreds_of_components_in_one_line_are_placed():
    ids = [f"c{n}" for n in range(5000)]
    assert layout(ids, list(pairwise(ids))).places["c4999"] == (4999, 0.0)
