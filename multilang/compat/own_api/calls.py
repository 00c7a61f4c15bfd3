"""Calls that emit: their arguments, by position and by name, as this library's ``emit`` takes them."""

from __future__ import annotations

import ast

from multilang.compat.own_api.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.own_api.classes import Found
    from multilang.compat.own_api.declarations import Declarations

_PYSTORMS_BOLT = ("tup", "stream", "anchors", "direct_task", "need_task_ids")
_PYSTORMS_SPOUT = ("tup", "tup_id", "stream", "direct_task", "need_task_ids")
_STORMS_BOLT = ("tup", "stream", "anchors", "directTask", "need_task_ids")
_STORMS_SPOUT = ("tup", "stream", "id", "directTask", "need_task_ids")
_OURS = {"tup": "values", "id": "tup_id", "directTask": "direct_task"}
_CAUGHT = {"BaseException", "Exception"}
_SAFE_CALLS = {"bool", "float", "int", "len", "repr", "round", "str"}
_ODD = {"Decimal", "bytearray", "bytes", "memoryview"}


class Emits(Work):
    """The emits of a class.

    Attributes:
        any: Whether there is one.
        calls: All of them.
    """

    def __init__(self, found: Found, declared: Declarations) -> None:
        super().__init__(found, declared)
        self.calls: set[ast.AST] = set()

    @property
    def any(self) -> bool:
        """True if there is one."""
        return bool(self.calls)

    def own(self, call: ast.Call, name: str) -> None:
        """Write over ``self.emit(...)`` of pystorm's."""
        self.calls.add(call)
        is_spout = self.found.kind.is_spout
        if name == "emit_many":
            names: tuple[str, ...] = ("tuples", "stream", "anchors")
            if is_spout or self.declared.adds_anchors or self._is_strange(call, names):
                self.found.keep(call, "it calls emit_many with arguments that multilang's emit_many does not take")
                return
            for keyword in call.keywords:
                if keyword.arg == "tuples":
                    self._rename(keyword, "rows")
            return
        names = _PYSTORMS_SPOUT if is_spout else _PYSTORMS_BOLT
        if self._is_strange(call, names):
            return
        given = self._given(call, names)
        for keyword in call.keywords:
            if keyword.arg in _OURS:
                self._rename(keyword, _OURS[keyword.arg])
        self._check(call, given)
        if self.declared.adds_anchors and "anchors" not in given:
            self._anchor(call)

    def function(self, call: ast.Call, function: str, own_name: str) -> None:
        """Write over ``storm.emit(...)`` and its kind."""
        found, source = self.found, self.found.source
        self.calls.add(call)
        is_spout = found.kind.is_spout
        if function not in ("emit", "emitDirect", "emitBolt", "emitSpout") or (
            function in ("emitBolt", "emitSpout") and is_spout is not (function == "emitSpout")
        ):
            found.keep(call, f"multilang has nothing like storm.{function} in a {'spout' if is_spout else 'bolt'}")
            return
        names: tuple[str, ...] = _STORMS_SPOUT if is_spout else _STORMS_BOLT
        if found.kind.library == "storm":
            names = names[:-1]
        args = list(call.args)
        direct = args.pop(0) if function == "emitDirect" and args else None
        if self._is_strange(call, names, args):
            return
        given = dict(zip(names, args, strict=False)) | {each.arg or "": each.value for each in call.keywords}
        is_used = not isinstance(self.parents[call], ast.Expr)
        reason = self._reason(call, function, direct, given, is_used)
        if reason:
            found.keep(call, reason)
            return
        found.edits.replace(call.func, f"{own_name}.emit")
        for name, each in zip(names, args, strict=False):
            if is_spout and name != "tup":
                found.edits.insert(source.start(each), f"{_OURS.get(name, name)}=")
        for keyword in call.keywords:
            if keyword.arg in _OURS:
                self._rename(keyword, _OURS[keyword.arg])
        end = source.end(call) - 1
        if direct is not None:
            found.edits.cut(source.start(direct), source.start(args[0]))
            self._add(call, end, f", direct_task={source.segment(direct)}")
        elif is_used and found.kind.library == "storm":
            self._add(call, end, ", need_task_ids=True")
        self._check(call, given)

    def _reason(
        self, call: ast.Call, function: str, direct: ast.expr | None, given: dict[str, ast.expr], is_used: bool
    ) -> str:
        """Return why a call of storm.py's can't be written over; empty if it can."""
        if function == "emitDirect" and (not isinstance(direct, ast.Name | ast.Constant | ast.Attribute) or is_used):
            return "it computes the task of storm.emitDirect in the call, or uses what the call returns"
        if is_used and (function != "emit" or "directTask" in given):
            return f"it uses what storm.{function} returns, and the method of multilang returns nothing"
        if self.found.kind.name == "BasicBolt" and "anchors" in given and not self._is_current(call, given["anchors"]):
            return "it emits with anchors, which storm.py's BasicBolt ignores and multilang's BasicBolt would use"
        return ""

    def _given(self, call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
        return dict(zip(names, call.args, strict=False)) | {each.arg or "": each.value for each in call.keywords}

    def _is_strange(self, call: ast.Call, names: tuple[str, ...], args: list[ast.expr] | None = None) -> bool:
        args = call.args if args is None else args
        known = {each.arg for each in call.keywords} <= set(names) and len(args) <= len(names)
        if known and args + call.keywords and not any(isinstance(each, ast.Starred) for each in args):
            return False
        self.found.keep(
            call,
            "it emits with arguments that the text does not show (* or **), or that multilang's emit does not take",
        )
        return True

    def _rename(self, keyword: ast.keyword, name: str) -> None:
        start = self.found.source.start(keyword)
        self.found.edits.cut(start, start + len(keyword.arg or ""), name)

    def _add(self, call: ast.Call, end: int, text: str) -> None:
        """Add arguments behind the last one, which a comma may follow."""
        source = self.found.source
        last = max(source.end(each) for each in [*call.args, *(keyword.value for keyword in call.keywords)])
        between = source.text[last:end]
        if between.strip() not in ("", ","):
            self.found.keep(call, "an emit has a comment behind its last argument; write the call on one line")
        elif between.strip() == ",":
            self.found.edits.insert(last + between.index(",") + 1, f" {text.removeprefix(', ')}")
        else:
            self.found.edits.insert(last, text)

    def _anchor(self, call: ast.Call) -> None:
        """Write the anchor that pystorm adds by itself."""
        method = self.method(call)
        parent: ast.AST = call
        while parent is not method:
            parent = self.parents[parent]
            if isinstance(parent, ast.Lambda | ast.FunctionDef) and parent is not method:
                method = None
                break
        if method is None or method.name not in ("process", "process_tick"):
            self.found.keep(
                call,
                "it emits outside of process and acks by itself, so that the text does not show which tuple auto_anchor adds",
            )
            return
        name = method.args.args[1].arg
        self._add(call, self.found.source.end(call) - 1, f", anchors=[{name}]")

    def _is_current(self, call: ast.Call, anchors: ast.expr) -> bool:
        method = self.method(call)
        return (
            method is not None
            and method.name == "process"
            and isinstance(anchors, ast.List)
            and [each.id for each in anchors.elts if isinstance(each, ast.Name)] == [method.args.args[1].arg]
            and len(anchors.elts) == 1
        )

    def _may_be_lost(self, call: ast.Call) -> bool:
        """Return whether user code catches all exceptions of an emit."""
        node: ast.AST = call
        while node in self.parents:
            parent = self.parents[node]
            if isinstance(parent, ast.Try) and node in parent.body:
                caught = [
                    each for handler in parent.handlers for each in ast.walk(handler.type or ast.Name("Exception"))
                ]
                if any(isinstance(each, ast.Name) and each.id in _CAUGHT for each in caught):
                    return True
            node = parent
        return False

    def _check(self, call: ast.Call, given: dict[str, ast.expr]) -> None:
        """Keep the class if an emit has values or a stream that this library refuses."""
        found = self.found
        values, stream = given.get("tup"), given.get("stream")
        if isinstance(values, ast.List | ast.Tuple):
            for each in ast.walk(values):
                if _is_odd(each):
                    found.keep(
                        each,
                        "it emits a value that JSON does not have: the layer converts it, as simplejson does, and multilang refuses it",
                    )
        if self._may_be_lost(call) and not _is_safe(values):
            found.keep(
                call,
                "it catches every exception of an emit, and would hide multilang's error for a value that JSON does not have",
            )
        widths = self.declared.streams
        if not found.kind.is_pystorms or widths is None:
            return
        if stream is not None and not (isinstance(stream, ast.Constant) and isinstance(stream.value, str | None)):
            return
        name = "default" if stream is None or stream.value is None else stream.value
        if name not in widths:
            found.keep(call, f"it emits to the stream {name!r}, which outputs does not declare")
        elif (
            isinstance(values, ast.List | ast.Tuple)
            and not any(isinstance(each, ast.Starred) for each in values.elts)
            and len(values.elts) != widths[name]
        ):
            found.keep(
                call,
                f"it emits {len(values.elts)} values to the stream {name!r}, whose number of fields in outputs is {widths[name]}",
            )


def odd_values(found_node: ast.AST) -> ast.AST | None:
    """Return the first sign of values that JSON lacks in a class."""
    for each in ast.walk(found_node):
        if _is_odd(each) or (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr in ("encode", "tobytes")
        ):
            return each
    return None


def _is_safe(values: ast.expr | None) -> bool:
    """Return whether JSON has the values of an emit, whatever they are."""
    if isinstance(values, ast.List | ast.Tuple):
        return all(map(_is_safe, values.elts))
    if isinstance(values, ast.Call):
        return isinstance(values.func, ast.Name) and values.func.id in _SAFE_CALLS
    if isinstance(values, ast.Subscript | ast.Attribute):  # of a tuple's values, which came as JSON
        return isinstance(values.value, ast.Attribute) and values.value.attr == "values"
    return isinstance(values, ast.JoinedStr) or (
        isinstance(values, ast.Constant) and not isinstance(values.value, bytes)
    )


def _is_odd(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bytes)
    if isinstance(node, ast.Dict):
        return any(isinstance(key, ast.Constant) and not isinstance(key.value, str) for key in node.keys)
    return isinstance(node, ast.Name) and node.id in _ODD
