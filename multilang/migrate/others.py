"""Petrel and Pyleus, whose programs don't run here."""

from __future__ import annotations

import re

from multilang.migrate.files import python_files
from multilang.migrate.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OF_PYLEUS = "pyleus_topology.yaml"
_PETREL = re.compile(rb"^[ \t]*(?:from|import)[ \t]+petrel\b", re.MULTILINE)


def in_pyleus(path: str) -> Finding:
    """Return what is to do about a topology of Pyleus."""
    what = "a topology of Pyleus, which does not run here as it is"
    return Finding(path, 0, what, "declare it as a class of streamparse's DSL; docs/migrating.md, Pyleus, has a table")


def in_petrel(root: str) -> Iterator[Finding]:
    """Return what is to do about a project of Petrel's, once, at the first import. Python 2 is found, too."""
    for path in python_files(root):
        with open(path, "rb") as file:
            text = file.read()
        found = _PETREL.search(text)
        if found is not None:
            yield Finding(
                path,
                text[: found.start()].count(b"\n") + 1,
                "this program is written for Petrel, which is not supported",
                "write its components for storm.py and its topology for TopologyBuilder; docs/migrating.md, Petrel, has a table",
            )
            return
