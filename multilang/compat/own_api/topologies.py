"""Topologies in streamparse's DSL, written over to programs of this library's TopologyBuilder that build the same topology.

The text of a class becomes statements of the module: comments stay, each ``NAME = Part.spec(...)`` becomes a call of the builder,
and the class's ``config`` the conf of ``build``. What a builder can't say keeps the class as it is, with the reason.
"""

from __future__ import annotations

import ast
import os

from multilang.compat.own_api.in_java import ARGUMENTS, InJava, kind_of
from multilang.compat.own_api.inputs import Inputs
from multilang.compat.own_api.parts import Part, Parts, in_scope, is_literal, is_stored, literal, quoted
from multilang.compat.own_api.source import Edits
from multilang.compat.own_api.statement import Statement, behind, heading, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Any

    from multilang.compat.own_api.classes import Found, Project
    from multilang.compat.own_api.source import Source

TOPOLOGY = "topology"
_BUILDER = "builder"
_BASES = {"streamparse.Topology", "streamparse.dsl.Topology", "streamparse.dsl.topology.Topology"}
_OF_BOLT = ("name", "inputs", "par", "config")
_OF_SPOUT = ("name", "par", "config")
_OF_FUNCTION = ("kind", "name", "inputs", "par", "config")
_FUNCTION = "streamparse.dsl.spec.spec"  # which makes specs of components of either library


class Declared:
    """A topology of the DSL.

    Args:
        source: Its file.
        node: Its class.
        parts: The component classes of the project.
        is_first: Whether it is the first topology of its file, the one that the file's name stands for.

    Attributes:
        reasons: Why it stays as it is, each with its line.
        edits: The changes that write it over.
        used: The names that its changes leave unused, as nodes.
        needs: The names of this library's that its changes use.
        calls: The calls of ``spec`` that are gone.
    """

    def __init__(self, source: Source, node: ast.ClassDef, parts: Parts, is_first: bool) -> None:
        self.source = source
        self.node = node
        self.parts = parts
        self.variable = TOPOLOGY if is_first else node.name
        self.reasons: list[tuple[int, str]] = []
        self.edits = Edits(source)
        self.used: set[ast.AST] = set()
        self.needs: set[str] = set()
        self.calls: set[ast.AST] = set()
        self._specs: dict[str, tuple[str, Part]] = {}  # an attribute -> the component's name and class
        self._constants: dict[str, ast.expr] = {}  # those become the module's
        self._texts: list[str] = []
        self._conf = ""

    def keep(self, node: Any, reason: str) -> None:
        """Note why it stays as it is."""
        each = (node.lineno, reason)
        if each not in self.reasons:
            self.reasons.append(each)

    def write(self) -> None:
        """Judge the class, and note the changes."""
        source, node = self.source, self.node
        self._heading()
        if node.body[0].lineno == node.lineno:
            self.keep(node, "its class is written on one line")
            return
        end, comment = heading(source, node)
        self._texts.append(comment)
        for each in node.body:
            statement = Statement(source, each, end)
            if statement.shares_its_line:
                self.keep(each, "two statements of its class are on one line")
            elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                self._note(statement)
            elif isinstance(each, ast.Expr):
                self._check_names(each.value)
                self._texts.append(statement.with_comments(statement.segment(each.value), [each.value]))
            elif isinstance(each, ast.Pass):
                self._texts.append(statement.with_comments(""))
            else:
                self._assigned(each, statement)
            end = each.end_lineno or each.lineno
        end, comments = behind(source, node)
        self._texts.append(comments)
        if not any(part.is_spout for _, part in self._specs.values()) and not self.reasons:
            self.keep(node, "it has no spout")
        name = os.path.basename(source.path)[:-3]
        self.needs.add("TopologyBuilder")
        build = f"{self.variable} = {_BUILDER}.build({quoted(name)}{self._conf})"
        text = joined([f"{_BUILDER} = \0TopologyBuilder()", *self._texts, build])
        last = source.text[: source.line_end(end)].rstrip("\r\n")  # with the comment behind the last statement
        self.edits.cut(source.line_start(node.lineno), len(last), text.replace("\n", source.newline))

    def _heading(self) -> None:
        """Keep a class that is more than a declaration."""
        node, source = self.node, self.source
        if len(node.bases) > 1 or node.keywords or node.decorator_list:
            self.keep(node, "it has a second base class, a keyword or a decorator")
        self.used.update(each for base in node.bases for each in ast.walk(base))
        if os.path.basename(source.path) == "__init__.py":
            self.keep(node, "it is in an __init__.py, from which a topology has no name")
        for each in _others(source.tree, node):
            for name in (_BUILDER, self.variable):
                if _binds(each, name):
                    self.keep(node, f"the file already has something else with the name {name!r}")
        inside = set(ast.walk(node))
        exports = any(isinstance(each, ast.Name) and each.id == "__all__" for each in ast.walk(source.tree))
        for each in ast.walk(source.tree):
            is_name = isinstance(each, ast.Name) and each.id == node.name
            if each not in inside and (
                is_name or (exports and isinstance(each, ast.Constant) and each.value == node.name)
            ):
                self.keep(each, f"the file uses {node.name} as a class, too, in line {each.lineno}")  # type: ignore[attr-defined]

    def _note(self, statement: Statement) -> None:
        """Make a docstring a comment."""
        value = ast.get_docstring(self.node) if statement.node is self.node.body[0] else statement.node.value.value  # type: ignore[attr-defined]
        lines = value.splitlines() if isinstance(value, str) else []
        self._texts.append(statement.with_comments("\n".join(f"# {line}".rstrip() for line in lines)))

    def _assigned(self, node: ast.stmt, statement: Statement) -> None:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            self.keep(node, "a statement in its class is neither NAME = COMPONENT.spec(...) nor config = {...}")
            return
        name, value = node.targets[0].id, node.value
        if name == "config":
            self._check_names(value)
            self._conf = f", {statement.segment(value)}"
            self._texts.append(statement.with_comments("", [value]))
        elif name in self._specs or name in self._constants:
            self.keep(node, f"{name} is assigned twice")
        elif isinstance(value, ast.Call) and self._called(value)[0] is not None:
            self._spec(name, value, statement)
        elif is_literal(value):
            self._constants[name] = value
            if any(_binds(each, name) for each in _others(self.source.tree, self.node)):
                self.keep(node, f"the file already has something else with the name {name!r}")
            self._texts.append(statement.with_comments(f"{name} = {statement.segment(value)}", [value]))
        else:
            self.keep(node, f"{name} is neither a spec nor config nor a plain value")

    def _spec(self, attribute: str, call: ast.Call, statement: Statement) -> None:
        """Write one component."""
        found = self._java(attribute, call) if kind_of(call, self.source) else self._python(attribute, call)
        if found is None:
            return
        part, component, given = found
        name = literal(given["name"]) if "name" in given else None
        if name is None:
            name = attribute
            if "name" in given and not isinstance(given["name"], ast.Constant):
                self.keep(call, f"the name of {attribute!r} is not written as a text")
        if name in {known for known, _ in self._specs.values()}:
            self.keep(call, f"there are two components with the name {name!r}")
        inputs = Inputs(name, self.source, self.source_of, self.keep)
        chain = inputs.write(given["inputs"]) if "inputs" in given else []
        if not chain and not part.is_spout and not self.reasons:
            self.keep(call, f"the bolt {name!r} has no inputs")
        self._specs[attribute] = (name, part)
        self.calls.add(call)
        self.used.update(inputs.used)
        arguments = [quoted(name), component]
        number = self._number(name, given.get("par"), part)
        if number != "1":
            arguments.append(number)
        config = given.get("config")
        if config is not None and not _is_none(config):
            self._check_config(name, config, part)
            arguments.append(f"conf={statement.segment(config)}")
        made = f"{_BUILDER}.set_{'spout' if part.is_spout else 'bolt'}({', '.join(arguments)})"
        self._texts.append(statement.with_comments(_chained(made, chain), [] if config is None else [config]))

    def _python(self, attribute: str, call: ast.Call) -> tuple[Part, str, dict[str, ast.expr]] | None:
        """Return a component in Python: what is known of it, the new text, and its spec's arguments; None if it can't be read."""
        expression, names = self._called(call)
        part = None if expression is None else self.parts.find(expression, self.source)
        if part is None or expression is None:
            self.keep(call, self._why_unknown(attribute, call))
            return None
        if part.unseen:
            self.keep(call, f"the class of {attribute!r} {part.unseen}")
        given = self._given(attribute, call, names or (_OF_SPOUT if part.is_spout else _OF_BOLT))
        if given is None:
            return None
        self.used.update(each for each in ast.walk(call.func) if each is not expression)
        text = self.source.segment(expression)
        if not part.is_own:
            self.needs.add("adapted")
            text = f"\0adapted({text})"
        return part, text, given

    def _java(self, attribute: str, call: ast.Call) -> tuple[Part, str, dict[str, ast.expr]] | None:
        """Return a component in Java, as ``_python`` returns one in Python."""
        kind = kind_of(call, self.source)
        given = self._given(attribute, call, ARGUMENTS[kind])
        if given is None:
            return None
        made = InJava(kind, given, self.source)
        if made.reason:
            self.keep(call, f"{attribute!r} {made.reason}")
        self.needs |= made.needs
        self.used |= {*ast.walk(call.func), *made.used}
        part = Part(kind == "JavaSpout", True, made.is_direct, None, self.source, None, "")
        return part, made.text, given

    def _given(self, attribute: str, call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr] | None:
        """Return a spec's arguments by name; None if they are not all seen."""
        given = _arguments(call, names)
        if given is None:
            self.keep(call, f"the spec of {attribute!r} has arguments that can't be seen in the text, or are too many")
        return given

    def _called(self, call: ast.Call) -> tuple[ast.expr | None, tuple[str, ...] | None]:
        """Return the class whose spec a call makes, and the names of the call's arguments if they are the function's."""
        if self.source.dotted(call.func) == _FUNCTION:
            given = _arguments(call, _OF_FUNCTION)
            return (None if given is None else given.get("kind")), _OF_FUNCTION
        if isinstance(call.func, ast.Attribute) and call.func.attr == "spec":
            return call.func.value, None
        return None, None

    def _why_unknown(self, attribute: str, call: ast.Call) -> str:
        of = self.source.dotted(call.func) or ""
        what = of.removesuffix(".spec").rpartition(".")[2]
        if what in ("ShellBolt", "ShellSpout"):
            return f"{attribute!r} is a command; declare it by hand with {what} of multilang.topology"
        return f"the class of {attribute!r} is in none of the project's files, so that its declarations can't be read"

    def _number(self, name: str, given: ast.expr | None, part: Part) -> str:
        """Return the number of tasks that a spec asks for, as the new text has it."""
        source, where, text = self.source, given or self.node, ""
        if given is None or _is_none(given):
            if part.par is None:
                return "1"
            given, source, where = part.par, part.par_source, self.node
        elif isinstance(given, ast.Name) and given.id in self._constants:
            text, given = given.id, self._constants[given.id]
        par = literal(self.parts.constant(given, source))
        if isinstance(par, dict) and len(par) == 1:
            text, par = "", next(iter(par.values()))
        if isinstance(par, dict):
            environments = ", ".join(map(repr, par))
            self.keep(
                where,
                f"par of {name!r} has a number for each environment ({environments}), and a builder takes one number",
            )
        elif type(par) is not int or par < 1:
            self.keep(where, f"par of {name!r} is not written as a number, so that it can't be read from the text")
        return text or str(par)

    def _check_config(self, name: str, config: ast.expr, part: Part) -> None:
        """Keep a spec whose config replaces that of its class: a builder's is added to it."""
        self._check_names(config)
        own = {} if part.config is None else literal(part.config)
        new = _keys(config)
        if not all(isinstance(key, str) for key in new or ()):
            self.keep(config, f"the config of {name!r} has keys that are not texts, which only the layer takes")
        if own is None or (own and (new is None or not set(own) <= new)):
            self.keep(
                config, f"the config of {name!r} replaces that of its class, and a builder would add the two together"
            )

    def _check_names(self, expression: ast.expr) -> None:
        """Keep a class one of whose expressions uses another attribute of it."""
        own = {
            each.id
            for node in self.node.body
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and is_stored(each)
        } - self._constants.keys()
        for each in ast.walk(expression):
            if isinstance(each, ast.Name) and each.id in own:
                self.keep(each, f"an expression in its class uses the name {each.id!r}, which only the class has")

    def source_of(self, node: ast.expr) -> tuple[str, Part] | None:
        """Return the component that an attribute of the class stands for, by its name; None if it is none."""
        return self._specs.get(node.id) if isinstance(node, ast.Name) else None


def declared(source: Source, parts: Parts) -> Iterator[Declared]:
    """Return the topologies of a file."""
    stars = [each for each in source.tree.body if isinstance(each, ast.ImportFrom) and _is_star(each)]
    first = True
    for node in source.tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        is_hidden = bool(stars) and any(isinstance(base, ast.Name) and base.id == "Topology" for base in node.bases)
        if is_hidden or any(source.dotted(base) in _BASES for base in node.bases):
            found = Declared(source, node, parts, first)
            if is_hidden:
                found.keep(stars[0], "its base comes by from streamparse import *; import what the file uses by name")
            yield found
            first = False


def judged(project: Project, accepted: Collection[Found]) -> list[Declared]:
    """Return all topologies of a project, with their changes or the reasons why they stay.

    Args:
        project: The project.
        accepted: The component classes that are written over, too.
    """
    parts = Parts(project, accepted)
    found = [each for source in project.sources for each in declared(source, parts)]
    for each in found:
        each.write()
    for source in project.sources:
        _judge_imports(source, found, project)
    return found


def _judge_imports(source: Source, found: Iterable[Declared], project: Project) -> None:
    """Keep topologies that other files import."""
    for dotted in filter(None, source.names.values()):
        module, _, name = dotted.rpartition(".")
        for each in found:
            if (
                name == each.node.name
                and each.source is not source
                and project.module(module or ".", source) is each.source
            ):
                each.keep(each.node, f"{os.path.basename(source.path)} imports {name}, as a class")


def _is_star(node: ast.ImportFrom) -> bool:
    """Return whether a statement imports all names of streamparse."""
    return node.names[0].name == "*" and not node.level and f"{node.module}.".startswith("streamparse.")


def _arguments(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr] | None:
    """Return a call's arguments by name; None if they are not all seen, or not these."""
    if len(call.args) > len(names) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = dict(zip(names, call.args, strict=False))
    for each in call.keywords:
        if each.arg not in names or each.arg in given:
            return None
        given[each.arg] = each.value
    return given


def _keys(config: ast.expr) -> set[Any] | None:
    """Return the keys of a dict that is written there; None if they are not all seen."""
    if not isinstance(config, ast.Dict) or not all(isinstance(key, ast.Constant) for key in config.keys):
        return None
    return {key.value for key in config.keys if isinstance(key, ast.Constant)}


def _chained(made: str, chain: list[str]) -> str:
    """Return a call of the builder with its subscriptions, on one line if there is room."""
    line = "".join([made, *chain])
    if len(chain) < 2 and (len(line) <= 100 or not chain):
        return line
    return "\n".join(["(", f"    {made}", *(f"    {each}" for each in chain), ")"])


def _others(tree: ast.Module, node: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes that may bind a module's names, but for those of one class."""
    return in_scope(each for each in tree.body if each is not node)


def _binds(node: ast.AST, name: str) -> bool:
    """Return whether a node gives a name a meaning."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return node.name == name
    return is_stored(node) and node.id == name  # type: ignore[attr-defined]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
