"""Requirements of a project that have no wheel, which a jar can't hold. An index is asked, and nothing is installed or built."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AT_ONCE = 4
_PIP = ("--disable-pip-version-check", "--no-input", "--retries", "0", "--timeout", "10")
_LAYER = re.compile(r"(?i)^(streamparse|pystorm|petrel)\b(?![-_.][a-z0-9])")
_INCLUDE = re.compile(r"^(?:-r|--requirement)[= ]?\s*(\S+)")
_OPTION = re.compile(r"^-(i|f)\b|^--(index-url|extra-index-url|find-links|no-index|trusted-host|pre)\b")
_SOURCE = re.compile(r"^(-e|--editable)\b|^[a-z]+\+|(?<!\w)git://|^\.{0,2}/|@\s*[a-z]+\+")


@dataclass(frozen=True)
class Requirement:
    """A line of a file of requirements.

    Attributes:
        path: The file.
        line: The number of the line, from 1.
        text: The requirement, as pip takes it.
        options: The lines of the file that tell pip where to look.
    """

    path: str
    line: int
    text: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The package's name."""
        found = re.match(r"[A-Za-z0-9._-]+", self.text)
        return found[0] if found else self.text

    @property
    def is_source(self) -> bool:
        """Whether it names sources, of which there is no wheel."""
        return _SOURCE.search(self.text) is not None


def requirements_in(path: str) -> list[Requirement]:
    """Return the requirements of a file, and of those that it includes, without those that this library stands in for.

    Args:
        path: The file.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    with open(path, encoding="utf-8-sig") as file:
        lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in file]
    # relative folders are meant from where pip runs, as pip itself does it
    options = tuple(line for line in lines if _OPTION.match(line))
    found: list[Requirement] = []
    for number, line in enumerate(lines, 1):
        included = _INCLUDE.match(line)
        if included is not None:
            found += requirements_in(os.path.join(os.path.dirname(path), included[1]))
        elif line and (not line.startswith("-") or _SOURCE.match(line)) and not _LAYER.match(line):
            found.append(Requirement(path, number, line, options))
    return found


def without_wheels(found: Sequence[Requirement], limit: float = 60) -> Iterator[tuple[Requirement, str]]:
    """Ask pip's index which requirements have wheels for this Python, and tell each that has none, with the reason.

    Args:
        found: The requirements.
        limit: Seconds after which those that are left are not asked any more.
    """
    from concurrent.futures import ThreadPoolExecutor

    until = monotonic() + limit
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for each, said in zip(found, pool.map(lambda each: _said(each, until), found), strict=True):
            if said:
                yield each, said


NO_ANSWER = "the index can't be reached"
TOO_LATE = "there was no time left to ask the index"


def _said(requirement: Requirement, until: float) -> str:
    """Return the reason why there is no wheel, or no answer; empty if there is a wheel."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join([*requirement.options, requirement.text]) + "\n")
        file.flush()
        command = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", "--quiet"]
        done = _pip([*command, "-r", file.name], until)
    if done is None:
        return TOO_LATE
    if done.returncode == 0:
        return ""
    if "No matching distribution" not in done.stderr:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip says nothing about it"
    where = [word for line in requirement.options for word in re.split(r"[\s=]+", line, maxsplit=1)]
    known = _pip(["index", "versions", *where, requirement.name], until)
    if known is not None and known.returncode and "--no-index" not in where:
        any_other = _pip(["index", "versions", *where, "pip"], until)
        if any_other is not None and any_other.returncode:
            return NO_ANSWER
    if known is None:
        return TOO_LATE
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    if known.returncode:
        return f"there is no package {requirement.name!r} for {python}"
    return f"{requirement.text} has no wheel for {python} on this platform"


def _pip(arguments: Sequence[str], until: float) -> subprocess.CompletedProcess[str] | None:
    """Return the result of a command of pip's; None if there is no time for it."""
    left = until - monotonic()
    if left <= 0:
        return None
    command = [sys.executable, "-I", "-m", "pip", arguments[0], *_PIP, *arguments[1:]]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return None
