"""The command line of each component as a worker starts it: two words, the files they name being shipped."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.contents import Item
from multilang.shipping.errors import ShippingError
from multilang.topology import ShellComponent
from multilang.topology.commands import programs_in, words_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from multilang.shipping.contents import Contents
    from multilang.topology import ComponentSpec, Topology
    from multilang.topology.home import Home

LAUNCHER = "run_topology.py"
_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/")  # programs that workers may have
_YOURS = "your files"

# Thrift has two words for a command, and none that says where it is started: always in resources/, above which Storm puts the
# links to blobs that its worker's directory has too. A worker need not have a Python for it, whose own may be in a blob.
_IN_WORKER = """\
# Starts a component in the worker's directory, where Storm puts links to blobs and to resources/.
case "$0" in
*/*) here=${0%/*} ;;
*) here=resources && cd -P .. || exit 127 ;;
esac
"""


@dataclass(frozen=True)
class Shipped:
    """A word of a command. ``in_shipment``: the name of a file in the jar's ``resources/``, not seen from there."""

    text: str
    in_shipment: bool = False


class Commands:
    """Commands by component id, the files they name being added to ``contents``.

    ``two``: words for Storm's ShellComponent, which is started in ``resources/``; ``in_worker``: words for what is started in
    the worker's directory, where that can be said; ``scripts``: the words that a launcher in ``resources/`` starts.
    ``blobs``: the names of blobs in the worker's directory.
    """

    def __init__(
        self, topology: Topology, home: Home, contents: Contents, interpreter: str, blobs: Collection[str] = ()
    ) -> None:
        self.two: dict[str, tuple[str, str]] = {}
        self.in_worker: dict[str, list[Shipped]] = {}
        self.scripts: dict[str, list[str]] = {}
        for spec in programs_in(topology):
            if spec.component is not topology[spec.id].component:  # a task in Python runs it
                _shipped(spec, home, contents, blobs)
        for spec in topology.components.values():
            if not isinstance(spec.component, ShellComponent):
                self.two[spec.id] = (interpreter, LAUNCHER)
                continue
            words = _shipped(spec, home, contents, blobs)
            runs_file = words[0].in_shipment
            if not spec.component.change_child_cwd:
                launcher = f"run_in_worker_{len(self.in_worker) + 1}.sh"
                contents.add(Item(launcher, _launcher_text(words).encode(), "launcher", f"starts {spec.id!r}"))
                self.two[spec.id] = ("sh", launcher)
                # A jar keeps no permission to run its files, which the launcher gives back.
                self.in_worker[spec.id] = [Shipped("sh"), Shipped(launcher, True)] if runs_file else words
                continue
            texts = [word.text for word in words]
            if len(texts) == 2 and not runs_file:
                self.two[spec.id] = (texts[0], texts[1])
            else:
                script = f"run_command_{len(self.scripts) + 1}.py"
                self.scripts[script] = [f"./{texts[0]}", *texts[1:]] if runs_file else texts
                self.two[spec.id] = (interpreter, script)


def add_tree(contents: Contents, path: Path, home: Home, part: str, why: str) -> None:
    """Add a file or a whole folder under the name that it has below the topology's folder, or below ``resources/`` there."""
    path = Path(os.path.abspath(path))
    if not path.exists():
        raise ShippingError(f"there is no {path}, {why}")
    if home.name(str(path)) is None:
        raise ShippingError(
            f"{path}, {why}, is outside of the topology's folder {home.root}, below which names stay what they are; "
            "move it there"
        )
    if path.is_file():
        contents.add_file(_name(home, path), path, part, why)
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(files):
            file = Path(folder, name)
            if file.suffix not in (".pyc", ".pyo"):
                contents.add_file(_name(home, file), file, part, why)


def _shipped(spec: ComponentSpec, home: Home, contents: Contents, blobs: Collection[str]) -> list[Shipped]:
    """The words with the names that files have in the shipment."""
    words = []
    why = f"in the command of {spec.kind} {spec.id!r}"
    for index, word in enumerate(words_of(spec, home, blobs)):
        program = index == 0
        if word.blob is not None or (program and word.text.startswith(_SYSTEM)):
            words.append(Shipped(word.text))
            continue
        if word.path is None:
            if program and os.path.isabs(word.text):
                raise ShippingError(
                    f"{word.text!r}, {why}, is a path of this machine; name the program without its folder"
                )
            words.append(Shipped(word.text))
            continue
        name = home.name(word.path)
        if name is None:
            raise ShippingError(
                f"{word.text!r}, {why}, is the file {word.path}, outside of the topology's folder {home.root}, so it can't "
                "be shipped under a name that workers find; move it there, or name a program by its name alone"
            )
        add_tree(contents, Path(word.path), home, _YOURS, why)
        words.append(Shipped(name, in_shipment=True))
    return words


def _launcher_text(words: list[Shipped]) -> str:
    seen = [f'"$here"/{shlex.quote(word.text)}' if word.in_shipment else shlex.quote(word.text) for word in words]
    permission = f"chmod u+x {seen[0]} 2>/dev/null\n" if words[0].in_shipment else ""
    return f"{_IN_WORKER}{permission}exec {' '.join(seen)}\n"


def _name(home: Home, path: Path) -> str:
    name = home.name(str(path))
    assert name is not None
    return name
