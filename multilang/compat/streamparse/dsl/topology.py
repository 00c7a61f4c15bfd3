"""Topologies as classes, whose attributes are specs."""

from __future__ import annotations

import json

from multilang.compat.pystorm.component import Component
from multilang.compat.streamparse import thrift
from multilang.compat.streamparse.dsl.bolt import JavaBoltSpec, ShellBoltSpec
from multilang.compat.streamparse.dsl.component import ComponentSpec, ShellComponentSpec
from multilang.compat.streamparse.dsl.spout import JavaSpoutSpec, ShellSpoutSpec
from multilang.compat.streamparse.dsl.util import to_python_arg_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.topology import Topology as OwnTopology

_FLUX = "org.apache.storm.flux.wrappers"


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the specs by name, after naming those without one by their attribute."""
    specs: dict[str, Any] = {}
    for attribute, spec in attributes.items():
        if isinstance(spec, Component):
            raise TypeError(f"{attribute} is a component; write {type(spec).__name__}.spec() instead of an instance")
        if isinstance(spec, ComponentSpec):
            spec.name = attribute if spec.name is None else spec.name
            if spec.name in specs:
                raise ValueError(f"there are two components with the name {spec.name!r}")
            specs[spec.name] = spec
    return specs


def _settle_inputs(spec: Any, specs: dict[str, Any]) -> None:
    """Name the sources of a spec's inputs, and check that they have what the groupings need."""
    settled = {}
    for source, grouping in spec.inputs.items():
        component = source.componentId
        name = component.name if isinstance(component, ComponentSpec) else component
        declared = specs[name].outputs.get(source.streamId) if name in specs else None
        if declared is None:
            raise ValueError(
                f"{spec.name} subscribes to stream {source.streamId!r} of {name!r}, which is not in the topology"
            )
        for field in grouping.fields or ():
            if field not in declared.output_fields:
                known = ", ".join(map(repr, declared.output_fields))
                raise ValueError(
                    f"{spec.name} groups stream {source.streamId!r} of {name!r} by {field!r}; the stream has {known}"
                )
        settled[thrift.GlobalStreamId(componentId=name, streamId=source.streamId)] = grouping
    spec.inputs.clear()  # the same dict is in its thrift struct
    spec.inputs.update(settled)


class TopologyType(type):
    """The class of topologies: it checks the specs when a topology's class is made."""

    config: dict[str, Any]
    specs: list[Any]
    thrift_spouts: dict[str, Any]
    thrift_bolts: dict[str, Any]
    thrift_topology: thrift.StormTopology

    def __new__(mcs, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> TopologyType:
        """Make the class of a topology.

        Raises:
            TypeError: An attribute is a component instead of its spec, or the conf is no dict.
            ValueError: A name is there twice, there is no spout, or something is lacking.
        """
        specs = _named(attributes)
        spouts: dict[str, Any] = {}
        bolts: dict[str, Any] = {}
        for own_name, spec in specs.items():
            what = f"{spec.component_cls.__name__} {own_name!r}"
            if isinstance(spec, ShellBoltSpec | JavaBoltSpec):
                if not spec.inputs:
                    raise ValueError(f"{what} is a bolt and needs an input: spec(inputs=[...])")
                bolts[own_name] = thrift.Bolt(bolt_object=spec.component_object, common=spec.common)
            elif isinstance(spec, ShellSpoutSpec | JavaSpoutSpec):
                if not spec.outputs:
                    raise ValueError(f"{what} is a spout and needs an output: outputs = [...] in its class")
                spouts[own_name] = thrift.SpoutSpec(spout_object=spec.component_object, common=spec.common)
            else:
                raise TypeError(f"a topology consists of spouts and bolts; {what} is neither")
        for spec in specs.values():
            _settle_inputs(spec, specs)
        if bases and not spouts:
            raise ValueError(f"the topology {name} has no spout, so that no tuple would ever flow")
        config = attributes.setdefault("config", {})
        if not isinstance(config, dict):
            raise TypeError(f"config of the topology {name} is a dict of settings, not {config!r}")
        attributes["specs"] = list(specs.values())
        attributes["thrift_spouts"] = spouts
        attributes["thrift_bolts"] = bolts
        attributes["thrift_topology"] = thrift.StormTopology(spouts=spouts, bolts=bolts, state_spouts={})
        return super().__new__(mcs, name, bases, attributes)

    def __multilang_topology__(cls, name: str | None = None) -> OwnTopology:
        """Return it as a topology of this library; what loads topologies calls this."""
        from multilang.compat.streamparse.own import own_topology

        return own_topology(cls, name)

    def __repr__(cls) -> str:
        return f"<topology {cls.__name__}: {', '.join(str(spec.name) for spec in cls.specs)}>"


class Topology(metaclass=TopologyType):
    """A topology: a subclass has a spec for each component, and ``config`` for the topology's conf."""

    @classmethod
    def write(cls, stream: Any) -> None:
        """Write the topology as Thrift does, to a file by its name or to a stream. Needs the extra ``storm``."""
        data = thrift.to_bytes(cls.thrift_topology)
        if isinstance(stream, str):
            with open(stream, "wb") as file:
                file.write(data)
        else:
            stream.write(data)

    @classmethod
    def read(cls, stream: Any) -> None:
        """Read what ``write`` wrote; the specs are not part of it. Needs the extra ``storm``."""
        if isinstance(stream, str):
            with open(stream, "rb") as file:
                data = file.read()
        else:
            data = stream.read()
        topology = thrift.from_bytes(data)
        cls.thrift_topology = topology
        cls.thrift_bolts = topology.bolts
        cls.thrift_spouts = topology.spouts
        cls.specs = []

    @classmethod
    def to_flux_dict(cls, name: str) -> dict[str, Any]:
        """Return the topology as a dict that, as YAML, is a file for Storm's Flux."""
        found: dict[str, Any] = {"name": name, "bolts": [], "spouts": [], "streams": []}
        for spec in cls.specs:
            is_bolt = isinstance(spec, ShellBoltSpec | JavaBoltSpec)
            found["bolts" if is_bolt else "spouts"].append(_flux_component(spec, is_bolt))
            found["streams"] += [_flux_stream(spec.name, *each) for each in spec.inputs.items()]
        return {key: value for key, value in found.items() if value}


def _flux_component(spec: Any, is_bolt: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"id": spec.name, "constructorArgs": []}
    if not isinstance(spec, ShellComponentSpec):
        java = spec.component_object.java_object
        if java is None:
            raise TypeError(f"{spec.name} is a serialized Java object, which Flux can't make; name its class instead")
        found["className"] = java.full_class_name
        found["constructorArgs"] = to_python_arg_list(java.args_list)
        return found
    shell = spec.component_object.shell
    found["className"] = f"{_FLUX}.bolts.FluxShellBolt" if is_bolt else f"{_FLUX}.spouts.FluxShellSpout"
    arguments = found["constructorArgs"]
    methods = found["configMethods"] = []
    assert shell is not None
    arguments.append([shell.execution_command, shell.script])
    if not spec.outputs:
        arguments.append(["NONE_BUT_FLUX_WANTS_SOMETHING_HERE"])
    for stream, declared in spec.outputs.items():
        if stream == "default":
            arguments.append(declared.output_fields)
        else:
            methods.append({"name": "setNamedStream", "args": [stream, declared.output_fields]})
    found["parallelism"] = spec.par
    methods += [{"name": "addComponentConfig", "args": list(item)} for item in json.loads(spec.config).items()]
    return found


def _flux_stream(target: str, source: Any, grouping: thrift.Grouping) -> dict[str, Any]:
    found: dict[str, Any] = {"streamId": source.streamId, "type": grouping.kind.upper()}
    if grouping.fields:
        found["args"] = grouping.fields
    elif grouping.kind == "fields":
        found["type"] = "GLOBAL"
    custom: thrift.JavaObject | None = vars(grouping)["custom_object"]
    if custom is not None:
        found["type"] = "CUSTOM"
        arguments = to_python_arg_list(custom.args_list)
        found["customClass"] = {"className": custom.full_class_name, "constructorArgs": arguments}
    return {"from": source.componentId, "to": target, "grouping": found}
