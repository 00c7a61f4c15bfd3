"""The place where another process finds a topology."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def find_origin(topology: object, built_in: str | None) -> str | None:
    """Return ``"module:attr"`` under which another process finds a topology, first in the module that it was built in.

    A name that a script has only when it is run is left out: ``if __name__ == "__main__": topology = ...``.
    """
    home = sys.modules.get(built_in or "")
    modules = [module for module in (home, sys.modules.get("__main__"), *sys.modules.values()) if module is not None]
    for module in modules:
        for attr, value in list(getattr(module, "__dict__", {}).items()):
            if value is topology and attr.isidentifier():
                place = place_of(module)
                if place is not None and not (module.__name__ == "__main__" and _is_guarded(module, attr)):
                    return f"{place}:{attr}"
    return None


def place_of(module: ModuleType) -> str | None:
    """Return the name of a module for another process: its package's, or else the path of its file."""
    spec = getattr(module, "__spec__", None)
    if spec is not None and "." in spec.name:  # also for python -m package.module, whose module is called __main__
        return str(spec.name)
    file: str | None = getattr(module, "__file__", None)
    if file is not None and file.endswith(".py"):
        from os.path import abspath

        return abspath(file)
    return None  # typed at a prompt, or piped in


def _is_guarded(module: ModuleType, attr: str) -> bool:
    """Return whether a script assigns ``attr`` only under ``if __name__ == ...``."""
    import ast
    import dis

    try:
        with open(module.__file__ or "", "rb") as file:
            tree = ast.parse(file.read())
        tree.body = [
            statement
            for statement in tree.body
            if not (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test))
        ]
        code = compile(tree, "", "exec")
    except (OSError, SyntaxError, ValueError):
        return False  # the file changed since it was started
    return not any(step.opname == "STORE_NAME" and step.argval == attr for step in dis.get_instructions(code))
