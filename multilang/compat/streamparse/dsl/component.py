"""The declaration of one component of a topology."""

from __future__ import annotations

import json

from multilang.compat.streamparse import thrift
from multilang.compat.streamparse.dsl.stream import Grouping, Stream
from multilang.compat.streamparse.dsl.util import to_java_arg
from multilang.compat.values import as_simplejson_sends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEFAULT = "default"


class ComponentSpec:
    """A component with its name, inputs, outputs, parallelism and conf; a component's ``spec`` makes it.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The parallelism is below 1.
    """

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        inputs: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> None:
        self.component_cls = component_cls
        self.name = name
        self.par = _checked_par(component_cls.par if par is None else par)
        self.config = conf_of(component_cls.config if config is None else config)
        self.outputs = streams_of(component_cls.outputs if outputs is None else outputs)
        self.inputs = _inputs(inputs)
        self.common = thrift.ComponentCommon(
            inputs=self.inputs, streams=self.outputs, parallelism_hint=self.par, json_conf=self.config
        )
        self.component_object: thrift.ComponentObject

    def __getitem__(self, stream: str) -> thrift.GlobalStreamId:
        if stream not in self.outputs:
            known = ", ".join(map(repr, self.outputs)) or "none"
            raise KeyError(f"{self.name or self.component_cls.__name__} has no stream {stream!r}; it has {known}")
        return thrift.GlobalStreamId(componentId=self.name or self, streamId=stream)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.component_cls.__name__}, name={self.name!r}, inputs={self.inputs!r}, "
            f"par={self.par!r}, config={self.config!r}, outputs={self.outputs!r})"
        )


class JavaComponentSpec(ComponentSpec):
    """A component in Java; see ComponentSpec."""

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        serialized_java: Any = None,
        full_class_name: str | None = None,
        args_list: Any = None,
        inputs: Any = None,
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> None:
        super().__init__(component_cls, name=name, inputs=inputs, par=par, config=config, outputs=outputs)
        if serialized_java is not None:
            if not isinstance(serialized_java, bytes):
                raise TypeError(f"serialized_java is given as bytes, not {serialized_java!r}")
            self.component_object = thrift.ComponentObject(serialized_java=serialized_java)
            return
        if not full_class_name:
            raise ValueError("a component in Java needs full_class_name, or serialized_java")
        if args_list is None:
            raise TypeError("a component in Java needs args_list; write [] for a constructor without arguments")
        java = thrift.JavaObject(full_class_name=full_class_name, args_list=[to_java_arg(arg) for arg in args_list])
        self.component_object = thrift.ComponentObject(java_object=java)


class ShellComponentSpec(ComponentSpec):
    """A component that a command starts, as those in Python are; see ComponentSpec."""

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        inputs: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> None:
        super().__init__(component_cls, name=name, inputs=inputs, par=par, config=config, outputs=outputs)
        if not command:
            raise ValueError("a component that is a command needs command")
        if script is None:
            raise TypeError("a component that is a command needs script; write '' if the command takes no arguments")
        shell = thrift.ShellComponent(execution_command=command, script=script)
        self.component_object = thrift.ComponentObject(shell=shell)


def _checked_par(par: Any) -> Any:
    numbers = par if isinstance(par, dict) else {"": par}
    for environment, number in numbers.items():
        of = f" of the environment {environment!r}" if environment != "" else ""
        if not isinstance(environment, str):
            raise TypeError(f"par maps the names of environments to numbers; {environment!r} is no name")
        if not isinstance(number, int):
            raise TypeError(f"par{of} is a number from 1 on, not {number!r}")
        if number < 1:
            raise ValueError(f"par{of} is a number from 1 on, not {number!r}")
    return par


def conf_of(config: Any) -> str:
    """Return a component's conf as JSON text.

    Raises:
        TypeError: It is no dict.
    """
    if config is not None and not isinstance(config, dict):
        raise TypeError(f"config is a dict of settings, not {config!r}")
    return json.dumps(as_simplejson_sends(config or {}))


def streams_of(outputs: Any) -> dict[str, thrift.StreamInfo]:
    """Return the streams that a component's ``outputs`` declare, by name.

    Raises:
        TypeError: It is no list of names and Streams.
    """
    if outputs is None:
        outputs = []
    if not isinstance(outputs, list | tuple):
        raise TypeError(f"outputs is a list of names of fields, or of Streams, not {outputs!r}")
    streams: dict[str, thrift.StreamInfo] = {}
    for output in outputs:
        if isinstance(output, Stream):
            streams[output.name] = thrift.StreamInfo(output_fields=output.fields, direct=output.direct)
        elif isinstance(output, str):
            default = streams.setdefault(_DEFAULT, thrift.StreamInfo(output_fields=[], direct=False))
            default.output_fields.append(output)
        else:
            raise TypeError(f"outputs is a list of names of fields, or of Streams; {output!r} is neither")
    return streams


def _inputs(inputs: Any) -> dict[thrift.GlobalStreamId, thrift.Grouping]:
    if inputs is None:
        return {}
    if isinstance(inputs, dict):
        return {_stream_of(source): _checked_grouping(grouping) for source, grouping in inputs.items()}
    if isinstance(inputs, ComponentSpec):
        inputs = [inputs]
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"inputs is a list of specs and streams, or a dict of them with groupings, not {inputs!r}")
    return {_stream_of(source): _default_grouping(source) for source in inputs}


def _stream_of(source: Any) -> thrift.GlobalStreamId:
    if isinstance(source, thrift.GlobalStreamId):
        return source
    if isinstance(source, ComponentSpec):
        return thrift.GlobalStreamId(componentId=source.name or source, streamId=_DEFAULT)
    raise TypeError(f"an input is a spec, or a stream of one such as spec['errors'], not {source!r}")


def _checked_grouping(grouping: Any) -> thrift.Grouping:
    if not isinstance(grouping, thrift.Grouping):
        raise TypeError(
            f"an input has a grouping, such as Grouping.SHUFFLE or Grouping.fields('word'), not {grouping!r}"
        )
    return grouping


def _default_grouping(source: Any) -> thrift.Grouping:
    """Return the grouping of an input that names none: direct for a spec whose default stream is direct."""
    default = source.outputs.get(_DEFAULT) if isinstance(source, ComponentSpec) else None
    return Grouping.DIRECT if default is not None and default.direct else Grouping.SHUFFLE
