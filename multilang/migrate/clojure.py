"""Topologies in Clojure, as streamparse had them before version 3, as classes of its later DSL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from keyword import iskeyword

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_TOKEN = re.compile(r'[\s,]+|;[^\n]*|(?P<text>"(?:[^"\\]|\\.)*")|(?P<mark>[()\[\]{}])|(?P<word>[^\s,;"()\[\]{}]+)')
_MAX_COMPONENTS = 1000
_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_GROUPINGS = {
    ":shuffle": "SHUFFLE",
    ":global": "GLOBAL",
    ":all": "ALL",
    ":none": "NONE",
    ":direct": "DIRECT",
    ":local-or-shuffle": "LOCAL_OR_SHUFFLE",
}
_SPECS = {
    "python-spout-spec": ("class", "outputs"),
    "python-bolt-spec": ("inputs", "class", "outputs"),
    "shell-spout-spec": ("command", "outputs"),
    "shell-bolt-spec": ("inputs", "command", "outputs"),
}


class _Word(str):
    """A word of Clojure that is no string: a symbol, a keyword or a number."""

    __slots__ = ()


class _Call(list):  # type: ignore[type-arg]
    """A list in parentheses."""


@dataclass
class _Spec:
    name: str
    kind: str
    given: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def attribute(self) -> str:
        name = re.sub(r"\W", "_", self.name)
        if iskeyword(name):
            return f"{name}_"
        return name if name.isidentifier() else f"c{name}"

    @property
    def sources(self) -> list[str]:
        return [source[0] if isinstance(source, tuple) else source for source in self.given.get("inputs", {})]


def as_dsl(text: str, name: str) -> str:
    """Return the file of a topology in Clojure as a file of streamparse's DSL.

    Args:
        text: The file.
        name: The topology's name.

    Raises:
        ValueError: It has something that can't be rewritten mechanically.
    """
    try:
        return _dsl(_read(text), name)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (AttributeError, IndexError, TypeError) as error:
        raise ValueError(f"it has an unusual form ({error})") from None


def _dsl(forms: list[Any], name: str) -> str:
    specs: dict[str, _Spec] = {}
    for spec in _specs_in(forms):
        specs[spec.name] = spec
        if len(specs) > _MAX_COMPONENTS:
            raise ValueError(f"it has more than {_MAX_COMPONENTS:,} components")
    attributes = {spec.attribute for spec in specs.values()}
    if len(attributes) < len(specs) or not all(map(str.isidentifier, attributes)):
        raise ValueError("two components have the same name in Python")
    imports: list[str] = []
    outputs: list[str] = []
    lines: list[str] = []
    classes: dict[str, str] = {}
    declared: dict[str, Any] = {}
    written: set[str] = set()
    for spec in _in_order(specs):
        if "class" in spec.given:
            if _CLASS.fullmatch(spec.given["class"]) is None:
                raise ValueError(f"{spec.given['class']!r} is no class")
            module, _, kind = spec.given["class"].rpartition(".")
            alias = kind if kind not in classes.values() else f"{module.replace('.', '_')}_{kind}"
            if spec.given["class"] not in classes:
                classes[spec.given["class"]] = alias
                imports.append(f"from {module} import {kind}" + (f" as {alias}" if alias != kind else ""))
            alias = classes[spec.given["class"]]
            if declared.setdefault(alias, spec.given["outputs"]) != spec.given["outputs"]:
                raise ValueError(f"{spec.given['class']} is there twice, with other outputs")
            if spec.given["outputs"] and alias not in written:
                written.add(alias)
                outputs.append(f"{alias}.outputs = {_outputs(spec.given['outputs'])}")
        else:
            alias = "ShellSpout" if "spout" in spec.kind else "ShellBolt"
        lines.append(f"    {spec.attribute} = {alias}.spec({', '.join(_arguments(spec, specs))})")
    body = "\n".join([*outputs, "", "", f"class {_class_name(name)}(Topology):", *lines])
    used = [
        each
        for each in ("Grouping", "ShellBolt", "ShellSpout", "Stream", "Topology")
        if re.search(rf"\b{each}\b", body)
    ]
    head = [*sorted(imports), f"from streamparse import {', '.join(used)}", ""]
    return (
        "\n".join([f'"""The topology of {_shown(name)}.clj."""', "", *head, body.lstrip() if not outputs else body])
        + "\n"
    )


def _shown(name: str) -> str:
    return re.sub(r"[^\w .-]", "?", name)


def _class_name(name: str) -> str:
    words = re.split(r"\W|_", name)
    return "".join(word[:1].upper() + word[1:] for word in words) or "Words"


def _arguments(spec: _Spec, specs: dict[str, _Spec]) -> Iterator[str]:
    if spec.attribute != spec.name:
        yield f"name={spec.name!r}"
    if "command" in spec.given:
        first, *rest = spec.given["command"]
        yield f"command={first!r}, script={' '.join(rest)!r}"
    if "inputs" in spec.given:
        yield (
            "inputs={"
            + ", ".join(_input(source, grouping, specs) for source, grouping in spec.given["inputs"].items())
            + "}"
        )
    if "command" in spec.given and spec.given["outputs"]:
        yield f"outputs={_outputs(spec.given['outputs'])}"
    for key, value in spec.options.items():
        if key not in (":p", ":conf"):
            raise ValueError(f"{spec.name!r} has {key}, which streamparse's DSL does not have")
        yield f"par={int(value)}" if key == ":p" else f"config={_plain(value)!r}"


def _input(source: Any, grouping: Any, specs: dict[str, _Spec]) -> str:
    name, stream = source if isinstance(source, tuple) else (source, None)
    if name not in specs:
        raise ValueError(f"there is no component {name!r}, which is an input")
    of = specs[name].attribute + (f"[{stream!r}]" if stream not in (None, "default") else "")
    if isinstance(grouping, list) and not isinstance(grouping, _Call):
        return f"{of}: Grouping.fields({', '.join(map(repr, map(str, grouping)))})"
    if isinstance(grouping, str) and grouping in _GROUPINGS:
        return f"{of}: Grouping.{_GROUPINGS[grouping]}"
    raise ValueError(f"the grouping {grouping} is not one of streamparse's DSL")


def _outputs(outputs: Any) -> str:
    if isinstance(outputs, dict):
        streams = [f"Stream(fields={_plain(fields)!r}, name={str(name)!r})" for name, fields in outputs.items()]
        return f"[{', '.join(streams)}]"
    return repr(_plain(outputs))


def _plain(value: Any) -> Any:
    if isinstance(value, _Call):
        raise ValueError(f"({' '.join(map(str, value))}) is computed by Clojure")
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if not isinstance(value, _Word):
        return str(value)
    if value in ("true", "false", "nil"):
        return {"true": True, "false": False, "nil": None}[value]
    for kind in (int, float) if _NUMBER.fullmatch(value) else ():
        try:
            return kind(value)
        except ValueError:
            continue
    raise ValueError(f"{value} is computed by Clojure")


def _in_order(specs: dict[str, _Spec]) -> list[_Spec]:
    """Return the specs with each one behind its sources, since a class names them."""
    done: list[_Spec] = []
    left = list(specs.values())
    while left:
        names = {each.name for each in left}
        ready = [each for each in left if names.isdisjoint(each.sources)]
        if not ready:
            raise ValueError(f"the inputs of {left[0].name!r} lead back to itself")
        done += ready
        names -= {each.name for each in ready}
        left = [each for each in left if each.name in names]
    return done


def _specs_in(forms: list[Any]) -> Iterator[_Spec]:
    bodies = [form[-1] for form in forms if isinstance(form, _Call) and form[:1] == ["defn"]]
    if len(bodies) != 1 or isinstance(bodies[0], _Call) or not isinstance(bodies[0], list) or len(bodies[0]) != 2:
        raise ValueError("it does not end in one function that returns the spouts and the bolts")
    for part in bodies[0]:
        if not isinstance(part, dict):
            raise ValueError("its spouts or its bolts are computed by Clojure")
        for name, call in part.items():
            if not isinstance(call, _Call) or call[0] not in _SPECS:
                raise ValueError(f"{name!r} is declared by {call[0] if isinstance(call, _Call) else call}")
            words = [each for each in call[1:] if each != "options"]
            places = _SPECS[call[0]]
            given = dict(zip(places, words, strict=False))
            options = words[len(places) :]
            if len(given) < len(places) or len(options) % 2:
                raise ValueError(f"{name!r} lacks something that {call[0]} needs")
            if any(isinstance(each, _Call | _Word) for each in given.values()):
                raise ValueError(f"{name!r} has something that is computed by Clojure")
            yield _Spec(str(name), call[0], given, dict(zip(options[::2], options[1::2], strict=True)))


def _read(text: str) -> list[Any]:
    """Return the forms of a file of Clojure."""
    stack: list[tuple[str, list[Any]]] = [("", [])]
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError("it is no Clojure: a string has no end")
        place = found.end()
        if found["text"]:
            stack[-1][1].append(re.sub(r"\\(.)", r"\1", found["text"][1:-1]))
        elif found["word"]:
            stack[-1][1].append(_Word(found["word"]))
        elif found["mark"] in _CLOSING:
            stack.append((_CLOSING[found["mark"]], []))
        elif found["mark"]:
            closing, items = stack.pop()
            if closing != found["mark"]:
                raise ValueError("it is no Clojure: brackets don't match")
            stack[-1][1].append(_closed(closing, items))
    if len(stack) != 1:
        raise ValueError("it is no Clojure: a bracket is not closed")
    return stack[0][1]


def _closed(closing: str, items: list[Any]) -> Any:
    if closing == ")":
        return _Call(items)
    if closing == "]":
        return items
    if len(items) % 2:
        raise ValueError("it is no Clojure: a map has a key without a value")
    return {
        tuple(key) if isinstance(key, list) else key: value for key, value in zip(items[::2], items[1::2], strict=True)
    }
