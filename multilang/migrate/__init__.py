"""Things that stop a program of another library's from running here, each with its line and what to do. Nothing is run."""

from __future__ import annotations

from multilang.migrate.files import MAX_BYTES, python_files
from multilang.migrate.finding import Finding, as_text
from multilang.migrate.findings import findings, has_program, to_rewrite
from multilang.migrate.python import is_old_storm
from multilang.migrate.topologies import from_clojure, from_flux

__all__ = [
    "MAX_BYTES",
    "Finding",
    "as_text",
    "findings",
    "from_clojure",
    "from_flux",
    "has_program",
    "is_old_storm",
    "python_files",
    "to_rewrite",
]
