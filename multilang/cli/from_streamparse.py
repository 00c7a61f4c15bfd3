"""A project of streamparse's, as a project with ``multilang.toml``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.compat.project import project_at
from multilang.component.errors import ConfigError
from multilang.helpers.masked import is_secret, masked
from multilang.project import FILE
from multilang.project.new import check_name, make_folder

if TYPE_CHECKING:
    from multilang.compat.project import Project

_SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", "_build", "_resources", "*.jar")


def take_over(source: Path, folder: Path) -> tuple[list[Path], list[str]]:
    """Make a project of one of streamparse's, which stays as it is.

    Args:
        source: The folder of streamparse's project.
        folder: The new folder.

    Returns:
        The files, and notes on what is different.

    Raises:
        ConfigError: There is no such project, it can't be read, or the new folder is not empty.
        OSError: The folder can't be written.
    """
    check_name(folder.name)
    project = project_at(str(source))
    if project is None:
        raise ConfigError(f"{source} is no project of streamparse's, which has a config.json, topologies/ and src/")
    if folder.resolve().is_relative_to(source.resolve()):
        raise ConfigError(f"{folder} is in the project that it is made of; take a folder beside it")
    make_folder(folder)
    topologies = Path(project.topologies)
    parts = {"topologies": topologies, "src": Path(project.source), "virtualenvs": Path(project.virtualenvs)}
    for name, part in parts.items():
        if part.is_dir():
            shutil.copytree(part, folder / name, ignore=_SKIPPED)
    for name in ("tasks.py", "fabfile.py", "README.md"):
        if (source / name).is_file():
            shutil.copy2(source / name, folder / name)
    notes: list[str] = []
    (folder / FILE).write_text(_toml(project, folder, notes), "utf-8")
    return sorted(each for each in folder.rglob("*") if each.is_file()), notes


def _toml(project: Project, folder: Path, notes: list[str]) -> str:
    names = sorted(each.stem for each in (folder / "topologies").glob("*.py") if each.stem != "__init__")
    lines = ["# Made of streamparse's config.json. `multilang config show -e NAME` shows where each value comes from."]
    lines += [f"topology = {json.dumps(f'topologies/{name}.py')}" for name in names[:1]]
    if len(names) == 1:
        lines.append(f"name = {json.dumps(names[0])} # on the cluster")
    elif names:
        notes.append(
            f"there are {len(names)} topologies, and {FILE} names {names[0]}; for another one: multilang run topologies/{names[1]}.py"
        )
    environments = project.config.get("envs") or {}
    if environments:
        first = "dev" if "dev" in environments else next(iter(environments))
        lines.append(f"environment = {json.dumps(first)} # unless -e names another one")
    for name, entries in environments.items():
        lines += ["", f"[environments.{_key(name)}]"]
        if entries.get("nimbus"):
            lines.append(f"nimbus = {json.dumps(str(entries['nimbus']))}")
        conf = project.conf(entries)
        if conf:
            lines += ["", f"[environments.{_key(name)}.conf]"]
        for key, value in conf.items():
            if value is None:
                continue  # which TOML does not have, and which stands for the default
            lines.append(f"{json.dumps(key)} = {_value(key, value, f'{name}.{key}', notes)}")
        needless = project.needless(entries)
        if needless:
            notes.append(
                f"not taken over of {name!r}: {', '.join(needless)}; there is no SSH, and workers need no virtualenv"
            )
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _value(key: str, value: Any, where: str, notes: list[str]) -> str:
    if is_secret(key) and masked(value, key) != value:
        variable = "".join(letter if letter.isalnum() else "_" for letter in key).upper()
        notes.append(
            f"the value of {where} is a secret, and was not copied: the environment variable {variable} is to have it"
        )
        return f'{{ env = "{variable}" }}'
    return _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_literal(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
