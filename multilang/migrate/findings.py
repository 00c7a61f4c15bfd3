"""The programs of other libraries in a project, and all things that stop them from running here."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

from multilang.compat.flux import is_flux
from multilang.compat.project import NEEDLESS
from multilang.component.errors import ConfigError
from multilang.loading.topologies import YAML
from multilang.migrate.files import files_of, python_files, why_unread
from multilang.migrate.finding import Finding
from multilang.migrate.others import OF_PYLEUS, in_petrel, in_pyleus
from multilang.migrate.python import NOT_VALID, in_python, in_python_2, is_old, was_python_2
from multilang.migrate.requirements import in_requirements, is_requirements
from multilang.migrate.topologies import dsl_file, dsl_of, in_clojure, in_flux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CONFIG_BYTES = 256 << 10  # of a config.json, each entry of which is looked for in the text
_IMPORT = re.compile(
    rb"^[ \t]*(?:from|import)[ \t]+(?:[\w., \t]*,[ \t]*)?(?:multilang|petrel|pyleus|pystorm|storm|streamparse)\b",
    re.MULTILINE,
)
_OUTPUTS = re.compile(r"^(\w+)\.outputs = ", re.MULTILINE)


def findings(root: str, rewritten: bool = False) -> list[Finding]:
    """Return everything that was found in a project, or in one file, by file and line.

    Args:
        root: The folder or the file.
        rewritten: Whether Python 2 has been rewritten already, so that what is left is for the user.
    """
    found = list(in_petrel(root))
    programs: list[str] = []
    for path in files_of(root):
        name = os.path.basename(path)
        looked_at = name.endswith((".py", ".json", ".clj")) or is_requirements(path)
        unread = why_unread(path) if looked_at else ""
        if unread:
            found.append(Finding(path, 0, unread, "look at it by hand", False))
        elif name.endswith(".py"):
            programs.append(path)
            found += in_python(path, root, rewritten)
        elif name.endswith(".clj") and os.path.basename(os.path.dirname(path)) == "topologies":
            if not os.path.exists(dsl_file(path)):
                found.append(in_clojure(path))
        elif name == "config.json":
            found += _in_config(path)
        elif is_requirements(path):
            found += in_requirements(path, root)
        elif name == OF_PYLEUS:
            found.append(in_pyleus(path))
        elif name.endswith(YAML) and not why_unread(path):
            found += in_flux(path)
    if any(each.python2 for each in found) or any(was_python_2(path, root) for path in programs):
        found += [each for path in programs for each in in_python_2(path)]
    given = tuple(f"{name} emits" for name in _outputs_given(root))
    left = {each for each in found if not each.what.startswith(given)}
    if rewritten:
        left = {replace(each, fix=each.fix.removesuffix("; --fix does")) for each in left}
    return sorted(left, key=lambda each: (each.path, each.line, each.what))


def to_rewrite(root: str) -> tuple[list[str], list[str]]:
    """Return the files that ``--fix`` rewrites: those of Python 2, and those of Python 3 with names that were moved.

    Once one file of a project is Python 2, all are, without those that Python 2 can't read, and those that were rewritten
    already.

    Args:
        root: The project's folder, or one file.
    """
    found = findings(root)
    files = python_files(root)
    wanted = {each.path for each in found if "--fix" in each.fix}
    if any(each.python2 for each in found):
        old = [path for path in files if is_old(path, root)]
    else:
        broken = {each.path for each in found if each.what.startswith(NOT_VALID)}
        old = [path for path in files if path in wanted & broken]
    return old, [path for path in files if path in wanted and path not in old]


def _outputs_given(root: str) -> Iterator[str]:
    """Return the names of classes to which a topology gives their outputs, as those do that were in Clojure."""
    for path in files_of(root):
        if os.path.basename(os.path.dirname(path)) != "topologies" or why_unread(path):
            continue
        if path.endswith(".clj"):
            try:
                yield from _OUTPUTS.findall(dsl_of(path))
            except (OSError, ValueError):
                continue  # which findings() reports
        elif path.endswith(".py"):
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from _OUTPUTS.findall(file.read())


def has_program(root: str) -> bool:
    """Return whether a file or a folder has a program of a library whose programs are moved, or one that was moved already.

    Such a program imports the library, or is a topology in Clojure or YAML. Python 2 is found, too.

    Args:
        root: The file or the folder.
    """
    return any(_is_program(path) for path in files_of(root) if not why_unread(path))


def _is_program(path: str) -> bool:
    folder, name = os.path.split(path)
    if name.endswith(".py"):
        with open(path, "rb") as file:
            return _IMPORT.search(file.read()) is not None
    if name.endswith(".clj"):
        return os.path.basename(folder) == "topologies"
    if not name.endswith(YAML):
        return False
    try:
        return name == OF_PYLEUS or is_flux(path)
    except ConfigError:
        return False  # YAML of something else


def _in_config(path: str) -> Iterator[Finding]:
    """Return what is to do about a config.json."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        if len(text) > _MAX_CONFIG_BYTES:
            raise ValueError(f"it has more than {_MAX_CONFIG_BYTES:,} characters")
        config = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        yield Finding(path, 0, f"it can't be read as JSON: {error}", "mend its JSON")
        return
    environments = config.get("envs") if isinstance(config, dict) else None
    for name, entries in environments.items() if isinstance(environments, dict) else ():
        here = text.find(json.dumps(name, ensure_ascii=False), text.find('"envs"'))
        if not isinstance(entries, dict):
            what = f"the environment {name!r} is not a JSON object"
            yield Finding(path, _line_of(text, here), what, "write its settings in braces")
            continue
        serializer = entries.get("serializer") or config.get("serializer") or "json"
        if serializer != "json":
            what = (
                f"the environment {name!r} has the serializer {serializer!r}, which needs a Java class on the workers"
            )
            at = text.find('"serializer"', here if entries.get("serializer") else 0)
            yield Finding(path, _line_of(text, at), what, 'write "serializer": "json"')
        options = entries.get("options")
        for key in NEEDLESS:
            if entries.get(key) or (isinstance(options, dict) and options.get(key)):
                what = f"{key} of the environment {name!r} means nothing here"
                fix = "jars need neither SSH nor virtualenvs, so it may stay or go"
                yield Finding(path, _line_of(text, text.find(f'"{key}"', here)), what, fix, False)


def _line_of(text: str, place: int) -> int:
    """Return the line of a place in a text; 0 if the place was not found."""
    return text[:place].count("\n") + 1 if place >= 0 else 0
