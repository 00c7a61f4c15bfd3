"""The plan of a run: the topology's tasks, numbered as in Storm, each with its conf, context and routes."""

from __future__ import annotations

import os
import time
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from multilang.component.context import Context
from multilang.engine.settings import DEFAULTS, Settings
from multilang.engine.tuples import Origin
from multilang.exchange.names import STREAM as BLOCKS
from multilang.protocol import LocalProtocolError, RemoteProtocolError
from multilang.protocol.outputs import Outputs
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import chooser
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from multilang.engine.tuples import LocalTuple
    from multilang.protocol import Emit
    from multilang.topology.groupings.base import Chooser
    from multilang.topology.model import ComponentSpec, Topology


_submissions = count(1)


class Route:
    """The targets of one output stream of one task.

    Attributes:
        origin: What all tuples of this stream and task have in common.
        stream: The stream's name.
        fields: The stream's fields.
        width: The number of values of a regular emit; -1 when the stream allows none.
        choose: Chooses the tasks of a regular emit by its values; None when no component subscribes.
        direct: The tasks that take direct emits; None when no subscriber does.
        captured: Gets a copy of each tuple; None when the stream is not captured.
        carries_blocks: Whether each of its tuples is a block of many, whose number is the first value.
    """

    __slots__ = ("captured", "carries_blocks", "choose", "direct", "fields", "origin", "stream", "width")

    def __init__(
        self, origin: Origin, fields: tuple[str, ...], choosers: list[Chooser], direct: frozenset[int] | None
    ) -> None:
        self.origin = origin
        self.stream = origin.stream
        self.fields = fields
        self.width = len(fields) if direct is None else -1
        self.choose = _joined(choosers)
        self.direct = direct
        self.captured: Callable[[LocalTuple], object] | None = None
        self.carries_blocks = origin.stream == BLOCKS

    def targets(self, values: Sequence[Any], task: int | None) -> Sequence[int]:
        """Return the tasks that get a tuple; ``task`` is the one that a direct emit names."""
        if task is not None:
            # "Emitting directly to a task whose component does not subscribe at all is silently dropped."
            return (task,) if self.direct is not None and task in self.direct else ()
        return () if self.choose is None else self.choose(values)


def _joined(choosers: list[Chooser]) -> Chooser | None:
    if len(choosers) < 2:
        return choosers[0] if choosers else None
    return lambda values: [task for choose in choosers for task in choose(values)]


def storm_id(name: str) -> str:
    """Return a new id for a submission, as Storm does: data stored under it belongs to this run alone."""
    return f"{name}-{next(_submissions)}-{os.getpid()}-{time.time_ns()}"


class TaskPlan:
    """One task: its ``id``, its component's ``spec``, its merged ``conf``, ``context``, ``settings`` and ``routes``."""

    __slots__ = ("_outputs", "conf", "context", "id", "routes", "settings", "spec")

    def __init__(
        self, id: int, spec: ComponentSpec, conf: dict[str, Any], context: dict[str, Any], routes: dict[str, Route]
    ) -> None:
        self.id = id
        self.spec = spec
        self.conf = conf
        self.context = Context(context)
        self.settings = Settings(conf)
        self.routes = routes
        self._outputs: Outputs | None = None

    def route(self, emit: Emit) -> Route:
        """Return the route of an emit that came over the wire.

        Raises:
            RemoteProtocolError: The emit is not allowed; the text is the same as at the component's own end.
        """
        route = self.routes.get(emit.stream)
        if route is None or emit.task is not None or len(emit.values) != route.width:
            self._check(emit)
            route = self.routes[emit.stream]
        return route

    def _check(self, emit: Emit) -> None:
        outputs = self._outputs
        if outputs is None:
            outputs = self._outputs = Outputs()
            components = {int(task): name for task, name in self.context["task->component"].items()}
            outputs.learn(self.spec.id, components, self.context)
        try:
            outputs.check(emit.stream, emit.values, emit.task)
        except LocalProtocolError as error:
            raise RemoteProtocolError(str(error)) from None

    @property
    def component(self) -> str:
        """The component's id."""
        return self.spec.id

    def __str__(self) -> str:
        return f"{self.spec.kind} {self.spec.id!r} (task {self.id})"


def without_order(value: Any) -> Any:
    """Return a conf's value with its mappings, also inner ones, in an order that nothing was declared in.

    Storm has a conf in Java's maps, which have no order: code that relies on one should fail on every engine.
    """
    if isinstance(value, dict):
        return {key: without_order(value[key]) for key in sorted(value, key=lambda key: str(key)[::-1])}
    if isinstance(value, list | tuple):
        return [without_order(each) for each in value]
    return value


class Plan:
    """A topology that is ready to run.

    Attributes:
        tasks: The tasks by id.
        ackers: The ackers' task ids.
        conf: The topology's conf.
        settings: The conf's settings.
        declared: The topology as it was declared, without the streams of blocks.
    """

    def __init__(
        self,
        topology: Topology,
        name: str,
        conf: Mapping[str, Any],
        rng: Random,
        declared: Topology | None = None,
    ) -> None:
        self.topology = topology.with_conf(conf, name)
        self.declared = self.topology if declared is None else declared
        self.name = name
        if not topology.spouts:
            raise TopologyError(f"topology {name!r} has no spout, so nothing would ever flow; add one with set_spout")
        self.conf = {**DEFAULTS, **self.topology.conf, "topology.name": name, "storm.id": storm_id(name)}
        self.settings = Settings(self.conf)
        self.assignment = self.topology.task_ids(self.settings.ackers)
        self.ackers = [task for task, component in self.assignment.items() if component == ACKER]
        self._local_tasks = frozenset(self.assignment)
        self._rng = rng
        self.tasks: dict[int, TaskPlan] = {}
        self._tasks_of: dict[str, list[TaskPlan]] = {}
        confs = {id: without_order({**self.conf, **spec.conf}) for id, spec in self.topology.components.items()}
        for task, component in self.assignment.items():
            if component != ACKER:
                spec = self.topology.components[component]
                context = self.topology.context_for(task, self.assignment)
                planned = TaskPlan(task, spec, confs[component], context, self._routes(task, spec))
                self.tasks[task] = planned
                self._tasks_of.setdefault(component, []).append(planned)

    def tasks_of(self, component: str) -> list[TaskPlan]:
        """Return a component's tasks in ascending order."""
        return self._tasks_of.get(component, [])

    def _routes(self, task: int, spec: ComponentSpec) -> dict[str, Route]:
        routes = {}
        for name, stream in spec.streams.items():
            choosers = []
            direct: set[int] = set()
            has_direct = False
            for target, input_ in self.topology.subscribers(spec.id):
                if input_.stream != name:
                    continue
                targets = [id for id, component in self.assignment.items() if component == target.id]
                if input_.grouping.is_direct:
                    has_direct = True
                    direct.update(targets)
                    continue
                # A generator for each subscription: the random choices of one do not change another's.
                rng = Random(self._rng.getrandbits(64))
                choosers.append(
                    chooser(
                        input_.grouping,
                        stream.fields,
                        targets,
                        source_task=task,
                        local_tasks=self._local_tasks,
                        rng=rng,
                        component=spec.id,
                        stream=name,
                    )
                )
            is_question = name in getattr(spec.component, "questions", ())
            origin = Origin(spec.id, name, task, stream.fields, is_question=is_question)
            routes[name] = Route(origin, stream.fields, choosers, frozenset(direct) if has_direct else None)
        return routes
