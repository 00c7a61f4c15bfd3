"""Declare topologies, as with Storm's TopologyBuilder."""

from __future__ import annotations

import sys

from multilang.component.bolt import Bolt
from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.topology import importing
from multilang.topology.check import check, check_conf, check_id
from multilang.topology.errors import TopologyError
from multilang.topology.groupings import CustomGrouping, Grouping
from multilang.topology.java import JavaBolt, JavaSpout
from multilang.topology.model import TASKS, ComponentSpec, Input, Topology, describe, is_count
from multilang.topology.shell import ShellBolt, ShellSpout, program_of
from multilang.topology.transform import transformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType
    from typing import Any, Literal

DEFAULT = "default"


class SpoutDeclarer:
    """The declared spout that ``set_spout`` returns. It has no inputs, so that nothing can be added to it."""

    def __init__(self, spec: ComponentSpec) -> None:
        self.spec = spec

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            if name.endswith("grouping"):
                raise TopologyError(
                    f"spout {self.spec.id!r} can't subscribe to anything; make it a bolt, with set_bolt"
                )
            raise AttributeError(f"a spout's declarer has no {name!r}")


class BoltDeclarer:
    """The declared bolt that ``set_bolt`` returns: its methods subscribe it to streams, and can be chained.

    Every method takes the source component, and its ``stream`` if it is not the default one. The source may be declared
    later than its subscriber: ``build`` checks that it exists.

    All methods return the declarer, and raise TopologyError when the bolt subscribes to the stream already.
    """

    def __init__(self, spec: ComponentSpec) -> None:
        self.spec = spec

    def shuffle_grouping(self, component: str, stream: str = DEFAULT) -> BoltDeclarer:
        """Spread the tuples evenly and at random over the tasks."""
        return self.grouping(component, Grouping("shuffle"), stream)

    def fields_grouping(self, component: str, *fields: str | Sequence[str], stream: str = DEFAULT) -> BoltDeclarer:
        """Send tuples with equal values of these fields to the same task: ``fields_grouping("split", "word")``."""
        return self.grouping(component, Grouping("fields", self._fields("fields_grouping", component, fields)), stream)

    def partial_key_grouping(self, component: str, *fields: str | Sequence[str], stream: str = DEFAULT) -> BoltDeclarer:
        """Send each tuple to the less used of its key's two tasks: a fields grouping that balances skewed keys."""
        names = self._fields("partial_key_grouping", component, fields)
        return self.grouping(component, Grouping("partial_key", names), stream)

    def all_grouping(self, component: str, stream: str = DEFAULT) -> BoltDeclarer:
        """Send every tuple to all tasks."""
        return self.grouping(component, Grouping("all"), stream)

    def global_grouping(self, component: str, stream: str = DEFAULT) -> BoltDeclarer:
        """Send all tuples to one task, the one with the lowest id."""
        return self.grouping(component, Grouping("global"), stream)

    def none_grouping(self, component: str, stream: str = DEFAULT) -> BoltDeclarer:
        """Send the tuples to any tasks, since it does not matter; the same as shuffle."""
        return self.grouping(component, Grouping("none"), stream)

    def direct_grouping(self, component: str, stream: str = DEFAULT) -> BoltDeclarer:
        """Let the emitter name the task (``emit(..., direct_task=)``), on a stream declared with ``direct=True``."""
        return self.grouping(component, Grouping("direct"), stream)

    def local_or_shuffle_grouping(self, component: str, stream: str = DEFAULT) -> BoltDeclarer:
        """Spread the tuples over the tasks in the emitter's own worker, or over all tasks if it has none of them."""
        return self.grouping(component, Grouping("local_or_shuffle"), stream)

    def custom_grouping(
        self, component: str, grouping: CustomGrouping | type[CustomGrouping], stream: str = DEFAULT
    ) -> BoltDeclarer:
        """Send the tuples to the tasks that your own grouping chooses.

        Args:
            component: The source.
            grouping: An instance of a subclass of CustomGrouping, or the class itself.
            stream: The source's stream.
        """
        custom = grouping() if isinstance(grouping, type) and issubclass(grouping, CustomGrouping) else grouping
        if not isinstance(custom, CustomGrouping):
            raise TopologyError(
                f"bolt {self.spec.id!r}: custom_grouping takes an instance of a subclass of CustomGrouping, "
                f"not {grouping!r}; write a class with choose_tasks(self, source_task, values)"
            )
        return self.grouping(component, Grouping("custom", custom=custom), stream)

    def grouping(self, component: str, grouping: Grouping, stream: str = DEFAULT) -> BoltDeclarer:
        """Subscribe by any grouping: ``grouping("split", Grouping("fields", ["word"]))``.

        The other methods are shorter ways to write it.

        Args:
            component: The source.
            grouping: The grouping.
            stream: The source's stream.
        """
        bolt = self.spec.id
        if not isinstance(grouping, Grouping):
            raise TopologyError(
                f"bolt {bolt!r}: grouping takes a Grouping, such as Grouping('shuffle'), not {grouping!r}"
            )
        for what, name in (("component", component), ("stream", stream)):
            if not isinstance(name, str):
                raise TopologyError(f"bolt {bolt!r}: the {what} to subscribe to is given by its id, not {name!r}")
        for other in self.spec.inputs:
            if (other.component, other.stream) == (component, stream):
                raise TopologyError(
                    f"bolt {bolt!r} already subscribes to stream {stream!r} of {component!r}, by {other.grouping} "
                    "grouping, and Storm has one grouping for each stream; declare a second stream, or a second bolt"
                )
        self.spec.inputs.append(Input(component, stream, grouping))
        return self

    def _fields(self, method: str, component: str, given: tuple[str | Sequence[str], ...]) -> list[str]:
        names: list[Any] = []
        for name in given:
            names.extend([name] if isinstance(name, str) else name)
        if not names:
            raise TopologyError(
                f"bolt {self.spec.id!r}: {method}({component!r}) names no field; write the fields after the component, "
                "or global_grouping to send all tuples to one task"
            )
        for name in names:
            if not isinstance(name, str) or names.count(name) > 1:
                why = "twice" if isinstance(name, str) else "which is no field name"
                raise TopologyError(
                    f"bolt {self.spec.id!r}: {method}({component!r}) names {name!r} {why}; names are {names}"
                )
        return names


class TopologyBuilder:
    """Declares a topology.

    >>> builder = TopologyBuilder()
    >>> builder.set_spout("sentences", Sentences, parallelism=2)
    >>> builder.set_bolt("split", SplitSentence, parallelism=4).shuffle_grouping("sentences")
    >>> builder.set_bolt("count", WordCount, parallelism=4).fields_grouping("split", "word")
    >>> topology = builder.build("word-count")

    Components are instances, classes that need no arguments, commands in any language (ShellSpout, ShellBolt), or classes of
    Java (JavaSpout, JavaBolt), which only a cluster runs. All methods raise TopologyError, whose message has the fix.

    Attributes:
        specs: The components by id, as they are declared so far.
        folder: The folder in which files that commands name are looked for; None: that of the module that calls
            ``build``.
    """

    def __init__(self) -> None:
        self.folder: str | None = None
        self.specs: dict[str, ComponentSpec] = {}

    def set_spout(
        self,
        id: str,
        spout: Spout | type[Spout] | ShellSpout | JavaSpout,
        parallelism: int = 1,
        tasks: int | None = None,
        conf: dict[str, Any] | None = None,
    ) -> SpoutDeclarer:
        """Add a spout.

        Args:
            id: The name that subscribers, logs and metrics use.
            spout: An instance, a class that needs no arguments, a ShellSpout or a JavaSpout.
            parallelism: The number of executors.
            tasks: The number of tasks that the executors run; as many as executors if it is None.
            conf: The spout's own conf.

        Returns:
            The spout as declared.

        Raises:
            TopologyError: An argument is wrong, or the id is taken.
        """
        return SpoutDeclarer(self._add(id, "spout", spout, parallelism, tasks, conf))

    def set_bolt(
        self,
        id: str,
        bolt: Bolt | type[Bolt] | ShellBolt | JavaBolt,
        parallelism: int = 1,
        tasks: int | None = None,
        conf: dict[str, Any] | None = None,
    ) -> BoltDeclarer:
        """Add a bolt.

        Args:
            id: The name that subscribers, logs and metrics use.
            bolt: An instance, a class that needs no arguments, a ShellBolt or a JavaBolt.
            parallelism: The number of executors.
            tasks: The number of tasks that the executors run; as many as executors if it is None.
            conf: The bolt's own conf.

        Returns:
            A declarer, whose methods subscribe the bolt to streams.

        Raises:
            TopologyError: An argument is wrong, or the id is taken.
        """
        return BoltDeclarer(self._add(id, "bolt", bolt, parallelism, tasks, conf))

    def build(self, name: str | None = None, conf: dict[str, Any] | None = None) -> Topology:
        """Return the topology, after checking all of it: subscriptions, fields, and whether it can run.

        Args:
            name: The topology's name; the calling module's if it is None.
            conf: The topology's conf, with Storm's keys.

        Raises:
            TopologyError: The topology can't run; the message names the first reason.
        """
        caller = sys._getframe(1).f_globals
        module = caller.get("__name__")
        check_conf(conf, "the topology's conf")
        copies = {id: spec.copy() for id, spec in self.specs.items()}
        topology = Topology(_name(caller) if name is None else name, conf or {}, copies, module=module)
        check(topology)
        if any(program_of(spec.component) for spec in copies.values()):
            _find_files(topology, self.folder, sys._getframe(1))
        return transformed(topology)

    def _add(
        self,
        id: str,
        kind: Literal["spout", "bolt"],
        component: Any,
        parallelism: int,
        tasks: int | None,
        conf: dict[str, Any] | None,
    ) -> ComponentSpec:
        check_id(id, "component")
        if id in self.specs:
            raise TopologyError(f"there is already a {self.specs[id].kind} {id!r}; give this {kind} another id")
        _check_kind(id, kind, component)
        for what, number in (("parallelism", parallelism), ("tasks", tasks)):
            if not is_count(number) and not (what == "tasks" and number is None):
                raise TopologyError(f"{kind} {id!r}: {what} is a number from 1 on, not {number!r}")
        check_conf(conf, f"{kind} {id!r}: conf")
        made = _instance(id, kind, component)
        check_conf(made.component_conf, f"{kind} {id!r}: component_conf of {describe(component)}")
        own = {**made.component_conf, **(conf or {})}
        if tasks is not None and own.get(TASKS, tasks) != tasks:
            raise TopologyError(
                f"{kind} {id!r}: tasks={tasks} and conf {TASKS!r}: {own[TASKS]!r} differ; keep one of them"
            )
        try:
            streams = made.declared_streams()
        except ConfigError as problem:
            raise TopologyError(f"{kind} {id!r} ({describe(component)}): {problem}") from problem
        spec = ComponentSpec(
            id,
            kind,
            made,
            factory=component if isinstance(component, type) else None,
            streams=streams,
            parallelism=parallelism,
            tasks=tasks,
            conf=own,
        )
        self.specs[id] = spec
        return spec


def _find_files(topology: Topology, folder: str | None, caller: FrameType) -> None:
    """Find the files of shell components, and raise TopologyError for missing ones.

    A topology may be built by a function in another module than its own. Its own is only known when it is loaded.
    """
    from multilang.component.wrapper import innermost
    from multilang.topology.commands import check_commands
    from multilang.topology.home import Home, homes_on_stack

    homes = homes_on_stack(caller) if folder is None else [Home(folder)]
    for spec in topology.components.values():
        spec.home = homes[0]
        # its tasks run the program, and need its folder
        if program_of(spec.component) not in (None, spec.component):
            innermost(spec.component).home = homes[0]
    if not importing.by_task:  # the topology that a task's process imports was checked before it was submitted
        check_commands(topology, others=homes[1:], final=False)


def _check_kind(id: str, kind: str, component: Any) -> None:
    wanted, other = ((Spout, ShellSpout, JavaSpout), (Bolt, ShellBolt, JavaBolt))[:: 1 if kind == "spout" else -1]
    is_class = isinstance(component, type)
    if issubclass(component, wanted[0]) if is_class else isinstance(component, wanted):
        return
    if issubclass(component, other) if is_class else isinstance(component, other):
        raise TopologyError(
            f"{id!r} is a {'bolt' if kind == 'spout' else 'spout'}, {describe(component)}: add it with "
            f"set_{'bolt' if kind == 'spout' else 'spout'}"
        )
    names = f"{'Spout' if kind == 'spout' else 'Bolt'}"
    what = f"the class {component.__qualname__}" if is_class else repr(component)
    raise TopologyError(
        f"{kind} {id!r}: give an instance or a subclass of {names}, Shell{names}([command, ...]) or Java{names}(class), not {what}"
    )


def _instance(id: str, kind: str, component: Any) -> Any:
    if not isinstance(component, type):
        return component
    try:
        return component()
    except TypeError as problem:
        raise TopologyError(
            f"{kind} {id!r}: {component.__name__}() failed: {problem}; give an instance, {component.__name__}(...)"
        ) from problem


def _name(caller: Mapping[str, Any]) -> str:
    """Return the name of the calling module, or of the script's file."""
    module: str = caller.get("__name__", "")
    if module == "__main__":
        module = caller.get("__file__", "").rpartition("/")[2].partition(".")[0]
    return module.rpartition(".")[2] or "topology"
