"""The tests of ``if`` statements that the workers' Python decides: by its version, its platform, and whether code is only checked."""

from __future__ import annotations

import ast
import operator
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.shipping.wheels import WheelTarget

_OLD = "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau telnetlib uu xdrlib"
# The modules that a release of Python added, and those that it removed.
_RELEASES = {
    (3, 11): ("tomllib", "binhex"),
    (3, 12): ("", "asynchat asyncore distutils imp smtpd"),
    (3, 13): ("", _OLD),
    (3, 14): ("annotationlib compression", ""),
}
_METHODS = ("startswith", "endswith", "lower", "upper")
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}


@dataclass(frozen=True)
class WorkersPython:
    """The Python of the workers.

    Attributes:
        version: Its version, such as (3, 11).
        platform: Its ``sys.platform``.
    """

    version: tuple[int, int]
    platform: str

    @classmethod
    def of(cls, target: WheelTarget) -> WorkersPython:
        """Return the Python of a target."""
        major, _, minor = target.python.partition(".")
        kinds = {"win": "win32", "macosx": "darwin"}
        named = target.platform and next((kinds[each] for each in kinds if target.platform.startswith(each)), "linux")
        return cls((int(major), int(minor)), named or sys.platform)

    @property
    def modules(self) -> set[str]:
        """The names of the modules that belong to it."""
        found, own = set(sys.stdlib_module_names), sys.version_info[:2]
        for release, texts in _RELEASES.items():
            added, removed = (set(text.split()) for text in texts)
            if own < release <= self.version:
                found = (found | added) - removed
            elif self.version < release <= own:
                found = (found | removed) - added
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """The values of the names that depend on it."""
        micro = sys.version_info.micro if self.version == sys.version_info[:2] else 0
        major, minor = self.version
        system = {"win32": "Windows", "darwin": "Darwin", "linux": "Linux"}.get(self.platform)
        return {
            "sys.version_info": (major, minor, micro, "final", 0),
            "sys.version_info.major": major,
            "sys.version_info.minor": minor,
            "sys.version_info.micro": micro,
            "sys.version": f"{major}.{minor}.{micro}",
            "sys.hexversion": (major << 24) + (minor << 16) + (micro << 8) + 0xF0,
            "sys.platform": self.platform,
            "os.name": "nt" if self.platform == "win32" else "posix",
            **({"platform.system()": system} if system is not None else {}),
            "sys.maxsize": sys.maxsize,
            "six.PY2": False,
            "six.PY3": True,
            "TYPE_CHECKING": False,
            "__debug__": True,
            "__name__": "the name of a module that is imported",
        }


HERE = WorkersPython((sys.version_info[0], sys.version_info[1]), sys.platform)


class _UnknownError(Exception):
    """A value depends on something else."""


class Conditions:
    """The tests in a module.

    Args:
        tree: The module.
        facts: The values of dotted names, as of WorkersPython.
    """

    def __init__(self, tree: ast.Module, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self._bound: dict[str, str] = {}
        stored: dict[str, int] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._bound.update({alias.asname: alias.name for alias in node.names if alias.asname})
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self._bound.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                stored[node.id] = stored.get(node.id, 0) + 1
        # Flags such as PY2 = sys.version_info[0] == 2. A literal is none: it is there to be changed.
        self._flags = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and stored[node.targets[0].id] == 1
            and not isinstance(node.value, ast.Constant)
        }

    def holds(self, test: ast.expr) -> bool | None:
        """Return whether a test holds on a worker; None if something else decides it."""
        try:
            return bool(self._value(test))
        except (_UnknownError, TypeError, LookupError, AttributeError, RecursionError):
            return None

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return tuple(map(self._value, node.elts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._value(node.operand)
        if isinstance(node, ast.BoolOp):
            return self._of_several(node)
        if isinstance(node, ast.Compare):
            values = list(map(self._value, (node.left, *node.comparators)))
            return all(_OPERATORS[type(op)](*pair) for op, pair in zip(node.ops, pairwise(values), strict=True))
        if isinstance(node, ast.Subscript):
            return self._value(node.value)[self._index(node.slice)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return getattr(self._value(node.func.value), node.func.attr)(*map(self._value, node.args))
        return self._named(node)

    def _of_several(self, node: ast.BoolOp) -> bool:
        found = [self.holds(each) for each in node.values]
        decisive = isinstance(node.op, ast.Or)
        if decisive in found:
            return decisive
        if None in found:
            raise _UnknownError
        return not decisive

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            return slice(*(each and self._value(each) for each in (node.lower, node.upper, node.step)))
        return self._value(node)

    def _named(self, node: ast.expr) -> Any:
        name = ast.unparse(node)
        if name in self._flags and name not in self._facts:
            return self._value(self._flags[name])
        first, dot, rest = name.partition(".")
        name = self._bound.get(first, first) + dot + rest
        if name.endswith(".TYPE_CHECKING"):  # typing has other names, too
            return False
        if name not in self._facts:
            raise _UnknownError
        return self._facts[name]
