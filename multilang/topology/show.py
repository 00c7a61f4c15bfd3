"""Show a topology to people and other programs: as text, Mermaid, or JSON."""

from __future__ import annotations

from multilang.helpers.masked import masked
from multilang.topology.shell import Foreign, ShellComponent
from multilang.topology.spec import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from multilang.topology.spec import ComponentSpec

_DEFAULT = "default"


def to_text(topology: str, conf: Mapping[str, Any], components: Mapping[str, ComponentSpec]) -> str:
    """Return a text with each component: its tasks, inputs (``<-``), streams (``->``) and own conf."""
    lines = [f"topology {topology}"]
    lines += [f"  {key} = {_json(value)}" for key, value in masked(conf).items()]
    for spec in components.values():
        lines += ["", f"{spec.kind} {spec.id}: {describe(spec.component)}, {_size(spec)}"]
        if isinstance(spec.component, ShellComponent) and not spec.component.change_child_cwd:
            lines.append("  started in the worker's directory")
        lines += [f"  <- {input_.component}{_stream(input_.stream)} by {input_.grouping}" for input_ in spec.inputs]
        for name, stream in spec.streams.items():
            lines.append(f"  -> {name} ({', '.join(stream.fields)}){' direct' if stream.direct else ''}")
        lines += [f"  {key} = {_json(value)}" for key, value in masked(spec.conf).items()]
    return "\n".join(lines) + "\n"


def explained(topology: str, components: Mapping[str, ComponentSpec]) -> str:
    """Return a text with each component: its tasks, its inputs, and its own explanation.

    This is its attribute ``explained``, a list of lines.
    """
    lines = [f"topology {topology}"]
    for spec in components.values():
        lines += ["", f"{spec.kind} {spec.id}, {_size(spec)}"]
        lines += [f"  <- {input_.component}{_stream(input_.stream)} by {input_.grouping}" for input_ in spec.inputs]
        lines += [f"  {line}" for line in getattr(spec.component, "explained", None) or [describe(spec.component)]]
    return "\n".join(lines) + "\n"


def to_mermaid(components: Mapping[str, ComponentSpec], thick: Collection[tuple[str, str, str]] = ()) -> str:
    """Return a flowchart: spouts are rounded, bolts square; each subscription is an arrow, dotted when it is direct.

    Args:
        components: The components by id.
        thick: The subscriptions with a thick arrow, each as its source, its stream and its subscriber.
    """
    nodes = {id: f"c{number}" for number, id in enumerate(components)}
    lines = ["flowchart LR"]
    for id, spec in components.items():
        label = f"{_quoted(id)}<br>{_quoted(describe(spec.component))}{f' × {spec.tasks}' if spec.tasks > 1 else ''}"
        left, right = ("([", "])") if spec.kind == "spout" else ("[", "]")
        lines.append(f'    {nodes[id]}{left}"{label}"{right}')
    for id, spec in components.items():
        for input_ in spec.inputs:
            stream = "" if input_.stream == _DEFAULT else f"{input_.stream}: "
            is_thick = (input_.component, input_.stream, id) in thick
            arrow = "-.->" if input_.grouping.is_direct else "==>" if is_thick else "-->"
            label = _quoted(f"{stream}{input_.grouping}")
            lines.append(f'    {nodes[input_.component]} {arrow}|"{label}"| {nodes[id]}')
    return "\n".join(lines) + "\n"


def to_json(topology: str, conf: Mapping[str, Any], components: Mapping[str, ComponentSpec]) -> str:
    """Return ``to_dict`` as text, indented by two."""
    import json

    return json.dumps(to_dict(topology, conf, components), indent=2, ensure_ascii=False) + "\n"


def to_dict(topology: str, conf: Mapping[str, Any], components: Mapping[str, ComponentSpec]) -> dict[str, Any]:
    """Return the whole declaration in JSON's types, with ``***`` for secrets in confs."""
    return {
        "name": topology,
        "conf": masked(conf),
        "components": [
            {
                "id": spec.id,
                "kind": spec.kind,
                "component": _where(spec),
                "parallelism": spec.parallelism,
                "tasks": spec.tasks,
                "conf": masked(spec.conf),
                "streams": {
                    name: {"fields": list(stream.fields), "direct": stream.direct}
                    for name, stream in spec.streams.items()
                },
                "inputs": [
                    {"component": input_.component, "stream": input_.stream, "grouping": input_.grouping.to_dict()}
                    for input_ in spec.inputs
                ],
            }
            for spec in components.values()
        ],
    }


def _where(spec: ComponentSpec) -> dict[str, Any]:
    if isinstance(spec.component, Foreign):
        return spec.component.to_dict()
    kind = type(spec.component)
    return {"class": f"{kind.__module__}:{kind.__qualname__}"}


def _size(spec: ComponentSpec) -> str:
    executors = f" in {spec.parallelism} executor{'s'[: spec.parallelism > 1]}" if spec.parallelism < spec.tasks else ""
    return f"{spec.tasks} task{'s'[: spec.tasks > 1]}{executors}"


def _stream(stream: str) -> str:
    return "" if stream == _DEFAULT else f" ({stream})"


def _quoted(text: str) -> str:
    """Escape a text in a Mermaid label: Mermaid's own signs by their numbers, as in its manual."""
    for sign, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        text = text.replace(sign, code)
    return text


def _json(value: object) -> str:
    from multilang.protocol.codec import dumps

    return dumps(value)
