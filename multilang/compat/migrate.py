"""Things that stop a program of another library's from running here, each with its line and what to do. Nothing is run."""

from __future__ import annotations

import ast
import json
import os
import re
import warnings
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SKIPPED = {".git", ".hg", ".svn", "__pycache__", "_build", "_resources", "build", "dist", "node_modules"}
_GONE_MODULES = {
    "ConfigParser": "configparser",
    "Queue": "queue",
    "StringIO": "io",
    "cPickle": "pickle",
    "cStringIO": "io",
    "httplib": "http.client",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}
_GONE_NAMES = {
    "basestring": "str",
    "long": "int",
    "raw_input": "input",
    "reload": "nothing: Python 3 needs no sys.setdefaultencoding",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
_GONE_METHODS = {"has_key": "in", "iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
_LOOPS = {"_run", "read_command", "read_handshake", "read_message", "read_task_ids", "read_tuple"}
_BASES = re.compile(r"(Bolt|Spout)$")
_OWN_PATH = re.compile(r"/(Users|home|root|vagrant|data|mnt)/.+")
_SSH = (
    "use_ssh_for_nimbus",
    "ssh_password",
    "ssh_port",
    "virtualenv_root",
    "virtualenv_path",
    "use_virtualenv",
    "virtualenv_flags",
)


@dataclass(frozen=True)
class Finding:
    """One thing to do.

    Attributes:
        path: The file.
        line: The line, from 1; 0 is the whole file.
        what: The fault.
        fix: What to write or do instead.
        stops: Whether it keeps the program from running; otherwise it is only good to know.
    """

    path: str
    line: int
    what: str
    fix: str
    stops: bool = True


def findings(root: str) -> list[Finding]:
    """Return everything that was found in a project, or in one file, by file and line.

    Args:
        root: The folder or the file.
    """
    found: list[Finding] = []
    for path in _files(root):
        name = os.path.basename(path)
        if name.endswith(".py"):
            found += _in_python(path, root)
        elif name.endswith(".clj") and os.path.basename(os.path.dirname(path)) == "topologies":
            found.append(
                Finding(
                    path, 0, "a topology in Clojure", f"declare it as a class of streamparse's DSL in {name[:-4]}.py"
                )
            )
        elif name == "config.json":
            found += _in_config(path)
    return sorted(found, key=lambda each: (each.path, each.line, each.what))


def python_files(root: str) -> list[str]:
    """Return the Python files of a project, or the one file."""
    return [path for path in _files(root) if path.endswith(".py")]


def _files(root: str) -> Iterator[str]:
    if os.path.isfile(root):
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            each
            for each in folders
            if each not in _SKIPPED and not os.path.exists(os.path.join(folder, each, "pyvenv.cfg"))
        )
        for name in sorted(names):
            yield os.path.join(folder, name)


def _in_config(path: str) -> Iterator[Finding]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        config = json.loads(text)
    except (OSError, ValueError) as error:
        yield Finding(path, 0, f"it can't be read as JSON: {error}", "mend it")
        return
    if not isinstance(config, dict) or "envs" not in config:
        return
    for name, entries in (config.get("envs") or {}).items():
        serializer = entries.get("serializer") or config.get("serializer") or "json"
        if serializer != "json":
            what = f"the serializer {serializer!r} of the environment {name!r}"
            yield Finding(path, _line_of(text, '"serializer"'), what, 'write "serializer": "json"')
        for key in _SSH:
            if entries.get(key):
                what = f"{key} of the environment {name!r} means nothing here"
                yield Finding(
                    path, _line_of(text, f'"{key}"'), what, "nothing: jars need neither SSH nor virtualenvs", False
                )


def _line_of(text: str, part: str) -> int:
    return text[: text.find(part)].count("\n") + 1 if part in text else 0


def _in_python(path: str, root: str) -> Iterator[Finding]:
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old string escapes
            tree = ast.parse(file.read(), path)
    except SyntaxError as error:
        yield Finding(path, error.lineno or 0, f"not valid in Python 3: {error.msg}", "--fix rewrites most of Python 2")
        return
    except (OSError, ValueError) as error:
        yield Finding(path, 0, f"it can't be read: {error}", "mend it")
        return
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _in_import(path, root, node)
        elif isinstance(node, ast.Name) and node.id in _GONE_NAMES and node.id not in bound | _imported(tree):
            yield Finding(path, node.lineno, f"Python 3 has no {node.id}", f"write {_GONE_NAMES[node.id]}; --fix does")
        elif isinstance(node, ast.Attribute) and node.attr in _GONE_METHODS:
            what = f"Python 3's dicts have no {node.attr}"
            yield Finding(path, node.lineno, what, f"write {_GONE_METHODS[node.attr]}; --fix does")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OWN_PATH.fullmatch(node.value):
            what = f"the absolute path {node.value!r}, which other machines may not have"
            yield Finding(
                path, node.lineno, what, "name a file beside the components, in src/, or take it from the conf", False
            )
        elif isinstance(node, ast.ClassDef):
            yield from _in_class(path, node)
        elif isinstance(node, ast.Call):
            yield from _in_call(path, node)


def _imported(tree: ast.AST) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _in_import(path: str, root: str, node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    folder = os.path.dirname(path)
    for name in names:
        top = name.partition(".")[0]
        if top in _GONE_MODULES:
            yield Finding(
                path, node.lineno, f"Python 3 has no module {top}", f"import {_GONE_MODULES[top]}; --fix does"
            )
        package = os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.abspath(folder) != os.path.abspath(
            root
        )
        beside = os.path.isfile(os.path.join(folder, f"{top}.py"))
        above = os.path.join(os.path.dirname(folder), top)
        if package and beside and not os.path.exists(above) and not os.path.exists(f"{above}.py"):
            inside = f"{os.path.basename(folder)}.{name}"
            what = f"Python 3 looks for {top!r} from the top, not beside this file"
            yield Finding(
                path, node.lineno, what, f"write from {inside} import ..., or from .{name} import ...; --fix does"
            )


def _in_class(path: str, node: ast.ClassDef) -> Iterator[Finding]:
    bases = [ast.unparse(base) for base in node.bases]
    if not any(_BASES.search(base) for base in bases):
        return
    own = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    for name in sorted(_LOOPS & own.keys()):
        what = f"{node.name} defines {name}, a part of a loop that does not run here"
        yield Finding(
            path, own[name].lineno, what, "move what it does to process, process_tick, next_tuple or initialize"
        )
    declared = {
        target.id
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    emits = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and ast.unparse(each.func) == "self.emit"
    ]
    known = {base.rpartition(".")[2] for base in bases}
    direct = known & {"Bolt", "BatchingBolt", "TicklessBatchingBolt", "Spout", "ReliableSpout"}
    if emits and "outputs" not in declared and direct and not any(base.startswith("storm.") for base in bases):
        what = f"{node.name} emits, and declares no outputs"
        yield Finding(
            path,
            node.lineno,
            what,
            'write outputs = ["FIELD", ...] in the class, or in its spec of the topology',
            False,
        )


def _in_call(path: str, node: ast.Call) -> Iterator[Finding]:
    called = ast.unparse(node.func)
    if called in ("JavaBolt.spec", "JavaSpout.spec"):
        what = "a component in Java, which only Storm's workers run"
        yield Finding(path, node.lineno, what, "write it in Python, or submit the topology with streamparse")
    elif called in ("Grouping.custom_object", "Grouping.custom_serialized"):
        what = "a grouping in Java, which only Storm's workers have"
        yield Finding(path, node.lineno, what, "write a CustomGrouping in Python, or a direct stream")


def as_text(found: list[Finding]) -> str:
    """Return findings line by line, as compilers print them."""
    lines: list[Any] = []
    for each in found:
        place = f"{each.path}:{each.line}" if each.line else each.path
        lines.append(f"{place}: {'' if each.stops else 'note: '}{each.what}; {each.fix}")
    return "\n".join(lines)
