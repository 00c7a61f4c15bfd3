"""A topology as the struct that Nimbus takes: Storm's StormTopology, made of ShellComponents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.protocol.codec import dumps
from multilang.shipping.errors import ShippingError
from multilang.shipping.shippable import check_shippable
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from typing import Any

    from multilang.shipping.jar import Shipment
    from multilang.topology import ComponentSpec, Topology
    from multilang.topology.model import Input

_PARTIAL_KEY = "org.apache.storm.grouping.PartialKeyGrouping"
_TASKS = "topology.tasks"


def storm_topology(shipment: Shipment) -> Any:
    """Return the struct of a packed topology. Raises ShippingError for what it can't express."""
    thrift = types()
    topology = shipment.topology
    check_thrift(topology)

    def common(spec: ComponentSpec) -> Any:
        return thrift.ComponentCommon(
            inputs={
                thrift.GlobalStreamId(componentId=each.component, streamId=each.stream): _grouping(each)
                for each in spec.inputs
            },
            streams={
                name: thrift.StreamInfo(output_fields=list(stream.fields), direct=stream.direct)
                for name, stream in spec.streams.items()
            },
            parallelism_hint=spec.parallelism,
            json_conf=dumps(component_conf(spec)),
        )

    def shell(spec: ComponentSpec) -> Any:
        program, script = shipment.commands[spec.id]
        return thrift.ComponentObject(shell=thrift.ShellComponent(execution_command=program, script=script))

    return thrift.StormTopology(
        spouts={
            id: thrift.SpoutSpec(spout_object=shell(spec), common=common(spec)) for id, spec in topology.spouts.items()
        },
        bolts={id: thrift.Bolt(bolt_object=shell(spec), common=common(spec)) for id, spec in topology.bolts.items()},
        state_spouts={},
    )


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
            if each.grouping.type != "partial_key":
                continue
            fields = topology[each.component].streams[each.stream].fields
            if each.grouping.fields != fields[:1]:
                # PartialKeyGrouping's constructor with fields takes an object, and Thrift's JavaObject has only plain
                # arguments. Without arguments, the first field is the key.
                raise ShippingError(
                    f"bolt {spec.id!r} subscribes to {each.component!r} by partial key {', '.join(each.grouping.fields)}; "
                    f"over Thrift the key is the stream's first field, which is {fields[0]!r}. Declare the key first, or "
                    "submit the topology with Flux (multilang flux)"
                )


def _grouping(input_: Input) -> Any:
    thrift = types()
    kind = input_.grouping.type
    if kind in ("fields", "global"):
        return thrift.Grouping(fields=list(input_.grouping.fields))  # a global grouping has no fields
    if kind == "partial_key":
        return thrift.Grouping(custom_object=thrift.JavaObject(full_class_name=_PARTIAL_KEY, args_list=[]))
    return thrift.Grouping(**{kind: thrift.NullStruct()})
