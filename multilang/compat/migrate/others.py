"""The files that Petrel and Pyleus have beside their components."""

from __future__ import annotations

import os
import re

from multilang.compat.migrate.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OF_PYLEUS = "pyleus_topology.yaml"
OF_PETREL = ("logconfig.ini", "manifest.txt", "setup.sh")


def in_others(path: str, name: str) -> Iterator[Finding]:
    """Return what is to do about the files that Petrel and Pyleus have beside their components."""
    if name == OF_PYLEUS:
        what = "a topology of Pyleus, which does not run here as it is"
        yield Finding(
            path, 0, what, "declare it as a class of streamparse's DSL; docs/migrating.md, Pyleus, has a table"
        )
    if name not in OF_PETREL or not os.path.isfile(os.path.join(os.path.dirname(path), "create.py")):
        return
    if name == "logconfig.ini":
        yield Finding(
            path,
            0,
            "Petrel's logconfig.ini means nothing here",
            "records go to Storm's log, so it may stay or go",
            False,
        )
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    for number, line in enumerate(lines, 1):
        if name == "setup.sh" and re.search(r"\bpip\d? install\b", line):
            what = "Petrel's setup.sh installs packages on the workers, and is not run here"
            yield Finding(
                path, number, what, "name them in a file for --requirements, which puts them into the jar", False
            )
        elif name == "manifest.txt" and re.match(r"/|\.\./|.*\$", line) and not line.endswith(".egg"):
            what = (
                f"manifest.txt names {line}, outside of the folder; the jar has all files of the folder, and no others"
            )
            yield Finding(path, number, what, "copy it into the folder", False)
