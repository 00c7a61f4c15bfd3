"""A docstring begins with the thing that it describes, or with what a call does, and not with a subordinate clause."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAUSES = {"How", "If", "That", "What", "When", "Where", "Whether", "Which", "Who", "Why"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@pytest.mark.parametrize("package", ["multilang", "spark_bridge", "benchmarks", "examples", "tests"])
def test_no_docstring_begins_with_a_clause(package: str) -> None:
    found = []
    for file in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if text and text.split()[0] in CLAUSES:
                found.append(f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    assert not found
