"""The places of a topology's components in its graph: layers from the spouts to the sinks, with few crossing edges."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SWEEPS = 8  # over all layers; further ones seldom move a component


def places(components: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, tuple[int, float]]:
    """Return the layer of each component, and its place in it.

    A component stands behind all that it reads from, except where components read from each other in a circle. The
    places of a layer are a distance of 1 apart, and lie around 0.

    Args:
        components: The ids, in the order in which they were declared.
        edges: Pairs of ids, from the component that emits to the one that reads.
    """
    known = set(components)
    ahead: dict[str, list[str]] = defaultdict(list)
    for source, target in dict.fromkeys(edges):
        if source != target and {source, target} <= known:
            ahead[source].append(target)
    order = _in_order(components, ahead)
    position = {each: n for n, each in enumerate(order)}
    behind: dict[str, list[str]] = defaultdict(list)
    layer = dict.fromkeys(order, 0)
    for source in order:
        ahead[source] = [each for each in ahead[source] if position[each] > position[source]]  # no way back
        for target in ahead[source]:
            behind[target].append(source)
            layer[target] = max(layer[target], layer[source] + 1)
    layers: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for each in components:
        layers[layer[each]].append(each)
    _untangle(layers, ahead, behind)
    return {each: (n, place - (len(row) - 1) / 2) for n, row in enumerate(layers) for place, each in enumerate(row)}


def _in_order(components: Sequence[str], ahead: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the components so that each stands before those that read from it, unless they are in a circle."""
    done: list[str] = []
    seen: set[str] = set()
    has_source = {target for targets in ahead.values() for target in targets}
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


def _untangle(layers: list[list[str]], ahead: Mapping[str, Sequence[str]], behind: Mapping[str, Sequence[str]]) -> None:
    """Sort each layer by the average place of each component's neighbours, there and back."""
    for sweep in range(SWEEPS):
        there = sweep % 2 == 0
        neighbours = behind if there else ahead
        place = {each: n - (len(row) - 1) / 2 for row in layers for n, each in enumerate(row)}
        for row in layers if there else layers[::-1]:
            average = {
                each: sum(place[near] for near in neighbours[each]) / len(neighbours[each])
                if neighbours.get(each)
                else place[each]
                for each in row
            }
            row.sort(key=average.__getitem__)
            place.update({each: n - (len(row) - 1) / 2 for n, each in enumerate(row)})
