"""A name that begins with _ is its module's own: no other module of ours reaches for it.

What another module needs has a public name, or a public function beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("multilang", "spark_bridge")
NAMED_TUPLES = {"_asdict", "_make", "_replace"}  # public there, whatever they begin with


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLES


def defined(tree: ast.AST) -> set[str]:
    """Return the private names that a module gives to anything: functions, classes, variables and attributes."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and is_own(node.value):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def is_own(value: ast.expr) -> bool:
    """Return whether it is ``self``, ``cls`` or ``super()``: a subclass may use what its base has."""
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


def reaches(modules: dict[str, str]) -> Iterator[str]:
    """Return the reaches for private names: module -> its text."""
    trees = {name: ast.parse(text) for name, text in modules.items()}
    own = {name: defined(tree) for name, tree in trees.items()}
    ours = set().union(*own.values())
    for name, tree in trees.items():
        of_others = ours - own[name]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
                yield from (f"{name}:{node.lineno}: import {each.name}" for each in node.names if is_private(each.name))
            elif (
                isinstance(node, ast.Attribute)
                and node.attr in of_others
                and is_private(node.attr)
                and not is_own(node.value)
            ):
                yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def test_no_module_reaches_for_what_is_private_in_another() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = reaches({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files})
    assert list(found) == []


def test_reaches_are_found() -> None:
    texts = {
        "one": "class One:\n    _kept = 1\n    def __init__(self): self._made = 2; self._kept\ndef _work(one): one._made",
        "two": "from multilang.one import One, _work\nOne()._made = One._kept\nx._theirs\nx.__dict__",
        "three": "from theirs import _x\nclass Sub(One):\n    def go(self): super()._made; self._kept; cls._made",
    }
    assert list(reaches(texts)) == ["two:1: import _work", "two:2: One()._made", "two:2: One._kept"]
