"""The entries of a file of Storm's Flux, as Flux reads them: variables are replaced in the text before it is read as YAML."""

from __future__ import annotations

import os
import re

from multilang.compat.yaml_file import read_yaml
from multilang.component.errors import ConfigError
from multilang.protocol.codec import reason_against
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

_VARIABLE = re.compile(r"\$\{([^}\n]+)\}")
_OF_LIST = re.compile(r"(.+)\[([0-9]+)\]")
_BY_ID = ("components", "bolts", "spouts", "workerHooks")
_INTEGER = re.compile(r"[-+]?[0-9]+")


class Entries:
    """The entries of a part of the file. Each is read by its name, and refused by its name if it is of another kind.

    Args:
        given: The value in the file.
        what: The part, in the words of a message.
        path: The file.

    Raises:
        TopologyError: It has no entries.
    """

    def __init__(self, given: Any, what: str, path: str) -> None:
        self.path = path
        self.what = what
        if not isinstance(given, dict):
            self.refuse(f"{what} is {given!r:.80}; write its entries")
        self.given: dict[Any, Any] = given

    def refuse(self, why: str) -> NoReturn:
        """Raise TopologyError with the file and the reason."""
        raise TopologyError(f"{self.path}: {why}")

    def only(self, *keys: str, java: tuple[str, ...] = ()) -> None:
        """Refuse entries that are not read.

        Args:
            *keys: The keys that are read.
            java: Keys that Flux knows, for objects that only Java can make.
        """
        for key, value in self.given.items():
            if key in java and value not in (None, [], {}):
                self.refuse(
                    f"{self.what} has {key}, by which Flux makes objects of Java: leave it out, or declare the topology in Python, with "
                    "a JavaObject for them"
                )
            if key not in keys and key not in java:
                self.refuse(
                    f"{self.what} has the entry {key!r}, which means nothing there; leave it out, or mend its name"
                )

    def get(self, key: str) -> Any:
        """Return an entry as it is; None if it is not there."""
        return self.given.get(key)

    def text(self, key: str) -> str:
        """Return an entry that is text and not empty."""
        value = self.get(key)
        if value is None or value == "":
            self.refuse(f"{self.what} has no {key}; add it")
        if not isinstance(value, str):
            self.refuse(f"the {key} of {self.what} is {value!r:.80}, and no text; put it in quotes")
        return value

    def texts(self, key: str) -> list[str]:
        """Return an entry that is a list of texts."""
        return texts(self.listed(key), f"{key} of {self.what}", self)

    def number(self, key: str, least: int) -> int | None:
        """Return an entry that is an integer; None if it is not there."""
        value = self.get(key)
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            value = int(value)  # Flux asks for an integer, in quotes, too
        if value is None:
            return None
        if type(value) is not int or value < least:
            self.refuse(f"the {key} of {self.what} is {value!r:.80}; use an integer from {least} on")
        return value

    def listed(self, key: str) -> list[Any]:
        """Return an entry that is a list; an empty one if it is not there."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(f"the {key} of {self.what} is {value!r:.80}, and no list; write each with a dash before it")
        return value

    def entries(self, key: str, what: str) -> Entries:
        """Return an entry that has entries; without any if it is not there."""
        value = self.get(key)
        return Entries({} if value is None else value, what, self.path)

    def each(self, key: str, what: str) -> list[Entries]:
        """Return the entries of each part of a list."""
        return [Entries(each, what, self.path) for each in self.listed(key)]

    def conf(self, key: str, what: str) -> dict[str, Any]:
        """Return an entry that is a conf."""
        conf = self.entries(key, what).given
        return {name: plain(value, f"{name} of {what}", self) for name, value in conf.items()}


def plain(value: Any, what: str, of: Entries) -> Any:
    """Return a value that JSON has; refuse any other one, such as a date or a reference to an object of Java."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("ref", "reflist"):
        of.refuse(
            f"{what} is made of Java objects ({next(iter(value))}): declare the topology in Python, with a JavaObject for it"
        )
    reason = reason_against(value)
    if reason is not None:
        of.refuse(f"{what} is {value!r:.80}, which can't be sent to Storm ({reason}); put it in quotes")
    return value


def texts(value: Any, what: str, of: Entries) -> list[str]:
    """Return a list of texts; refuse anything else."""
    if not isinstance(value, list):
        of.refuse(f"{what} is {value!r:.80}; write a list of texts")
    for each in value:
        if not isinstance(each, str):
            of.refuse(f"{what} has {each!r:.80}, which is no text; put it in quotes")
    return value


def flux_entries(path: str) -> Entries:
    """Return a file's entries, with those of the files that it includes, as Flux joins them.

    Args:
        path: The file.

    Raises:
        ConfigError: It can't be read, or includes itself.
    """
    return Entries(_with_includes(path, ()), "the file", path)


def filled(text: str) -> str:
    """Return a text with ``${NAME}`` and ``${ENV-NAME}`` replaced by variables of the environment.

    ``${NAME[0]}`` is an element of a list. Other names are not replaced.

    Args:
        text: The text.
    """
    return _VARIABLE.sub(lambda found: _value(found[1].removeprefix("ENV-"), found[0]), text)


def _value(name: str, otherwise: str) -> str:
    element = _OF_LIST.fullmatch(name)
    if name in os.environ or element is None or element[1] not in os.environ:
        return os.environ.get(name, otherwise)
    elements = os.environ[element[1]].strip().removeprefix("[").removesuffix("]").split(",")
    number = int(element[2])
    return elements[number].strip().strip("\"'") if number < len(elements) else otherwise


def _unset(value: Any) -> Iterator[str]:
    """Return the variables that are left in entries."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _unset(key)
            yield from _unset(each)
    elif isinstance(value, list):
        for each in value:
            yield from _unset(each)
    elif isinstance(value, str):
        yield from _VARIABLE.findall(value)


def _entries(path: str) -> dict[str, Any]:
    left: list[str] = []

    def change(text: str) -> str:
        left[:] = _VARIABLE.findall(filled(text))
        return filled(text)

    try:
        entries = read_yaml(path, change)
        left = list(_unset(entries))  # comments are not read
    except ConfigError as error:
        if not left or isinstance(error, TopologyError):
            raise
    if left:
        raise TopologyError(
            f"{path}: it has ${{{left[0]}}}, which Flux takes from a file or the environment; set the variable "
            f"{left[0].removeprefix('ENV-')!r} of the environment"
        )
    return entries


def _with_includes(path: str, seen: tuple[str, ...]) -> dict[str, Any]:
    if path in seen:
        raise TopologyError(f"{path} includes itself")
    own = Entries(_entries(path), "the file", path)
    entries = own.given
    for each in own.listed("includes"):
        include = Entries({"file": each} if isinstance(each, str) else each, "an include", path)
        include.only("file", "resource", "override")
        for key in ("resource", "override"):
            if str(include.get(key)).lower() not in ("none", "true", "false"):
                include.refuse(f"{key} of an include is {include.get(key)!r:.80}; use true or false")
        override = str(include.get("override")).lower() == "true"
        other = _with_includes(_included(include), (*seen, path))
        _add(own, Entries(other, "the file", _included(include)), override)
    return entries


def _included(include: Entries) -> str:
    """Return the path of an included file: beside this one, or, as Flux has it, in the current folder."""
    name = include.text("file")
    if str(include.get("resource")).lower() == "true":
        name = name.lstrip("/")  # of the class path
    beside = os.path.normpath(os.path.join(os.path.dirname(include.path), name))
    current = os.path.abspath(name)
    if (
        beside != current
        and os.path.exists(beside)
        and os.path.exists(current)
        and not os.path.samefile(beside, current)
    ):
        include.refuse(f"includes {name}, and there are two: {beside} and {current}; write the path from / on")
    return current if os.path.exists(current) and not os.path.exists(beside) else beside


def _add(own: Entries, other: Entries, override: bool) -> None:
    """Add an included file's entries, which replace present ones if it overrides."""
    entries = own.given
    for key, value in other.given.items():
        if key in _BY_ID:
            parts = {part.get("id"): part.given for part in own.each(key, f"one of {key}")}
            for part in other.each(key, f"one of {key}"):
                if override or part.get("id") not in parts:
                    parts[part.get("id")] = part.given
            entries[key] = list(parts.values())
        elif key == "streams":
            entries[key] = [*own.listed(key), *other.listed(key)]
        elif key == "config":
            mine, theirs = own.entries(key, key).given, other.entries(key, key).given
            entries[key] = {**mine, **theirs} if override else {**theirs, **mine}
        elif key != "includes" and value is not None and (override or entries.get(key) is None):
            entries[key] = value
