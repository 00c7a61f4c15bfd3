"""Tuples inside a Spark task, and their routes: to a task of the same worker, into a block for another worker, or to the outputs."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from multilang.engine.plan import Route
from multilang.engine.tuples import LocalTuple, Origin
from multilang.protocol.codec import normalize
from multilang.topology.groupings import Grouping, chooser
from spark_bridge.job.blocks import END, OUTPUT, ROWS, Box

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any, TypeAlias

    from multilang.topology.groupings.base import Chooser
    from multilang.topology.model import ComponentSpec, Topology
    from spark_bridge.job.layout import Layout

    Place = tuple[str, Callable[[Any], None], Callable[[Any], None]]

REMEMBERED = 65536  # keys of one stream whose place is remembered; when it is full, all of them are dropped
Roots: TypeAlias = "int | tuple[int, ...]"
"""The roots of a tuple: one, several, or none (0)."""


class FailedRoots(set[int]):
    """The roots of tuples that bolts failed.

    ``timed_out``: the roots of tuples that were neither acked nor failed at the end.
    """

    __slots__ = ("timed_out",)

    def __init__(self) -> None:
        self.timed_out: set[int] = set()


OFFSET_BITS = 40  # bits of a root for the row's offset at its worker; the others are the worker's number plus 1


def root_of(worker: int, offset: int) -> int:
    """Return the root of a source's row."""
    return (worker + 1) << OFFSET_BITS | offset


def row_of(root: int) -> tuple[int, int]:
    """Return the worker and the offset of a root."""
    return (root >> OFFSET_BITS) - 1, root & ((1 << OFFSET_BITS) - 1)


class SparkTuple(LocalTuple):
    """A tuple with ``root``, the spout tuples that fail if it fails.

    There is no xor of edges as in an acker: a stage has read all of its input when it ends, so the tuples that were
    neither acked nor failed are known one by one.
    """

    __slots__ = ()

    def __init__(self, values: list[Any], stream: str, origin: Origin, root: Any) -> None:
        # LocalTuple's own is not called: there is no edge, and nothing is called more often than this.
        self.values = values
        self.stream = stream
        self.origin = origin
        self.root = root
        self.unfinished = True

    def __reduce__(self) -> Any:
        """Pickle the values without the root: a tuple that a bolt keeps was acked or failed when its round ended."""
        origin = self.origin
        return _unpickled, (
            self.values,
            self.stream,
            origin.component,
            origin.task,
            tuple(origin.index),
            self.unfinished,
        )


def _unpickled(
    values: list[Any], stream: str, component: str, task: int, fields: tuple[str, ...], open: bool
) -> SparkTuple:
    tup = SparkTuple(values, stream, Origin(component, stream, task, fields), 0)
    tup.unfinished = open
    return tup


def joined(anchors: Iterable[Any]) -> Roots:
    """Return the roots of a tuple that is anchored to all of these."""
    roots: set[int] = set()
    for anchor in anchors:
        root = anchor.root
        if type(root) is int:
            roots.add(root)
        else:
            roots.update(root)
    roots.discard(0)
    if len(roots) > 1:
        return tuple(sorted(roots))
    return roots.pop() if roots else 0


class LocalBox:
    """A task of the same worker, as the target of one stream."""

    __slots__ = ("bolt", "origin", "out", "stream")

    def __init__(self, bolt: Any, origin: Origin, out: list[tuple[Any, Any]]) -> None:
        self.bolt = bolt
        self.origin = origin
        self.stream = origin.stream
        self.out = out

    def add(self, values: list[Any], root: Any) -> None:
        """Add a tuple, which is executed after the current call."""
        self.out.append((self.bolt, SparkTuple(values, self.stream, self.origin, root)))


class SparkRoute(Route):
    """A Route with its ``boxes`` by target task.

    ``places``: for a stream of one field with one subscriber, text -> (the text, the appends of its target's box). So a
    word that is emitted a million times is checked, hashed and routed once, and is one object in all rows of a block.
    ``output``: gets each tuple when the stream is wanted as a result.
    """

    __slots__ = ("boxes", "output", "places")

    def __init__(
        self, origin: Origin, fields: tuple[str, ...], choosers: list[Chooser], direct: frozenset[int] | None
    ) -> None:
        super().__init__(origin, fields, choosers, direct)
        self.boxes: dict[int, Any] = {}
        self.places: dict[str, Place] | None = None
        self.output: Box | None = None

    def give(self, values: list[Any], targets: Collection[int], root: Any) -> None:
        """Give each target a tuple of its own, so that no target sees what another one changes."""
        if self.output is not None:
            self.output.keep(normalize(values) if targets else values)
        first = True
        for task in targets:
            self.boxes[task].add(values if first else normalize(values), root)
            first = False
        places = self.places
        if places is not None and type(values[0]) is str:
            if len(places) >= REMEMBERED:
                places.clear()
            for task in targets:  # there is only one
                box = self.boxes[task]
                places[values[0]] = (values[0], box.rows.append, box.roots.append)


class Routing:
    """Makes the routes of one worker. ``boxes``: the boxes of all routes whose rows leave this worker."""

    def __init__(
        self,
        topology: Topology,
        assignment: Mapping[int, str],
        layout: Layout,
        place: tuple[int, int],
        outputs: Collection[tuple[str, str]],
        seed: str,
    ) -> None:
        self._topology = topology
        self._assignment = assignment
        self._layout = layout
        self._hosted = frozenset(layout.hosts.get(place, ()))
        self._outputs = outputs
        self._rng = Random(seed)
        self.boxes: list[Box] = []

    def of(
        self,
        task: int,
        spec: ComponentSpec,
        bolts: Mapping[int, Any],
        out: list[tuple[Any, Any]],
        name_tuple: Callable[[Any], str],
    ) -> dict[str, Route]:
        """Return the routes of one task.

        ``bolts``: the tasks of this worker; ``out``: the list for deliveries to them.
        """
        return {
            name: self._route(task, spec, name, bolts, Origin(spec.id, name, task, stream.fields, name_tuple), out)
            for name, stream in spec.streams.items()
        }

    def _route(
        self,
        task: int,
        spec: ComponentSpec,
        name: str,
        bolts: Mapping[int, Any],
        origin: Origin,
        out: list[tuple[Any, Any]],
    ) -> SparkRoute:
        fields = spec.streams[name].fields
        choosers: list[Chooser] = []
        direct: set[int] = set()
        has_direct = False
        targets: list[int] = []
        sure = True
        for target, input_ in self._topology.subscribers(spec.id):
            if input_.stream != name:
                continue
            tasks = sorted(id for id, component in self._assignment.items() if component == target.id)
            targets += tasks
            grouping = input_.grouping
            if grouping.is_direct:
                has_direct = True
                direct.update(tasks)
                continue
            local = self._hosted.intersection(tasks)
            if local and grouping.is_arbitrary:
                grouping = Grouping("local_or_shuffle")  # they are here so that nothing has to move
            sure = sure and (grouping.is_stable or len(tasks) == 1) and not local
            choosers.append(
                chooser(
                    grouping,
                    fields,
                    tasks,
                    source_task=task,
                    local_tasks=self._hosted,
                    # Each subscription has its own generator, with the same numbers each time that Spark runs this
                    # task.
                    rng=Random(self._rng.getrandbits(64)),
                    component=spec.id,
                    stream=name,
                )
            )
        route = SparkRoute(origin, fields, choosers, frozenset(direct) if has_direct else None)
        for id in targets:
            route.boxes[id] = LocalBox(bolts[id], origin, out) if id in bolts else self._box(id, task, name, fields)
        if (spec.id, name) in self._outputs:
            route.output = Box(task, OUTPUT, END, 0, (spec.id, name), len(fields) != 1)
            self.boxes.append(route.output)
        elif len(choosers) == 1 and not has_direct and sure and len(fields) == 1:
            route.places = {}
        return route

    def _box(self, target: int, task: int, stream: str, fields: tuple[str, ...]) -> Box:
        level, worker = self._layout.places[target]
        box = Box(task, ROWS, level, worker, (task, stream, target), len(fields) != 1)
        self.boxes.append(box)
        return box
