"""The builder of topologies that answer calls in a line of steps (Storm's LinearDRPCTopologyBuilder)."""

from __future__ import annotations

import sys

from multilang.component.bolt import Bolt
from multilang.coordination import ALL, COORD_STREAM, SINGLE, BatchBolt
from multilang.coordination.delegate import delegate_of
from multilang.coordination.expiry import TICKS
from multilang.coordination.unfit import check_fit
from multilang.drpc.join import JoinResult
from multilang.drpc.prepare import ID_STREAM, RETURN_STREAM, PrepareRequest
from multilang.drpc.returns import ReturnResults
from multilang.drpc.spout import DRPCSpout
from multilang.drpc.step import DRPCStep
from multilang.topology import ShellBolt, TopologyBuilder, TopologyError
from multilang.topology.groupings import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from multilang.topology.groupings import CustomGrouping, Grouping
    from multilang.topology.model import Topology

    Step: TypeAlias = type[Bolt | BatchBolt] | Bolt | BatchBolt | ShellBolt

SPOUT, PREPARE = "spout", "prepare-request"
_DEFAULT = "default"


class StepDeclarer:
    """The declarer of a step's groupings, by which tuples come from the previous step; ``add_bolt`` returns it.

    Each method takes the stream of the step before, and returns the declarer, so that calls can be chained.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], str]] = []  # a method of BoltDeclarer, what it is given, stream
        self.is_to_all = False

    def shuffle_grouping(self, stream: str = _DEFAULT) -> StepDeclarer:
        """Spread tuples evenly and at random over the tasks.

        Args:
            stream: The stream of the step before.
        """
        return self._add("shuffle", (), stream)

    def fields_grouping(self, *fields: str | Sequence[str], stream: str = _DEFAULT) -> StepDeclarer:
        """Send tuples with equal values of these fields to the same task: ``fields_grouping("id", "follower")``.

        Args:
            fields: The names of the fields.
            stream: The stream of the step before.
        """
        return self._add("fields", fields, stream)

    def partial_key_grouping(self, *fields: str | Sequence[str], stream: str = _DEFAULT) -> StepDeclarer:
        """Group by fields, with two tasks for each key.

        Args:
            fields: The names of the fields.
            stream: The stream of the step before.
        """
        return self._add("partial_key", fields, stream)

    def all_grouping(self, stream: str = _DEFAULT) -> StepDeclarer:
        """Send every tuple to every task.

        Args:
            stream: The stream of the step before.
        """
        return self._add("all", (), stream)

    def global_grouping(self, stream: str = _DEFAULT) -> StepDeclarer:
        """Send all tuples to one task.

        Args:
            stream: The stream of the step before.
        """
        return self._add("global", (), stream)

    def none_grouping(self, stream: str = _DEFAULT) -> StepDeclarer:
        """Use any grouping. It is the same as shuffle.

        Args:
            stream: The stream of the step before.
        """
        return self._add("none", (), stream)

    def local_or_shuffle_grouping(self, stream: str = _DEFAULT) -> StepDeclarer:
        """Spread tuples over the tasks in the emitter's own worker or, if there are none, over all tasks.

        Args:
            stream: The stream of the step before.
        """
        return self._add("local_or_shuffle", (), stream)

    def direct_grouping(self, stream: str = _DEFAULT) -> StepDeclarer:
        """Let the step before name the task of each tuple.

        Args:
            stream: The stream of the step before.
        """
        return self._add("direct", (), stream)

    def custom_grouping(self, grouping: CustomGrouping | type[CustomGrouping], stream: str = _DEFAULT) -> StepDeclarer:
        """Use a grouping of your own.

        Args:
            grouping: The grouping, or its class.
            stream: The stream of the step before.
        """
        return self._add("custom", (grouping,), stream)

    def grouping(self, grouping: Grouping, stream: str = _DEFAULT) -> StepDeclarer:
        """Group by any grouping: ``grouping(Grouping("fields", ["id"]))``.

        Args:
            grouping: The grouping.
            stream: The stream of the step before.
        """
        self.is_to_all = self.is_to_all or getattr(grouping, "is_to_all", False)
        self.calls.append(("grouping", (grouping,), stream))
        return self

    def _add(self, kind: str, arguments: tuple[Any, ...], stream: str) -> StepDeclarer:
        self.is_to_all = self.is_to_all or kind_of(kind).is_to_all
        self.calls.append((f"{kind}_grouping", arguments, stream))
        return self


class _Step:
    def __init__(
        self, bolt: Step, parallelism: int, tasks: int | None, conf: dict[str, Any] | None, declarer: StepDeclarer
    ) -> None:
        self.bolt = bolt
        self.parallelism = parallelism
        self.tasks = tasks
        self.conf = conf
        self.declarer = declarer


class LinearDRPCTopologyBuilder:
    """A builder of the topology that answers a function, step by step.

    >>> builder = LinearDRPCTopologyBuilder("exclamation")
    >>> builder.add_bolt(Exclaim, parallelism=3)
    >>> topology = builder.build()

    The first step gets (request id, arguments). The first value of each tuple that a step emits is the request id. The
    last step emits (request id, result), once for each request. Steps are Bolts, BasicBolts, or BatchBolts; a BatchBolt
    also learns when it has seen all tuples of a request. All methods raise TopologyError, whose message has the
    fix.

    Args:
        function: The function's name.
    """

    def __init__(self, function: str) -> None:
        given: object = function
        if not isinstance(given, str) or not given:
            raise TopologyError(f"a DRPC topology answers a function by its name, such as 'reach', not {function!r}")
        self.function = function
        self._steps: list[_Step] = []

    def add_bolt(
        self,
        bolt: Step,
        parallelism: int = 1,
        tasks: int | None = None,
        conf: dict[str, Any] | None = None,
    ) -> StepDeclarer:
        """Add the next step.

        Args:
            bolt: The step's bolt, or its class.
            parallelism: The number of executors.
            tasks: The number of tasks; None: as many as executors.
            conf: The bolt's own conf.

        Returns:
            The declarer, for the step's groupings. The first step needs none.
        """
        where = f"step {len(self._steps)} of {self.function!r}"
        is_class = isinstance(bolt, type)
        if not (issubclass(bolt, Bolt | BatchBolt) if is_class else isinstance(bolt, Bolt | BatchBolt | ShellBolt)):  # type: ignore[arg-type]
            raise TopologyError(
                f"{where}: add_bolt takes a Bolt, a BasicBolt, a BatchBolt or a ShellBolt, not {bolt!r}"
            )
        check_fit(bolt, where, "request", "write a BasicBolt or a BatchBolt")
        declarer = StepDeclarer()
        self._steps.append(_Step(bolt, parallelism, tasks, conf, declarer))
        return declarer

    def build(self, name: str | None = None, conf: dict[str, Any] | None = None, spout: Any = None) -> Topology:
        """Return the topology, checked as a whole.

        Args:
            name: The topology's name; None: the function's.
            conf: The topology's conf.
            spout: A spout to use instead of DRPCSpout.
        """
        if not self._steps:
            raise TopologyError(f"the DRPC topology {self.function!r} has no step; add one with add_bolt")
        builder = TopologyBuilder()
        builder.set_spout(SPOUT, DRPCSpout(self.function) if spout is None else spout)
        builder.set_bolt(PREPARE, PrepareRequest).none_grouping(SPOUT)
        last = len(self._steps) - 1
        for number, step in enumerate(self._steps):
            self._set_step(builder, number, step, conf or {}, number == last)
        fields = self._result_fields(builder)
        join = builder.set_bolt(f"bolt{last + 1}", JoinResult(PREPARE, self.function))
        join.fields_grouping(f"bolt{last}", fields[0], stream=self._result_stream(builder))
        join.fields_grouping(PREPARE, "request", stream=RETURN_STREAM)
        if not self._works_alone(builder):
            join.direct_grouping(f"bolt{last}", stream=COORD_STREAM)
        builder.set_bolt(f"bolt{last + 2}", ReturnResults).none_grouping(f"bolt{last + 1}")
        topology = builder.build(self.function if name is None else name, conf)
        topology.module = sys._getframe(1).f_globals.get("__name__")
        return topology

    def _set_step(
        self, builder: TopologyBuilder, number: int, step: _Step, conf: dict[str, Any], is_last: bool
    ) -> None:
        before = f"bolt{number - 1}" if number else PREPARE
        delegate, factory = delegate_of(step.bolt, f"step {number} of {self.function!r}")
        finishes = hasattr(delegate, "finished_id")
        sources: dict[str, str] = {}
        if number == 1:
            # "Each request goes to exactly one task of bolt0", unless all of them get it.
            sources = {before: ALL if self._steps[0].declarer.is_to_all else SINGLE}
        elif number:
            sources = {before: ALL}
        id_stream = (PREPARE, ID_STREAM) if is_last and finishes else None
        bolt = DRPCStep(
            delegate,
            sources,
            id_stream,
            factory,
            ticks=TICKS not in conf,
            function=self.function,
            number=number,
            result_stream=_own_stream(delegate) if is_last else None,
            alone=id_stream is not None or (not number and not step.declarer.is_to_all),
        )
        declarer = builder.set_bolt(f"bolt{number}", bolt, step.parallelism, step.tasks, step.conf)
        calls = step.declarer.calls
        if not calls:
            if number:
                raise TopologyError(
                    f"step {number} of {self.function!r} gets no tuples; give it a grouping from step {number - 1}, such as "
                    'add_bolt(...).fields_grouping("id")'
                )
            method, arguments = ("fields_grouping", ("request",)) if id_stream else ("none_grouping", ())
            calls = [(method, arguments, _DEFAULT)]
        for method, arguments, stream in calls:
            getattr(declarer, method)(before, *arguments, stream=stream)
        if number:
            declarer.direct_grouping(before, stream=COORD_STREAM)
        if id_stream:
            self._check_last(builder, number, before)
            declarer.fields_grouping(PREPARE, "request", stream=ID_STREAM)

    def _works_alone(self, builder: TopologyBuilder) -> bool:
        """Return whether only one task of the last step works on a request, and so knows all its results."""
        spec = builder.specs[f"bolt{len(self._steps) - 1}"]
        step: Any = spec.component
        return step.alone or max(spec.parallelism, spec.tasks) == 1

    def _check_last(self, builder: TopologyBuilder, number: int, before: str) -> None:
        """Raise TopologyError if tuples of one request could come to different tasks of the last step.

        The tuple that announces a request goes to one task, chosen by its id, so everything else must go there, too.
        """
        spec = builder.specs[f"bolt{number}"]
        if max(spec.parallelism, spec.tasks) == 1:
            return
        for each in spec.inputs:
            if each.component != before or each.stream == COORD_STREAM or not each.grouping.is_to_one:
                continue
            stream = builder.specs[before].streams.get(each.stream)
            if stream is not None and tuple(each.grouping.fields) != stream.fields[:1]:
                raise TopologyError(
                    f"step {number} of {self.function!r} is the last and finishes requests in {spec.tasks} tasks, so all of a "
                    f"request must come to the same one: write fields_grouping({stream.fields[0]!r}) in the place of "
                    f"{each.grouping} grouping, or parallelism=1"
                )

    def _result_stream(self, builder: TopologyBuilder) -> str:
        own = [name for name in builder.specs[f"bolt{len(self._steps) - 1}"].streams if name != COORD_STREAM]
        if len(own) != 1:
            raise TopologyError(
                f"the last step of {self.function!r} emits the results, on one stream of two fields, the request id and "
                f"the result; it declares {len(own)} streams: give its class output_fields = ['id', 'result']"
            )
        return own[0]

    def _result_fields(self, builder: TopologyBuilder) -> tuple[str, ...]:
        stream = builder.specs[f"bolt{len(self._steps) - 1}"].streams[self._result_stream(builder)]
        if len(stream.fields) != 2 or stream.direct:
            raise TopologyError(
                f"the last step of {self.function!r} emits two fields, the request id and the result, not "
                f"{list(stream.fields)}{' directly' if stream.direct else ''}: write output_fields = ['id', 'result']"
            )
        return stream.fields


def _own_stream(delegate: Bolt) -> str | None:
    """Return the stream of the results; None if there is not exactly one, which the check of the last step reports."""
    own = list(delegate.declared_streams())
    return own[0] if len(own) == 1 else None
