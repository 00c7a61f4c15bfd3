"""A topology of streamparse's DSL as one of this library."""

from __future__ import annotations

import json
import os
import sys

from multilang.compat.project import ENVIRONMENT, Project, project_of
from multilang.compat.pystorm.running import adapted
from multilang.compat.streamparse.dsl.component import ShellComponentSpec
from multilang.compat.streamparse.dsl.spec import RUN
from multilang.compat.streamparse.dsl.spout import JavaSpoutSpec, ShellSpoutSpec
from multilang.compat.streamparse.dsl.util import to_python_arg_list
from multilang.component.streams import Stream
from multilang.topology import (
    JavaBolt,
    JavaLong,
    JavaSpout,
    ShellBolt,
    ShellSpout,
    Topology,
    TopologyBuilder,
    TopologyError,
    importing,
)
from multilang.topology.groupings import Grouping
from multilang.topology.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def own_topology(declared: Any, name: str | None = None, environment: str | None = None) -> Topology:
    """Return a topology of the DSL as one of this library.

    In a project, the topology's own conf overrides the environment's.

    Args:
        declared: The class.
        name: The topology's name; None is the name of the class's module.
        environment: The environment with the conf and the numbers of tasks; None is that of ``MULTILANG_ENVIRONMENT``, or
            the only one of the project.

    Raises:
        TopologyError: It has serialized Java objects or groupings in Java, or lacks the environment; or it can't run.
    """
    project = None if importing.by_task else _project(declared)
    given: dict[str, Any] = {}
    environment = environment or os.environ.get(ENVIRONMENT) or None
    if project is not None:
        environment, entries = project.environment(environment)
        given = project.conf(entries)
    builder = TopologyBuilder()
    if project is not None:
        builder.folder = project.source
    specs: list[Any] = declared.specs
    for spec in specs:
        streams = {each: Stream(of.output_fields, of.direct) for each, of in spec.outputs.items()}
        default = streams.pop("default", None)
        component = _component(spec, default, streams)
        tasks = _number(spec, environment)
        conf = json.loads(spec.config)
        if not spec.inputs:
            builder.set_spout(spec.name, component, tasks, conf=conf)
        else:
            bolt = builder.set_bolt(spec.name, component, tasks, conf=conf)
            for source, grouping in spec.inputs.items():
                bolt.grouping(source.componentId, _grouping(spec, grouping), source.streamId)
    conf = {**given, **declared.config}
    topology = builder.build(declared.__module__.rpartition(".")[2] if name is None else name, conf)
    if project is not None and os.path.isdir(project.source):
        topology.home = Home(project.source, plain=True)
    return topology


def _project(declared: Any) -> Project | None:
    file = getattr(sys.modules.get(declared.__module__), "__file__", None)
    return None if file is None else project_of(file)


def _component(spec: Any, default: Stream | None, streams: dict[str, Stream]) -> Any:
    if not isinstance(spec, ShellComponentSpec):
        java = spec.component_object.java_object
        if java is None:
            raise TopologyError(
                f"{spec.name!r} is a serialized Java object, which can't be checked or packed here; name its class with "
                "full_class_name and args_list instead"
            )
        args = [JavaLong(arg) if type(arg) is int else arg for arg in to_python_arg_list(java.args_list)]
        in_java = JavaSpout if isinstance(spec, JavaSpoutSpec) else JavaBolt
        return in_java(java.full_class_name, args, default, streams)  # type: ignore[arg-type]  # a Stream is one, too
    shell = spec.component_object.shell
    assert shell is not None
    if shell.execution_command == RUN:
        component = adapted(spec.component_cls, default, streams)  # type: ignore[arg-type]  # a Stream is one, too
        component.component_conf = {}  # it is in the spec's, unless the spec has another
        return component
    kind = ShellSpout if isinstance(spec, ShellSpoutSpec) else ShellBolt
    return kind([shell.execution_command, *shell.script.split()], default, streams)  # type: ignore[arg-type]


def _number(spec: Any, environment: str | None) -> int:
    par = spec.par
    if not isinstance(par, dict):
        return int(par)
    if environment in par:
        return int(par[environment])
    if importing.by_task:
        return 1  # a task's process only looks for its component
    known = ", ".join(map(repr, par))
    which = "no environment is named" if environment is None else f"lacks the environment {environment!r}"
    raise TopologyError(f"par of {spec.name!r} has numbers for {known}, and {which}; set {ENVIRONMENT} to one of them")


def _grouping(spec: Any, grouping: Any) -> Grouping:
    kind = grouping.kind
    if kind.startswith("custom"):
        raise TopologyError(
            f"{spec.name!r} subscribes by a grouping in Java, which only Storm's workers have; write a CustomGrouping in Python, or "
            "choose the task in the source, with a direct stream"
        )
    if kind == "fields":
        return Grouping("fields", grouping.fields) if grouping.fields else Grouping("global")
    return Grouping(kind)
