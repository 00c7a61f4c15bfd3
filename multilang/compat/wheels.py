"""Requirements of a project that have no wheel, which a jar can't hold. An index is asked, and nothing is installed or built."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from time import monotonic

from multilang.runtime.child import module_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AT_ONCE = 4
_MAX_INCLUDED = 100
_MAX_BYTES = 4 << 20
_PIP = ("--disable-pip-version-check", "--no-input", "--retries", "0", "--timeout", "10")
_LAYER = re.compile(r"(?i)^(streamparse|pystorm)\b(?![-_.][a-z0-9])")
_INCLUDE = re.compile(r"^(?:-r|--requirement)[= ]?\s*(\S+)")
_OPTION = re.compile(r"^-(i|f)\b|^--(index-url|extra-index-url|find-links|no-index|trusted-host|pre)\b")
_SOURCE = re.compile(r"^(-e|--editable)\b|^[a-z]+\+|(?<!\w)git://|^\.{0,2}/|@\s*[a-z]+\+")
# A name, extras, versions and a marker. pip takes anything else as a place, whose sources it builds: that runs code.
_PACKAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[\w\s,.-]*\])?\s*(\([^()@/\\]*\)|[<>=!~][^@/\\;]*)?(\s*;[^@/\\]*)?", re.ASCII
)
_ARCHIVE = re.compile(r"(?i)\.(zip|whl|tar|tar\.\w+|tgz|tbz|txz|tlz)$")
_OF_LINE = re.compile(r"\s--?[a-z].*|\s*\\$")  # such as hashes, and the sign that the next line belongs to this one


@dataclass(frozen=True)
class Requirement:
    """A line of a file of requirements.

    Attributes:
        path: The file.
        line: The number of the line, from 1.
        text: The requirement, as pip takes it.
        options: The options of the file that tell pip where to look.
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
        """True if it names sources, of which there is no wheel."""
        return _SOURCE.search(self.text) is not None

    @property
    def is_place(self) -> bool:
        """True if it names a file, a folder or an address, and not a package of an index."""
        return _PACKAGE.fullmatch(self.text) is None or _ARCHIVE.search(self.text) is not None


def requirements_in(path: str, root: str, seen: set[str] | None = None) -> list[Requirement]:
    """Return the requirements of a file, and of those that it includes, without those that this library stands in for.

    Args:
        path: The file.
        root: The project's folder. A file outside of it that is included is not read, but is a requirement of its own.
        seen: The files that were read already, which are not read again.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    with open(path, encoding="utf-8-sig") as file:
        lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in file]
    options = tuple(word for line in lines if _OPTION.match(line) for word in _options_in(line))
    seen = set() if seen is None else seen
    seen.add(os.path.realpath(path))
    found: list[Requirement] = []
    for number, line in enumerate(lines, 1):
        included = _INCLUDE.match(line)
        if included is not None:
            other = os.path.join(os.path.dirname(path), included[1])
            if os.path.realpath(other) in seen:
                continue
            if len(seen) < _MAX_INCLUDED and _is_part(other, root):
                found += requirements_in(other, root, seen)
            else:
                found.append(Requirement(path, number, line, options))
        elif line and (not line.startswith("-") or _SOURCE.match(line)) and not _LAYER.match(line):
            found.append(Requirement(path, number, line if _SOURCE.match(line) else _OF_LINE.sub("", line), options))
    return found


def _is_part(path: str, root: str) -> bool:
    """Return whether it is a file of the project, and neither a pipe nor endless."""
    real, within = os.path.realpath(path), os.path.join(os.path.realpath(root), "")
    return real.startswith(within) and os.path.isfile(real) and os.path.getsize(real) <= _MAX_BYTES


def _options_in(line: str) -> Iterator[str]:
    """Return the options of a line that tell pip where to look; another one could make pip build what it finds.

    Raises:
        ValueError: The line has a quotation mark without its end.
    """
    words = iter(shlex.split(line))
    for word in words:
        option, _, value = word.partition("=")
        if option in ("--no-index", "--pre"):
            yield option
        elif _OPTION.match(option):
            value = value or next(words, "")
            if os.path.exists(value):  # from where pip runs, as pip itself does it; this one runs in an empty folder
                value = os.path.abspath(value)
            yield {"-i": "--index-url", "-f": "--find-links"}.get(option, option) + f"={value}"


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


BY_ENVIRONMENT = "variables of the environment, which may be secrets, are not put into an index's address"
NO_ANSWER = "the index can't be reached"
TOO_LATE = "there was no time left to ask the index"


def _said(requirement: Requirement, until: float) -> str:
    """Return the reason why there is no wheel, or no answer; empty if there is a wheel."""
    where = requirement.options
    if any("${" in option for option in where):
        return BY_ENVIRONMENT
    command = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", "--quiet"]
    done = _pip([*command, *where, "--", requirement.text], until)
    if done is None:
        return TOO_LATE
    if done.returncode == 0:
        return ""
    if "No matching distribution" not in done.stderr:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip says nothing about it"
    known = _pip(["index", "versions", *where, "--", requirement.name], until)
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
    """Return the result of a command of pip's; None if there is no time for it. No name means a file of this folder."""
    left = until - monotonic()
    if left <= 0:
        return None
    command = [*module_command("pip"), arguments[0], *_PIP, *arguments[1:]]
    try:
        with tempfile.TemporaryDirectory() as empty:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=left, cwd=empty
            )
    except subprocess.TimeoutExpired:
        return None
