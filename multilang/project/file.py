"""``multilang.toml``: finding it, reading it, and refusing what can't be meant."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.component.errors import ConfigError
from multilang.helpers import private
from multilang.helpers.extras import imported
from multilang.helpers.masked import is_reference, is_secret, masked
from multilang.project.settings import Layer, Settings
from multilang.topology.conf import check_keys, check_values, known
from multilang.topology.errors import TopologyError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILE = "multilang.toml"
_ENVIRONMENTS = "environments"
_DEFAULT = "environment"
_WORKERS = "topology.workers"
MODES = ("process", "inprocess", "simulated")


def find_project(folder: str | os.PathLike[str], pass_by: Callable[[str], object] | None = None) -> ProjectFile | None:
    """Return the project that a folder is in: the nearest ``multilang.toml`` in it or above it.

    Another account's file is passed by, since anybody may put one into a folder such as ``/tmp``. A file of this account's or
    root's that others may have changed is an error: it is the one that is meant.

    Args:
        folder: The folder.
        pass_by: Called with a text about each file that is passed by.

    Returns:
        The project; None if there is none.

    Raises:
        ConfigError: The file can't be read, has something that can't be, or is one that other accounts may have
            changed (``private.check_code``).
    """
    try:
        place = Path(os.path.abspath(folder))
    except FileNotFoundError:
        raise ConfigError("the current folder was removed: change to another one") from None
    for each in (place, *place.parents):
        file = each / FILE
        if not os.path.isfile(file):  # nor may anybody look, below a folder that this account can't enter
            continue
        try:
            is_own = os.lstat(file).st_uid in (0, os.geteuid())
            private.check_code(file)
        except FileNotFoundError:
            continue
        except PermissionError as error:
            why = f"since it would run code as you; if it may, set {private.TRUSTED_FOLDERS}={each}"
            if is_own:
                raise ConfigError(f"{error}: it is not used, {why}") from None
            if pass_by is not None:
                pass_by(f"{file} belongs to another account: it is passed by, {why}")
            continue
        return ProjectFile(file)
    return None


class ProjectFile:
    """A project's ``multilang.toml``.

    Args:
        path: The file.

    Attributes:
        path: The file.
        root: The project's folder.
        environments: The names of its environments, in the file's order.

    Raises:
        ConfigError: The file can't be read, or has something that can't be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path.parent
        self._content = _read(path)
        sections = self._content.pop(_ENVIRONMENTS, {})
        if not isinstance(sections, dict) or not all(isinstance(each, dict) for each in sections.values()):
            raise self._error(f"[{_ENVIRONMENTS}] is no table of tables; write a section [{_ENVIRONMENTS}.prod]")
        self.environments = list(sections)
        self._default = self._content.pop(_DEFAULT, None)
        self._base = self._layer(self._content, "")
        self._sections = {name: self._layer(section, f"{_ENVIRONMENTS}.{name}") for name, section in sections.items()}
        if self._default is not None and self._default not in self.environments:
            raise self._error(f"{_DEFAULT} is {self._default!r}, which is no environment; {self._which(self._default)}")

    def settings(self, environment: str | None = None) -> Settings:
        """Return the settings in an environment.

        Args:
            environment: The environment; None: the one that the file's ``environment`` names.

        Raises:
            ConfigError: There is no such environment.
        """
        name = environment or self._default
        if name is None:
            return Settings(None, [self._base])
        if name not in self._sections:
            raise self._error(f"there is no environment {name!r}; {self._which(name)}")
        return Settings(name, [self._base, self._sections[name]])

    def topology(self, settings: Settings) -> str | None:
        """Return the place of the project's topology, as ``load_topology`` takes it from any folder; None: not given."""
        place = settings.get("topology")
        if place is None or not str(place).partition(":")[0].endswith(".py"):
            return None if place is None else str(place)
        file, colon, name = str(place).partition(":")
        return f"{self.root / file}{colon}{name}"

    def _which(self, name: str) -> str:
        if not self.environments:
            return f"the file has none: add a section [{_ENVIRONMENTS}.{name}]"
        return did_you_mean(name, self.environments)

    def _layer(self, section: Mapping[str, Any], where: str) -> Layer:
        origin = f"{FILE} [{where}]" if where else FILE
        values: dict[str, Any] = {}
        for key, value in section.items():
            if key == "conf":
                continue
            if key not in _SETTINGS:
                hint = did_you_mean(key, [*_SETTINGS, "conf"])
                if isinstance(value, dict) and not where:
                    hint = (
                        f"an environment is a section [{_ENVIRONMENTS}.{key}], and settings of Storm's go into [conf]"
                    )
                elif "." in key:
                    hint = "settings of Storm's and your own go into [conf]"
                raise self._error(f"{_named(where, key)} is read by nobody; {hint}")
            checked = _SETTINGS[key](
                value, self.root, lambda text, key=key: self._error(f"{_named(where, key)} {text}")
            )
            values.update(checked if isinstance(checked, dict) else {key: checked})
        conf = self._conf(section.get("conf", {}), f"{where}.conf" if where else "conf")
        if "workers" in values:
            if _WORKERS in conf:
                raise self._error(f"{_named(where, 'workers')} and {_WORKERS} are the same setting; keep one of them")
            conf[_WORKERS] = values.pop("workers")
        return Layer(origin, values, conf)

    def _conf(self, table: Any, where: str) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self._error(f'{where} is {table!r}, not a table; write [{where}] and below it "KEY" = VALUE')
        for key, value in table.items():
            if isinstance(value, dict) and "." not in key and key not in known() and not is_reference(value):
                whole, leaf = _unquoted(key, value)
                raise self._error(
                    f'[{where}]: {whole} is written without quotes, which TOML reads as tables in tables; write "{whole}" = '
                    f"{_toml(leaf)}"
                )
            self._check_json(value, f"[{where}] {key}")
            if masked(value, key) != value:
                variable = "".join(letter if letter.isalnum() else "_" for letter in key).upper()
                raise self._error(
                    f"[{where}]: {key} is a secret, and this file is read by everybody with the project; name its place: "
                    f'"{key}" = {{ env = "{variable}" }}, or {{ file = "/run/secrets/{variable.lower()}" }}'
                    if is_secret(key)
                    else f"[{where}]: {key} has a secret in it, and this file is read by everybody with the project; "
                    "leave it out, and see 'Secrets' in docs/security.md for where it may stand"
                )
        try:
            check_keys(table, f"{self.path} [{where}]")
            check_values(table, f"{self.path} [{where}]")
        except TopologyError as error:
            raise ConfigError(str(error)) from None
        return dict(table)

    def _check_json(self, value: Any, where: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                self._check_json(item, f"{where}.{key}")
        elif isinstance(value, list):
            for item in value:
                self._check_json(item, where)
        elif not isinstance(value, str | int | float):
            raise self._error(f"{where} is a {type(value).__name__}, which no conf has; write it as text, in quotes")

    def _error(self, text: str) -> ConfigError:
        return ConfigError(f"{self.path}: {text}")


def _read(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        tomllib = imported("tomli", "cli", f"reading {path}", error=ConfigError)
    try:
        read: dict[str, Any] = tomllib.loads(path.read_text("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not in UTF-8, as TOML is: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or error}") from None
    return read


def _named(where: str, key: str) -> str:
    return f"[{where}] {key}" if where else key


def _unquoted(key: str, value: Any) -> tuple[str, Any]:
    """Return the dotted key that was written without quotes, and its value."""
    words = [key]
    while isinstance(value, dict) and len(value) and not is_reference(value):
        name, value = next(iter(value.items()))
        words.append(name)
    return ".".join(words), value


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


if TYPE_CHECKING:
    Refuse = Callable[[str], ConfigError]


def _text(value: Any, _root: Path, refuse: Refuse) -> str:
    if not isinstance(value, str) or not value:
        raise refuse(f"is {value!r}; write a text, in quotes")
    return value


def _mode(value: Any, _root: Path, refuse: Refuse) -> str:
    if value not in MODES:
        raise refuse(f"is {value!r}; write one of {', '.join(map(repr, MODES))}")
    return str(value)


def _count(value: Any, _root: Path, refuse: Refuse) -> int:
    if type(value) is not int or value < 1:
        raise refuse(f"is {value!r}; write a number from 1 on")
    return value


def _texts(value: Any, _root: Path, refuse: Refuse) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise refuse(f'is {value!r}; write a list of texts, such as ["one", "two"]')
    return value


def _path(value: Any, root: Path, refuse: Refuse) -> str:
    path = root / _text(value, root, refuse)
    if not path.exists():
        raise refuse(f"is {value!r}, and there is no {path}")
    return str(path)


def _paths(value: Any, root: Path, refuse: Refuse) -> list[str]:
    return [_path(each, root, refuse) for each in _texts(value, root, refuse)]


def _pairs(value: Any, _root: Path, refuse: Refuse) -> list[str]:
    if not isinstance(value, dict):
        raise refuse(f"is {value!r}; write a table, NAME = VALUE in each line")
    return [f"{key}={str(each).lower() if isinstance(each, bool) else each}" for key, each in value.items()]


def _spark(value: Any, root: Path, refuse: Refuse) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse(f"is {value!r}; write a section for Spark's settings, such as master")
    found = {}
    for key, item in value.items():
        if key not in _SPARK:
            raise refuse(f"has {key!r}, which is read by nobody; {did_you_mean(key, _SPARK)}")
        found[f"spark.{key}"] = _SPARK[key](item, root, lambda text, key=key: refuse(f"{key} {text}"))
    return found


_SPARK: dict[str, Any] = {
    "master": _text,
    "conf": _pairs,
    "sources": _pairs,
    "output": _text,
    "state": _text,
    "checkpoint": _text,
}
_SETTINGS: dict[str, Any] = {
    "topology": _text,
    "name": _text,
    "mode": _mode,
    "nimbus": _text,
    "workers": _count,
    "requirements": _path,
    "python": _text,
    "platform": _text,
    "interpreter": _text,
    "include": _paths,
    "exclude": _texts,
    "leave-out": _texts,
    "jars": _paths,
    "artifacts": _texts,
    "spark": _spark,
}
