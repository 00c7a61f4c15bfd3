"""docs/specification.md names what there is: each row has a place, and tests that exist, or a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "specification.md"
CODE = re.compile(r"`([^`]+)`")
TEST = re.compile(r"`([\w/]+\.py)::([\w:]+)`")


class Row(NamedTuple):
    id: str
    says: str
    here: str
    shown: str


def rows() -> list[Row]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if re.match(r"\| [A-Z]\d+ ", line)
    ]
    assert [row for row in cells if len(row) != 4] == []
    return [Row(*row) for row in cells]


ROWS = rows()


@cache
def names_in(file: str) -> set[str]:
    """The tests that a file has, by their names without parameters; some are for users, too, and not in ``tests``."""
    path = ROOT / (file if file.startswith("multilang/") else f"tests/{file}")
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else ():
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


def is_there(name: str) -> bool:
    """Return whether a file, or an object by its dotted name, exists."""
    if "/" in name or not name.startswith(("multilang", "spark_bridge")):
        return (ROOT / name).exists()
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError as problem:
            if problem.name is not None and not name.startswith(problem.name):
                raise  # the module is there, and lacks another
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_rows_are_numbered_through_each_document() -> None:
    assert len(ROWS) >= 220
    seen: dict[str, int] = {}
    for row in ROWS:
        letter, number = row.id[0], int(row.id[1:])
        assert number == seen.get(letter, 0) + 1, row.id
        seen[letter] = number
    assert list(seen) == ["M", "G", "S", "T", "C"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_names_a_place_and_a_test_or_a_reason(row: Row) -> None:
    assert row.says
    places = CODE.findall(row.here)
    assert places, "no place"
    assert [place for place in places if not is_there(place)] == []
    named = TEST.findall(row.shown)
    assert [f"{file}::{test}" for file, test in named if test not in names_in(file)] == []
    assert named or row.shown.startswith("Otherwise: "), "neither a test nor a reason"
    # What looks like the name of a test is one: a slip in its form would not be looked for.
    assert len(named) == len([code for code in CODE.findall(row.shown) if "::" in code or "test_" in code])


def test_what_is_not_there_is_noticed() -> None:
    assert is_there("multilang.Bolt.ack")
    assert is_there("docs/state.md")
    for name in ("multilang.Bolt.nack", "multilang.nowhere", "multilang.nowhere.Bolt", "docs/nowhere.md", "nowhere"):
        assert not is_there(name)
    assert "test_what_is_not_there_is_noticed" in names_in("tooling/test_specification.py")
    assert "is_there" not in names_in("tooling/test_specification.py")
    assert names_in("tooling/nowhere.py") == set()
