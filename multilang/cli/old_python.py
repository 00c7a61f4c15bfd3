"""Programs for Python 2 that a command meets: it names ``multilang migrate``, which mends them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from multilang.cli.output import echo
from multilang.component.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from multilang.migrate import Finding
    from multilang.topology import Topology


def explained(place: str, file: str, line: int, text: str) -> str:
    """Return the text of an error, with what to do if the file that raised it was written for Python 2.

    Args:
        place: The place of the topology.
        file: The file that raised the error.
        line: The line that did.
        text: The error.
    """
    root = _root(place)
    found = _found_in([file, *_files_of(place)], root)
    if not found:
        return text
    here = next((each for each in found if (each.path, each.line) == (file, line)), None)
    if here is None:
        return f"{text}\n{_advice(found[0], place)}"
    return _advice(here, place)


def note_python_2(place: str, topology: Topology) -> None:
    """Note that a file of a topology was written for Python 2: it may fail only when it runs.

    Args:
        place: The place of the topology.
        topology: The topology, which was loaded.
    """
    root = _root(place)
    inside = os.path.join(root, "")
    files = {getattr(each, "__file__", None) or "" for each in list(sys.modules.values())}
    files = {each for each in files if each.startswith(inside) and "site-packages" not in each}
    for spec in topology.components.values():
        for word in spec.command or ():
            path = spec.home.find(word) if spec.home is not None else None
            if path is not None:
                files.add(path)
    found = _found_in(sorted(files), root)
    if found:
        echo(f"note: {_advice(found[0], place)}", err=True)


def _files_of(place: str) -> list[str]:
    """Return the Python files of a topology's project; without one, those in the folder of its file."""
    from multilang.migrate.files import python_files

    root, folder = _root(place), os.path.dirname(os.path.abspath(place.partition(":")[0]))
    if root != folder and os.path.isfile(place.partition(":")[0]):
        return python_files(root)
    return [os.path.join(root, each) for each in sorted(os.listdir(root)) if each.endswith(".py")]


def _found_in(files: Iterable[str], root: str) -> list[Finding]:
    """Return what the first file of a project that was written for Python 2 has of it."""
    from multilang.migrate.files import why_unread
    from multilang.migrate.python import in_python

    for path in files:
        if path.endswith(".py") and not why_unread(path):
            found = [each for each in in_python(path, root, False) if each.python2]
            if found:
                return found
    return []


def _advice(found: Finding, place: str) -> str:
    root = os.path.relpath(_root(place))
    return (
        f"{found.path}, line {found.line}: {found.what}; the program was written for Python 2: multilang migrate {root} shows all "
        f"that it needs, and multilang migrate {root} --fix rewrites it"
    )


def _root(place: str) -> str:
    """Return the folder of a topology's project; without one, that of its file, or the current one."""
    from multilang.compat.project import project_of

    file = place.partition(":")[0]
    if not os.path.isfile(file):
        return os.getcwd()
    try:
        project = project_of(file)
    except ConfigError:
        project = None
    return os.path.dirname(os.path.abspath(file)) if project is None else project.root
