"""The checks before anything runs; Storm finds some of these faults late, and some never."""

from __future__ import annotations

from multilang.component.base import Component
from multilang.errors import MultilangError
from multilang.protocol.codec import reason_against
from multilang.settings import NAME_TABOO, is_printable
from multilang.topology import importing
from multilang.topology.conf import check_keys, check_values
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.shell import Foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.topology.model import ComponentSpec, Input, Topology

TICKS = "topology.tick.tuple.freq.secs"
_ATOMS = (
    str,
    int,
    float,
    complex,
    bool,
    type(None),
    bytes,
    bytearray,
    type,
    type(len),
    type(lambda: 0),
    type(list[int]),
)
_LOOK = 100  # items of a container that are checked: an item that can't be copied is rarely the hundred-and-first
_DEPTH = 4


def check(topology: Topology) -> None:
    """Raise TopologyError for the first part of ``topology`` that can't run."""
    check_name(topology.name)
    if not topology.spouts:
        raise TopologyError(
            f"topology {topology.name!r} has no spout, so no tuple would ever flow; add one with set_spout"
        )
    for spec in topology.components.values():
        for stream in spec.streams:
            check_id(stream, f"{spec.kind} {spec.id!r}: stream")
        for input_ in spec.inputs:
            _check_input(topology, spec, input_)
    _check_flow(topology)
    for spec in topology.components.values():
        _check_copies(spec)


def check_id(id: object, what: str) -> None:
    """Raise TopologyError for a component or stream id that is not printable text, or begins with Storm's ``__``."""
    if not isinstance(id, str):
        raise TopologyError(f"{what} {id!r}: an id is a string")
    if not is_printable(id):
        raise TopologyError(f"{what} {id!r}: an id is printable text without spaces around it, such as 'count-words'")
    if id.startswith("__"):
        raise TopologyError(
            f"{what} {id!r}: ids that start with '__' are Storm's own; write {id.lstrip('_') or 'another name'!r}"
        )


def check_name(name: object) -> None:
    """Raise TopologyError for a name of a topology that Nimbus would refuse."""
    if not isinstance(name, str) or not is_printable(name):
        raise TopologyError(f"a topology's name is printable text such as 'word-count', not {name!r}")
    bad = next((letter for letter in name if letter in NAME_TABOO), None)
    if bad is not None:
        better = "".join("-" if letter in NAME_TABOO else letter for letter in name)
        raise TopologyError(f"Storm refuses {bad!r} in a topology's name, {name!r}; write {better!r}")


def check_conf(conf: object, what: str) -> None:
    """Raise TopologyError for a conf that can't be sent as JSON: a dict with string keys and values that JSON has."""
    if conf is None or importing.by_task:  # a task's was checked before it was submitted
        return
    if not isinstance(conf, dict):
        raise TopologyError(f"{what} is a dict of settings, not {conf!r}")
    check_keys((key for key in conf if isinstance(key, str)), what)
    check_values(conf, what)
    for key, value in conf.items():
        if not isinstance(key, str):
            raise TopologyError(f"{what}: the key {key!r} is no string; conf is sent as JSON, so write {str(key)!r}")
        reason = reason_against(key) or reason_against(value)
        if reason is not None:
            raise TopologyError(f"{what}: {key!r} can't be sent as JSON: {reason}")


def check_components(topology: Topology, around: Mapping[str, Any] | None = None) -> None:
    """Call each component's ``check_conf``, so that a wrong conf is found before any task is started.

    Args:
        topology: The topology, with the conf that it will run with.
        around: The cluster's settings, which the topology's and its components' override.

    Raises:
        TopologyError: A component can't; the message names it.
    """
    for spec in topology.components.values():
        conf = {**(around or {}), **topology.conf, **spec.conf, "topology.name": topology.name}
        component: object = spec.component
        while isinstance(component, Component):
            try:
                component.check_conf(conf)
            except MultilangError as error:
                if not error.is_explained:
                    raise
                raise TopologyError(
                    f"topology {topology.name!r} can't run with this conf: {spec.kind} {spec.id!r}: {error}"
                ) from error
            component = component.wrapped


def _check_input(topology: Topology, spec: ComponentSpec, input_: Input) -> None:
    name, stream, grouping = input_.component, input_.stream, input_.grouping
    bolt = f"bolt {spec.id!r}"
    source = topology.components.get(name)
    if spec.kind == "spout":
        raise TopologyError(f"spout {spec.id!r} can't subscribe to anything; make it a bolt")
    if source is None:
        if name.startswith("__"):
            raise TopologyError(
                f"{bolt}: {name!r} is Storm's own; for ticks, give the bolt conf={{{TICKS!r}: seconds}}"
            )
        hint = did_you_mean(name, topology.components)
        raise TopologyError(f"{bolt} subscribes to {name!r}, but there is no such component; {hint}")
    declared = source.streams.get(stream)
    if declared is None:
        missing = f"{bolt} subscribes to stream {stream!r} of {name!r}, which declares no such stream"
        if not source.streams:
            raise TopologyError(f"{missing}, nor any other; give its class output_fields = [...]")
        raise TopologyError(f"{missing}; {did_you_mean(stream, source.streams)} (as stream=...)")
    of = f"stream {stream!r} of {name!r}"
    if grouping.is_direct and not declared.direct:
        raise TopologyError(
            f"{bolt} subscribes by direct grouping to {of}, which is not direct; "
            f"declare it with Stream({list(declared.fields)!r}, direct=True), or write another grouping"
        )
    if declared.direct and not grouping.is_direct:
        raise TopologyError(
            f"{bolt} subscribes by {grouping.name} grouping to {of}, which is direct: its emitter names "
            f"the task; write direct_grouping({name!r}, stream={stream!r})"
        )
    for field in grouping.fields:
        if field not in declared.fields:
            raise TopologyError(
                f"{bolt} groups {of} by the field {field!r}, which the stream does not declare; "
                f"{did_you_mean(field, declared.fields)}"
            )


def _check_flow(topology: Topology) -> None:
    """Check that every bolt can get a tuple: from a spout, or from a ticking bolt, directly or through others.

    A cycle with a source is allowed: work may circulate until it is done. One without any source can't be intended.
    """
    fed = {id for id, spec in topology.components.items() if spec.kind == "spout" or _ticks(topology, spec)}
    spreading = True
    while spreading:
        reached = {
            id
            for id, spec in topology.components.items()
            if id not in fed and any(input_.component in fed for input_ in spec.inputs)
        }
        fed |= reached
        spreading = bool(reached)
    unfed = {id: spec for id, spec in topology.bolts.items() if id not in fed}
    for id, spec in unfed.items():
        if not spec.inputs:
            raise TopologyError(
                f"bolt {id!r} has no input; subscribe it to a stream, "
                f"such as set_bolt({id!r}, ...).shuffle_grouping({next(iter(topology.spouts))!r})"
            )
    for id in unfed:
        cycle = _cycle_behind(topology, id)
        if len(cycle) == 1:
            raise TopologyError(
                f"bolt {cycle[0]!r} has no input but itself, so no tuple would ever reach it; "
                f"subscribe it to {' or '.join(repr(other) for other in topology.components if other in fed)}"
            )
        raise TopologyError(
            f"the bolts {' -> '.join(map(repr, [*cycle, cycle[0]]))} feed each other in a cycle, but no spout feeds them; "
            f"subscribe one of them to {' or '.join(repr(other) for other in topology.components if other in fed)}"
        )


def _cycle_behind(topology: Topology, id: str) -> list[str]:
    """Return a cycle among the sources of a bolt that gets no tuples, in the order in which tuples would flow."""
    path: list[str] = []
    while id not in path:
        path.append(id)
        id = topology.components[id].inputs[0].component
    first, *others = path[path.index(id) :]
    return [first, *reversed(others)]


def _ticks(topology: Topology, spec: ComponentSpec) -> bool:
    return spec.conf.get(TICKS, topology.conf.get(TICKS)) is not None


def _check_copies(spec: ComponentSpec) -> None:
    """Check that a component can be copied, once for each task: it may hold no lock, file or connection."""
    own = [] if isinstance(spec.component, Foreign) or spec.factory else [("", spec.component)]
    held: list[tuple[str, object]] = own + [
        (f" in its custom grouping of {input_.component!r}", input_.grouping.custom)
        for input_ in spec.inputs
        if input_.grouping.custom is not None
    ]
    for where, owner in held:
        found = _uncopyable(owner, "self")
        if found is not None:
            path, thing = found
            raise TopologyError(
                f"{spec.kind} {spec.id!r}{where}: {path} of {type(owner).__name__} is a {type(thing).__name__}, "
                "of which no copy can be made for each task; create it in initialize(), or in prepare(), not before"
            )


def _uncopyable(value: Any, path: str, depth: int = _DEPTH) -> tuple[str, object] | None:
    """Return the first part of ``value`` that can't be pickled or copied, without copying large parts."""
    if isinstance(value, _ATOMS) or hasattr(value, "__deepcopy__") or not depth:
        return None
    parts: list[tuple[str, Any]]
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", item) for key, item in _first(value.items())]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(_first(value))]
    else:
        parts = [(f"{path}.{name}", item) for name, item in _first(getattr(value, "__dict__", {}).items())]
    for name, part in parts:
        found = _uncopyable(part, name, depth - 1)
        if found is not None:
            return found
    try:
        value.__reduce_ex__(4)
    except Exception:  # noqa: BLE001 (whatever a user's class raises, it can't be copied)
        return path, value
    return None


def _first(items: Any) -> list[Any]:
    from itertools import islice

    return list(islice(items, _LOOK))
