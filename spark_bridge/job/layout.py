"""The placing of a topology's tasks: in which stage of the Spark job each runs, and on which of the stage's workers.

A *worker* is one Spark task. Like a worker of Storm it may host several of the topology's tasks, and a tuple between
two of them stays in its process. A *level* is one Spark stage: workers that need nothing of each other. Level 0 reads
the sources; between each level and the next there is one shuffle.

If all inputs of a bolt are shuffled (or local-or-shuffled) from one group of workers, as many as it has tasks, the bolt
runs on these workers: its tuples stay in the process that made them, and no shuffle is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.topology.errors import TopologyError
from multilang.topology.graph import cyclic, subscribers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from multilang.topology.model import ComponentSpec, Topology


class StageSource:
    """One stream of a spout that rows come from. ``size`` workers read it, the first of which is ``first``."""

    __slots__ = ("component", "first", "size", "stream")

    def __init__(self, component: str, stream: str, size: int) -> None:
        self.component = component
        self.stream = stream
        self.size = size
        self.first = 0


class _LevelGroup:
    """``size`` workers of one level, each of which hosts one task of every bolt in the group."""

    def __init__(self, level: int, size: int) -> None:
        self.level = level
        self.size = size
        self.first = 0
        self.bolts: list[ComponentSpec] = []


class Layout:
    """The place of each task.

    ``sizes``: the number of workers of each level. ``stages``: the components of each level, upstream first. ``places``: task -> (level, worker). ``hosts``: (level, worker) ->
    its tasks, upstream first.
    """

    def __init__(
        self,
        topology: Topology,
        assignment: Mapping[int, str],
        sources: Sequence[StageSource],
        *,
        move_in: bool,
        late: Collection[str] = (),
    ) -> None:
        """Place the tasks.

        ``move_in``: bolts may run on the workers of what they read; otherwise every bolt has workers of its own.
        ``late``: the bolts that are placed after all others, together with everything downstream of them.
        """
        self.sources = list(sources)
        order = sorted(in_order(topology), key=lambda spec: spec.id in late)
        homes: dict[str, list[_LevelGroup]] = {}
        groups = []
        first_late = 0
        for source in self.sources:
            if move_in:
                source.size = _narrowed(source, [spec for spec in order if spec.id not in late])
            group = _LevelGroup(0, source.size)
            groups.append(group)
            homes.setdefault(source.component, []).append(group)
        for spec in order:
            found = [group for input_ in spec.inputs for group in homes.get(input_.component, ())]
            home = found[0] if found else None
            level = 1 + max((each.level for each in found), default=0)
            if spec.id in late:
                first_late = first_late or 1 + max(group.level for group in groups)
                level = max(level, first_late)
                if home is not None and home.level < first_late:
                    home = None
            if not (move_in and home is not None and all(each is home for each in found) and _stays(spec, home.size)):
                home = _LevelGroup(level, spec.tasks)
                groups.append(home)
            home.bolts.append(spec)
            homes[spec.id] = [home]
        self._settle(groups, assignment)

    def _settle(self, groups: Sequence[_LevelGroup], assignment: Mapping[int, str]) -> None:
        levels = 1 + max(group.level for group in groups)
        self.sizes = [0] * levels
        self.stages = [
            [spec.id for group in groups if group.level == level for spec in group.bolts] for level in range(levels)
        ]
        self.stages[0][:0] = dict.fromkeys(source.component for source in self.sources)
        self.places: dict[int, tuple[int, int]] = {}
        self.hosts: dict[tuple[int, int], list[int]] = {}
        for group in groups:
            group.first = self.sizes[group.level]
            self.sizes[group.level] += group.size
            for spec in group.bolts:
                for index, task in enumerate(sorted(id for id, name in assignment.items() if name == spec.id)):
                    place = (group.level, group.first + index)
                    self.places[task] = place
                    self.hosts.setdefault(place, []).append(task)
        for source, group in zip(self.sources, groups, strict=False):
            source.first = group.first

    def source_of(self, worker: int) -> tuple[int, int] | None:
        """Return the number of the source that a worker of level 0 reads, and the worker's among those that read it."""
        for number, source in enumerate(self.sources):
            if source.first <= worker < source.first + source.size:
                return number, worker - source.first
        return None

    def who(self, worker: tuple[int, int], described: Mapping[int, str]) -> str:
        """Return what runs on a worker, for people.

        Args:
            worker: The worker's level, and its number there.
            described: Task -> its component's kind and id, and its own.
        """
        found = None if worker[0] else self.source_of(worker[1])
        read = [] if found is None else [f"partition {found[1]} of the source of {self.sources[found[0]].component!r}"]
        return ", ".join(read + [described[task] for task in self.hosts.get(worker, ())])


def in_order(topology: Topology) -> list[ComponentSpec]:
    """Return the bolts, each after all that it subscribes to. Raises TopologyError for a cycle."""
    back = cyclic(subscribers(topology.components.values()))
    if back:
        raise TopologyError(
            f"topology {topology.name!r} has a cycle through {', '.join(map(repr, sorted(back)))}, which has no order "
            "of stages on Spark: run it on the embedded cluster or on Storm"
        )
    done = set(topology.spouts)
    left = list(topology.bolts.values())
    order = []
    while left:
        for spec in left:
            if all(input_.component in done for input_ in spec.inputs):
                order.append(spec)
                done.add(spec.id)
                left.remove(spec)
                break
    return order


def _stays(spec: ComponentSpec, size: int) -> bool:
    """Return whether the tuples of ``size`` workers may stay where they are and still be grouped as declared."""
    return spec.tasks == size and (size == 1 or all(input_.grouping.is_arbitrary for input_ in spec.inputs))


def _narrowed(source: StageSource, order: Iterable[ComponentSpec]) -> int:
    """Return how many workers should read a source: the number of tasks of a bolt that can run on the same workers."""
    wanted = [
        spec.tasks
        for spec in order
        if spec.inputs
        and spec.tasks <= source.size
        and all(input_.component == source.component and input_.grouping.is_arbitrary for input_ in spec.inputs)
    ]
    return max(wanted, default=source.size)
