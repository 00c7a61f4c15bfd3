"""Requirements of a project that name sources, which a jar can't hold."""

from __future__ import annotations

import os
import re

from multilang.migrate.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_INCLUDED = 100
_MAX_BYTES = 4 << 20
_LAYER = re.compile(r"(?i)^(streamparse|pystorm)\b(?![-_.][a-z0-9])")
INCLUDE = re.compile(r"^(?:-r|--requirement)[= ]?\s*(\S+)")
_SOURCE = re.compile(r"^(-e|--editable)\b|^[a-z]+\+|(?<!\w)git://|^\.{0,2}/|@\s*[a-z]+\+")


def is_requirements(path: str) -> bool:
    """Return whether a file has requirements by its name: those of ``virtualenvs/``, and ``requirements*.txt``."""
    folder, name = os.path.split(path)
    named = name.startswith("requirements") or os.path.basename(folder) in ("virtualenvs", "requirements")
    return name.endswith(".txt") and named


def in_requirements(path: str, root: str) -> Iterator[Finding]:
    """Return the requirements of a file that a jar can't hold.

    Args:
        path: The file.
        root: The project's folder.
    """
    try:
        found = requirements_in(path, root)
    except (OSError, ValueError) as error:
        yield Finding(path, 0, f"it can't be read: {error}", "mend the file")
        return
    for file, line, text in found:
        if _SOURCE.search(text):
            what = f"{text} names sources instead of a wheel, which a jar can't hold"
            fix = "name a version that has a wheel, or, if it needs no compiler, give --build to multilang package"
            yield Finding(file, line, what, fix)
        elif INCLUDE.match(text):
            what = f"{text} names a file that is not looked at: it is not in the project, or too large"
            yield Finding(file, line, what, "look at it by hand", False)


def requirements_in(path: str, root: str, seen: set[str] | None = None) -> list[tuple[str, int, str]]:
    """Return the requirements of a file, and of those that it includes, without those that this library stands in for.

    Args:
        path: The file.
        root: The project's folder. A file outside of it that is included is not read, but is a requirement of its own.
        seen: The files that were read already, which are not read again.

    Returns:
        The file, the number of the line, from 1, and the text of each.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    lines = lines_in(path)
    seen = set() if seen is None else seen
    seen.add(os.path.realpath(path))
    found: list[tuple[str, int, str]] = []
    for number, line in enumerate(lines, 1):
        included = INCLUDE.match(line)
        if included is not None:
            other = os.path.join(os.path.dirname(path), included[1])
            if os.path.realpath(other) in seen:
                continue
            if len(seen) < _MAX_INCLUDED and _is_part(other, root):
                found += requirements_in(other, root, seen)
            else:
                found.append((path, number, line))
        elif line and (not line.startswith("-") or _SOURCE.match(line)) and not _LAYER.match(line):
            found.append((path, number, line))
    return found


def lines_in(path: str) -> list[str]:
    """Return the lines of a file of requirements, without comments.

    Args:
        path: The file.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    with open(path, encoding="utf-8-sig") as file:
        return [re.sub(r"(^|\s)#.*", "", line).strip() for line in file]


def _is_part(path: str, root: str) -> bool:
    """Return whether it is a file of the project, and neither a pipe nor endless."""
    real, within = os.path.realpath(path), os.path.join(os.path.realpath(root), "")
    return real.startswith(within) and os.path.isfile(real) and os.path.getsize(real) <= _MAX_BYTES
