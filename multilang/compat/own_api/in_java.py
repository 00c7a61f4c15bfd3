"""Components in Java of a topology in streamparse's DSL, as this library's builder declares them."""

from __future__ import annotations

import ast

from multilang.compat.own_api.declarations import STREAMS, stream_arguments
from multilang.compat.own_api.parts import is_literal, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.own_api.source import Source

ARGUMENTS = {
    "JavaBolt": ("name", "serialized_java", "full_class_name", "args_list", "inputs", "par", "config", "outputs"),
    "JavaSpout": ("name", "serialized_java", "full_class_name", "args_list", "par", "config", "outputs"),
}
"""The arguments of each class's ``spec``."""

_HOMES = ("streamparse", "streamparse.storm", "streamparse.bolt", "streamparse.spout")


class InJava:
    """A component in Java.

    Args:
        kind: JavaBolt or JavaSpout.
        given: The arguments of its spec by name.
        source: The file.

    Attributes:
        text: The call that makes it, with a mark before each name of this library's.
        needs: These names.
        is_direct: Whether its default stream is direct.
        used: The names that are left unused, as nodes.
        reason: Why it can't be written over; empty if it can.
    """

    def __init__(self, kind: str, given: dict[str, ast.expr], source: Source) -> None:
        self.needs = {kind}
        self.is_direct = False
        self.used: set[ast.AST] = set()
        self.text = self.reason = ""
        name = given.get("full_class_name")
        arguments = given.get("args_list")
        serialized = given.get("serialized_java")
        if serialized is not None and not (isinstance(serialized, ast.Constant) and serialized.value is None):
            self.reason = "is a serialized Java object; name its class with full_class_name and args_list"
        elif not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            self.reason = "is in Java, and its full_class_name is not written as a text"
        elif not isinstance(arguments, ast.List | ast.Tuple) or not all(map(_is_plain, arguments.elts)):
            self.reason = "is in Java, and its args_list is not written as a list of texts and numbers"
        else:
            words = [source.segment(name), f"[{', '.join(self._argument(each, source) for each in arguments.elts)}]"]
            streams = self._streams(given.get("outputs"), source)
            if streams is None:
                self.reason = "is in Java, and its outputs are not written as names and Streams"
                return
            default, others = streams
            words += [default or "None"] if default or others else []
            words += [f"{{{', '.join(f'{quoted(each)}: {text}' for each, text in others.items())}}}"] if others else []
            self.text = f"\0{kind}({', '.join(words)})"

    def _argument(self, node: ast.expr, source: Source) -> str:
        if type(ast.literal_eval(node)) is not int:
            return source.segment(node)
        self.needs.add("JavaLong")  # as streamparse gives integers to Java
        return f"\0JavaLong({source.segment(node)})"

    def _streams(self, outputs: ast.expr | None, source: Source) -> tuple[str, dict[str, str]] | None:
        """Return the fields of the default stream and of the others, as texts; None if they are not written out."""
        if outputs is None or (isinstance(outputs, ast.Constant) and outputs.value is None):
            return "", {}
        if not isinstance(outputs, ast.List | ast.Tuple):
            return None
        fields: list[str] = []
        found: dict[str, str] = {}
        for each in outputs.elts:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                fields.append(source.segment(each))
                continue
            if not isinstance(each, ast.Call) or source.dotted(each.func) not in STREAMS:
                return None
            self.used.update(ast.walk(each.func))
            given = stream_arguments(each)
            name, direct = given.get("name", ast.Constant("default")), given.get("direct", ast.Constant(False))
            names = given.get("fields", ast.List([]))
            if not isinstance(name, ast.Constant) or not isinstance(direct, ast.Constant) or name.value in found:
                return None
            if not isinstance(names, ast.List | ast.Tuple) or not all(
                isinstance(of, ast.Constant) for of in names.elts
            ):
                return None
            text = f"[{', '.join(source.segment(of) for of in names.elts)}]"
            if direct.value:
                self.needs.add("Stream")
                text = f"\0Stream({text}, direct=True)"
                self.is_direct = self.is_direct or name.value == "default"
            found[str(name.value)] = text
        if fields and "default" in found:
            return None
        default = f"[{', '.join(fields)}]" if fields else found.pop("default", "")
        return default, found


def kind_of(call: ast.Call, source: Source) -> str:
    """Return JavaBolt or JavaSpout for a call of one's ``spec``; empty for any other call."""
    home, _, name = (source.dotted(call.func) or "").removesuffix(".spec").rpartition(".")
    is_spec = isinstance(call.func, ast.Attribute) and call.func.attr == "spec"
    return name if is_spec and home in _HOMES and name in ARGUMENTS else ""


def _is_plain(node: ast.expr) -> bool:
    return is_literal(node) and isinstance(ast.literal_eval(node), bool | int | float | str | bytes)
