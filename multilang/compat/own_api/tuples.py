"""The tuples that a bolt gets: every use of them, through the methods of its class."""

from __future__ import annotations

import ast

from multilang.compat.own_api.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.own_api.classes import Found
    from multilang.compat.own_api.declarations import Declarations

_SAME = {"component", "id", "stream", "task"}
_AS_LIST = {
    "all",
    "any",
    "dict",
    "enumerate",
    "len",
    "list",
    "max",
    "min",
    "reversed",
    "set",
    "sorted",
    "sum",
    "tuple",
    "zip",
}


class Tuples(Work):
    """The uses of tuples in a bolt.

    Attributes:
        emits: The calls that emit.
        fine: Uses that were written over elsewhere.
    """

    def __init__(self, found: Found, declared: Declarations, emits: set[ast.AST]) -> None:
        super().__init__(found, declared)
        self.emits = emits
        self.fine: set[ast.AST] = set()
        self._names: dict[str, str] = {}  # a method -> its argument that is a tuple

    def names_of(self, node: ast.AST) -> set[str]:
        """Return the names of tuples where a node is."""
        method = self.method(node)
        if method is not None and method.name in ("process", "process_tick") and len(method.args.args) > 1:
            return {method.args.args[1].arg}
        return set()

    def write(self) -> None:
        """Judge the uses, and note the changes."""
        if self.found.kind.is_spout:
            return
        functions = self.found.functions()
        waiting: list[str] = [
            name for name in ("process", "process_tick") if name in functions and len(functions[name].args.args) == 2
        ]
        for name in waiting:
            self._names[name] = functions[name].args.args[1].arg
        while waiting:
            name = waiting.pop()
            for helper, argument in self._in_method(functions[name], self._names[name]):
                if self._names.get(helper, argument) != argument:
                    self.found.keep(functions[helper], f"its method {helper} takes tuples in several arguments")
                elif helper not in self._names:
                    self._names[helper] = argument
                    waiting.append(helper)

    def _in_method(self, function: ast.FunctionDef, name: str) -> list[tuple[str, str]]:
        """Judge the uses in a method; return the methods that get the tuple, each with its argument."""
        handed = []
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or node.id != name or node in self.fine:
                continue
            if not isinstance(node.ctx, ast.Load):
                self.found.keep(node, f"it assigns another value to {name}, the tuple")
                continue
            parent = self.parents[node]
            if isinstance(parent, ast.Attribute):
                self._attribute(parent, name)
            elif isinstance(parent, ast.Call) and node in parent.args:
                handed += self._argument(parent, node, name)
            elif not self._is_anchor(parent, node):
                self.found.keep(node, f"it keeps {name} or hands it on, and the text does not show how it is used then")
        return handed

    def _argument(self, call: ast.Call, node: ast.Name, name: str) -> list[tuple[str, str]]:
        function = call.func
        if function in self.found.used:
            return []  # storm.ack(tup)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            own = function.value.id == self._own_name(call)
            if own and function.attr in ("ack", "fail"):
                return []
            target = self.found.functions().get(function.attr) if own else None
            if target is not None and not call.keywords and not target.args.vararg and not target.decorator_list:
                place = call.args.index(node) + 1
                if place < len(target.args.args) and not any(isinstance(each, ast.Starred) for each in call.args):
                    return [(function.attr, target.args.args[place].arg)]
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Call)
            and self._is_super(function.value)
        ):
            return []
        self.found.keep(
            node,
            f"it hands {name} to {self.found.source.segment(function)}, and the text does not show how it is used there",
        )
        return []

    def _own_name(self, node: ast.AST) -> str | None:
        method = self.method(node)
        return None if method is None else self.self_of(method)

    @staticmethod
    def _is_super(call: ast.Call) -> bool:
        return isinstance(call.func, ast.Name) and call.func.id == "super"

    def _is_anchor(self, parent: ast.AST, node: ast.Name) -> bool:
        """Return whether a tuple is one of the anchors of an emit."""
        if not isinstance(parent, ast.List | ast.Tuple):
            return False
        above = self.parents[parent]
        call = self.parents[above] if isinstance(above, ast.keyword) else above
        if call not in self.emits:
            return False
        if isinstance(above, ast.keyword):
            return above.arg == "anchors"
        return any(each is parent for each in call.args[2:])  # type: ignore[attr-defined]

    def _attribute(self, node: ast.Attribute, name: str) -> None:
        found = self.found
        if node.attr in _SAME and isinstance(node.ctx, ast.Load):
            return
        if node.attr == "values" and isinstance(node.ctx, ast.Load):
            self._values(node, name)
            return
        parent = self.parents[node]
        if node.attr == "is_tick_tuple" and isinstance(parent, ast.Call) and not parent.args:
            found.edits.replace(parent, f"{name}.is_tick")
            return
        found.keep(node, f"it uses {name}.{node.attr}, which multilang's tuples don't have")

    def _values(self, node: ast.Attribute, name: str) -> None:
        """Judge one use of a tuple's values."""
        found, parents = self.found, self.parents
        parent = parents[node]
        if isinstance(parent, ast.Subscript) and parent.value is node:
            if not isinstance(parent.ctx, ast.Load):
                return  # the same list, or the same error
            if _is_number(parent.slice):
                found.edits.cut(found.source.start(node), found.source.end(node), name)
            elif isinstance(parent.slice, ast.Slice) and found.kind.is_pystorms:
                found.edits.insert(found.source.start(parent), "tuple(")
                found.edits.insert(found.source.end(parent), ")")
            return
        if not found.kind.is_pystorms:
            return  # a list there and here
        if isinstance(parent, ast.Attribute):
            is_call = isinstance(parents[parent], ast.Call) and parents[parent].func is parent  # type: ignore[attr-defined]
            if parent.attr.startswith("_") or (is_call and parent.attr in ("count", "index")):
                found.keep(
                    parent,
                    f"it calls {name}.values.{parent.attr}, a method of namedtuples, and values are a list in multilang",
                )
            elif not isinstance(parent.ctx, ast.Load):
                found.keep(parent, f"it assigns another value to {name}.values.{parent.attr}")
            else:
                found.edits.replace(parent, f'{name}["{parent.attr}"]')
                self._no_attribute_error(parent)
            return
        above = parents.get(parent)
        fine = (
            (
                isinstance(parent, ast.Assign)
                and parent.value is node
                and isinstance(parent.targets[0], ast.Tuple | ast.List)
            )
            or (isinstance(parent, ast.For | ast.comprehension) and parent.iter is node)
            or (isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _AS_LIST)
            or (isinstance(parent, ast.Call) and parent in self.emits and parent.args[:1] == [node])
            or (
                isinstance(parent, ast.Compare)
                and len(parent.ops) == 1
                and isinstance(parent.ops[0], ast.In | ast.NotIn)
                and parent.left is not node
            )
            or (isinstance(parent, ast.Starred) and isinstance(above, ast.List | ast.Tuple | ast.Call | ast.Set))
        )
        if not fine:
            found.keep(
                node, f"it uses {name}.values as a namedtuple, or hands it on, and values are a list in multilang"
            )

    def _no_attribute_error(self, node: ast.AST) -> None:
        for each in ast.walk(self.found.node):
            if isinstance(each, ast.Name) and each.id == "AttributeError":
                self.found.keep(node, "it catches AttributeError, and multilang raises KeyError for a missing field")


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int
