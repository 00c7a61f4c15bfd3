"""The findings in a file of Python."""

from __future__ import annotations

import ast
import os
import re

from multilang.migrate.files import why_unread
from multilang.migrate.finding import Finding
from multilang.migrate.lists import lists
from multilang.migrate.meanings import changed_meanings, meanings
from multilang.migrate.outputs import undeclared
from multilang.migrate.python2 import ABSTRACT, finds_neighbours
from multilang.migrate.removed import removed_names
from multilang.migrate.source import Source, dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OLD_SYNTAX = re.compile(
    r"""(?:^|[:;])\s*(?:print|exec)\s+[^\s=]   # print "a"
    | \bexcept\b[^:]+,\s*(?:\w+|\([\w\s,]+\))\s*:   # except Exception, error:
    | \braise\s+[\w.\[\]]+\s*,                 # raise ValueError, "a"
    | ` | <> | \b[uU][rR]["'] | \b0\d+\b | \b(?:0[xX][0-9a-fA-F]+|\d+)[lL]\b
    | \b(?:def\s+\w+\s*\(|lambda\s)[^:]*\([\w\s,]+\)\s*[,):]   # def sum((a, b)):
    | \b(?:async|await)\s*[=,.)\]]             # a name, until Python 3.7""",
    re.VERBOSE,
)
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
NOT_VALID = "not valid in Python 3"
_OLD_SETTINGS = {"AUTO_ACK", "AUTO_ANCHOR", "AUTO_FAIL", "SECS_BETWEEN_BATCHES"}
_OLD_TWEEPY = ("tweepy.StreamListener", "tweepy.streaming.StreamListener")
_BASES = re.compile(r"(Bolt|Spout)$")
_OWN_PATH = re.compile(r"/(Users|home|root|vagrant|data|mnt)/.+")


def in_python(path: str, root: str, rewritten: bool) -> Iterator[Finding]:
    """Return what is to do about a file in Python."""
    try:
        source = Source.read(path)
    except SyntaxError as error:
        if os.path.basename(path) == "storm.py" and is_old_storm(path):
            fix = "remove it, so that import storm finds this library's; --fix renames it to storm.py.bak"
            yield Finding(path, error.lineno or 0, "a copy of Storm's storm.py for Python 2", fix)
            return
        what = f"{NOT_VALID}: {error.msg.partition('. Did you mean')[0]}"
        fix = "mend it by hand: --fix could not read it" if rewritten else "--fix rewrites most of Python 2"
        is_old = isinstance(error, TabError) or _OLD_SYNTAX.search(error.text or "") is not None
        yield Finding(path, error.lineno or 0, what, fix, python2=is_old)
        return
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        yield Finding(path, 0, f"it can't be read: {str(error) or 'it is nested too deeply'}", "look at it by hand")
        return
    alone = finds_neighbours(path)
    own = _own_names(source)
    yield from removed_names(source)
    yield from meanings(source)
    yield from lists(source, noted=not os.path.lexists(f"{path}.bak"))
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _in_import(path, root, node, alone)
        elif isinstance(node, ast.Attribute) and dotted(node) in _OLD_TWEEPY:
            fix = "write tweepy<4 among the requirements, or a subclass of tweepy.StreamingClient"
            yield Finding(path, node.lineno, "it uses tweepy.StreamListener, which was removed in tweepy 4", fix, False)
        elif isinstance(node, ast.Attribute) and dotted(node) == "sys.setdefaultencoding":
            what = "Python 3 has no sys.setdefaultencoding, and its default is UTF-8"
            yield Finding(path, node.lineno, what, "leave it out; --fix does", python2=True)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OWN_PATH.fullmatch(node.value):
            what = f"it names the absolute path {node.value!r}, which other machines may not have"
            yield Finding(
                path, node.lineno, what, "name a file beside the components, in src/, or take it from the conf", False
            )
        elif isinstance(node, ast.ClassDef):
            if not any(dotted(base).partition(".")[0] in own for base in node.bases):
                yield from _in_class(path, node)
                yield from undeclared(source, node)
        elif isinstance(node, ast.Call):
            yield from _in_call(path, node)


def was_python_2(path: str, root: str) -> bool:
    """Return whether the file that ``--fix`` saved is one of Python 2.

    Args:
        path: The file as it is now.
        root: The project's folder.
    """
    old = f"{path}.bak"
    return not why_unread(old) and any(each.python2 for each in in_python(old, root, False))


def is_old(path: str, root: str) -> bool:
    """Return whether a file of a project of Python 2 is still to be rewritten.

    Args:
        path: The file.
        root: The project's folder.
    """
    try:
        source = Source.read(path)
    except SyntaxError:
        return True
    except (OSError, ValueError, RecursionError, MemoryError):
        return False
    if was_python_2(path, root):
        return any(each.python2 and "--fix" in each.fix for each in in_python(path, root, False))
    return not source.is_only_python_3


def in_python_2(path: str) -> Iterator[Finding]:
    """Return what means something else in a file of a project that was written for Python 2."""
    try:
        source = Source.read(path)
    except (SyntaxError, OSError, ValueError, RecursionError, MemoryError):
        return  # which in_python() reports
    if not source.is_only_python_3:
        yield from changed_meanings(source)


def is_old_storm(path: str) -> bool:
    """Return whether a file is a copy of Storm's own storm.py from the days of Python 2."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return "class BasicBolt" in text and "def emitBolt" in text and re.search(r"^\s*print [^(]", text, re.M) is not None


def _own_names(source: Source) -> set[str]:
    """Return the names that a file imports from this library itself: findings about the layer do not hold there."""
    return {
        alias.asname or alias.name
        for node in source.nodes
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
            fix = f"write from {inside} import ..., or from .{name} import ...; --fix does"
            yield Finding(path, node.lineno, what, fix, python2=True)


def _in_class(path: str, node: ast.ClassDef) -> Iterator[Finding]:
    bases = [dotted(base) for base in node.bases]
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


def _in_call(path: str, node: ast.Call) -> Iterator[Finding]:
    called = dotted(node.func)
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
