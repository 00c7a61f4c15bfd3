"""The command line of each component as a worker starts it: two words, the files they name being shipped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError
from multilang.topology import ShellComponent

if TYPE_CHECKING:
    from multilang.shipping.contents import Contents
    from multilang.topology import ComponentSpec, Topology

LAUNCHER = "run_topology.py"
_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/")  # programs that workers may have


class Commands:
    """Commands by component id, ``two``: words for Storm's ShellComponent; ``scripts``: those run by a launcher of theirs."""

    def __init__(self, topology: Topology, root: Path, contents: Contents, interpreter: str) -> None:
        self.two: dict[str, tuple[str, str]] = {}
        self.scripts: dict[str, list[str]] = {}
        for spec in topology.components.values():
            if not isinstance(spec.component, ShellComponent):
                self.two[spec.id] = (interpreter, LAUNCHER)
                continue
            words, runs_file = _shipped_words(spec, spec.component.command, root, contents)
            if len(words) == 2 and not runs_file:
                self.two[spec.id] = (words[0], words[1])
            else:
                script = f"run_command_{len(self.scripts) + 1}.py"
                self.scripts[script] = words
                self.two[spec.id] = (interpreter, script)


def add_tree(contents: Contents, path: Path, root: Path, part: str, why: str) -> None:
    """Add a file or a whole folder under the name that it has below ``root``."""
    path = Path(os.path.abspath(path))
    if not path.exists():
        raise ShippingError(f"there is no {path}, {why}")
    if not path.is_relative_to(root):
        raise ShippingError(
            f"{path}, {why}, is outside of the topology's folder {root}, below which names stay what they are; "
            "move it there"
        )
    if path.is_file():
        contents.add_file(path.relative_to(root).as_posix(), path, part, why)
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(files):
            file = Path(folder, name)
            if file.suffix not in (".pyc", ".pyo"):
                contents.add_file(file.relative_to(root).as_posix(), file, part, why)


def _shipped_words(spec: ComponentSpec, command: list[str], root: Path, contents: Contents) -> tuple[list[str], bool]:
    """The words with the names that files have in the shipment; whether the program itself is one of the files."""
    words = list(command)
    runs_file = False
    why = f"in the command of {spec.kind} {spec.id!r}"
    for index, word in enumerate(command):
        program = index == 0
        if program and ("/" not in word or word.startswith(_SYSTEM)):
            continue  # found on the worker's PATH, or where systems have their programs
        file = _file(word, root)
        if file is None:
            if program and os.path.isabs(word):
                raise ShippingError(f"{word!r}, {why}, is a path of this machine; name the program without its folder")
            continue
        if not file.is_relative_to(root):
            raise ShippingError(
                f"{word!r}, {why}, is the file {file}, outside of the topology's folder {root}, so it can't be shipped "
                "under a name that workers find; move it there, or name a program by its name alone"
            )
        add_tree(contents, file, root, "your files", why)
        words[index] = file.relative_to(root).as_posix()
        if program:
            words[index] = f"./{words[index]}"
            runs_file = True
    return words, runs_file


def _file(word: str, root: Path) -> Path | None:
    """The file that a word of a command names: from the topology's folder, as on a worker, or from the current one."""
    for base in (root, Path.cwd()):
        path = Path(os.path.abspath(base / word))
        if word.strip("./") and path.is_file():
            return path
    return None
