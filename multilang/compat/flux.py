"""Topologies that Storm's Flux declares in YAML, as modules of this library's own API.

``load_topology("topology.yaml")`` writes such a module into a folder of this process's own and loads it;
``multilang migrate --fix`` writes it beside the programs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from multilang.compat.flux_file import Entries, filled, flux_entries, plain, texts
from multilang.compat.yaml_file import read_yaml
from multilang.topology.errors import TopologyError
from multilang.topology.home import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SHELL = re.compile(r"(^|\.)Flux(Shell(Spout|Bolt))$")
_LOG = re.compile(r"(^|\.)flux\.wrappers\.bolts\.LogInfoBolt$")
_PARTIAL = re.compile(r"(^|\.)PartialKeyGrouping$")
_GROUPINGS = {
    "ALL": "all_grouping",
    "DIRECT": "direct_grouping",
    "GLOBAL": "global_grouping",
    "LOCAL_OR_SHUFFLE": "local_or_shuffle_grouping",
    "NONE": "none_grouping",
    "SHUFFLE": "shuffle_grouping",
}
_LOADS = {
    "onHeapMemoryLoad": "topology.component.resources.onheap.memory.mb",
    "offHeapMemoryLoad": "topology.component.resources.offheap.memory.mb",
    "cpuLoad": "topology.component.cpu.pcore.percent",
}
_METHODS: dict[str, tuple[tuple[type, ...], str]] = {
    "setDefaultStream": ((list,), "[[field]]"),
    "setNamedStream": ((str, list), "[stream, [field]]"),
    "addComponentConfig": ((str, object), "[key, value]"),
    "changeChildCWD": ((bool,), "[false]"),
}
_DEPTH = 4  # folders above the YAML in which the programs are looked for
_PLACES = (
    "",
    "multilang/resources",
    RESOURCES,
    "src/main/resources/resources",
    "src/main/multilang/resources",
    "src/main/resources",
    "src/main/python",
)


def is_flux(path: str) -> bool:
    """Return whether a file of YAML declares a topology of Flux's.

    Args:
        path: The file.

    Raises:
        ConfigError: It can't be read.
    """
    entries = read_yaml(path, filled, again=True)
    parts = [entries.get("spouts"), entries.get("bolts", [])]
    if not all(isinstance(each, list) for each in parts):
        return False
    made = [each for part in parts for each in part]
    return not made or any(isinstance(each, dict) and "className" in each for each in made)


class Declared:
    """The declarations of a file of Flux's.

    Args:
        path: The file.

    Attributes:
        path: The file.
        name: The topology's name.
        folder: The folder with the programs.

    Raises:
        ConfigError: The file can't be read, or has something that only Java can make.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        entries = flux_entries(self.path)
        if entries.get("topologySource"):
            entries.refuse("topologySource is made in Java: declare the topology's components in the file")
        if not entries.listed("spouts"):
            entries.refuse("it declares no spouts, as a topology of Flux's does")
        entries.only(
            "name",
            "includes",
            "config",
            "topologySource",
            "spouts",
            "bolts",
            "streams",
            java=("components", "workerHooks"),
        )
        self.name = (
            entries.text("name") if entries.get("name") is not None else os.path.basename(path).partition(".")[0]
        )
        self._conf = entries.conf("config", "config")
        made = {
            kind: [Part.of(each, kind) for each in entries.each(f"{kind}s", f"a {kind}")] for kind in ("spout", "bolt")
        }
        self._spouts, self._bolts = made["spout"], made["bolt"]
        self._streams = entries.each("streams", "a stream")
        for stream in self._streams:
            stream.only("name", "from", "to", "grouping")
        self.folder = self._found()

    @property
    def module(self) -> str:
        """The name of its module, which differs from those of programs and of Python's modules."""
        return f"{re.sub(r'^(?=[0-9])', '_', re.sub(r'[^A-Za-z0-9_]', '_', self.name))}_topology"

    @property
    def file(self) -> str:
        """The path of its module, beside the programs."""
        return os.path.join(self.folder, f"{self.module}.py")

    def text(self, folder: str | None = None) -> str:
        """Return the text of its module.

        Args:
            folder: The folder with the programs; None: that of the module.
        """
        read = {each.id: self._subscriptions(each.id) for each in self._bolts}
        known = {each.id for each in (*self._spouts, *self._bolts)}
        for each in self._streams:
            for end in ("from", "to"):
                if each.text(end) not in known:
                    raise self._refused(f"a stream is {end} {each.get(end)!r}, and there is no such component")
        sources = {each.get("from") for each in self._streams}
        lines = ["", "builder = TopologyBuilder()"]
        if folder is not None:
            lines.append(f"builder.folder = {folder!r}")
        for part in (*self._spouts, *self._bolts):
            if part.is_java and part.id in sources:
                raise self._refused(
                    f"{part.kind} {part.id!r} is of the Java class {part.java_class}, whose fields are not in this file: declare the "
                    f"topology in Python, with Java{part.kind.title()}({part.java_class!r}, output_fields=[...])"
                )
            lines.append(f"builder.set_{part.kind}({part.declaration()}){''.join(read.get(part.id, ()))}")
        lines.append(f"topology = builder.build({self.name!r}, {self._conf!r})")
        used = " ".join(lines)
        names = [
            each for each in ("JavaBolt", "JavaSpout", "ShellBolt", "ShellSpout", "TopologyBuilder") if each in used
        ]
        head = [f'"""The topology of {os.path.basename(self.path)}."""', ""]
        if "LogInfo()" in used:
            head.append("from multilang.compat.logged import LogInfo")
        head.append(f"from multilang.topology import {', '.join(names)}")
        return "\n".join([*head, *lines]) + "\n"

    def _subscriptions(self, bolt: str) -> Iterator[str]:
        for each in self._streams:
            if each.get("to") == bolt:
                source = each.text("from")
                yield self._subscription(
                    source, each.entries("grouping", f"the grouping of the stream from {source!r}")
                )

    def _subscription(self, source: str, grouping: Entries) -> str:
        kind = grouping.text("type").upper()
        stream = "default" if grouping.get("streamId") is None else grouping.text("streamId")
        of_stream = "" if stream == "default" else f", stream={stream!r}"
        if kind == "FIELDS":
            grouping.only("type", "streamId", "args")
            return f".fields_grouping({source!r}, {grouping.texts('args')!r}{of_stream})"
        if kind == "CUSTOM":
            made = grouping.entries("customClass", "customClass")
            arguments = made.listed("constructorArgs")
            if _PARTIAL.search(str(made.get("className"))) and arguments and isinstance(arguments[0], list):
                grouping.only("type", "streamId", "customClass")
                made.only("className", "constructorArgs")
                fields = texts(arguments[0], "constructorArgs of customClass", made)
                if len(arguments) > 1:
                    made.refuse("a PartialKeyGrouping has a second argument, which is written in Java; leave it out")
                return f".partial_key_grouping({source!r}, {fields!r}{of_stream})"
        if kind not in _GROUPINGS:
            raise self._refused(
                f"the stream from {source!r} has the grouping {kind}, which is written in Java; write a CustomGrouping in Python"
            )
        grouping.only("type", "streamId")
        return f".{_GROUPINGS[kind]}({source!r}{of_stream})"

    def _found(self) -> str:
        """Return the folder that has the programs' scripts; the file's own if none has."""
        scripts = [
            word for each in (*self._spouts, *self._bolts) for word in each.command[1:] if not word.startswith("-")
        ]
        folder = own = os.path.dirname(self.path)
        for _ in range(_DEPTH):
            for place in _PLACES:
                here = os.path.join(folder, *place.split("/"))
                if any(os.path.isfile(os.path.join(here, each)) for each in scripts):
                    return os.path.normpath(here)
            folder = os.path.dirname(folder)
        return own

    def _refused(self, why: str) -> TopologyError:
        return TopologyError(f"{self.path}: {why}")


@dataclass(frozen=True)
class Part:
    """A spout or bolt.

    Attributes:
        kind: spout or bolt.
        id: Its id.
        java_class: The class that Flux makes of it.
        command: The command, if it is a program.
        arguments: The constructor's arguments, of another class.
        streams: The fields of its streams by name.
        conf: Its own conf.
        changes: Whether its command starts in the jar's resources/.
        executors: The number of executors.
        tasks: The number of tasks; None: as many.
    """

    kind: str
    id: str
    java_class: str
    command: tuple[str, ...]
    arguments: tuple[Any, ...]
    streams: dict[str, list[str]]
    conf: dict[str, Any]
    changes: bool
    executors: int
    tasks: int | None

    @classmethod
    def of(cls, entries: Entries, kind: str) -> Part:
        """Return a part as the file has it.

        Args:
            entries: Its entries.
            kind: spout or bolt.

        Raises:
            TopologyError: It has something that only Java can make.
        """
        id = entries.text("id")
        entries.what = f"{kind} {id!r}"
        java_class = entries.text("className")
        shell = _SHELL.search(java_class)
        logs = kind == "bolt" and _LOG.search(java_class)
        if shell and shell[3] != kind.title():
            entries.refuse(f"{kind} {id!r} is of the class {java_class}, which is no {kind}")
        entries.only(
            *("id", "className", "parallelism", "numTasks", "config", *_LOADS),
            *(() if logs else ("constructorArgs", "configMethods")),
            java=("properties", "factory", "factoryArgs"),
        )
        arguments = entries.listed("constructorArgs")
        command: list[str] = []
        streams: dict[str, list[str]] = {}
        if shell:
            command, streams = _command(entries, arguments)
        elif any(isinstance(each, dict | list) for each in arguments):
            entries.refuse(
                f"{kind} {id!r} of the Java class {java_class} is made of Java objects: declare the topology in Python, with a "
                "JavaObject for it"
            )
        arguments = [plain(each, f"one of the constructorArgs of {kind} {id!r}", entries) for each in arguments]
        conf: dict[str, Any] = {}
        changes = True
        for method in entries.each("configMethods", f"a method of {kind} {id!r}"):
            name, given = _called(method, f"{kind} {id!r}", bool(command))
            if name == "setDefaultStream":
                streams["default"] = given[0]
            elif name == "setNamedStream":
                streams[given[0]] = given[1]
            elif name == "addComponentConfig":
                conf[given[0]] = given[1]
            else:
                changes = given[0]
        for key, name in _LOADS.items():
            load = entries.number(key, -1)
            if load not in (None, -1):  # -1: Flux's sign for none
                conf[name] = load
        conf.update(entries.conf("config", f"config of {kind} {id!r}"))
        return cls(
            kind,
            id,
            java_class,
            tuple(command),
            tuple(arguments),
            streams,
            conf,
            changes,
            entries.number("parallelism", 1) or 1,
            None if entries.get("numTasks") == -1 else entries.number("numTasks", 1),
        )

    @property
    def is_java(self) -> bool:
        """True if only a worker can run it."""
        return not self.command and not _LOG.search(self.java_class)

    def declaration(self) -> str:
        """Return the arguments of the builder's method."""
        name = self.kind.title()
        if self.command:
            streams = dict(self.streams)
            default = streams.pop("default", None)
            shown = [repr(list(self.command))]
            shown += [repr(default)] if default else []
            shown += [f"output_streams={streams!r}"] if streams else []
            shown += [] if self.changes else ["change_child_cwd=False"]
            component = f"Shell{name}({', '.join(shown)})"
        elif self.is_java:
            component = f"Java{name}({self.java_class!r}, {list(self.arguments)!r})"
        else:
            component = "LogInfo()"
        shown = [repr(self.id), component]
        shown += [str(self.executors)] if self.executors != 1 or self.tasks else []
        shown += [f"tasks={self.tasks}"] if self.tasks else []
        shown += [f"conf={self.conf!r}"] if self.conf else []
        return ", ".join(shown)


def _called(method: Entries, part: str, is_shell: bool) -> tuple[str, list[Any]]:
    """Return a method of FluxShellSpout or FluxShellBolt that a part calls, with its arguments."""
    method.only("name", "args")
    name, args = method.text("name"), method.listed("args")
    if not is_shell or name not in _METHODS:
        method.refuse(f"{part} calls the Java method {name}, which has no counterpart here; leave it out")
    what = f"the args of {name} of {part}"
    kinds, shown = _METHODS[name]
    plain(args, what, method)
    if len(args) != len(kinds) or not all(map(isinstance, args, kinds)):
        method.refuse(f"{what} are {args!r:.80}; write them as {shown}")
    if list in kinds:
        texts(args[-1], what, method)
    return name, args


def _command(entries: Entries, arguments: list[Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the command and the streams that a program is made with."""
    if not arguments or not isinstance(arguments[0], list) or not arguments[0] or len(arguments) > 2:
        entries.refuse(
            f"{entries.what} has no command: the first of its constructorArgs is a list of words, the second of fields"
        )
    words = texts(arguments[0], f"the command of {entries.what}", entries)
    fields = [texts(each, f"the fields of {entries.what}", entries) for each in arguments[1:]]
    return words, dict(zip(["default"], fields, strict=False))


def written(path: str) -> tuple[str, str]:
    """Write the module of a file of Flux's, which is removed when this process ends; return its path, and the programs' folder.

    Args:
        path: The file.

    Raises:
        ConfigError: The file can't be read, or has something that only Java can make.
    """
    from atexit import register
    from shutil import rmtree
    from tempfile import mkdtemp

    declared = Declared(path)
    text = declared.text(declared.folder)
    folder = mkdtemp(prefix="multilang-flux-")
    register(rmtree, folder, ignore_errors=True)
    module = os.path.join(folder, f"{declared.module}.py")
    with open(module, "x", encoding="utf-8") as file:
        file.write(text)
    return module, declared.folder
