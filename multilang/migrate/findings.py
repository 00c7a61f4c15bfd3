"""All things that stop a project."""

from __future__ import annotations

import os
import re

from multilang.loading.topologies import YAML
from multilang.migrate.files import files_of, why_unread
from multilang.migrate.finding import Finding
from multilang.migrate.others import OF_PYLEUS, in_petrel, in_pyleus
from multilang.migrate.python import WITHOUT_OUTPUTS, in_python
from multilang.migrate.requirements import in_requirements, is_requirements
from multilang.migrate.settings import in_config
from multilang.migrate.topologies import dsl_file, dsl_of, in_clojure, in_flux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OUTPUTS = re.compile(r"^(\w+)\.outputs = ", re.MULTILINE)


def findings(root: str, rewritten: bool = False) -> list[Finding]:
    """Return everything that was found in a project, or in one file, by file and line.

    Args:
        root: The folder or the file.
        rewritten: Whether Python 2 has been rewritten already, so that what is left is for the user.
    """
    found = list(in_petrel(root))
    for path in files_of(root):
        name = os.path.basename(path)
        looked_at = name.endswith((".py", ".json", ".clj")) or is_requirements(path)
        unread = why_unread(path) if looked_at else ""
        if unread:
            found.append(Finding(path, 0, unread, "look at it by hand", False))
        elif name.endswith(".py"):
            found += in_python(path, root, rewritten)
        elif name.endswith(".clj") and os.path.basename(os.path.dirname(path)) == "topologies":
            if not os.path.exists(dsl_file(path)):
                found.append(in_clojure(path))
        elif name == "config.json":
            found += in_config(path)
        elif is_requirements(path):
            found += in_requirements(path, root)
        elif name == OF_PYLEUS:
            found.append(in_pyleus(path))
        elif name.endswith(YAML) and not why_unread(path):
            found += in_flux(path)
    given = {f"{name}{WITHOUT_OUTPUTS}" for name in _outputs_given(root)}
    return sorted(
        {each for each in found if each.what not in given}, key=lambda each: (each.path, each.line, each.what)
    )


def _outputs_given(root: str) -> Iterator[str]:
    """Return the names of classes to which a topology gives their outputs, as those do that were in Clojure."""
    for path in files_of(root):
        if os.path.basename(os.path.dirname(path)) != "topologies" or why_unread(path):
            continue
        if path.endswith(".clj"):
            try:
                yield from _OUTPUTS.findall(dsl_of(path))
            except (OSError, ValueError):
                continue  # which findings() tells
        elif path.endswith(".py"):
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from _OUTPUTS.findall(file.read())
