"""The checks of windowed bolts when their topology is built, and their settings under Storm's keys."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.wrapper import innermost
from multilang.settings import ALIGNMENT, EXACT, value
from multilang.state.bolt import Stateful
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.model import Topology, describe
from multilang.windowing.bolt import WindowedBolt
from multilang.windowing.declared import DeclaredWindows
from multilang.windowing.settings import INTERVAL_MS, LAG_MS, NO_DATA, TIMEOUT, TIMEOUTS, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from multilang.topology.model import ComponentSpec, Input


def windowed(topology: Topology) -> Topology:
    """Return the topology with the settings of its windowed bolts in their conf, as Storm has them.

    Raises:
        TopologyError: A windowed bolt can't work as it is declared.
        ConfigError: One of its settings is wrong.
    """
    specs = {id: spec.copy() for id, spec in topology.components.items()}
    held: dict[str, int] = {}
    for id, spec in specs.items():
        bolt = innermost(spec.component)  # a stateful topology may have wrapped it already
        if not isinstance(bolt, WindowedBolt):
            continue
        who = f"bolt {id!r}"
        if type(bolt).process_window is WindowedBolt.process_window:
            raise TopologyError(f"{who} ({describe(bolt)}) has no process_window: define process_window(self, window)")
        given = {**topology.conf, **spec.conf}
        own = {**_left_to_the_topology(bolt, topology.conf), **spec.conf}
        declared = Settings(bolt, own if bolt.window is not None else given, who)
        spec.conf = {**declared.conf(), **spec.conf}
        conf = {**topology.conf, **spec.conf}
        settings = Settings(bolt, conf, who)
        bolt.check_limits(settings, conf)
        if not isinstance(bolt, Stateful):
            held[id] = settings.held_ms
        if not isinstance(bolt, Stateful) and value(topology.conf, ALIGNMENT) == EXACT and _has_state(specs.values()):
            raise TopologyError(
                f"{who} ({describe(bolt)}) holds tuples until their windows end, which no checkpoint of exact alignment has; make it a "
                "StatefulWindowedBolt"
            )
        for input_ in spec.inputs:
            if input_.stream.startswith(NO_DATA):
                continue
            _check_fields(topology, input_, settings)
            _check_grouping(spec, input_, settings)
    known: dict[str, list[str]] = {}
    for id in held:
        if before := _longest(specs, held, id, known):
            _check_path(topology, held, [*before, id])
    return Topology(topology.name, topology.conf, specs, module=topology.module)


def _left_to_the_topology(bolt: WindowedBolt, conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the durations in the topology's conf that the class does not set."""
    names = {LAG_MS: "lag", INTERVAL_MS: "watermark_interval"}
    return {
        key: conf[key]
        for key, name in names.items()
        if key in conf and getattr(bolt, name) == getattr(DeclaredWindows, name)
    }


def _longest(
    specs: Mapping[str, ComponentSpec], held: Mapping[str, int], id: str, known: dict[str, list[str]]
) -> list[str]:
    """Return the windowed bolts that hold a tuple on the path to a component where it is held for longest."""
    known[id] = []  # in case of a cycle
    ways = []
    for input_ in specs[id].inputs:
        source = input_.component
        bolt = innermost(specs[source].component)
        if isinstance(bolt, WindowedBolt) and (source not in held or bolt.anchor == "none"):
            continue  # its emits are anchored to nothing
        before = known[source] if source in known else _longest(specs, held, source, known)
        ways.append([*before, source] if source in held else before)
    known[id] = max(ways, key=lambda way: sum(held[each] for each in way), default=[])
    return known[id]


def _check_path(topology: Topology, held: Mapping[str, int], way: list[str]) -> None:
    """Raise ConfigError if windows that follow one another hold a tuple for longer than the message timeout."""
    timeout, longest = topology.conf.get(TIMEOUT, 30), sum(held[each] for each in way)
    if type(timeout) in (int, float) and topology.conf.get(TIMEOUTS) is not False and longest > timeout * 1000:
        raise ConfigError(
            f"the windows of {' and '.join(map(repr, way))}, one behind the other, make {longest / 1000:g} s, and {TIMEOUT} is {timeout:g}: "
            f"tuples would time out before the last ones end, and be replayed. Set {TIMEOUT} to {-(-longest // 1000)} or more, or make "
            "one a StatefulWindowedBolt, which acks early"
        )


def _has_state(specs: Iterable[ComponentSpec]) -> bool:
    return any(isinstance(innermost(spec.component), Stateful) for spec in specs)


def _check_fields(topology: Topology, input_: Input, settings: Settings) -> None:
    there = topology[input_.component].streams[input_.stream].fields
    wanted = [("key_by", name) for name in settings.key_by or ()]
    for name, field in (("timestamp_field", settings.timestamp_field), ("id_field", settings.id_field)):
        if field is not None:
            wanted.append((name, field))
    field = getattr(settings.aggregate, "field", None)
    if isinstance(field, str):
        wanted.append(("aggregate", field))
    for name, field in wanted:
        if field not in there:
            raise TopologyError(
                f"{settings.who}: {name} names the field {field!r}, which stream {input_.stream!r} of {input_.component!r} does not have; "
                f"{did_you_mean(field, there)}"
            )


def _check_grouping(spec: ComponentSpec, input_: Input, settings: Settings) -> None:
    keys, grouping = settings.key_by, input_.grouping
    if keys is None or spec.tasks == 1:
        return
    others = [field for field in grouping.fields if field not in keys]
    spreads = grouping.is_to_one and not grouping.is_stable  # tuples of a key to several tasks
    if spreads or (grouping.is_hashed and others):
        by = f"fields grouping on {', '.join(map(repr, grouping.fields))}" if others else f"{grouping.name} grouping"
        raise TopologyError(
            f"{settings.who} has {spec.tasks} tasks and windows by {', '.join(map(repr, keys))}, and gets stream {input_.stream!r} of "
            f"{input_.component!r} by {by}, so that tuples of one key come to several tasks; write "
            f"fields_grouping({input_.component!r}, {', '.join(map(repr, keys))})"
        )
