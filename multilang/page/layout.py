"""The places of a topology's components in its graph: layers from the spouts to the sinks, with few crossing edges.

An edge over several layers has a place in each layer between, so that it passes beside the components there.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    _Node: TypeAlias = "str | tuple[str, str, int]"  # a component, or the place of an edge in a layer between

SWEEPS = 8  # over all layers; further ones seldom move a component


class Layout(NamedTuple):
    """A drawing's plan.

    Attributes:
        places: Component -> its layer, and its place in it.
        bends: Source and target of an edge -> the places through which it passes between them.
    """

    places: dict[str, tuple[int, float]]
    bends: dict[tuple[str, str], list[tuple[int, float]]]


def layout(components: Sequence[str], edges: Iterable[tuple[str, str]]) -> Layout:
    """Return the plan of a graph.

    A component stands behind all that it reads from, except where components read from each other in a circle. The
    places of a layer are a distance of 1 apart, and lie around 0.

    Args:
        components: The ids, in the order in which they were declared.
        edges: Pairs of ids, from the component that emits to the one that reads.
    """
    known = set(components)
    wanted = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1] and known.issuperset(edge)]
    position = {each: n for n, each in enumerate(_in_order(components, wanted))}
    forward = [edge for edge in wanted if position[edge[0]] < position[edge[1]]]  # no way back
    layer = dict.fromkeys(components, 0)
    for source, target in sorted(forward, key=lambda edge: position[edge[0]]):
        layer[target] = max(layer[target], layer[source] + 1)
    rows: list[list[_Node]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for each in components:
        rows[layer[each]].append(each)
    ahead: dict[_Node, list[_Node]]
    behind: dict[_Node, list[_Node]]
    ahead, behind = defaultdict(list), defaultdict(list)
    ways: dict[tuple[str, str], list[_Node]] = {}
    for edge in forward:
        between: list[_Node] = [(*edge, n) for n in range(layer[edge[0]] + 1, layer[edge[1]])]
        ways[edge] = between
        for n, bend in enumerate(between, layer[edge[0]] + 1):
            rows[n].append(bend)
        for one, other in pairwise([edge[0], *between, edge[1]]):
            ahead[one].append(other)
            behind[other].append(one)
    _untangle(rows, ahead, behind)
    place = {each: (n, y - (len(row) - 1) / 2) for n, row in enumerate(rows) for y, each in enumerate(row)}
    return Layout(
        {each: place[each] for each in components},
        {edge: [place[bend] for bend in between] for edge, between in ways.items()},
    )


def _in_order(components: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[str]:
    """Return the components so that each stands before those that read from it, unless they are in a circle."""
    ahead: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        ahead[source].append(target)
    done: list[str] = []
    seen: set[str] = set()
    has_source = {target for _, target in edges}
    for root in sorted(components, key=lambda each: each in has_source):  # spouts first
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(ahead.get(root, ())))]
        while path:
            component, rest = path[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                done.append(component)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(ahead.get(following, ()))))
    return done[::-1]


def _untangle(
    rows: list[list[_Node]], ahead: Mapping[_Node, Sequence[_Node]], behind: Mapping[_Node, Sequence[_Node]]
) -> None:
    """Sort each layer by the average place of each node's neighbours, there and back."""
    for sweep in range(SWEEPS):
        there = sweep % 2 == 0
        neighbours = behind if there else ahead
        place = {each: n - (len(row) - 1) / 2 for row in rows for n, each in enumerate(row)}
        for row in rows if there else rows[::-1]:
            average = {
                each: _average([place[other] for other in neighbours.get(each, ())], place[each]) for each in row
            }
            row.sort(key=average.__getitem__)
            place.update({each: n - (len(row) - 1) / 2 for n, each in enumerate(row)})


def _average(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
