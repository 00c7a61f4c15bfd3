"""The base of each part of the work on a component class."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.own_api.classes import Found
    from multilang.compat.own_api.declarations import Declarations


class Work:
    """The work on a class.

    Attributes:
        found: The class.
        declared: What it declares.
        parents: What each node of its tree is in.
    """

    def __init__(self, found: Found, declared: Declarations) -> None:
        self.found = found
        self.declared = declared
        self.parents = {child: node for node in ast.walk(found.node) for child in ast.iter_child_nodes(node)}

    def self_of(self, function: ast.FunctionDef) -> str | None:
        """Return the name that a method has for its instance; None for a static method."""
        names = {each.id for each in function.decorator_list if isinstance(each, ast.Name)}
        if names & {"staticmethod", "classmethod"} or not function.args.args:
            return None
        return function.args.args[0].arg

    def method(self, node: ast.AST) -> ast.FunctionDef | None:
        """Return the method that a node is in."""
        while node in self.parents:
            parent = self.parents[node]
            if parent is self.found.node:
                return node if isinstance(node, ast.FunctionDef) else None
            node = parent
        return None
