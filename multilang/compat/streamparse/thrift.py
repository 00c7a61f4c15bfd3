"""The structs of Storm's Thrift interface that streamparse's topologies are made of, as plain classes.

They need no package; ``Topology.write`` and ``read`` convert them to those of thriftpy2 and back.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Struct:
    """A struct: its fields are keyword arguments, and None unless they are given."""

    FIELDS: ClassVar[tuple[str, ...]] = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(self, **fields: Any) -> None:
        unknown = fields.keys() - set(self.FIELDS)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {min(unknown)!r}; it has {', '.join(self.FIELDS)}")
        for name in self.FIELDS:
            setattr(self, name, fields.get(name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.FIELDS == other.FIELDS and vars(self) == vars(other)

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name in self.FIELDS if (value := getattr(self, name, None)) is not None)
        return f"{type(self).__name__}({', '.join(given)})"


class NullStruct(Struct):
    """Nothing: the value of a grouping without fields."""


class JavaObjectArg(Struct):
    """An argument of a Java constructor; one of its fields is set."""

    FIELDS = ("int_arg", "long_arg", "string_arg", "bool_arg", "binary_arg", "double_arg")


class JavaObject(Struct):
    """A Java object by its class and its constructor's arguments."""

    FIELDS = ("full_class_name", "args_list")
    full_class_name: str
    args_list: list[JavaObjectArg]


class GlobalStreamId(Struct):
    """A stream of a component."""

    FIELDS = ("componentId", "streamId")
    componentId: Any  # noqa: N815 - Storm's name
    streamId: str  # noqa: N815 - the same

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self.componentId, self.streamId))


class Grouping(Struct):
    """A grouping; one of its fields is set."""

    FIELDS = (
        "fields",
        "shuffle",
        "all",
        "none",
        "direct",
        "custom_object",
        "custom_serialized",
        "local_or_shuffle",
    )
    fields: list[str] | None

    @property
    def kind(self) -> str:
        """The name of the field that is set."""
        return next(name for name in self.FIELDS if getattr(self, name) is not None)

    def __repr__(self) -> str:
        value = getattr(self, self.kind)
        return self.kind.upper() if isinstance(value, NullStruct) else f"{self.kind}({value!r})"


class StreamInfo(Struct):
    """The declaration of a stream."""

    FIELDS = ("output_fields", "direct")
    output_fields: list[str]
    direct: bool


class ShellComponent(Struct):
    """A command."""

    FIELDS = ("execution_command", "script")
    execution_command: str
    script: str


class ComponentObject(Struct):
    """A component; one of its fields is set."""

    FIELDS = ("serialized_java", "shell", "java_object")
    serialized_java: bytes | None
    shell: ShellComponent | None
    java_object: JavaObject | None


class ComponentCommon(Struct):
    """The inputs and outputs of a component."""

    FIELDS = ("inputs", "streams", "parallelism_hint", "json_conf")
    inputs: dict[GlobalStreamId, Grouping]
    streams: dict[str, StreamInfo]
    parallelism_hint: Any
    json_conf: str


class SpoutSpec(Struct):
    """A spout of a topology."""

    FIELDS = ("spout_object", "common")


class Bolt(Struct):
    """A bolt of a topology."""

    FIELDS = ("bolt_object", "common")


class StormTopology(Struct):
    """A topology."""

    FIELDS = ("spouts", "bolts", "state_spouts")
    spouts: dict[str, SpoutSpec]
    bolts: dict[str, Bolt]


_STRUCTS: dict[str, type[Struct]] = {
    each.__name__: each
    for each in (
        *(NullStruct, JavaObjectArg, JavaObject, GlobalStreamId, Grouping, StreamInfo, ShellComponent),
        *(ComponentObject, ComponentCommon, SpoutSpec, Bolt, StormTopology),
    )
}


def to_bytes(topology: StormTopology) -> bytes:
    """Return a topology as Thrift's binary protocol writes it. Needs the extra ``storm``."""
    from thriftpy2.utils import serialize

    types = import_module("multilang.shipping.thrift_types").types  # workers, which have none, never come here

    made: bytes = serialize(_converted(topology, lambda struct: getattr(types(), type(struct).__name__)))
    return made


def from_bytes(data: bytes) -> StormTopology:
    """Return the topology that ``to_bytes`` wrote. Needs the extra ``storm``."""
    from thriftpy2.utils import deserialize

    types = import_module("multilang.shipping.thrift_types").types  # workers, which have none, never come here

    read = deserialize(types().StormTopology(), data)
    topology: StormTopology = _converted(read, lambda struct: _STRUCTS.get(type(struct).__name__))
    return topology


def _converted(value: Any, kind_of: Any) -> Any:
    if isinstance(value, dict):
        return {_converted(key, kind_of): _converted(item, kind_of) for key, item in value.items()}
    if isinstance(value, list):
        return [_converted(item, kind_of) for item in value]
    if not hasattr(value, "__dict__") or isinstance(value, type):
        return value
    kind = kind_of(value)
    names = _STRUCTS[type(value).__name__].FIELDS
    return kind(**{name: _converted(getattr(value, name), kind_of) for name in names})
