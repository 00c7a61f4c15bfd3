"""Topologies in Clojure and of Flux's, which are rewritten in Python."""

from __future__ import annotations

import os

from multilang.compat.flux import Declared, is_flux
from multilang.component.errors import ConfigError
from multilang.loading.topologies import YAML
from multilang.migrate.clojure import as_dsl
from multilang.migrate.files import files_of, why_unread
from multilang.migrate.finding import Finding
from multilang.migrate.meanings import PYTHON_2
from multilang.migrate.others import OF_PYLEUS
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def from_clojure(root: str) -> list[str]:
    """Write each topology in Clojure as one of streamparse's DSL beside it, and return the new files.

    Those that can't be rewritten mechanically, or that were rewritten already, are left alone.

    Args:
        root: The project's folder.
    """
    made = []
    for path in files_of(root):
        if not path.endswith(".clj") or os.path.basename(os.path.dirname(path)) != "topologies":
            continue
        new = dsl_file(path)
        if not os.path.lexists(new) and not why_unread(path):
            try:
                text = dsl_of(path)
            except (OSError, ValueError):
                continue  # which findings() reports
            with open(new, "x", encoding="utf-8") as file:
                file.write(text)
            made.append(new)
    return made


def from_flux(root: str) -> list[str]:
    """Write each topology of Flux's as a module of this library beside its programs, and return the new files.

    Those that need Java, or that were written already, are left alone.

    Args:
        root: The project's folder.
    """
    made = []
    for path in files_of(root):
        declared = _flux_of(path)
        new = None if declared is None else declared.file
        if declared is None or new is None or os.path.lexists(new):
            continue
        with open(new, "x", encoding="utf-8") as file:
            file.write(declared.text())
        made.append(new)
    return made


def _flux_of(path: str) -> Declared | None:
    """Return what a file of Flux's declares; None for any other file, and for one that needs Java."""
    if not path.endswith(YAML) or os.path.basename(path) == OF_PYLEUS or why_unread(path):
        return None
    try:
        declared = Declared(path) if is_flux(path) else None
        if declared is not None:
            declared.text()
    except ConfigError:
        return None
    return declared


def in_flux(path: str) -> Iterator[Finding]:
    """Return why a topology of Flux's does not run as it is."""
    try:
        if not is_flux(path):
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                for found in PYTHON_2.findall(line):
                    what = f"it names the program {found}, on which nothing of this library runs"
                    yield Finding(path, number, what, "write python3", python2=True)
        Declared(path).text()
    except TopologyError as error:
        yield Finding(path, 0, "a topology of Flux's", str(error).removeprefix(f"{os.path.abspath(path)}: "))
    except ConfigError:
        return  # YAML of something else, or without the package that reads it


def in_clojure(path: str) -> Finding:
    """Return what is to do about a topology in Clojure."""
    fix = f"declare it as a class of streamparse's DSL in {os.path.basename(dsl_file(path))}"
    try:
        dsl_of(path)
    except (OSError, ValueError) as error:
        return Finding(path, 0, "a topology in Clojure", f"{fix}; --fix can't, because {error}")
    return Finding(path, 0, "a topology in Clojure", f"{fix}; --fix does")


def dsl_file(path: str) -> str:
    """Return the file of a topology in Clojure as a class; its components' module or package may have its name."""
    folder, name = os.path.split(path[:-4])
    beside = os.path.join(os.path.dirname(folder), "src", name)
    taken = os.path.isdir(beside) or os.path.isfile(f"{beside}.py")
    return os.path.join(folder, f"{name}_topology.py" if taken else f"{name}.py")


def dsl_of(path: str) -> str:
    """Return a topology in Clojure as a class of streamparse's DSL.

    Args:
        path: Its file.

    Raises:
        OSError: It can't be read.
        ValueError: It can't be rewritten mechanically, or it is not text.
    """
    with open(path, encoding="utf-8") as file:
        return as_dsl(file.read(), os.path.basename(path)[:-4])
