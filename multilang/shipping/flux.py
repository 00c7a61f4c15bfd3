"""A topology as Flux YAML, for clusters where topologies are submitted by Storm's own Flux."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from multilang.shipping.conf import storm_conf
from multilang.shipping.errors import ShippingError
from multilang.shipping.places import ShippedBlobs
from multilang.shipping.shippable import check_shippable
from multilang.topology.java import JavaComponent, JavaObject

if TYPE_CHECKING:
    from typing import Any

    from multilang.shipping.jar import Shipment
    from multilang.topology import ComponentSpec, Topology

_CLASSES = {
    "spout": "org.apache.storm.flux.wrappers.spouts.FluxShellSpout",
    "bolt": "org.apache.storm.flux.wrappers.bolts.FluxShellBolt",
}


def flux_yaml(shipment: Shipment, interpreter: str = "python3", places: ShippedBlobs | None = None) -> str:
    """Return the YAML of a packed topology.

    Args:
        shipment: The packed topology.
        interpreter: The workers' command for Python.
        places: The blobs with the topology's files and Python; None: both are as usual.

    Raises:
        ShippingError: The topology has a direct stream, which Flux's components don't support.
    """
    topology = shipment.topology
    check_flux(topology)
    places = places or ShippedBlobs()
    lines = [f"name: {_flow(topology.name)}", "config:"]
    lines += [f"  {_flow(key)}: {_flow(value)}" for key, value in places.conf(storm_conf(topology)).items()]
    lines += _parts(topology)
    for kind, specs in (("spout", topology.spouts), ("bolt", topology.bolts)):
        if specs:
            lines.append(f"{kind}s:")
        for spec in specs.values():
            if isinstance(spec.component, JavaComponent):
                lines += _of_java(spec, spec.component)
            else:
                lines += _component(spec, *places.start(shipment, spec.id, interpreter))
    lines += _streams(topology)
    return "\n".join(lines) + "\n"


def check_flux(topology: Topology) -> None:
    """Raise ShippingError, with the streams' names, for what Flux can't express."""
    check_shippable(topology)
    for spec in topology.components.values():
        if isinstance(spec.component, JavaComponent) and (
            spec.conf
            or isinstance(spec.component.made, JavaObject)
            or any(isinstance(each, bytes) for each in spec.component.args)
        ):
            raise ShippingError(
                f"multilang flux can't express {spec.kind} {spec.id!r} of the Java class {spec.component.java_class}, which has a conf of its own "
                "or other arguments than numbers and texts: submit the topology with multilang submit, or from Java with the class that "
                "multilang flux --java prints"
            )
    direct = [
        f"{name!r} of {spec.id!r}"
        for spec in topology.components.values()
        for name, stream in spec.streams.items()
        if stream.direct
    ]
    if direct:
        raise ShippingError(
            f"Flux can't declare direct streams ({', '.join(direct)}): its FluxShellSpout and FluxShellBolt know plain "
            "streams only. Submit the topology with multilang submit, or from Java with the class that "
            "multilang flux --java prints"
        )


def _of_java(spec: ComponentSpec, component: JavaComponent) -> list[str]:
    return [
        f"  - id: {_flow(spec.id)}",
        f"    className: {_flow(component.java_class)}",
        *([f"    constructorArgs: {_flow(component.args)}"] if component.args else []),
        f"    parallelism: {spec.parallelism}",
        f"    numTasks: {spec.tasks}",
    ]


def _component(spec: ComponentSpec, command: list[str], changes_directory: bool) -> list[str]:
    calls: list[tuple[str, list[Any]]] = []
    if not changes_directory:
        calls.append(("changeChildCWD", [False]))
    for name, stream in spec.streams.items():
        if name == "default":
            calls.append(("setDefaultStream", [list(stream.fields)]))
        else:
            calls.append(("setNamedStream", [name, list(stream.fields)]))
    calls += [("addComponentConfig", [key, value]) for key, value in spec.conf.items()]
    lines = [
        f"  - id: {_flow(spec.id)}",
        f"    className: {_flow(_CLASSES[spec.kind])}",
        f"    constructorArgs: [{_flow(command)}]",
        f"    parallelism: {spec.parallelism}",
        f"    numTasks: {spec.tasks}",
    ]
    if calls:
        lines.append("    configMethods:")
        lines += [f"      - {{name: {_flow(name)}, args: {_flow(arguments)}}}" for name, arguments in calls]
    return lines


def _streams(topology: Topology) -> list[str]:
    lines = ["streams:"] if any(spec.inputs for spec in topology.components.values()) else []
    for spec in topology.components.values():
        for number, input_ in enumerate(spec.inputs):
            stream = "" if input_.stream == "default" else f", streamId: {_flow(input_.stream)}"
            lines += [
                f"  - from: {_flow(input_.component)}",
                f"    to: {_flow(spec.id)}",
                f"    grouping: {{{input_.grouping.to_flux(_parts_id(spec, number))}{stream}}}",
            ]
    return lines


def _parts(topology: Topology) -> list[str]:
    """Return the components that groupings refer to."""
    lines: list[str] = []
    for spec in topology.components.values():
        for number, input_ in enumerate(spec.inputs):
            lines += input_.grouping.flux_parts(_parts_id(spec, number))
    return ["components:", *lines] if lines else []


def _parts_id(spec: ComponentSpec, number: int) -> str:
    return f"fields of {spec.id} {number + 1}"


def _flow(value: Any) -> str:
    """Return JSON, which YAML includes, but with other floats: YAML 1.1 reads 1e-07 as text, and 1.0e-07 as a
    number.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(str(key))}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text:
        mantissa, _, exponent = text.partition("e")
        sign = "" if exponent[0] in "+-" else "+"
        text = f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}{exponent}"
    return text
