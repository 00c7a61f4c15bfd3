"""Things that stop a program of another library's from running here, each with its line and what to do. Nothing is run."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import warnings
from dataclasses import dataclass

from multilang.compat.clojure import as_dsl
from multilang.compat.flux import Declared, is_flux
from multilang.compat.python2 import ABSTRACT
from multilang.compat.wheels import BY_ENVIRONMENT, NO_ANSWER, TOO_LATE, requirements_in, without_wheels
from multilang.component.errors import ConfigError
from multilang.component.find import YAML
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from multilang.compat.wheels import Requirement

MAX_BYTES = 4 << 20  # of a file that is looked at
_MAX_CONFIG_BYTES = 256 << 10  # of a config.json, each entry of which is looked for in the text
_SKIPPED = {
    *(".git", ".hg", ".svn", ".tox", "__pycache__", "_build", "_resources", "build", "dist", "node_modules"),
    *("site-packages", "dist-packages"),
}
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
_OF_PYLEUS = "pyleus_topology.yaml"
_OF_PETREL = ("logconfig.ini", "manifest.txt", "setup.sh")
_WITHOUT_PYTHON_3 = {
    "nose": "nose, which does not run on Python 3.10 and later",
    "pyleus": "Pyleus, whose programs don't run here as they are",
    "streamparse.base": "streamparse.base, which is gone since streamparse 3",
    "streamparse.ipc": "streamparse.ipc, which is gone since streamparse 3",
}
_INSTEAD = {
    "nose": "write assert, which pytest explains, or move the tests to a file of their own",
    "pyleus": "write the component for streamparse; docs/migrating.md, Pyleus, has a table",
    "streamparse.base": "import Component from streamparse.storm, and Tuple from streamparse",
    "streamparse.ipc": "import Component from streamparse.storm, and Tuple from streamparse",
}
_OUTPUTS = re.compile(r"^(\w+)\.outputs = ", re.MULTILINE)
_WITHOUT_OUTPUTS = " emits, and declares no outputs"
_OLD_SETTINGS = {"AUTO_ACK", "AUTO_ANCHOR", "AUTO_FAIL", "SECS_BETWEEN_BATCHES"}
_OLD_TWEEPY = ("tweepy.StreamListener", "tweepy.streaming.StreamListener")
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


def findings(root: str, rewritten: bool = False) -> list[Finding]:
    """Return everything that was found in a project, or in one file, by file and line.

    Args:
        root: The folder or the file.
        rewritten: Whether Python 2 has been rewritten already, so that what is left is for the user.
    """
    found: list[Finding] = []
    for path in _files(root):
        name = os.path.basename(path)
        unread = _unread(path) if name.endswith((".py", ".json", ".clj")) or name in _OF_PETREL else ""
        if unread:
            found.append(Finding(path, 0, unread, "look at it by hand", False))
        elif name.endswith(".py"):
            found += _in_python(path, root, rewritten)
        elif name.endswith(".clj") and os.path.basename(os.path.dirname(path)) == "topologies":
            if not os.path.exists(_dsl_file(path)):
                found.append(_in_clojure(path))
        elif name == "config.json":
            found += _in_config(path)
        elif name.endswith(YAML) and name != _OF_PYLEUS and not _unread(path):
            found += _in_flux(path)
        else:
            found += _in_others(path, name)
    given = {f"{name}{_WITHOUT_OUTPUTS}" for name in _outputs_given(root)}
    return sorted(
        (each for each in found if each.what not in given), key=lambda each: (each.path, each.line, each.what)
    )


def _outputs_given(root: str) -> Iterator[str]:
    """Return the names of classes to which a topology gives their outputs, as those do that were in Clojure."""
    for path in python_files(root):
        if os.path.basename(os.path.dirname(path)) == "topologies":
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from _OUTPUTS.findall(file.read())


def requirement_files(root: str) -> list[str]:
    """Return the files with requirements of a project: those of ``virtualenvs/``, and ``requirements*.txt``."""
    found = []
    for path in _files(root):
        folder, name = os.path.split(path)
        named = name.startswith("requirements") or os.path.basename(folder) in ("virtualenvs", "requirements")
        if name.endswith(".txt") and named:
            found.append(path)
    return found


def wheel_findings(root: str, limit: float = 60) -> list[Finding]:
    """Return the requirements of a project that have no wheel for this Python, by file and line. pip's index is asked.

    Args:
        root: The project's folder.
        limit: Seconds after which nothing more is asked.
    """
    asked: dict[tuple[str, tuple[str, ...]], Requirement] = {}
    found: list[Finding] = []
    for path in requirement_files(root):
        unread = _unread(path)
        if unread:
            found.append(Finding(path, 0, unread, "look at it by hand", False))
            continue
        try:
            lines = requirements_in(path, root)
        except (OSError, ValueError) as error:
            found.append(Finding(path, 0, f"it can't be read: {error}", "mend it"))
            continue
        for each in lines:
            if each.is_source:
                what = f"{each.text} names sources, of which there is no wheel"
                fix = "name a version that has a wheel, or give --build to package, for what needs no compiler"
                found.append(Finding(path, each.line, what, fix))
            elif each.is_place:
                what = f"{each.text} names no package of an index, and pip is not asked about it, since it might run it"
                found.append(Finding(path, each.line, what, "look at it by hand", False))
            else:
                asked.setdefault((each.text, each.options), each)
    open_ = 0
    for requirement, reason in without_wheels(list(asked.values()), limit):
        if reason in (BY_ENVIRONMENT, NO_ANSWER, TOO_LATE):
            open_ += 1
            last = requirement, reason
            continue
        fix = "name another version or package, or give --build to package, for what needs no compiler"
        found.append(Finding(requirement.path, requirement.line, reason, fix))
    if open_:
        what = f"whether {open_} of {len(asked)} packages have wheels is not known: {last[1]}"
        found.append(Finding(last[0].path, 0, what, "try again, or let multilang package say it", False))
    return sorted(set(found), key=lambda each: (each.path, each.line, each.what))


def python_files(root: str) -> list[str]:
    """Return the Python files of a project, or the one file."""
    return [path for path in _files(root) if path.endswith(".py") and not _unread(path)]


def _unread(path: str) -> str:
    """Return why a file is not looked at; empty if it is. The project may be a stranger's, and a pipe has no end."""
    try:
        about = os.lstat(path)
    except OSError as error:
        return f"it can't be read: {error.strerror}"
    if not stat.S_ISREG(about.st_mode):
        return "a link, which is not followed" if stat.S_ISLNK(about.st_mode) else "it is no ordinary file"
    return f"{about.st_size:,} bytes, which is too large for a source" if about.st_size > MAX_BYTES else ""


def _files(root: str) -> Iterator[str]:
    if os.path.isfile(root):
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            each for each in folders if each not in _SKIPPED and not _is_environment(os.path.join(folder, each))
        )
        for name in sorted(names):
            yield os.path.join(folder, name)


def _is_environment(folder: str) -> bool:
    return any(
        os.path.exists(os.path.join(folder, each)) for each in ("pyvenv.cfg", "bin/activate", "bin/activate_this.py")
    )


def _in_config(path: str) -> Iterator[Finding]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        if len(text) > _MAX_CONFIG_BYTES:
            raise ValueError(f"it has more than {_MAX_CONFIG_BYTES:,} characters")
        config = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        yield Finding(path, 0, f"it can't be read as JSON: {error}", "mend it")
        return
    environments = config.get("envs") if isinstance(config, dict) else None
    for name, entries in environments.items() if isinstance(environments, dict) else ():
        if not isinstance(entries, dict):
            yield Finding(path, _line_of(text, f'"{name}"'), f"the environment {name!r} is no object", "mend it")
            continue
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


def from_clojure(root: str) -> list[str]:
    """Write each topology in Clojure as one of streamparse's DSL beside it, and return the new files.

    Those that can't be rewritten mechanically, or that were rewritten already, are left alone.

    Args:
        root: The project's folder.
    """
    made = []
    for path in _files(root):
        if not path.endswith(".clj") or os.path.basename(os.path.dirname(path)) != "topologies":
            continue
        new = _dsl_file(path)
        if not os.path.lexists(new) and not _unread(path):
            try:
                text = _dsl_of(path)
            except (OSError, ValueError):
                continue  # which findings() tells
            with open(new, "x", encoding="utf-8") as file:
                file.write(text)
            made.append(new)
    return made


def from_flux(root: str) -> list[str]:
    """Write each topology of Flux's as a module of this library beside its programs, and return the new files.

    Those that need Java, or that were written already, are left alone.

    Args:
        root: The project's folder.
    """
    made = []
    for path in _files(root):
        declared = _flux_of(path)
        new = None if declared is None else declared.file
        if declared is None or new is None or os.path.lexists(new):
            continue
        with open(new, "x", encoding="utf-8") as file:
            file.write(declared.text())
        made.append(new)
    return made


def _flux_of(path: str) -> Declared | None:
    """Return what a file of Flux's declares; None for any other file, and for one that needs Java."""
    if not path.endswith(YAML) or os.path.basename(path) == _OF_PYLEUS or _unread(path):
        return None
    try:
        declared = Declared(path) if is_flux(path) else None
        if declared is not None:
            declared.text()
    except ConfigError:
        return None
    return declared


def _in_flux(path: str) -> Iterator[Finding]:
    """Return why a topology of Flux's does not run as it is."""
    try:
        if is_flux(path):
            Declared(path).text()
    except TopologyError as error:
        yield Finding(path, 0, "a topology of Flux's", str(error).removeprefix(f"{os.path.abspath(path)}: "))
    except ConfigError:
        return  # YAML of something else, or without the package that reads it


def _in_clojure(path: str) -> Finding:
    fix = f"declare it as a class of streamparse's DSL in {os.path.basename(_dsl_file(path))}"
    try:
        _dsl_of(path)
    except (OSError, ValueError) as error:
        return Finding(path, 0, "a topology in Clojure", f"{fix}; --fix can't, because {error}")
    return Finding(path, 0, "a topology in Clojure", f"{fix}; --fix does")


def _dsl_file(path: str) -> str:
    """Return the file of a topology in Clojure as a class; its components' module or package may have its name."""
    folder, name = os.path.split(path[:-4])
    beside = os.path.join(os.path.dirname(folder), "src", name)
    taken = os.path.isdir(beside) or os.path.isfile(f"{beside}.py")
    return os.path.join(folder, f"{name}_topology.py" if taken else f"{name}.py")


def _dsl_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return as_dsl(file.read(), os.path.basename(path)[:-4])


def _in_others(path: str, name: str) -> Iterator[Finding]:
    """Return what is to do about the files that Petrel and Pyleus have beside their components."""
    if name == _OF_PYLEUS:
        what = "a topology of Pyleus, which does not run here as it is"
        yield Finding(
            path, 0, what, "declare it as a class of streamparse's DSL; docs/migrating.md, Pyleus, has a table"
        )
    if name not in _OF_PETREL or not os.path.isfile(os.path.join(os.path.dirname(path), "create.py")):
        return
    if name == "logconfig.ini":
        yield Finding(path, 0, "Petrel's logconfig.ini means nothing here", "nothing: records go to Storm's log", False)
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    for number, line in enumerate(lines, 1):
        if name == "setup.sh" and re.search(r"\bpip\d? install\b", line):
            what = "Petrel's setup.sh installs packages on the workers, and is not run here"
            yield Finding(
                path, number, what, "name them in a file for --requirements, which puts them into the jar", False
            )
        elif name == "manifest.txt" and re.match(r"/|\.\./|.*\$", line) and not line.endswith(".egg"):
            what = (
                f"manifest.txt names {line}, outside of the folder; the jar has all files of the folder, and no others"
            )
            yield Finding(path, number, what, "copy it into the folder", False)


def _line_of(text: str, part: str) -> int:
    return text[: text.find(part)].count("\n") + 1 if part in text else 0


def _in_python(path: str, root: str, rewritten: bool) -> Iterator[Finding]:
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
        yield Finding(path, 0, f"it can't be read: {str(error) or 'it is nested too deeply'}", "mend it")
        return
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _in_import(path, root, node)
        elif isinstance(node, ast.Name) and node.id in _GONE_NAMES and node.id not in bound:
            yield Finding(path, node.lineno, f"Python 3 has no {node.id}", f"write {_GONE_NAMES[node.id]}; --fix does")
        elif isinstance(node, ast.Attribute) and node.attr in _GONE_METHODS:
            what = f"Python 3's dicts have no {node.attr}"
            yield Finding(path, node.lineno, what, f"write {_GONE_METHODS[node.attr]}; --fix does")
        elif isinstance(node, ast.Attribute) and _dotted(node) in _OLD_TWEEPY:
            fix = "write tweepy<4 among the requirements, or a subclass of tweepy.StreamingClient"
            yield Finding(path, node.lineno, "tweepy.StreamListener, which is gone since tweepy 4", fix, False)
        elif isinstance(node, ast.Attribute) and _dotted(node) == "sys.setdefaultencoding":
            what = "Python 3 has no sys.setdefaultencoding, and its default is UTF-8"
            yield Finding(path, node.lineno, what, "leave it out; --fix does")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OWN_PATH.fullmatch(node.value):
            what = f"the absolute path {node.value!r}, which other machines may not have"
            yield Finding(
                path, node.lineno, what, "name a file beside the components, in src/, or take it from the conf", False
            )
        elif isinstance(node, ast.ClassDef):
            yield from _in_class(path, node)
        elif isinstance(node, ast.Call):
            yield from _in_call(path, node)


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


def _in_import(path: str, root: str, node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    for name in names:
        for gone, what in _WITHOUT_PYTHON_3.items():
            if f"{name}.".startswith(f"{gone}."):
                yield Finding(path, node.lineno, what, _INSTEAD[gone], node.col_offset == 0)  # inside, it may never run
    if names == ["collections"] and isinstance(node, ast.ImportFrom):
        for moved in sorted(ABSTRACT.intersection(alias.name for alias in node.names)):
            what = f"Python 3.10 and later have no {moved} in collections"
            yield Finding(path, node.lineno, what, "import it from collections.abc; --fix does", node.col_offset == 0)
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
        what = f"{node.name}{_WITHOUT_OUTPUTS}"
        yield Finding(
            path,
            node.lineno,
            what,
            'write outputs = ["FIELD", ...] in the class, or in its spec of the topology',
            False,
        )


def _in_call(path: str, node: ast.Call) -> Iterator[Finding]:
    called = _dotted(node.func)
    if called in ("JavaBolt.spec", "JavaSpout.spec"):
        if any(each.arg == "serialized_java" for each in node.keywords):
            what = "a serialized Java object, which can't be checked or packed here"
            yield Finding(path, node.lineno, what, "name its class with full_class_name and args_list")
        else:
            what = "a component in Java, which only Storm's workers run"
            fix = "submit it with --add-jar or --artifacts for its class; run it elsewhere with --stand-in for it"
            yield Finding(path, node.lineno, what, fix, False)
    elif called.endswith((".setJavaSpout", ".setJavaBolt")):
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
