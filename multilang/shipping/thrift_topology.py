"""A topology as the struct that Nimbus takes: Storm's StormTopology, made of ShellComponents and of classes of Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.exchange.transform import by_blocks
from multilang.protocol.codec import dumps
from multilang.shipping.errors import ShippingError
from multilang.shipping.shippable import check_shippable
from multilang.shipping.thrift_types import types
from multilang.topology.java import JavaComponent, fits_int

if TYPE_CHECKING:
    from typing import Any

    from multilang.shipping.jar import Shipment
    from multilang.topology import ComponentSpec, Topology

_TASKS = "topology.tasks"


def storm_topology(shipment: Shipment) -> Any:
    """Return the struct of a packed topology. Raises ShippingError for what it can't express."""
    thrift = types()
    topology = by_blocks(shipment.topology)
    check_thrift(topology)

    def common(spec: ComponentSpec) -> Any:
        return thrift.ComponentCommon(
            inputs={
                thrift.GlobalStreamId(componentId=each.component, streamId=each.stream): each.grouping.to_thrift(thrift)
                for each in spec.inputs
            },
            streams={
                name: thrift.StreamInfo(output_fields=list(stream.fields), direct=stream.direct)
                for name, stream in spec.streams.items()
            },
            parallelism_hint=spec.parallelism,
            json_conf=dumps(component_conf(spec)),
        )

    def object_of(spec: ComponentSpec) -> Any:
        if isinstance(spec.component, JavaComponent):
            return _java_object(shipment, spec.id, spec.component)
        program, script = shipment.commands[spec.id]
        return thrift.ComponentObject(shell=thrift.ShellComponent(execution_command=program, script=script))

    return thrift.StormTopology(
        spouts={
            id: thrift.SpoutSpec(spout_object=object_of(spec), common=common(spec))
            for id, spec in topology.spouts.items()
        },
        bolts={
            id: thrift.Bolt(bolt_object=object_of(spec), common=common(spec)) for id, spec in topology.bolts.items()
        },
        state_spouts={},
    )


def _java_object(shipment: Shipment, id: str, component: JavaComponent) -> Any:
    thrift = types()
    if not isinstance(component.made, str):
        if id not in shipment.java:
            raise ShippingError(
                f"{id!r} is made by Java, and was not yet; call multilang.shipping.java_objects.with_java"
            )
        return thrift.ComponentObject(serialized_java=shipment.java[id])
    return thrift.ComponentObject(
        java_object=thrift.JavaObject(
            full_class_name=component.made, args_list=[_argument(each) for each in component.args]
        )
    )


def _argument(value: Any) -> Any:
    """Return Storm's JavaObjectArg; a worker looks for a constructor with exactly these types."""
    argument = types().JavaObjectArg
    if isinstance(value, bool):
        return argument(bool_arg=value)
    if isinstance(value, int):
        return argument(int_arg=value) if fits_int(value) else argument(long_arg=value)
    if isinstance(value, float):
        return argument(double_arg=value)
    return argument(string_arg=value) if isinstance(value, str) else argument(binary_arg=value)


def component_conf(spec: ComponentSpec) -> dict[str, Any]:
    """Return a component's own conf, with its number of tasks if that differs from the number of executors."""
    return dict(spec.conf) if spec.tasks == spec.parallelism else {**spec.conf, _TASKS: spec.tasks}


def check_thrift(topology: Topology) -> None:
    """Raise ShippingError for what Storm can't run, or Thrift's structs can't express."""
    check_shippable(topology)
    if not topology.spouts:
        # StormSubmitter refuses it, too; Nimbus itself accepts it.
        raise ShippingError(f"topology {topology.name!r} has no spout; nothing would ever happen in it")
    for spec in topology.bolts.values():
        for each in spec.inputs:
            refused = each.grouping.refused_by_thrift(topology[each.component].streams[each.stream].fields)
            if refused is not None:
                raise ShippingError(f"bolt {spec.id!r} subscribes to {each.component!r} {refused}")
