"""Commands of components in other languages, and the files that their words name.

A worker starts a command in the jar's ``resources/``: "By default the ShellProcess assumes that your code is packaged
inside of your topology jar under the resources subdirectory". With ``changeChildCWD(false)`` it starts it in its own
directory, "where the sym-links to the resources are", one level higher. Here both are the topology's own folder.
"""

from __future__ import annotations

import os
import re

from multilang.topology.errors import TopologyError
from multilang.topology.home import RESOURCES, Home, is_below
from multilang.topology.shell import ShellComponent, program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.topology.model import ComponentSpec, Topology

BLOB_MAP = "topology.blobstore.map"

# Programs whose first argument is a script, with the options that may come before it and need no further word. After
# any other option it is unknown which word is the script.
_LONG = r"--(?!eval|print|exec|command)[\w-]+=.+"
_INTERPRETERS = {
    "python": rf"-[bBdEiIOPqsSuvx]+|{_LONG}",
    "pypy": rf"-[bBdEiIOPqsSuvx]+|{_LONG}",
    "node": rf"{_LONG}|--no-[\w-]+",
    "nodejs": rf"{_LONG}|--no-[\w-]+",
    "ruby": rf"-[wvW]+|{_LONG}",
    "perl": r"-[wWtT]+",
    "php": r"-[fn]",
    "rscript": rf"{_LONG}|--vanilla",
    "lua": r"-[EW]",
    "julia": _LONG,
    "tclsh": r"(?!)",
    "java": r"-D.+|-X.+|-\w+:.+|-jar",
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "zsh"), r"-[eux]+"),
}
# Programs that start another one: their options that stand alone, their options that take the next word, and the number
# of their own words before the other program. The words of any other option are unknown.
_WRAPPERS = {
    "env": (r"-|-[iv]+|--ignore-environment|--debug|--unset=.*|-u.+|\w+=.*", r"-u|--unset", 0),
    "nice": (r"-n?-?\d+|--adjustment=.*", r"-n|--adjustment", 0),
    "ionice": (r"-t|-[cn]\d+|--ignore|--class(data)?=.*", r"-[cn]|--class(data)?", 0),
    "nohup": (r"(?!)", r"(?!)", 0),
    "setsid": (r"-[cfw]+|--ctty|--fork|--wait", r"(?!)", 0),
    "stdbuf": (r"-[ioe].+|--(input|output|error)=.*", r"-[ioe]|--(input|output|error)", 0),
    "timeout": (
        r"-v|--verbose|--foreground|--preserve-status|-[ks].+|--(kill-after|signal)=.*",
        r"-[ks]|--(kill-after|signal)",
        1,
    ),
}
_OTHER_WRAPPERS = {"multilang"}


class Word:
    """A word of a command.

    Attributes:
        text: The word, or the part of it that is a name.
        needed: Whether the command can't run without it: it is its program or its script.
        path: The file here that it names; None when it names none.
        blob: The path below the worker's directory, if it names a blob; None otherwise.
        before: The part before the name: ``--conf=`` of ``--conf=./a.json``, ``-I`` of ``-I./lib``.
        runs: Whether it is started as a program.
        folder: Whether it is also the name of a folder, which may be by chance.
    """

    __slots__ = ("before", "blob", "folder", "needed", "path", "runs", "text")

    def __init__(
        self,
        text: str,
        needed: bool,
        path: str | None = None,
        blob: str | None = None,
        before: str = "",
        runs: bool = False,
        folder: bool = False,
    ) -> None:
        self.text = text
        self.needed = needed
        self.path = path
        self.blob = blob
        self.before = before
        self.runs = runs
        self.folder = folder


def words_of(spec: ComponentSpec, home: Home, blobs: Collection[str]) -> list[Word]:
    """Return the words of a shell component's command; ``blobs`` are the names of blobs in the worker's directory."""
    component = spec.component
    assert isinstance(component, ShellComponent)
    script = script_in(component.command)
    starts = program_in(component.command)
    words = []
    for index, text in enumerate(component.command):
        program = index in (0, starts)
        needed = index == script or (program and "/" in text)
        if program and "/" not in text:
            words.append(Word(text, needed=False))  # it is found on the worker's PATH
            continue
        below = below_worker(text, component.change_child_cwd)
        if below is not None and below.partition("/")[0] in blobs:
            words.append(Word(text, needed, blob=below))
            continue
        path = home.find(text)
        if needed:
            if path is not None and not (
                _can_start(path, component.command[starts or 0] if index == script else None)
                # above its directory, a worker has other files
                and (os.path.isabs(text) or home.name(path) is not None)
            ):
                path = None
            words.append(Word(text, needed, path=path, runs=program))
        elif path is not None:
            words.append(_argument(text, path, home))
        else:
            before, text = _split_option(text)
            path = home.find(text) if before else None
            if path is not None and home.name(path) is not None:
                words.append(_argument(text, path, home, before))
            else:
                words.append(Word(text, needed, before=before))
    return words


def _can_start(path: str, interpreter: str | None) -> bool:
    """Return whether it is a file, or a folder that this interpreter runs like a script."""
    if os.path.isfile(path) or interpreter is None:
        return os.path.isfile(path)
    name = _base(interpreter)
    return name in ("node", "nodejs") or (
        name in ("python", "pypy") and os.path.isfile(os.path.join(path, "__main__.py"))
    )


def _argument(text: str, path: str, home: Home, before: str = "") -> Word:
    """Return a word that names a file, or clearly a folder, written as a path below the topology's folder."""
    if os.path.isfile(path) or ("/" in text and home.name(path) is not None):
        return Word(text, False, path=path, before=before)
    return Word(text, False, before=before, folder=home.name(path) is not None)


def _split_option(text: str) -> tuple[str, str]:
    """Split ``--conf=a.json`` or ``-Ilib`` before the name; the first part is empty for any other word."""
    found = re.match(r"[\w.-]+=(?=.)|-[A-Za-z](?=[^-])", text)
    return ("", text) if found is None else (found[0], text[found.end() :])


def programs_in(topology: Topology) -> Iterator[ComponentSpec]:
    """Yield the components that are programs; a Python component whose tasks run one comes as that program."""
    for spec in topology.components.values():
        program = program_of(spec.component)
        if program is spec.component:
            yield spec
        elif program is not None:
            twin = spec.copy()
            twin.component = program
            yield twin


def program_in(words: Sequence[str]) -> int | None:
    """Return the index of the program that a command runs, after ``nice``, ``env`` and the like, or None."""
    at = 0
    while _base(words[at]) in _WRAPPERS:
        alone, with_next, own = _WRAPPERS[_base(words[at])]
        at += 1
        while at < len(words):
            word = words[at]
            if re.fullmatch(with_next, word):
                at += 1
            elif word.startswith("-") or re.fullmatch(alone, word):
                if word != "--" and re.fullmatch(alone, word) is None:
                    return None
            elif own:
                own -= 1
            else:
                break
            at += 1
        if at >= len(words):
            return None
    return None if _base(words[at]) in _OTHER_WRAPPERS else at


def script_in(words: Sequence[str]) -> int | None:
    """Return the index of an interpreter's script; None when there is none, or it is unclear."""
    at = program_in(words)
    if at is None:
        at = next((index for index, word in enumerate(words) if _base(word) in _INTERPRETERS), 0)
    options = _INTERPRETERS.get(_base(words[at]))
    if options is None:
        return None
    for index, word in enumerate(words[at + 1 :], at + 1):
        if not word.startswith("-"):
            java = _base(words[at]) == "java"
            return index if not java or words[index - 1] == "-jar" else None
        if re.fullmatch(options, word) is None:
            return None
    return None


def below_worker(text: str, changes: bool) -> str | None:
    """Return the path of a relative word below the worker's directory, or None if it leads elsewhere.

    Args:
        text: The word.
        changes: Whether the command is started in ``resources/``, which is below that directory.
    """
    if os.path.isabs(text) or not text.strip("./"):
        return None
    path = os.path.normpath(os.path.join(RESOURCES, text) if changes else text)
    return None if path.startswith("..") else path.replace(os.sep, "/")


def blob_map(topology: Topology) -> dict[str, Any]:
    """Return the blobs that workers get: the topology's, and those in components' conf, for which Storm has no own map.

    Raises:
        TopologyError: A map is malformed, or two maps differ about a key.
    """
    mapped: dict[str, Any] = {}
    for owner, conf in [("the topology", topology.conf), *_confs(topology)]:
        own = conf.get(BLOB_MAP)
        if own is None:
            continue
        if not isinstance(own, dict) or not all(isinstance(value, dict | None) for value in own.values()):
            raise TopologyError(
                f"{owner}: {BLOB_MAP} is {own!r}; write {{key: {{'localname': name, 'uncompress': True}}}}, as for "
                "{'env.tgz': {'localname': 'env', 'uncompress': True}}"
            )
        for key, value in own.items():
            if mapped.setdefault(key, value) != value:
                raise TopologyError(
                    f"{owner}: {BLOB_MAP} has {value!r} for the blob {key!r}, and elsewhere in this topology it is "
                    f"{mapped[key]!r}; Storm has one map for all components: write the same in both"
                )
    return mapped


def local_names(mapped: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
    """Return name in the worker's directory -> the blob's key, and whether it is an archive that is unpacked there."""
    return {
        str((value or {}).get("localname") or key): (key, bool((value or {}).get("uncompress")))
        for key, value in mapped.items()
    }


def check_commands(
    topology: Topology,
    *,
    home: Home | None = None,
    others: Sequence[Home] = (),
    more: Iterable[str] = (),
    final: bool = True,
) -> None:
    """Raise TopologyError for the first command that names a file which a worker would not have.

    Args:
        topology: The topology.
        home: The topology's folder; each component's own if it is None.
        others: Folders that may turn out to be the topology's instead.
        more: Names of blobs that are missing from the map.
        final: Whether no more blobs can be mapped later.
    """
    known = local_names(blob_map(topology))
    known.update({name: (name, True) for name in more})
    for spec in programs_in(topology):
        _check(spec, home or spec.home or Home(os.getcwd()), others, known, final)


def _check(
    spec: ComponentSpec, home: Home, others: Sequence[Home], known: Mapping[str, tuple[str, bool]], final: bool
) -> None:
    component = spec.component
    assert isinstance(component, ShellComponent)
    changes = component.change_child_cwd
    for word in words_of(spec, home, known):
        if word.blob is not None:
            _check_unpacked(spec, word, known)
        if word.runs and word.path is not None and has_windows_line(word.path):
            raise TopologyError(
                f"{spec.kind} {spec.id!r}: the command {component.command!r} starts {word.path}, whose lines end as on Windows (CRLF), so that "
                "Linux looks for an interpreter with a carriage return in its name, and finds none; write the file with LF: "
                f"sed -i 's/\\r$//' {word.path}"
            )
        if not word.needed or word.path is not None or word.blob is not None:
            continue
        text = word.text
        if os.path.isabs(text) and home.name(os.path.normpath(text)) is None:
            continue  # the workers may have it
        if any(other.find(text) is not None for other in others):
            continue
        below = below_worker(text, changes)
        here = f"{spec.kind} {spec.id!r}: the command {component.command!r} names {text!r}, "
        first = os.path.normpath(text).partition(os.sep)[0]
        if changes and first in known:
            raise TopologyError(
                f"{here}which is in the blob {known[first][0]!r}; blobs are in the worker's directory, and the command is "
                f"started in resources/: give {type(component).__name__} change_child_cwd=False"
            )
        only_in_jar = os.path.isabs(text) or (below is not None and below.partition("/")[0] == RESOURCES)
        if not only_in_jar and not final:
            continue  # a blob may be mapped later
        folder = home.root if home.own == home.root else f"{home.root} nor in {home.own}"
        looked = f"no such file is in the topology's folder {folder}" + (
            " or in its resources/" if home.resources else ""
        )
        blob = "" if only_in_jar else f", nor does {BLOB_MAP} name a blob {_first_below(text)!r}"
        raise TopologyError(f"{here}but {looked}{blob}{_elsewhere(text, home)}")


def has_windows_line(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins with ``#!`` and a line that ends in CRLF, with which Linux can not start it."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!" and file.readline().endswith(b"\r\n")
    except OSError:
        return False


def _check_unpacked(spec: ComponentSpec, word: Word, known: Mapping[str, tuple[str, bool]]) -> None:
    name, _, rest = (word.blob or "").partition("/")
    key, unpacked = known[name]
    if rest and not unpacked:
        raise TopologyError(
            f"{spec.kind} {spec.id!r}: the command names {word.text!r}, but the blob {key!r} is not unpacked: give it "
            f"'uncompress': True in {BLOB_MAP}"
        )


def local_start(spec: ComponentSpec, conf: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the words of a command, and the folder to start it in on this machine.

    Args:
        spec: The shell component.
        conf: The conf with the map of blobs.

    Raises:
        TopologyError: The command needs something that only a worker has.
    """
    component = spec.component
    assert isinstance(component, ShellComponent)
    home = spec.home
    if home is None or not os.path.isdir(home.root):  # on an executor of Spark's, the files are in its own folder
        home = Home(os.getcwd())
    known = local_names(conf.get(BLOB_MAP) or {})
    found = words_of(spec, home, known)
    folder = home.root
    if component.change_child_cwd:
        resources = home.resources
        paths = [home.spelt(word.path) for word in found if word.path is not None and home.name(word.path) is not None]
        in_resources = [each for path in paths for each in resources if is_below(path, each)]
        folder = in_resources[0] if in_resources else resources[0] if resources and not paths else home.root
    words: list[str] = []
    for word in found:
        path = word.path
        if word.blob is not None:
            path = os.path.join(home.root, word.blob)
            if not os.path.exists(path):
                if word.needed:
                    name = word.blob.partition("/")[0]
                    raise TopologyError(
                        f"{spec.kind} {spec.id!r}: the command {component.command!r} names {word.text!r}, which is in the blob "
                        f"{known[name][0]!r} and only on a cluster; to run it here, put the same at {path}"
                    )
                path = None
        elif path is None and word.needed and not os.path.isabs(word.text):
            raise TopologyError(
                f"{spec.kind} {spec.id!r}: the command {component.command!r} names {word.text!r}, and no such file is in the "
                f"topology's folder {home.root}{_elsewhere(word.text, home)}"
            )
        words.append(word.before + (word.text if path is None else _as_seen(word.text, path, folder)))
    return words, folder


def _as_seen(text: str, path: str, folder: str) -> str:
    if os.path.isabs(text) or os.path.normpath(os.path.join(folder, text)) == path:
        return text
    return with_slash(os.path.relpath(path, folder), like=text)


def with_slash(name: str, like: str) -> str:
    """Return ``name`` as a path if ``like`` is one: a program without ``/`` would be looked for on the PATH."""
    return f"./{name}" if "/" in like and "/" not in name else name


def _elsewhere(text: str, home: Home) -> str:
    """Return a hint for file names that are relative to the current folder instead of the topology's."""
    path = os.path.abspath(text)
    if os.path.isabs(text) or not os.path.exists(path):
        return ""
    return (
        f"; {path} is there: write its name as it is below the topology's folder"
        if home.name(path) is not None
        else f"; {path} is there, but commands name files below the topology's folder: move it there"
    )


def _first_below(text: str) -> str:
    parts = [part for part in os.path.normpath(text).split(os.sep) if part != ".."]
    return parts[0] if parts else text


def _confs(topology: Topology) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{spec.kind} {spec.id!r}", spec.conf) for spec in topology.components.values()]


def _base(word: str) -> str:
    """Return a program's name without its folder and version."""
    return re.sub(r"[\d.]+$", "", word.rpartition("/")[2]).lower()
