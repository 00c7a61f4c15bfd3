"""The builder of topologies that are written as streams."""

from __future__ import annotations

import sys

from multilang.component.base import overload
from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.streams.graph import PLAIN, Declared, Graph
from multilang.streams.operations import Source
from multilang.streams.planner import planned
from multilang.streams.stream import Stream
from multilang.topology.errors import TopologyError
from multilang.topology.shell import ShellSpout
from multilang.windowing.passed import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from multilang.protocol.messages import Tuple
    from multilang.topology.model import Topology

    T = TypeVar("T")

NOT_LOAD_AWARE = "topology.disable.loadaware.messaging"


class StreamBuilder:
    """Declares a topology as streams.

    >>> s = StreamBuilder()
    >>> words = s.source(Sentences, parallelism=2).flat_map(lambda t: t["sentence"].split())
    >>> words.key_by(lambda word: word).count().to(Results)
    >>> topology = s.build("word-count")

    Functions may be lambdas: each task finds them by importing the module that builds the topology, which therefore must
    do so outside of any function, or in one that is named (``multilang run module:function``). The same module gives the
    same names of stages in each process.

    Args:
        state: Store the results of all operations with keys in the topology's state, so that they survive crashes. They
            are stored in any case with ``update_state``, and with exact alignment in ``build``'s conf.
    """

    def __init__(self, *, state: bool = False) -> None:
        self._state = state
        self._graph = Graph()
        self._declared = Declared()

    @overload
    def source(
        self, source: Spout | type[Spout] | ShellSpout, *, parallelism: int = 1, name: str | None = None
    ) -> Stream[Tuple]: ...

    @overload
    def source(
        self, source: Iterable[T] | Callable[[], Iterable[T]], *, parallelism: int = 1, name: str | None = None
    ) -> Stream[T]: ...

    def source(self, source: Any, *, parallelism: int = 1, name: str | None = None) -> Stream[Any]:
        """Return the stream of a spout's tuples, or of the items of an iterable.

        Args:
            source: A spout, its class, an iterable that can be iterated again, or a function that returns an iterable.
                Tasks share an iterable's items.
            parallelism: The number of the source's tasks, and of the next stages.
            name: The source's component; that of the spout's class if it is None.

        Raises:
            TopologyError: An argument is wrong.
        """
        is_spout = isinstance(source, Spout | ShellSpout) or (isinstance(source, type) and issubclass(source, Spout))
        spout = source if is_spout else _items(source)
        default = self._declared.name_for(source) if is_spout else "source"
        stage = self._graph.add(Source(default), [], PLAIN, name=name, parallelism=parallelism)
        self._declared.add_spout(stage, spout)
        fields = self._declared.fields_of(stage.name)
        stage.fields = fields if is_spout else None
        return Stream(self._declared, stage)

    def build(self, name: str, conf: dict[str, Any] | None = None) -> Topology:
        """Return the topology: stages that need no exchange are fused, and results are combined before one if possible.

        Args:
            name: The topology's name.
            conf: The topology's conf, with Storm's keys.

        Raises:
            TopologyError: The topology can't run; the message names the first reason.
        """
        if not self._graph.stages:
            raise TopologyError(f"topology {name!r} has no stream; begin with source(...)")
        builder = planned(self._graph, self._declared, self._state, conf or {})
        if any(stream.startswith(PREFIX) for spec in builder.specs.values() for stream in spec.streams):
            # Otherwise Storm prefers tasks in the same worker, and windows wait for elements of each source by each task.
            conf = {NOT_LOAD_AWARE: True, **(conf or {})}
        topology = builder.build(name, conf)
        module = sys._getframe(1).f_globals.get("__name__")
        topology.module = topology.declared.module = module
        return topology


def _items(source: Any) -> Spout:
    from multilang.connectors.iterables import FromIterable

    try:
        return FromIterable(source)
    except ConfigError as problem:
        raise TopologyError(str(problem)) from None
