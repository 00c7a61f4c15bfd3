"""Run one component alone, between a source that does nothing and a sink that keeps what it gets."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from multilang.component import Bolt, FailedException, ReportedFailedException, Spout, Stream
from multilang.coordination import COORD_STREAM
from multilang.engine.links import Links
from multilang.engine.plan import Plan
from multilang.topology import TopologyBuilder
from multilang.topology.shell import ShellComponent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from multilang.component.base import Component
    from multilang.coordination import CoordinatedBolt
    from multilang.engine.plan import TaskPlan
    from multilang.engine.tuples import LocalTuple

SINK = "sink"


class Emitted:
    """A tuple that a component emitted; ``emitted["word"]`` is a value by its field's name.

    Attributes:
        tuple: The tuple itself.
        values: Its values.
        stream: The stream that it was emitted to.
        anchors: The input tuples that a bolt anchored it to.
        tup_id: The message id that a spout gave it.
        direct_task: The target of a direct emit.
    """

    __slots__ = ("anchors", "direct_task", "stream", "tup_id", "tuple", "values")

    def __init__(self, tup: LocalTuple, anchors: Sequence[Any], tup_id: Any, direct_task: int | None) -> None:
        self.tuple = tup
        self.values: list[Any] = tup.values
        self.stream = tup.stream
        self.anchors = list(anchors)
        self.tup_id = tup_id
        self.direct_task = direct_task

    def __getitem__(self, key: int | str) -> Any:
        return self.tuple[key]

    def __repr__(self) -> str:
        more = "".join(
            f", {name}={getattr(self, name)!r}" for name in ("tup_id", "direct_task") if getattr(self, name) is not None
        )
        return f"Emitted({self.values!r}, stream={self.stream!r}{more})"


class Raised:
    """Keeps a component's exceptions that were reported instead of raised, for a test that does not expect them."""

    def __init__(self, expect: type[Exception] | tuple[type[Exception], ...]) -> None:
        self._wanted = expect if isinstance(expect, tuple) else (expect,)
        # A FailedException is not reported, so that it is unknown here whether it came; the test sees what it fails.
        self._missing = bool(self._wanted) and not any(map(_is_silent, self._wanted))
        self._errors: list[BaseException] = []

    def add(self, error: BaseException) -> None:
        """Keep an exception that was reported."""
        if isinstance(error, self._wanted):
            self._missing = False
        elif not isinstance(error, FailedException):
            self._errors.append(error)

    def check_came(self, component: object) -> None:
        """Raise AssertionError unless an exception came that the test expects."""
        if self._missing:
            self._missing = False
            names = " or ".join(kind.__name__ for kind in self._wanted)
            raise AssertionError(
                f"expect={names}: no such exception came from {type(component).__name__}; leave expect= out, "
                "or give tuples that cause one"
            )

    def check(self) -> None:
        """Raise the first exception since the last call."""
        errors = self._errors[:]
        self._errors.clear()
        if errors:
            raise errors[0]


def _is_silent(kind: type[BaseException]) -> bool:
    return issubclass(kind, FailedException) and not issubclass(kind, ReportedFailedException)


def check_kind(component: Any, wanted: str) -> None:
    """Raise TypeError for a component that is no ``wanted`` ("bolt" or "spout") and name the right function."""
    from multilang.coordination import BatchBolt

    kind = component if isinstance(component, type) else type(component)
    kinds: dict[str, Any] = {"bolt": Bolt | BatchBolt, "spout": Spout}
    if issubclass(kind, kinds[wanted]):
        return
    name = kind.__name__
    other = next((other for other, classes in kinds.items() if issubclass(kind, classes)), None)
    if other is not None:
        raise TypeError(f"run_{wanted}({name}): {name} is a {other}; use run_{other}")
    if issubclass(kind, ShellComponent):
        raise TypeError(
            f"run_{wanted}({name}): {name} is a command, which runs in a process of its own; use "
            'LocalCluster(mode="process"), or multilang_conformance'
        )
    raise TypeError(
        f"run_{wanted}({component!r:.100}): that is no {wanted}; give a subclass of {wanted.title()}, or an object of one"
    )


class _Source(Spout):
    """Declares the streams of a bolt's inputs; it is never asked for a tuple."""

    def __init__(self, streams: Mapping[str, Sequence[str]]) -> None:
        self.output_streams = {  # type: ignore[misc]
            name: Stream(list(fields), direct=name == COORD_STREAM) for name, fields in streams.items()
        }


def coordinated_part(bolt: Any) -> CoordinatedBolt | None:
    """Return the coordinated bolt among a bolt and those inside of it."""
    from multilang.coordination import CoordinatedBolt

    while bolt is not None:
        if isinstance(bolt, CoordinatedBolt):
            return bolt
        bolt = getattr(bolt, "wrapped", None)
    return None


class _Sink(Bolt):
    """Subscribes to everything; its tuples are stored, not processed."""


class Harness:
    """The ``plan`` of the component's task and the ``links`` of its collector, which record everything."""

    def __init__(
        self,
        component: Component | type[Component],
        sources: Mapping[str, Mapping[str, Sequence[str]]],
        conf: Mapping[str, Any] | None,
        name: str,
        sink_tasks: int,
        seed: int,
    ) -> None:
        builder = TopologyBuilder()
        is_spout = issubclass(component, Spout) if isinstance(component, type) else isinstance(component, Spout)
        made: Any = component
        if is_spout:
            builder.set_spout(name, made)
        else:
            for source, streams in sources.items():
                builder.set_spout(source, _Source(streams))
            declarer = builder.set_bolt(name, made)
            for source, streams in sources.items():
                for stream in streams:
                    if stream == COORD_STREAM:
                        declarer.direct_grouping(source, stream=stream)
                    else:
                        declarer.shuffle_grouping(source, stream=stream)
        declares = (component() if isinstance(component, type) else component).declared_streams()
        if declares:  # otherwise the sink could get nothing
            sink = builder.set_bolt(SINK, _Sink, tasks=sink_tasks)
        for stream, declared in declares.items():
            if declared.direct:
                sink.direct_grouping(name, stream=stream)
            else:
                sink.global_grouping(name, stream=stream)
        topology = builder.build(f"test of {name}", dict(conf or {}))
        # The whole conf is put into the component's own, so that a test's settings override the class's.
        topology.components[name].conf.update(conf or {})
        self.random = random.Random(seed)
        plan = Plan(topology, topology.name, {}, self.random)
        self.plan: TaskPlan = plan.tasks_of(name)[0]
        self.logged: list[tuple[int, str]] = []
        self.errors: list[str] = []
        self.metrics: list[tuple[str, Any]] = []
        self.callbacks: list[Callable[[list[int]], None]] = []
        self.out: list[tuple[Any, Any]] = []
        self.named: dict[str, LocalTuple] = {}
        self.sink_tasks = [task.id for task in plan.tasks_of(SINK)]
        for route in self.plan.routes.values():
            route.origin.name_tuple = self.name_tuple

    def links(
        self,
        init: Callable[[int, int, int], None] | None,
        ack: Callable[[int, int], None],
        fail: Callable[[int], None],
        now: Callable[[], float],
    ) -> Links:
        """Return the collector's connections; deliveries come to ``out`` with the sink's task id as the receiver."""
        return Links(
            out=self.out,
            receivers={task: task for task in self.sink_tasks},
            init=init,
            ack=ack,
            fail=fail,
            later=lambda _, call: call,
            named=self.named,
            getrandbits=self.random.getrandbits,
            now=now,
            log=lambda _, message, level: self.logged.append((level, message)),
            report=lambda _, message: self.errors.append(message),
            metric=lambda _, name, params: self.metrics.append((name, params)),
        )

    def taken(self) -> list[tuple[LocalTuple, int | None]]:
        """Return the tuples since the last call, with the task of a direct emit; call the callbacks for task ids."""
        tuples = []
        while self.out:
            items = self.out[:]
            self.out.clear()
            for receiver, tup in items:
                if callable(receiver):
                    receiver(tup)
                else:
                    tuples.append((tup, receiver if self.plan.routes[tup.stream].direct is not None else None))
        return tuples

    def name_tuple(self, tup: LocalTuple) -> str:
        """Make up an id for a tuple when it is asked for."""
        id = str(self.random.getrandbits(63))
        self.named[id] = tup
        return id
