"""A new project: a package with a topology, its tests, and ``multilang.toml``."""

from __future__ import annotations

import re
import sys
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.helpers import private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.abc import Traversable

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TAKEN = {"multilang", "spark_bridge", "tests", "topology"}


def new_project(folder: Path) -> list[Path]:
    """Make a project with a topology that runs and tests that pass.

    Args:
        folder: The project's folder, which must not exist or be empty; its name is the topology's.

    Returns:
        The files.

    Raises:
        ConfigError: The name is none for a package, or the folder is not empty, or another account's.
        OSError: The folder can't be written.
    """
    package = check_name(folder.name)
    make_folder(folder)
    made = []
    for name, text in _template(resources.files("multilang.project").joinpath("template"), ""):
        path = folder / name.replace("PACKAGE", package).replace("gitignore", ".gitignore")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("@PACKAGE@", package).replace("@NAME@", folder.name), "utf-8")
        made.append(path)
    return sorted(made)


def check_name(name: str) -> str:
    """Return the name of the package of a project.

    Raises:
        ConfigError: It can't be a package's or a topology's name.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{name!r} is no name for a project: it is also that of a topology and of a package, so write letters, digits, "
            "'-' and '_', with a letter first"
        )
    package = name.replace("-", "_").lower()
    if iskeyword(package):
        raise ConfigError(f"{name!r} is a word of Python's, which no package can be called; take another name")
    if package in sys.stdlib_module_names or package in _TAKEN:
        raise ConfigError(
            f"{name!r} would hide the module {package!r} from everything that imports it; take another name"
        )
    return package


def make_folder(folder: Path) -> None:
    """Make a project's folder, which may be there if it is empty.

    Raises:
        ConfigError: There is something in it; or another account made it where everybody may, and could change the project.
        OSError: It can't be made.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is there already, and no folder; take another name, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    check_place(folder)
    if any(folder.iterdir()):
        raise ConfigError(f"{folder} is there already, and not empty; take another name, or remove it")


def check_place(folder: Path) -> None:
    """Raise ConfigError for a folder that is, or is in, one that another account made where everybody may. Raises OSError."""
    try:
        private.check_owners(folder, must_exist=True)
    except PermissionError as error:
        raise ConfigError(
            f"{error}, and could change what runs as you; make the project in a folder of your own"
        ) from None


def _template(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _template(each, f"{above}{each.name}/")
        elif each.name.endswith(".in"):
            yield above + each.name[:-3], each.read_text("utf-8")
