"""Topologies that Storm's Flux declares in YAML, as modules of this library's own API.

``load_topology("topology.yaml")`` writes such a module into a folder of this process's own and loads it; ``multilang migrate --fix``
leaves it beside the programs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from multilang.compat.yaml_file import read_yaml
from multilang.topology.errors import TopologyError
from multilang.topology.home import RESOURCES, Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from multilang.topology import Topology

_SHELL = re.compile(r"(^|\.)Flux(Shell(Spout|Bolt))$")
_LOG = re.compile(r"(^|\.)flux\.wrappers\.bolts\.LogInfoBolt$")
_PARTIAL = re.compile(r"(^|\.)PartialKeyGrouping$")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_GROUPINGS = {
    "ALL": "all_grouping",
    "DIRECT": "direct_grouping",
    "GLOBAL": "global_grouping",
    "LOCAL_OR_SHUFFLE": "local_or_shuffle_grouping",
    "NONE": "none_grouping",
    "SHUFFLE": "shuffle_grouping",
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
    entries = read_yaml(path)
    parts = [entries.get("spouts"), entries.get("bolts", [])]
    if not all(isinstance(each, list) for each in parts):
        return False
    made = [each for part in parts for each in part]
    return not made or any(isinstance(each, dict) and "className" in each for each in made)


def own_topology(path: str) -> Topology:
    """Return the topology of a file of Flux's as one of this library.

    Args:
        path: The file.

    Raises:
        ConfigError: The file can't be read, or has something that only Java can make.
    """
    from multilang.topology.load import load_topology

    declared = Declared(path)
    topology = load_topology(_written(declared))
    home = topology.home = Home(declared.folder, plain=True)
    for spec in topology.components.values():
        spec.home = home
    return topology


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
        entries = _with_includes(self.path, ())
        if entries.get("topologySource"):
            raise self._refused("topologySource is made in Java: declare the topology's components in the file")
        if not _list_of(entries, "spouts"):
            raise self._refused("it declares no spouts, as a topology of Flux's does")
        self.name = str(entries.get("name") or os.path.basename(path).partition(".")[0])
        self._conf = _dict_of(entries, "config")
        made = {
            kind: [Part.of(each, kind, self) for each in _list_of(entries, f"{kind}s")] for kind in ("spout", "bolt")
        }
        self._spouts, self._bolts = made["spout"], made["bolt"]
        self._streams = [_dict_in(each, "a stream", self) for each in _list_of(entries, "streams")]
        self.folder = self._found()

    @property
    def module(self) -> str:
        """The name of its module, which no program and no module of Python's has."""
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
                if each.get(end) not in known:
                    raise self._refused(f"a stream is {end} {each.get(end)!r}, and there is no such component")
        sources = {each.get("from") for each in self._streams}
        lines = ["", "builder = TopologyBuilder()"]
        if folder is not None:
            lines.append(f"builder.folder = {folder!r}")
        for part in (*self._spouts, *self._bolts):
            if part.is_java and part.id in sources:
                raise self._refused(
                    f"{part.kind} {part.id!r} is of the Java class {part.java_class}, whose fields this file does not tell: declare the "
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
                yield self._subscription(str(each.get("from")), _dict_of(each, "grouping"))

    def _subscription(self, source: str, grouping: dict[str, Any]) -> str:
        kind = str(grouping.get("type") or "SHUFFLE").upper()
        stream = str(grouping.get("streamId") or "default")
        of_stream = "" if stream == "default" else f", stream={stream!r}"
        fields = [str(each) for each in grouping.get("args") or ()]
        if kind == "FIELDS":
            return f".fields_grouping({source!r}, {fields!r}{of_stream})"
        if kind == "CUSTOM" and _PARTIAL.search(str(_dict_of(grouping, "customClass").get("className"))):
            arguments = _dict_of(grouping, "customClass").get("constructorArgs") or []
            if arguments and isinstance(arguments[0], list):
                return f".partial_key_grouping({source!r}, {[str(each) for each in arguments[0]]!r}{of_stream})"
        if kind not in _GROUPINGS:
            raise self._refused(
                f"the stream from {source!r} has the grouping {kind}, which is written in Java; write a CustomGrouping in Python"
            )
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
    def of(cls, given: Any, kind: str, declared: Declared) -> Part:
        """Return a part as the file has it.

        Args:
            given: Its entries.
            kind: spout or bolt.
            declared: The file.

        Raises:
            TopologyError: It has something that only Java can make.
        """
        entries = _dict_in(given, f"a {kind}", declared)
        id, java_class = str(entries.get("id")), str(entries.get("className"))
        arguments = entries.get("constructorArgs") or []
        command: tuple[str, ...] = ()
        streams: dict[str, list[str]] = {}
        refuse = declared._refused
        if _SHELL.search(java_class):
            first, *others = arguments or [None]
            if not isinstance(first, list):
                raise refuse(f"{kind} {id!r} has no command: the first of its constructorArgs is a list of words")
            command = tuple(str(each) for each in first)
            if others and isinstance(others[0], list):
                streams["default"] = [str(each) for each in others[0]]
        elif not _LOG.search(java_class):
            made = [each for each in arguments if isinstance(each, dict | list)]
            if made or entries.get("properties"):
                raise refuse(
                    f"{kind} {id!r} of the Java class {java_class} is made of Java objects: declare the topology in Python, with a "
                    "JavaObject for it"
                )
        conf: dict[str, Any] = {}
        changes = True
        for each in entries.get("configMethods") or ():
            method = _dict_in(each, f"a method of {id!r}", declared)
            name, given_args = method.get("name"), list(method.get("args") or ())
            if name == "setDefaultStream" and command:
                streams["default"] = [str(field) for field in given_args[0]]
            elif name == "setNamedStream" and command:
                streams[str(given_args[0])] = [str(field) for field in given_args[1]]
            elif name == "addComponentConfig" and command:
                conf[str(given_args[0])] = given_args[1]
            elif name == "changeChildCWD" and command:
                changes = bool(given_args[0])
            else:
                raise refuse(f"{kind} {id!r} calls the Java method {name}, which has no counterpart here; leave it out")
        executors = entries.get("parallelism") or 1
        tasks = entries.get("numTasks")
        return cls(
            kind,
            id,
            java_class,
            command,
            tuple(arguments),
            streams,
            conf,
            changes,
            int(executors),
            tasks and int(tasks),
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
            shown += [f"conf={self.conf!r}"] if self.conf else []
            shown += [] if self.changes else ["change_child_cwd=False"]
            component = f"Shell{name}({', '.join(shown)})"
        elif self.is_java:
            component = f"Java{name}({self.java_class!r}, {list(self.arguments)!r})"
        else:
            component = "LogInfo()"
        number = f", {self.executors}" if self.executors != 1 or self.tasks else ""
        return f"{self.id!r}, {component}{number}" + (f", tasks={self.tasks}" if self.tasks else "")


def _with_includes(path: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """Return a file's entries, with those of the files that it includes below them."""
    if path in seen:
        raise TopologyError(f"{path} includes itself")
    entries: dict[str, Any] = _filled(read_yaml(path), path)
    for each in _list_of(entries, "includes"):
        name = str(each.get("file") if isinstance(each, dict) else each).lstrip("/")
        other = _with_includes(os.path.join(os.path.dirname(path), name), (*seen, path))
        stronger = bool(isinstance(each, dict) and each.get("override"))
        for key, value in other.items():
            if isinstance(value, list) and key != "includes":
                ids = {part.get("id") for part in entries.get(key) or () if isinstance(part, dict) and "id" in part}
                entries[key] = [*(entries.get(key) or ()), *(part for part in value if part.get("id") not in ids)]
            elif isinstance(value, dict):
                mine = entries.get(key) or {}
                entries[key] = {**mine, **value} if stronger else {**value, **mine}
            elif key not in entries or stronger:
                entries[key] = value
    return entries


def _filled(value: Any, path: str) -> Any:
    """Return entries with ``${ENV-NAME}`` replaced by variables of the environment, as Flux's --env-filter does."""
    if isinstance(value, dict):
        return {key: _filled(item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(each, path) for each in value]
    if not isinstance(value, str):
        return value

    def variable(found: Any) -> str:
        name = found[1].removeprefix("ENV-")
        if name not in os.environ:
            raise TopologyError(
                f"{path} has ${{{found[1]}}}, which Flux takes from a file or the environment; set the variable {name!r} of the environment"
            )
        return os.environ[name]

    text = _VARIABLE.sub(variable, value)
    if text == value:
        return value
    return int(text) if text.isdigit() else text


def _list_of(entries: Mapping[str, Any], key: str) -> list[Any]:
    value = entries.get(key) or []
    return value if isinstance(value, list) else []


def _dict_of(entries: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = entries.get(key) or {}
    return value if isinstance(value, dict) else {}


def _dict_in(given: Any, what: str, declared: Declared) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    raise TopologyError(f"{declared.path}: {what} is {given!r}; write its entries")


def _written(declared: Declared) -> str:
    """Return a file of this process's own with the module's text, which is there until the process ends."""
    from atexit import register
    from shutil import rmtree
    from tempfile import mkdtemp

    text = declared.text(declared.folder)
    folder = mkdtemp(prefix="multilang-flux-")
    register(rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, f"{declared.module}.py")
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
    return path
