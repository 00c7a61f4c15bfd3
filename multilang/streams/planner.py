"""The planner: it makes components of a graph of stages.

A *unit* is one bolt. It begins with a head (a source, a new number of tasks, an operation with a memory) and has all
stages without a memory after it, up to the next heads. A stage that follows several units is in each of them, so that
merging costs no hop. An *edge* leads from a stage to a head in another unit: a stream of the unit. Before an aggregate
that can merge, it carries partial results.
"""

from __future__ import annotations

from multilang.settings import ALIGNMENT, EXACT, value
from multilang.streams import bolts, sinks
from multilang.streams.asynchronous import AsyncProgram, MapAsync
from multilang.streams.folds import Aggregate, Keyed, Query, Update
from multilang.streams.graph import PAIRS, TRIPLES
from multilang.streams.marks import Passing, PassingBolt, lets_pass
from multilang.streams.operations import ForEach, KeyBy, KeysOf, Source, UserBolt
from multilang.streams.program import (
    Entry,
    Program,
    Step,
    as_late,
    as_pairs,
    as_partials,
    as_tuples,
    as_values,
    without_origin,
)
from multilang.streams.sinks import Sink
from multilang.streams.windows import LATE, LEFT, RIGHT, Late, Results, StatefulWindowProgram, Windowed, WindowProgram
from multilang.topology import importing
from multilang.topology.builder import BoltDeclarer, TopologyBuilder
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import Grouping
from multilang.windowing.passed import PREFIX, Ways

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.component.many import Tuples
    from multilang.streams.bolts import Programmed
    from multilang.streams.graph import Declared, Graph, Stage


def planned(graph: Graph, declared: Declared, state: bool, conf: Mapping[str, Any]) -> TopologyBuilder:
    """Return a builder with the components for a graph.

    Args:
        graph: The stages.
        declared: The spouts and bolts among them.
        state: Whether results are stored in the topology's state.
        conf: The topology's conf.

    Raises:
        TopologyError: The graph can't be run.
    """
    stages = list(graph.stages.values())
    with_state = (
        state or value(conf, ALIGNMENT) == EXACT or any(isinstance(stage.operation, Update) for stage in stages)
    )
    return _Plan(stages, declared, with_state).build()


class _Unit:
    """One bolt of the plan.

    Attributes:
        head: Its head.
        stages: The stages in it; the head is one of them unless that is a component of the user's.
    """

    def __init__(self, head: Stage) -> None:
        self.head = head
        self.id = head.name
        self.steps: dict[Stage, Step] = {}
        self.sinks: dict[str, Sink] = {}
        self.entries: list[Entry] = []
        self.inputs: list[tuple[str, str, Grouping]] = []
        self.passing: Passing | None = None
        self.ways: Ways | None = None  # to its windows

    @property
    def keeps(self) -> bool:
        """True if it has a memory."""
        return isinstance(self.head.operation, Keyed)

    @property
    def is_bolt(self) -> bool:
        """True if it is a bolt of the user's."""
        return not self.steps

    @property
    def combines(self) -> bool:
        """True if it sends partial results."""
        return any(sink.combines for sink in self.sinks.values())


class _Plan:
    def __init__(self, stages: list[Stage], declared: Declared, with_state: bool) -> None:
        self._stages = stages
        self._declared = declared
        self._with_state = with_state
        self._units: dict[Stage, _Unit] = {}  # by head
        self._within: dict[Stage, list[_Unit]] = {}  # the units that a stage is in
        self._bolts: dict[str, _Unit] = {}  # the bolts of the user's

    def build(self) -> TopologyBuilder:
        for stage in self._stages:
            if _begins_unit(stage):
                self._units[stage] = unit = _Unit(stage)
                self._gather(unit, stage)
        self._place_queries()
        self._name_units()
        for unit in self._units.values():
            for stage in list(unit.steps):
                self._connect(unit, stage)
            if _is_component(unit.head):
                self._enter(unit, unit.head, [child for child in unit.head.children if child in unit.steps])
            elif _is_component(unit.head.parents[0]):
                self._enter(unit, unit.head.parents[0], [unit.head])
        self._pass_watermarks()
        builder = TopologyBuilder()
        builder.specs = {id: spec.copy() for id, spec in self._declared.components.specs.items()}
        for unit in self._units.values():
            self._declare(builder, unit)
        for stage in self._stages:
            if isinstance(stage.operation, UserBolt):
                self._subscribe(builder, stage)
        return builder

    # ---- which stages are in a unit ----

    def _gather(self, unit: _Unit, stage: Stage) -> None:
        """Put a stage and its successors up to the next heads into a unit."""
        if stage in unit.steps:
            return
        if not _is_component(stage):
            unit.steps[stage] = Step(stage.name, stage.operation)
            self._within.setdefault(stage, []).append(unit)
        for child in stage.children:
            if not child.operation.is_head:
                self._gather(unit, child)

    def _place_queries(self) -> None:
        """Put state queries, and their successors, into the units of their tables."""
        for stage in self._stages:
            if isinstance(stage.operation, Query):
                table = next(each for each in self._stages if each.name == stage.operation.table)
                self._gather(self._units[table], stage)

    def _name_units(self) -> None:
        """Name the units after sources and bolts: like their first stage, with the source's name if it is in others, too."""
        taken = {stage.name for stage in self._stages if stage.operation.is_head}
        for unit in self._units.values():
            if not _is_component(unit.head):
                continue
            first = next(iter(unit.steps))
            name = first.name if len(self._within[first]) == 1 else f"{unit.head.name}-{first.name}"
            while name in taken:
                name = f"{unit.head.name}-{name}"
            taken.add(name)
            unit.id = name

    # ---- the paths of elements through a unit, and out of it ----

    def _connect(self, unit: _Unit, stage: Stage) -> None:
        """Connect a stage with its children in the unit, and with streams to those in others."""
        step = unit.steps[stage]
        for child in stage.children:
            if child.operation.is_head:
                if not isinstance(child.operation, UserBolt):
                    self._cross(unit, stage, child)
                else:
                    self._to_bolt(unit, stage, child)
            else:
                step.next.append(unit.steps[child])
        if stage in _ends(unit) and (sink := _leaf(stage)) is not None:
            if len(_ends(unit)) == 1:
                sink.stream = "default"
            step.next.append(self._sink(unit, sink))

    def _cross(self, unit: _Unit, stage: Stage, child: Stage) -> None:
        """Make the edge from a stage to a head in another unit."""
        if isinstance(child.operation, Late):
            self._late(unit, child)
            return
        sink, read, method = self._edge(unit, stage, child)
        sink = self._sink(unit, sink)
        if sink not in unit.steps[stage].next:
            unit.steps[stage].next.append(sink)
        target = self._units[child] if child in self._units else self._units[self._table(child)]
        by_key = isinstance(child.operation, Keyed | Windowed)
        grouping = Grouping("fields", [sink.fields[0]]) if by_key else Grouping("shuffle")
        if (unit.id, sink.stream) not in [each[:2] for each in target.inputs]:
            target.inputs.append((unit.id, sink.stream, grouping))
            target.entries.append(Entry(unit.id, sink.stream, read, [target.steps[child]], method))
        else:
            entry = next(each for each in target.entries if (each.component, each.stream) == (unit.id, sink.stream))
            entry.steps.append(target.steps[child])

    def _late(self, unit: _Unit, child: Stage) -> None:
        """Connect the late values of a unit with windows to a unit of their own."""
        target = self._units[child]
        target.inputs.append((unit.id, LATE, Grouping("shuffle")))
        target.entries.append(Entry(unit.id, LATE, as_late, [target.steps[child]]))

    def _edge(self, unit: _Unit, stage: Stage, child: Stage) -> tuple[Sink, Callable[[Tuples], list[Any]], str]:
        operation = child.operation
        if isinstance(operation, Windowed):
            return _into_windows(stage, child), as_pairs, "apply"
        if isinstance(operation, Aggregate):
            if operation.fold.merge is not None and not isinstance(unit.head.operation, Windowed):
                return sinks.Partials(stage.name, child.name, operation.fold), as_partials, "merge"
            if not operation.fold.needs_values:
                return sinks.Keys(stage.name, child.name, sinks.KEY_AND_VALUE), as_pairs, "apply"
        if isinstance(operation, Query):  # a stream of its own, since its table's unit may get the stage's, too
            return sinks.Pairs(stage.name, child.name, sinks.KEY_AND_VALUE), as_pairs, "apply"
        leaf = _leaf(stage)
        if leaf is None:
            raise TopologyError(
                f"stage {child.name!r} gets pairs of {stage.name!r} whose values are tuples of a spout or bolt, which can't be sent as "
                "they are; take out what you need, such as .map_values(lambda t: t['field'])"
            )
        return leaf, _reader(stage), "apply"

    def _to_bolt(self, unit: _Unit, stage: Stage, child: Stage) -> None:
        """Make the stream from a stage to a bolt of the user's."""
        fields = child.operation.fields
        sink: Sink
        if stage.shape == PAIRS:
            if stage.fields is not None:
                raise TopologyError(
                    f"bolt {child.name!r} gets pairs of {stage.name!r} whose values are tuples of a spout or bolt, which can't be sent "
                    "as they are; take out what you need, such as .map_values(lambda t: t['field'])"
                )
            if fields is not None and len(fields) != 2:
                raise TopologyError(
                    f"bolt {child.name!r}: fields is {fields!r}, and a keyed stream has two values, the key and the value"
                )
            sink = sinks.Named(stage.name, child.name, fields or sinks.KEY_AND_VALUE)
        elif stage.fields is not None and fields is None:
            sink = sinks.Forwarded(stage.name, child.name, stage.fields)
        else:
            sink = sinks.Named(stage.name, child.name, fields or sinks.VALUE)
        unit.steps[stage].next.append(self._sink(unit, sink))

    def _sink(self, unit: _Unit, sink: Sink) -> Sink:
        """Return the unit's sink for a stream, which is ``sink`` if there is none yet."""
        return unit.sinks.setdefault(sink.stream, sink)

    def _enter(self, unit: _Unit, source: Stage, first: list[Stage]) -> None:
        """Connect the tuples of a user's component to the first stages of a unit."""
        unit.entries.append(Entry(source.name, "default", _reader(source), [unit.steps[stage] for stage in first]))
        unit.inputs.append((source.name, "default", Grouping("shuffle")))

    def _table(self, query: Stage) -> Stage:
        return next(each for each in self._stages if each.name == query.operation.table)

    # ---- watermarks ----

    def _pass_watermarks(self) -> None:
        """Pass on watermarks from the sources to all windows by event time."""
        for stage in self._stages:
            if isinstance(stage.operation, UserBolt):
                self._bolts[stage.name] = unit = _Unit(stage)
                unit.entries = [Entry(component, stream, as_tuples, []) for component, stream in self._before(stage)]
                unit.sinks["default"] = Sink(stage.name, "default", ())
        units = {unit.id: unit for unit in self._units.values()}
        specs = self._declared.components.specs
        units.update({id: unit for id, unit in self._bolts.items() if lets_pass(specs[id].component)})
        for unit in self._units.values():
            operation = unit.head.operation
            if isinstance(operation, Windowed) and operation.settings.timed:
                secs, idle = operation.settings.interval_secs / 5, operation.settings.idle_secs
                inputs = {}
                for component, stream, _ in unit.inputs[:]:
                    before = units[component]
                    self._let_pass(before, units, min(secs, idle / 4) if idle else secs, 2 * idle).timed.append(stream)
                    before.sinks[stream].passes = True
                    unit.inputs.append((component, PREFIX + stream, Grouping("all")))
                    inputs[component, stream] = _firsts(before, units)
                firsts = dict.fromkeys(first for each in inputs.values() for first in each)
                unit.ways = Ways({first: _sources(units[first], units) for first in firsts}, inputs)
                if not operation.settings.lag:
                    for bolt in {
                        each: self._bolts[each]
                        for first in firsts
                        for each in unit.ways.firsts[first]
                        if each in self._bolts
                    }:
                        self._check_order(bolt, unit.id)

    def _check_order(self, bolt: str, windows: str) -> None:
        """Log a bolt behind which a slower task's elements may be late."""
        if self._is_of_several(self._bolts[bolt]) and not importing.by_task:
            from logging import getLogger

            getLogger(__name__).warning(
                "bolt %r gets elements of several tasks, and can't pass on watermarks: elements of a slower task may be late at the windows "
                "%r after it. Make it a BasicBolt without process_tick and state, take map or flat_map instead, or set a lag",
                bolt,
                windows,
            )

    def _is_of_several(self, unit: _Unit) -> bool:
        """Return whether a unit's elements are of several tasks, which may be at different times."""
        units = {**{each.id: each for each in self._units.values()}, **self._bolts}
        before = [] if isinstance(unit.head.operation, Windowed) else [each.component for each in unit.entries]
        specs = self._declared.components.specs
        tasks = sum(units[each].head.parallelism if each in units else specs[each].parallelism for each in before)
        return tasks > 1 or any(self._is_of_several(units[each]) for each in before if each in units)

    def _let_pass(self, unit: _Unit, units: Mapping[str, _Unit], secs: float, idle_secs: float) -> Passing:
        """Let a unit, and those upstream, pass on watermarks.

        Args:
            unit: The unit.
            units: All units, by id.
            secs: The greatest number of seconds between two rounds.
            idle_secs: The least number of seconds for which rounds are sent without elements.
        """
        before = (
            []
            if isinstance(unit.head.operation, Windowed)
            else [each for each in unit.entries if _is_passed(each, units)]
        )
        if unit.passing is None:
            inputs = {}
            for entry in before:
                other = units[entry.component]
                inputs[entry.component, entry.stream] = _firsts(other, units)
                unit.inputs.append((entry.component, PREFIX + entry.stream, Grouping("all")))
            unit.passing = Passing(Ways({}, inputs))
        unit.passing.secs = min(unit.passing.secs, secs)
        unit.passing.idle_secs = max(unit.passing.idle_secs, idle_secs)
        for entry in before:
            other = units[entry.component]
            passing, sink = self._let_pass(other, units, secs, idle_secs), other.sinks[entry.stream]
            if not sink.passes:
                sink.passes, sink.leads = True, unit.is_bolt or other.is_bolt
                passing.plain.append(entry.stream)
                for each in (each for reader in units.values() for each in reader.entries):
                    if not sink.leads and (each.component, each.stream) == (entry.component, entry.stream):
                        each.has_origin = True
                        if each.read is as_tuples:
                            each.read = without_origin
        unit.passing.sources = _sources(unit, units)
        return unit.passing

    # ---- components ----

    def _declare(self, builder: TopologyBuilder, unit: _Unit) -> None:
        _leave_out_values(unit)
        program = Program(unit.entries, list(unit.steps.values()), list(unit.sinks.values()), unit.passing)
        kinds = (bolts.ChainBolt, bolts.CombiningBolt)
        if unit.keeps and self._with_state:
            kinds = (bolts.StatefulChainBolt, bolts.StatefulCombiningBolt)
        bolt: Programmed
        operation = unit.head.operation
        if isinstance(operation, Windowed):
            window = StatefulWindowProgram if self._with_state else WindowProgram
            has_late = any(isinstance(child.operation, Late) for child in unit.head.children)
            bolt = window(unit.head.name, operation, program, _explained(unit), has_late, unit.ways)
        elif isinstance(operation, MapAsync):
            bolt = AsyncProgram(unit.head.name, operation, program, _explained(unit))
        else:
            bolt = kinds[unit.combines](program, _explained(unit))
        declarer = builder.set_bolt(unit.id, bolt, unit.head.parallelism)
        for component, stream, grouping in unit.inputs:
            declarer.grouping(component, grouping, stream)

    def _subscribe(self, builder: TopologyBuilder, stage: Stage) -> None:
        """Subscribe a bolt of the user's to the streams of its parent."""
        declarer = BoltDeclarer(builder.specs[stage.name])
        (parent,) = stage.parents
        for component, stream in self._before(stage):
            by_key = parent.shape == PAIRS
            fields = [builder.specs[component].streams[stream].fields[0]] if by_key else []
            declarer.grouping(component, Grouping("fields", fields) if by_key else Grouping("shuffle"), stream)
        unit = self._bolts[stage.name]
        if unit.passing is not None:
            for component, stream, grouping in unit.inputs:
                declarer.grouping(component, grouping, stream)
            spec = builder.specs[stage.name]
            bolt = PassingBolt(spec.component, spec.factory, unit.passing)  # type: ignore[arg-type]  # no shell component
            spec.component, spec.factory, spec.streams = bolt, None, bolt.declared_streams()

    def _before(self, stage: Stage) -> list[tuple[str, str]]:
        """Return the inputs of a bolt of the user's, as component and stream."""
        (parent,) = stage.parents
        return (
            [(parent.name, "default")]
            if _is_component(parent)
            else [(unit.id, stage.name) for unit in self._within[parent]]
        )


def _leave_out_values(unit: _Unit) -> None:
    """Let elements become keys, and not pairs with themselves, where only the keys are used."""
    for step in unit.steps.values():
        if type(step.operation) is KeyBy and len(step.next) == 1:
            (sink,) = step.next
            if isinstance(sink, Sink) and not sink.looks_at_values:
                step.operation = KeysOf(step.operation.function)
                sink.takes_keys = True


def _is_passed(entry: Entry, units: Mapping[str, _Unit]) -> bool:
    """Return whether an entry's elements are of a unit's program, and not of a source."""
    return entry.component in units and entry.stream in units[entry.component].sinks


def _firsts(unit: _Unit, units: Mapping[str, _Unit]) -> list[str]:
    """Return the units in which the origins of a unit's elements begin."""
    if isinstance(unit.head.operation, Windowed):
        return [unit.id]
    found: dict[str, None] = {}
    for entry in unit.entries:
        found.update(dict.fromkeys(_firsts(units[entry.component], units) if _is_passed(entry, units) else [unit.id]))
    return list(found)


def _sources(unit: _Unit, units: Mapping[str, _Unit]) -> list[str]:
    """Return the source components of the origins that begin in a unit; none: it makes elements itself."""
    if isinstance(unit.head.operation, Windowed):
        return []
    return list(dict.fromkeys(entry.component for entry in unit.entries if not _is_passed(entry, units)))


def _is_component(stage: Stage) -> bool:
    """Return whether the stage is a component of the user's by itself."""
    return isinstance(stage.operation, Source | UserBolt)


def _begins_unit(stage: Stage) -> bool:
    """Return whether a unit begins with the stage."""
    if _is_component(stage):
        return any(not child.operation.is_head for child in stage.children)
    return stage.operation.is_head and not isinstance(stage.operation, Query)


def _leaf(stage: Stage) -> Sink | None:
    """Return the sink for the elements of a stage as they are; None: they can't be sent."""
    if stage.shape == PAIRS:
        return None if stage.fields is not None else sinks.Pairs(stage.name, stage.name, sinks.KEY_AND_VALUE)
    if stage.fields is not None:
        return sinks.Forwarded(stage.name, stage.name, stage.fields)
    return sinks.Values(stage.name, stage.name, sinks.VALUE)


def _reader(stage: Stage) -> Callable[[Tuples], list[Any]]:
    """Return the function that makes elements of the tuples in which a stage's elements are sent."""
    if stage.shape == PAIRS:
        return as_pairs
    return as_values if stage.fields is None else as_tuples


def _ends(unit: _Unit) -> list[Stage]:
    """Return the stages of a unit whose elements are sent although nothing is attached to them."""
    return [stage for stage in unit.steps if not stage.children and _is_sent(stage)]


def _is_sent(stage: Stage) -> bool:
    """Return whether the elements of a stage without children are sent to a stream."""
    if isinstance(stage.operation, Results):  # unless only those with ends are wanted, or late ones
        return len(stage.parents[0].children) == 1
    return not isinstance(stage.operation, ForEach)


def _into_windows(stage: Stage, child: Stage) -> Sink:
    """Return the sink for the values of windows."""
    operation = child.operation
    stream = child.name if len(child.parents) == 1 else child.name + (LEFT, RIGHT)[child.parents.index(stage)]
    has_values = operation.needs_values or any(isinstance(each.operation, Late) for each in child.children)
    if stage.shape == TRIPLES:
        kind: type[Sink] = sinks.Triples if has_values else sinks.TimedKeys
        return kind(stage.name, stream, sinks.KEY_VALUE_TIME)
    return (sinks.Pairs if has_values else sinks.Keys)(stage.name, stream, sinks.KEY_AND_VALUE)


def _explained(unit: _Unit) -> list[str]:
    names = " > ".join(step.name for step in unit.steps.values())
    lines = [f"stages: {names}"]
    lines += [f"combines for {sink.stream!r} before it sends" for sink in unit.sinks.values() if sink.combines]
    return lines
