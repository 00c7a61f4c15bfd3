"""The findings in a file of Python."""

from __future__ import annotations

import ast
import os
import re
import warnings

from multilang.migrate.files import why_unread
from multilang.migrate.finding import Finding
from multilang.migrate.python2 import ABSTRACT, finds_neighbours
from multilang.migrate.removed import divisions, removed_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DIVISION = re.compile(rb"^from\s+__future__\s+import\s+(\([^)]*|[^\n(]*)\bdivision\b", re.MULTILINE)
_LOOPS = {"_run", "read_command", "read_handshake", "read_message", "read_task_ids", "read_tuple"}
_WITHOUT_PYTHON_3 = {
    "nose": "it imports nose, which does not run on Python 3.10 and later",
    "pyleus": "it imports Pyleus, whose programs don't run here as they are",
    "streamparse.base": "it imports streamparse.base, which was removed in streamparse 3",
    "streamparse.ipc": "it imports streamparse.ipc, which was removed in streamparse 3",
}
_INSTEAD = {
    "nose": "write assert, which pytest explains, or move the tests to a file of their own",
    "pyleus": "write the component for streamparse; docs/migrating.md, Pyleus, has a table",
    "streamparse.base": "import Component from streamparse.storm, and Tuple from streamparse",
    "streamparse.ipc": "import Component from streamparse.storm, and Tuple from streamparse",
}
WITHOUT_OUTPUTS = " emits, and declares no outputs"
_OLD_SETTINGS = {"AUTO_ACK", "AUTO_ANCHOR", "AUTO_FAIL", "SECS_BETWEEN_BATCHES"}
_OLD_TWEEPY = ("tweepy.StreamListener", "tweepy.streaming.StreamListener")
_BASES = re.compile(r"(Bolt|Spout)$")
_OWN_PATH = re.compile(r"/(Users|home|root|vagrant|data|mnt)/.+")


def in_python(path: str, root: str, rewritten: bool) -> Iterator[Finding]:
    """Return what is to do about a file in Python."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old string escapes
            tree = ast.parse(file.read(), path)
    except SyntaxError as error:
        if os.path.basename(path) == "storm.py" and is_old_storm(path):
            fix = "remove it, so that import storm finds this library's; --fix renames it to storm.py.bak"
            yield Finding(path, error.lineno or 0, "a copy of Storm's storm.py for Python 2", fix)
            return
        what = f"not valid in Python 3: {error.msg}"
        fix = "mend it by hand: --fix could not read it" if rewritten else "--fix rewrites most of Python 2"
        yield Finding(path, error.lineno or 0, what, fix)
        return
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        yield Finding(path, 0, f"it can't be read: {str(error) or 'it is nested too deeply'}", "look at it by hand")
        return
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | _imported(tree)
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    alone = finds_neighbours(path)
    own = _own_names(tree)
    yield from removed_names(path, tree, bound)
    if _divided_as_python_2(f"{path}.bak"):
        yield from divisions(path, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _in_import(path, root, node, alone)
        elif isinstance(node, ast.Attribute) and _dotted(node) in _OLD_TWEEPY:
            fix = "write tweepy<4 among the requirements, or a subclass of tweepy.StreamingClient"
            yield Finding(path, node.lineno, "it uses tweepy.StreamListener, which was removed in tweepy 4", fix, False)
        elif isinstance(node, ast.Attribute) and _dotted(node) == "sys.setdefaultencoding":
            what = "Python 3 has no sys.setdefaultencoding, and its default is UTF-8"
            yield Finding(path, node.lineno, what, "leave it out; --fix does")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OWN_PATH.fullmatch(node.value):
            what = f"it names the absolute path {node.value!r}, which other machines may not have"
            yield Finding(
                path, node.lineno, what, "name a file beside the components, in src/, or take it from the conf", False
            )
        elif isinstance(node, ast.ClassDef):
            if not any(_dotted(base).partition(".")[0] in own for base in node.bases):
                yield from _in_class(path, node)
        elif isinstance(node, ast.Call):
            yield from _in_call(path, node)


def _divided_as_python_2(path: str) -> bool:
    """Return whether the file that ``--fix`` saved is one of Python 2, with its division."""
    if why_unread(path):
        return False
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old string escapes
            text = file.read()
            if _DIVISION.search(text):
                return False
            tree = ast.parse(text, path)
    except SyntaxError:
        return True
    except (OSError, ValueError, RecursionError, MemoryError):
        return False
    return next(removed_names(path, tree, _imported(tree)), None) is not None


def is_old_storm(path: str) -> bool:
    """Return whether a file is a copy of Storm's own storm.py from the days of Python 2."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return "class BasicBolt" in text and "def emitBolt" in text and re.search(r"^\s*print [^(]", text, re.M) is not None


def _imported(tree: ast.AST) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _own_names(tree: ast.AST) -> set[str]:
    """Return the names that a file imports from this library itself: findings about the layer do not hold there."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
        if f"{node.module}.".startswith("multilang.") and not f"{node.module}.".startswith("multilang.compat.")
    }


def _in_import(path: str, root: str, node: ast.Import | ast.ImportFrom, alone: bool) -> Iterator[Finding]:
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    for name in names:
        for removed, what in _WITHOUT_PYTHON_3.items():
            if f"{name}.".startswith(f"{removed}."):
                # Inside, it may never run.
                yield Finding(path, node.lineno, what, _INSTEAD[removed], node.col_offset == 0)
    if names == ["collections"] and isinstance(node, ast.ImportFrom):
        for moved in sorted(ABSTRACT.intersection(alias.name for alias in node.names)):
            what = f"Python 3.10 and later have no {moved} in collections"
            yield Finding(path, node.lineno, what, "import it from collections.abc; --fix does", node.col_offset == 0)
    folder = os.path.dirname(path)
    for name in names:
        top = name.partition(".")[0]
        package = os.path.isfile(os.path.join(folder, "__init__.py")) and not os.path.samefile(folder, root)
        beside = os.path.isfile(os.path.join(folder, f"{top}.py"))
        above = os.path.join(os.path.dirname(folder), top)
        if package and not alone and beside and not os.path.exists(above) and not os.path.exists(f"{above}.py"):
            inside = f"{os.path.basename(folder)}.{name}"
            what = f"Python 3 looks for {top!r} from the top, not beside this file"
            yield Finding(
                path, node.lineno, what, f"write from {inside} import ..., or from .{name} import ...; --fix does"
            )


def _dotted(node: ast.expr) -> str:
    """Return a name with its dots. What is before the last eight, or is no name, is ``?``: it may be endlessly long."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and len(names) < 8:
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "?")
    return ".".join(reversed(names))


def _in_class(path: str, node: ast.ClassDef) -> Iterator[Finding]:
    bases = [_dotted(base) for base in node.bases]
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
        if isinstance(each, ast.Assign) and not (isinstance(each.value, ast.List | ast.Tuple) and not each.value.elts)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for old in sorted(_OLD_SETTINGS & declared):
        what = f"{node.name} has {old}, which means nothing since streamparse 2"
        yield Finding(path, node.lineno, what, f"write {old.lower()}")
    if "BatchingBolt" in {base.rpartition(".")[2] for base in bases} and "secs_between_batches" in declared:
        what = f"{node.name} has secs_between_batches, which means nothing to a BatchingBolt since streamparse 3"
        fix = "make it a TicklessBatchingBolt, or give its config topology.tick.tuple.freq.secs"
        yield Finding(path, node.lineno, what, fix)
    emits = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and _dotted(each.func) == "self.emit"
    ]
    known = {base.rpartition(".")[2] for base in bases}
    direct = known & {"Bolt", "BatchingBolt", "TicklessBatchingBolt", "Spout", "ReliableSpout"}
    if emits and "outputs" not in declared and direct and not any(base.startswith("storm.") for base in bases):
        what = f"{node.name}{WITHOUT_OUTPUTS}"
        yield Finding(
            path,
            node.lineno,
            what,
            'write outputs = ["FIELD", ...] in the class',
            False,
        )


def _in_call(path: str, node: ast.Call) -> Iterator[Finding]:
    called = _dotted(node.func)
    if called in ("JavaBolt.spec", "JavaSpout.spec"):
        if any(each.arg == "serialized_java" for each in node.keywords):
            what = "it declares a serialized Java object, which can't be checked or packed here"
            yield Finding(path, node.lineno, what, "name its class with full_class_name and args_list")
        else:
            what = "it declares a component in Java, which only Storm's workers run"
            fix = (
                "give submit --add-jar or --artifacts with its class, and run --stand-in with a component in its place"
            )
            yield Finding(path, node.lineno, what, fix, False)
    elif called in ("Grouping.custom_object", "Grouping.custom_serialized"):
        what = "it names a grouping in Java, which only Storm's workers have"
        yield Finding(
            path,
            node.lineno,
            what,
            "write a CustomGrouping in Python, or choose the task in the source, with a direct stream",
        )
