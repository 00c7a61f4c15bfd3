"""Petrel's TopologyBuilder, which its function ``create`` gets."""

from __future__ import annotations

import json

from multilang.compat.streamparse import thrift
from multilang.component.base import Component
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEFAULT = "default"


class TopologyBuilder:
    """The components of a topology, as its function ``create`` declares them.

    Attributes:
        spouts: The spouts by id.
        bolts: The bolts by id.
        commons: The inputs, streams, number of tasks and conf of each component, by id.
    """

    def __init__(self) -> None:
        self.spouts: dict[str, Any] = {}
        self.bolts: dict[str, Any] = {}
        self.commons: dict[str, thrift.ComponentCommon] = {}

    def setBolt(self, id: str, bolt: Any, parallelism_hint: int | None = None) -> BoltGetter:  # noqa: N802 - Petrel's
        """Declare a bolt.

        Args:
            id: Its id.
            bolt: An instance of its class.
            parallelism_hint: The number of its tasks.

        Returns:
            An object whose methods subscribe it to streams.
        """
        self._declare(id, bolt, parallelism_hint)
        self.bolts[id] = bolt
        return BoltGetter(self.commons[id])

    def setSpout(self, id: str, spout: Any, parallelism_hint: int | None = None) -> None:  # noqa: N802
        """Declare a spout; see setBolt."""
        self._declare(id, spout, parallelism_hint)
        self.spouts[id] = spout

    def addOutputStream(  # noqa: N802
        self,
        id: str,
        streamId: str,  # noqa: N803
        output_fields: Any,
        direct: bool = False,
    ) -> None:
        """Declare a further stream of a component.

        Args:
            id: The component's id.
            streamId: The stream's name.
            output_fields: The stream's fields.
            direct: Whether its tuples are emitted to a task directly.
        """
        self.commons[id].streams[streamId] = thrift.StreamInfo(output_fields=list(output_fields), direct=direct)

    def createTopology(self) -> thrift.StormTopology:  # noqa: N802
        """Return the topology as Storm's structs."""
        spouts = {
            id: thrift.SpoutSpec(spout_object=_object(each), common=self.common(id, each))
            for id, each in self.spouts.items()
        }
        bolts = {
            id: thrift.Bolt(bolt_object=_object(each), common=self.common(id, each)) for id, each in self.bolts.items()
        }
        return thrift.StormTopology(spouts=spouts, bolts=bolts, state_spouts={})

    def write(self, stream: Any) -> thrift.StormTopology:
        """Write the topology as Thrift does, to a file by its name or to a stream. Needs the extra ``storm``."""
        topology = self.createTopology()
        data = thrift.to_bytes(topology)
        if isinstance(stream, str):
            with open(stream, "wb") as file:
                file.write(data)
        else:
            stream.write(data)
        return topology

    def read(self, stream: Any) -> thrift.StormTopology:
        """Return the topology that ``write`` wrote. Needs the extra ``storm``."""
        if isinstance(stream, str):
            with open(stream, "rb") as file:
                return thrift.from_bytes(file.read())
        return thrift.from_bytes(stream.read())

    def common(self, id: str, component: Any) -> thrift.ComponentCommon:
        """Return the inputs, streams, number of tasks and conf of a component, with its default stream."""
        common = self.commons[id]
        if isinstance(component, Component):
            for name, stream in component.declared_streams().items():
                common.streams[name] = thrift.StreamInfo(output_fields=list(stream.fields), direct=stream.direct)
            common.streams.setdefault(_DEFAULT, thrift.StreamInfo(output_fields=[], direct=False))
        else:
            fields = list(component.declareOutputFields() or ())
            common.streams[_DEFAULT] = thrift.StreamInfo(output_fields=fields, direct=False)
        return common

    def _declare(self, id: str, component: Any, parallelism_hint: int | None) -> None:
        if id in self.commons:
            kind = "Bolt" if id in self.bolts else "Spout"
            raise KeyError(f"{kind} has already been declared for id {id}")
        if isinstance(component, type):
            raise TopologyError(f"{id!r} is given the class {component.__name__}; write {component.__name__}() for it")
        common = thrift.ComponentCommon(inputs={}, streams={}, parallelism_hint=parallelism_hint)
        is_own = isinstance(component, Component)  # of a project that is written over in part
        conf = dict(component.component_conf) if is_own else component.getComponentConfiguration()
        if conf is not None:
            common.json_conf = json.dumps(conf)
        self.commons[id] = common

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            if name in ("setJavaSpout", "setJavaBolt"):
                raise TopologyError(
                    f"{name} declares a component in Java, which only Storm's workers can run; write it in Python, or submit "
                    "the topology with Petrel"
                )
            raise AttributeError(f"a TopologyBuilder has no {name!r}")


class BoltGetter:
    """The methods that subscribe a declared bolt to streams; each of them returns the object itself."""

    def __init__(self, common: thrift.ComponentCommon) -> None:
        self._common = common

    def allGrouping(self, componentId: str, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803 - Petrel's
        """Send every tuple to all tasks."""
        return self.grouping(componentId, "all", thrift.NullStruct(), streamId)

    def fieldsGrouping(self, componentId: str, fields: Any, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803
        """Send tuples with equal values of these fields to the same task."""
        return self.grouping(componentId, "fields", list(fields), streamId)

    def globalGrouping(self, componentId: str, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803
        """Send all tuples to one task."""
        return self.fieldsGrouping(componentId, [], streamId)

    def shuffleGrouping(self, componentId: str, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803
        """Spread the tuples evenly and at random over the tasks."""
        return self.grouping(componentId, "shuffle", thrift.NullStruct(), streamId)

    def localOrShuffleGrouping(self, componentId: str, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803
        """Spread the tuples over the tasks in the emitter's own worker, or over all tasks if it has none of them."""
        return self.grouping(componentId, "local_or_shuffle", thrift.NullStruct(), streamId)

    def noneGrouping(self, componentId: str, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803
        """Send the tuples to any tasks."""
        return self.grouping(componentId, "none", thrift.NullStruct(), streamId)

    def directGrouping(self, componentId: str, streamId: str = _DEFAULT) -> BoltGetter:  # noqa: N802, N803
        """Let the emitter name the task, on a stream declared with ``direct=True``."""
        return self.grouping(componentId, "direct", thrift.NullStruct(), streamId)

    def grouping(self, componentId: str, attr: str, grouping: Any, streamId: str) -> BoltGetter:  # noqa: N803
        """Subscribe by the grouping that is the field ``attr`` of Storm's struct."""
        source = thrift.GlobalStreamId(componentId=componentId, streamId=streamId)
        self._common.inputs[source] = thrift.Grouping(**{attr: grouping})
        return self


def _object(component: Any) -> thrift.ComponentObject:
    if isinstance(component, Component):
        place = f"{type(component).__module__}:{type(component).__name__}"
        shell = thrift.ShellComponent(execution_command="python", script=f"-m multilang.component {place}")
    else:
        shell = thrift.ShellComponent(execution_command=component.execution_command, script=component.script)
    return thrift.ComponentObject(shell=shell)
