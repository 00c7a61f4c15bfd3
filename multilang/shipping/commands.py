"""The command line with which a worker starts each component: two words, and the files that they name."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.contents import YOURS, Item
from multilang.shipping.errors import ShippingError
from multilang.shipping.guard import VERSION_CONTROL
from multilang.topology import Foreign, ShellComponent
from multilang.topology.commands import program_in, programs_in, script_in, with_slash, words_of
from multilang.topology.home import is_below

if TYPE_CHECKING:
    from collections.abc import Collection

    from multilang.shipping.contents import Contents
    from multilang.topology import ComponentSpec, Topology
    from multilang.topology.commands import Word
    from multilang.topology.home import Home

LAUNCHER = "run_topology.py"
_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/")  # exist on workers, too

# Thrift's command has two words and always starts in resources/, above which Storm puts the links to blobs that are in
# the worker's directory, too. It is a script for sh, because a worker may have no other Python than the one in a blob.
_IN_WORKER = """\
# Starts a component in the worker's directory, where Storm puts links to blobs and to resources/.
case "$0" in
*/*) here=${0%/*} ;;
*) here=resources && cd -P .. || exit 127 ;;
esac
"""


@dataclass(frozen=True)
class Shipped:
    """A word of a command.

    ``in_shipment``: it is the name of a file in the jar's ``resources/``, relative to that folder.

    ``before``: the text before the name, as in ``--conf=a.json``; ``written``: the name as it was written; ``runs``: it
    is started as a program.
    """

    text: str
    in_shipment: bool = False
    before: str = ""
    written: str = ""
    runs: bool = False

    def seen_from(self, folder: str) -> str:
        """Return the word when the jar's files are in ``folder``, or in the current folder if that is empty."""
        if not self.in_shipment:
            return self.text
        if folder:
            return f"{self.before}{folder}/{self.text}"
        as_it_is = os.path.normpath(self.written) == self.text
        return self.before + (self.written if as_it_is else with_slash(self.text, like=self.written))


class ShippedCommands:
    """The commands by component id. The files that they name are added to ``contents``.

    ``two``: words for Storm's ShellComponent, which starts them in ``resources/``. ``in_worker``: words of components
    that start in the worker's directory, where the form of submission can express that. ``scripts``: words that a
    launcher in ``resources/`` starts. ``blobs``: the names of blobs in the worker's directory. ``modules``: files that
    are imported, which therefore need no permission to be run.
    """

    def __init__(
        self,
        topology: Topology,
        home: Home,
        contents: Contents,
        interpreter: str,
        blobs: Collection[str] = (),
        modules: Collection[str] = (),
    ) -> None:
        self.two: dict[str, tuple[str, str]] = {}
        self.in_worker: dict[str, list[Shipped]] = {}
        self.scripts: dict[str, list[str]] = {}
        for spec in programs_in(topology):
            if spec.component is not topology[spec.id].component:  # a Python task runs the program
                _shipped(spec, home, contents, blobs)
        shells = [spec for spec in topology.components.values() if isinstance(spec.component, ShellComponent)]
        commands = {
            spec.id: _shipped(spec, home, contents, blobs) for spec in shells
        }  # all of them before any launcher, whose text depends on them
        own = {
            words[at].text for id, words in commands.items() for at in _started(topology[id]) if words[at].in_shipment
        }
        # A jar keeps neither permissions to run files nor empty folders, and a command's program may need both for what
        # it starts.
        helped = bool(contents.folders) or not contents.executables <= {*own, *modules}
        for spec in topology.components.values():
            if isinstance(spec.component, Foreign) and spec.id not in commands:
                continue  # a class of Java is started by nobody
            words = commands.get(spec.id)
            if words is None:
                self.two[spec.id] = (interpreter, LAUNCHER)
                continue
            assert isinstance(spec.component, ShellComponent)
            lost = helped or any(word.runs for word in words)
            if not spec.component.change_child_cwd:
                launcher = f"run_in_worker_{len(self.in_worker) + 1}.sh"
                text = _launcher_text(words, contents)
                contents.add(Item(launcher, text.encode(), "launcher", f"starts {spec.id!r}"))
                self.two[spec.id] = ("sh", launcher)
                self.in_worker[spec.id] = [Shipped("sh"), Shipped(launcher, True)] if lost else words
                continue
            texts = [word.seen_from("") for word in words]
            if len(texts) == 2 and not lost and not words[1].before:
                self.two[spec.id] = (texts[0], texts[1])
            else:
                script = f"run_command_{len(self.scripts) + 1}.py"
                self.scripts[script] = texts
                self.two[spec.id] = (interpreter, script)


def add_tree(contents: Contents, path: Path, home: Home, why: str) -> None:
    """Add a file or folder under its name relative to the topology's folder, or to ``resources/`` there.

    Links are followed, as when they are opened; those that lead round are left out, which is reported.
    """
    path = Path(home.spelt(os.path.abspath(path)))
    if not path.exists():
        raise ShippingError(f"there is no {path}, {why}")
    if home.name(str(path)) is None:
        raise ShippingError(
            f"{path}, {why}, is outside of the topology's folder {home.root}, below which names stay what they are; "
            "move it there"
        )
    _add(contents, path, home, why, ())


def _add(contents: Contents, path: Path, home: Home, why: str, above: tuple[str, ...]) -> None:
    """Add one file or folder. ``above``: the resolved folders that it is in."""
    name = _name(home, path)
    real = os.path.realpath(path)
    if contents.guard.excludes(name):
        contents.left_out[name] = "excluded"
        return
    if path.is_symlink():
        if not os.path.exists(real):
            contents.left_out[name] = f"a link that leads nowhere, to {os.readlink(path)}"
            return
        if not is_below(real, os.path.realpath(home.root)):
            contents.guard.check_link(name, path, real)
            contents.notes[f"{name} from {real}, outside of the topology's folder, to which a link leads"] = None
    if path.is_file():
        contents.add_file(name, path, YOURS, why)
        return
    if not path.is_dir():
        raise ShippingError(f"{path}, {why}, is neither a file nor a folder, so no jar can hold it; remove it")
    if any(is_below(one, real) for one in above):
        contents.left_out[name] = f"a link to {real}, which it is itself a part of"
        return
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise ShippingError(f"{path}, {why}, can't be read: {error.strerror or error}") from None
    if not names and name != ".":
        contents.folders.add(name)
    for each in names:
        inner = path / each
        reason = _of_tools(inner)
        if reason is None:
            _add(contents, inner, home, why, (*above, real))
        elif reason:
            contents.left_out[_name(home, inner)] = reason


def _of_tools(path: Path) -> str | None:
    """Return why something in a folder is not shipped, None if it is; an empty text for a reason that is not
    reported.
    """
    if path.name == "__pycache__" or (path.suffix in (".pyc", ".pyo") and path.with_suffix(".py").exists()):
        return ""
    if path.name in VERSION_CONTROL:
        return "of version control"
    if path.name.endswith(".py.bak"):
        return "an old program, as multilang migrate keeps it"
    if (path / "pyvenv.cfg").exists():
        return f"an environment of Python's, which runs where it is; for the workers: multilang archive {path.name}"
    if (path / "CACHEDIR.TAG").exists():
        return "a cache, by its CACHEDIR.TAG"
    return None


def _started(spec: ComponentSpec) -> list[int]:
    """Return which words of a command are its program and its script."""
    command = spec.component.command  # type: ignore[union-attr]
    return [at for at in (0, program_in(command), script_in(command)) if at is not None]


def _shipped(spec: ComponentSpec, home: Home, contents: Contents, blobs: Collection[str]) -> list[Shipped]:
    """Return the words with the names that files have in the shipment."""
    words = []
    why = f"in the command of {spec.kind} {spec.id!r}"
    for index, word in enumerate(words_of(spec, home, blobs)):
        program = index == 0
        if word.blob is not None or (word.path is None and not (program and os.path.isabs(word.text))):
            if word.folder and not any(each.startswith(f"{word.text}/") for each in contents.names):
                contents.left_out[word.text] = (
                    f"a folder of the name that is {why}; if it is meant: --include {word.text}"
                )
            words.append(Shipped(word.before + word.text))
            continue
        if program and word.text.startswith(_SYSTEM):
            words.append(Shipped(word.text))
            continue
        if word.path is None:
            raise ShippingError(f"{word.text!r}, {why}, is a path of this machine; name the program without its folder")
        name = home.name(word.path)
        if name is None:
            raise ShippingError(
                f"{word.text!r}, {why}, is the file {word.path}, outside of the topology's folder {home.root}, so it can't "
                "be shipped under a name that workers find; move it there, or name a program by its name alone"
            )
        if name != ".":
            _check_portable(word, home, contents, why)
            add_tree(contents, Path(word.path), home, why)
        if word.runs:
            contents.executables.add(name)
        written = "" if word.needed and not word.runs else word.text  # no script is searched on the PATH
        words.append(Shipped(name, True, word.before, written, word.runs))
    return words


def _check_portable(word: Word, home: Home, contents: Contents, why: str) -> None:
    """Raise ShippingError for a program that can be started on this machine alone; warn of one that may be."""
    path = Path(home.spelt(word.path or ""))
    environment = _environment_of(path, home)
    if environment is not None:
        raise ShippingError(
            f"{word.text!r}, {why}, is in the environment {environment}, which runs where it is; make an archive of it (multilang "
            f"archive {environment.name}), and name it in topology.blobstore.map"
        )
    if not word.runs:
        return
    with path.open("rb") as file:
        found = re.match(rb"#![ \t]*(/[^\s]+)", file.readline())
    interpreter = "" if found is None else os.fsdecode(found[1])
    if not interpreter or interpreter.startswith(_SYSTEM):
        return
    begins = f"{word.text!r}, {why}, begins with #!{interpreter}"
    instead = f"write #!/usr/bin/env {os.path.basename(interpreter)}"
    environment = _environment_of(Path(home.spelt(interpreter)), home)
    if environment is not None:
        raise ShippingError(f"{begins}, a program of the environment {environment}, which no worker has; {instead}")
    contents.warnings[f"{begins}: the workers need a program there; if they have none, {instead}"] = None


def _environment_of(path: Path, home: Home) -> Path | None:
    """The environment of Python's, in the topology's folder, that ``path`` is in."""
    below = (folder for folder in path.parents if folder != Path(home.root) and is_below(str(folder), home.root))
    return next((folder for folder in below if (folder / "pyvenv.cfg").exists()), None)


def _launcher_text(words: list[Shipped], contents: Contents) -> str:
    text = _IN_WORKER
    folders = [f'"$here"/{shlex.quote(name)}' for name in sorted(contents.folders)]
    if folders:
        text += f"mkdir -p {' '.join(folders)} 2>/dev/null\n"
    programs = [f'"$here"/{shlex.quote(name)}' for name in sorted(contents.executables)]
    if programs:
        text += f"chmod u+x {' '.join(programs)} 2>/dev/null\n"
    seen = [
        f'{shlex.quote(word.before) if word.before else ""}"$here"/{shlex.quote(word.text)}'
        if word.in_shipment
        else shlex.quote(word.text)
        for word in words
    ]
    return f"{text}exec {' '.join(seen)}\n"


def _name(home: Home, path: Path) -> str:
    name = home.name(str(path))
    assert name is not None
    return name
