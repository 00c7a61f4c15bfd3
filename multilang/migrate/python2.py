"""Python 2 rewritten as Python 3: by fissix, and before it what fissix leaves or can't read."""

from __future__ import annotations

import io
import os
import re
import subprocess
from importlib import import_module
from tokenize import open as open_source

from multilang.engine.child import module_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_NAME, _STRING = 1, 3  # types of tokens
_KEYWORDS = ("async", "await")  # names in Python 2
_TWEEPY = re.compile(r"^\s*(import|from)\s+tweepy\b", re.MULTILINE)
ABSTRACT = frozenset(
    [
        "Awaitable",
        "Callable",
        "Container",
        "Coroutine",
        "Generator",
        "Hashable",
        "ItemsView",
        "Iterable",
        "Iterator",
        "KeysView",
        "Mapping",
        "MappingView",
        "MutableMapping",
        "MutableSequence",
        "MutableSet",
        "Reversible",
        "Sequence",
        "Set",
        "Sized",
        "ValuesView",
    ]
)
"""The names that moved from the module collections to collections.abc."""

_FROM_COLLECTIONS = re.compile(
    r"^([ \t]*)from[ \t]+collections[ \t]+import[ \t]+([\w, \t]+?)[ \t]*(?=#|\r?$)", re.MULTILINE
)
_IS_MAIN = re.compile(r"^if[ (]+__name__\s*==\s*['\"]__main__['\"]", re.MULTILINE)
_IS_COMPONENT = re.compile(r"^class\s+\w+\s*\([^)]*(Bolt|Spout)\b[^)]*\)", re.MULTILINE)
_TAB = 8  # columns, to Python 2


def rewrite(paths: Sequence[str], moved: Sequence[str] = ()) -> list[str]:
    """Rewrite files as Python 3, with the old ones beside them as ``*.bak``, and return those that were changed.

    A file that fissix can't read keeps the rest of its changes. Needs the extra ``migrate``.

    Args:
        paths: The files of Python 2.
        moved: Files of Python 3, of which only imports from collections are rewritten.

    Raises:
        RuntimeError: fissix broke off.
    """
    old = {path: _read(path) for path in (*paths, *moved)}
    for path, text in old.items():
        new = prepared(text) if path in paths else _FROM_COLLECTIONS.sub(_from_both, text)
        if new != text:
            _write(path, new)
    alone = [path for path in paths if finds_neighbours(path)]
    _fissix([path for path in paths if path not in alone])
    # The fixer for imports would take what is beside a file from a package that the file is not imported of.
    _fissix(alone, "-x", "import")
    changed = [path for path, text in old.items() if _read(path) != text]
    for path in changed:
        if os.path.lexists(f"{path}.bak"):
            os.unlink(f"{path}.bak")  # which may be a link to a file outside of the project
        _write(f"{path}.bak", old[path], path)
    return changed


def finds_neighbours(path: str) -> bool:
    """Return whether Python 3 finds the modules beside a file by their names alone.

    It does in a folder that is on its path, as the sources of streamparse's projects and the programs of Java's are, and for a
    program that is started by itself.

    Args:
        path: The file, of Python 2 or 3.
    """
    parent, name = os.path.split(os.path.dirname(os.path.abspath(path)))
    beside = (os.path.join(parent, each) for each in ("topologies", "config.json"))
    if name in ("resources", "topologies") or (name == "src" and any(map(os.path.exists, beside))):
        return True
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return _IS_MAIN.search(text) is not None and _IS_COMPONENT.search(text) is None


def _fissix(paths: Sequence[str], *options: str) -> None:
    if not paths:
        return
    command = [*module_command("fissix"), *options, "-w", "-n", "--", *paths]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and "Can't parse" not in done.stderr:
        raise RuntimeError(done.stderr.strip()[-1500:])


def prepared(text: str) -> str:
    """Return a source of Python 2 without what fissix leaves, or takes for something else.

    These are tabs in its indentation, names that became keywords, ``setdefaultencoding``, and ``types.StringType``.

    Args:
        text: The source; one that can't be taken apart is returned as it is.
    """
    tokenize = import_module("fissix.pgen2.tokenize")  # of an extra
    text = _FROM_COLLECTIONS.sub(_from_both, text)
    renamed = "is_async" if _TWEEPY.search(text) else None
    for change in (_without_tabs, _replaced, lambda tokens, lines: _renamed(tokens, lines, renamed)):
        lines = text.splitlines(keepends=True)
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (tokenize.TokenError, IndentationError):
            return text
        change(tokens, lines)
        text = "".join(lines)
    return text


def _from_both(found: re.Match[str]) -> str:
    """Return an import from collections as those of its names there and of its names in collections.abc."""
    names = [each.strip() for each in found[2].split(",")]
    parts = (
        ("collections", [each for each in names if each.partition(" ")[0] not in ABSTRACT]),
        ("collections.abc", [each for each in names if each.partition(" ")[0] in ABSTRACT]),
    )
    return found[1] + "; ".join(f"from {module} import {', '.join(some)}" for module, some in parts if some)


def _without_tabs(tokens: list[Any], lines: list[str]) -> None:
    """Write indentation as Python 2 reads it, where a tab goes to the next column that 8 divides."""
    inside = {row for each in tokens if each[0] == _STRING for row in range(each[2][0] + 1, each[3][0] + 1)}
    for index, line in enumerate(lines):
        rest = line.lstrip(" \t")
        margin = line[: len(line) - len(rest)]
        if "\t" in margin and index + 1 not in inside:
            lines[index] = margin.expandtabs(_TAB) + rest


def _replaced(tokens: list[Any], lines: list[str]) -> None:
    """Replace ``reload(sys)`` and ``sys.setdefaultencoding(...)``, as Python 3's default is UTF-8, and the type of texts."""
    texts = [each[1] for each in tokens]
    for start in range(len(texts) - 1, -1, -1):
        if texts[start : start + 4] == ["reload", "(", "sys", ")"]:
            end = start + 3
        elif texts[start : start + 4] == ["sys", ".", "setdefaultencoding", "("] and ")" in texts[start:]:
            end = texts.index(")", start)
        elif texts[start : start + 3] == ["types", ".", "StringType"]:
            _replace(lines, tokens[start][2], tokens[start + 2][3], "str")
            continue
        else:
            continue
        _replace(lines, tokens[start][2], tokens[end][3], "None")


def _renamed(tokens: list[Any], lines: list[str], argument: str | None) -> None:
    """Rename what is a keyword in Python 3.

    Args:
        tokens: The source's tokens, among which a keyword that is used as such has a type of its own.
        lines: The source's lines, which are changed.
        argument: The name that the library has given an argument of this name since; None: none is known.
    """
    depth = 0
    found = []
    for each, after in zip(tokens, [*tokens[1:], (0, "")], strict=True):
        depth += (each[1] in "([{" and each[1] != "") - (each[1] in ")]}" and each[1] != "")
        if each[0] == _NAME and each[1] in _KEYWORDS:
            is_argument = argument is not None and each[1] == "async" and depth > 0 and after[1] == "="
            found.append((each, argument if is_argument else f"{each[1]}_"))
    for each, name in reversed(found):
        _replace(lines, each[2], each[3], str(name))


def _replace(lines: list[str], start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    if start[0] == end[0]:
        line = lines[start[0] - 1]
        lines[start[0] - 1] = line[: start[1]] + text + line[end[1] :]


def _read(path: str) -> str:
    with open_source(path) as file, open(path, encoding=file.encoding, newline="") as same:
        return same.read()


def _write(path: str, text: str, like: str | None = None) -> None:
    with open_source(like or path) as file:
        encoding = file.encoding
    with open(path, "w", encoding=encoding, newline="") as file:
        file.write(text)
