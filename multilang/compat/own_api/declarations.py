"""The statements of a component class's body: its fields, its flags, its conf, and Petrel's methods that return them."""

from __future__ import annotations

import ast
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.own_api.classes import Found

FLAGS = ("auto_ack", "auto_anchor", "auto_fail", "exit_on_exception")
_HARMLESS = ("par",)  # which spec() reads in the class, whichever library it is of


class Declarations:
    """The declarations of a class, with those of the project's classes that it comes from.

    Attributes:
        flags: pystorm's flags.
        streams: The number of fields of each stream; None if they are not declared in the class.
    """

    def __init__(self, found: Found, is_mild: bool) -> None:
        self.found = found
        self.flags = dict.fromkeys(FLAGS, True)
        if is_mild:
            self.flags["exit_on_exception"] = False
        self.streams: dict[str, int] | None = None
        for each in reversed(found.line):
            for name, node in each.assigned().items():
                if name in FLAGS and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
                    self.flags[name] = node.value.value
                elif name == "outputs":
                    self.streams = _widths(each, node.value)

    @property
    def base(self) -> str:
        """The class of this library's that it becomes a subclass of."""
        kind = self.found.kind
        if kind.is_spout:
            return "Spout"
        if not kind.is_pystorms:
            return kind.name
        return "BasicBolt" if self.flags["auto_ack"] else "Bolt"

    @property
    def adds_anchors(self) -> bool:
        """True if each emit needs its anchor written, since the class acks by itself and anchors automatically."""
        return self.found.kind.is_pystorms and self.base == "Bolt" and self.flags["auto_anchor"]

    def write(self) -> None:
        """Write the body's statements over."""
        found = self.found
        if found.node.decorator_list:
            found.keep(found.node.decorator_list[0], f"{found.name} has a decorator")
        if found.node.keywords:
            found.keep(found.node, f"{found.name} has a metaclass, or another keyword behind its bases")
        if found.node.body[0].lineno == found.node.lineno:
            found.keep(found.node, f"{found.name} is written on one line")
            return
        for each in found.node.body:
            if isinstance(each, ast.Assign | ast.AnnAssign):
                self._statement(each)
            elif not isinstance(each, ast.FunctionDef | ast.Expr | ast.Pass):
                found.keep(each, f"{found.name} has something else in its body than methods and assignments")
            elif isinstance(each, ast.Expr) and not isinstance(each.value, ast.Constant):
                found.keep(each, f"{found.name} calls something in its body, outside of any method")
        if found.kind.is_pystorms:
            self._flags()
        elif found.base is None and found.kind.library == "petrel" and self.base == "BasicBolt":
            self._on_exception("end")

    def _statement(self, node: ast.Assign | ast.AnnAssign) -> None:
        found, kind = self.found, self.found.kind
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for each in ast.walk(target):
                if not isinstance(each, ast.Name):
                    continue
                simple = isinstance(node, ast.Assign) and len(targets) == 1 and each is target
                if each.id == "outputs" and kind.library == "streamparse" and simple:
                    self._outputs(node)  # type: ignore[arg-type]
                elif each.id == "config" and kind.library == "streamparse" and simple:
                    found.edits.replace(each, "component_conf")
                    if isinstance(node.value, ast.Constant):
                        found.keep(node, "its config is not a dict")
                elif each.id in FLAGS and kind.is_pystorms and simple:
                    self._flag(each.id, node)  # type: ignore[arg-type]
                elif each.id in kind.ours | kind.theirs and each.id not in _HARMLESS:
                    found.keep(node, f"it gives another meaning to {each.id}, a name of the library or of multilang")

    def _flag(self, name: str, node: ast.Assign) -> None:
        found = self.found
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool)):
            found.keep(node, f"{name} is not written as True or False")
        elif found.base is not None:
            found.keep(node, f"{found.name} changes {name}, which its base {found.base.name} has already")
        else:
            _remove(found, node)

    def _flags(self) -> None:
        found, flags = self.found, self.flags
        if found.base is not None:
            return
        if found.kind.is_spout:
            if not flags["exit_on_exception"]:
                found.keep(found.node, "it goes on after an exception, and a Spout of multilang ends its process")
            return
        if flags["auto_ack"] and not flags["auto_anchor"]:
            found.keep(
                found.node,
                "it acks automatically but does not anchor (auto_anchor = False), and no class of multilang does that",
            )
        how = {(True, True): "fail and end", (True, False): "fail", (False, True): "end"}.get(
            (flags["auto_fail"], flags["exit_on_exception"])
        )
        if how is None:
            found.keep(
                found.node,
                "its exceptions neither fail the tuple nor end the process, and multilang has no such setting",
            )
        elif how != {"BasicBolt": "fail", "Bolt": "end"}[self.base]:
            self._on_exception(how)

    def _on_exception(self, how: str) -> None:
        source, body = self.found.source, self.found.node.body
        first = body[0]
        has_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        at = source.line_end(first.end_lineno) if has_text else source.line_start(_first_line(first))  # type: ignore[arg-type]
        start = source.start(first)
        indent = source.text[source.line_start(first.lineno) : start]
        newline = source.newline
        blank = newline if has_text else ""
        text = f'{blank}{indent}on_exception = "{how}"{newline}'
        if isinstance(first, ast.FunctionDef):
            text += newline
        if has_text and not source.text[:at].endswith(("\n", "\r")):
            text = newline + text
        self.found.edits.insert(at, text)

    def _outputs(self, node: ast.Assign) -> None:
        found, source = self.found, self.found.source
        target, value = node.targets[0], node.value
        widths = _widths(found, value)
        if widths is None:
            found.keep(node, "outputs is not written as a list of names and Streams")
            return
        inherited = [
            _widths(each, each.assigned()["outputs"].value) for each in found.line[1:] if "outputs" in each.assigned()
        ]
        if any(set(each or {}) - {"default"} for each in inherited):
            found.keep(node, "its outputs replace those of its base, which declares further streams")
            return
        if not widths:
            found.edits.replace(value, "None")
            found.edits.replace(target, "output_fields")
            return
        elements = value.elts  # type: ignore[attr-defined]
        if all(isinstance(each, ast.Constant) for each in elements):
            found.edits.replace(target, "output_fields")
            return
        if source.has_comment(value):
            found.keep(node, "outputs has Streams and comments between them; move the comments")
            return
        default: list[str] = [source.segment(each) for each in elements if isinstance(each, ast.Constant)]
        fields = f"[{', '.join(default)}]" if default else "None"
        others: list[str] = []
        for each in elements:
            if not isinstance(each, ast.Call):
                continue
            found.used.update(ast.walk(each.func))
            given = stream_arguments(each)
            name = given["name"].value if "name" in given else "default"  # type: ignore[attr-defined]
            is_direct = "direct" in given and given["direct"].value  # type: ignore[attr-defined]
            text = source.segment(given["fields"]) if "fields" in given else "[]"
            if is_direct:
                found.needs.add("Stream")
                text = f"\0Stream({text}, direct=True)"
            if name == "default":
                fields = text
            else:
                others.append(f'"{name}": {text}')
        indent = source.text[source.line_start(node.lineno) : source.start(node)]
        text = f"output_fields = {fields}"
        if others:
            text += f"{source.newline}{indent}output_streams = {{{', '.join(others)}}}"
        found.edits.replace(node, text)


def write_petrels(found: Found) -> None:
    """Write over the methods by which Petrel's classes declare their script, fields and conf."""
    for each in found.source.tree.body:
        own = f"{found.name}().run()"
        if isinstance(each, ast.FunctionDef) and each.name == "run" and own not in found.source.segment(each):
            found.keep(each, "the file's function run() starts another component, and that is what a task runs")
    for name, function in found.functions().items():
        if name == "__init__":
            _petrels_start(found, function)
        elif name in ("declareOutputFields", "getComponentConfiguration"):
            value = function.body[0].value if isinstance(function.body[0], ast.Return) else None
            is_fields = name == "declareOutputFields"
            known = (
                isinstance(value, ast.List | ast.Tuple)
                and all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in value.elts)
                if is_fields
                else isinstance(value, ast.Dict)
            )
            if not known or value is None or found.source.has_comment(function):
                found.keep(function, f"{name} does more than return {'a list of names' if is_fields else 'a dict'}")
                continue
            is_empty = is_fields and not value.elts  # type: ignore[attr-defined]
            text = "None" if is_empty else found.source.segment(value)
            first = function.decorator_list[0] if function.decorator_list else function
            start = found.source.start(first) - (1 if first is not function else 0)  # the @
            found.edits.cut(
                start, found.source.end(function), f"{'output_fields' if is_fields else 'component_conf'} = {text}"
            )


def _petrels_start(found: Found, function: ast.FunctionDef) -> None:
    calls = [each for each in function.body if _is_super_call(each)]
    if len(function.args.args) != 1 or function.args.vararg or function.args.kwarg or len(calls) != 1:
        found.keep(function, "its __init__ takes arguments, or does not call the base's __init__ exactly once")
        return
    call = calls[0].value  # type: ignore[attr-defined]
    script = next((each for each in [*call.args, *(keyword.value for keyword in call.keywords)]), None)
    stem = os.path.basename(found.source.path)[:-3]
    is_name = isinstance(script, ast.Name) and script.id == "__file__"
    if not is_name and not (isinstance(script, ast.Constant) and os.path.splitext(str(script.value))[0] == stem):
        found.keep(calls[0], "its script is another file, whose run() decides what a task runs")
    rest = [each for each in function.body if each is not calls[0]]
    if rest:
        _remove(found, calls[0])
        return
    source = found.source
    start = source.line_start(function.lineno)
    end = source.line_end(function.end_lineno)  # type: ignore[arg-type]
    while source.text[end : end + 1] in ("\n", "\r"):
        end += 1
    if found.node.body == [function]:
        found.keep(function, "it has no other method than __init__")
        return
    found.edits.cut(start, end)


def _is_super_call(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "__init__"
    )


def _remove(found: Found, node: ast.stmt) -> None:
    """Take a statement out, with its line unless there is a comment on it."""
    source = found.source
    start, end = source.start(node), source.end(node)
    line = source.line_start(node.lineno)
    line_end = source.line_end(node.end_lineno)  # type: ignore[arg-type]
    if source.text[end:line_end].strip().startswith(";") or source.text[line:start].strip():
        found.keep(node, "one of its settings shares a line with another statement")
    elif source.text[end:line_end].strip():
        found.edits.cut(start, end + len(source.text[end:line_end]) - len(source.text[end:line_end].lstrip()))
    else:
        found.edits.cut(line, line_end)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _widths(found: Found, value: ast.expr) -> dict[str, int] | None:
    """Return the number of fields of each stream of ``outputs``; None if that is not written there."""
    if isinstance(value, ast.Constant) and value.value is None:
        return {}
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    widths: dict[str, int] = {}
    for each in value.elts:
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            widths["default"] = widths.get("default", 0) + 1
            continue
        if not isinstance(each, ast.Call) or found.source.dotted(each.func) not in STREAMS:
            return None
        given = stream_arguments(each)
        fields, name = given.get("fields"), given.get("name", ast.Constant("default"))
        if not isinstance(fields, ast.List | ast.Tuple) or not isinstance(name, ast.Constant):
            return None
        constants = [*fields.elts, given.get("direct", ast.Constant(False))]
        if not all(isinstance(of, ast.Constant) for of in constants) or name.value in widths:
            return None
        widths[str(name.value)] = len(fields.elts)
    return widths


def stream_arguments(call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a ``Stream`` of streamparse's by name."""
    given: dict[str, ast.expr] = dict(zip(("fields", "name", "direct"), call.args, strict=False))
    return given | {keyword.arg or "": keyword.value for keyword in call.keywords}


STREAMS = ("streamparse.Stream", "streamparse.dsl.Stream", "streamparse.dsl.stream.Stream")
"""The names of streamparse's class of streams."""
