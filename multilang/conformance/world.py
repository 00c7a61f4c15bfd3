"""The topology around a program under test: its conf, context, streams and tasks, and the handshake's bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from multilang.conformance.storm_conf import STORM_CONF

COMPONENT = "tested"
SOURCE = "source"
SINK = "sink"
DIRECT = "direct_sink"
TASK = 4
SOURCE_TASKS = (2, 3)
SOURCE_TASK = SOURCE_TASKS[0]
SINK_TASKS = (5, 6, 7)
DIRECT_TASKS = (8, 9)
METRIC = "conformance"
SENTENCE = "the quick brown fox"

# The streams of the program: stream -> fields. Nobody subscribes to "quiet".
STREAMS: dict[str, list[str]] = {
    "default": ["value"],
    "other": ["value"],
    "pair": ["left", "right"],
    "direct": ["value"],
    "quiet": ["value"],
}


# The streams of a bolt's source: stream -> fields.
SOURCES: dict[str, list[str]] = {
    "default": ["steps"],
    "other": ["steps"],
    "three": ["steps", "a", "b"],
    "two": ["steps", "a"],
    "empty": [],
}


@dataclass
class World:
    """The topology as the handshake describes it. ``streams``: None when the program's streams are not known."""

    kind: str = "bolt"
    component: str = COMPONENT
    streams: Mapping[str, Sequence[str]] | None = field(default_factory=lambda: STREAMS)
    conf: dict[str, Any] = field(default_factory=dict)
    contract: bool = True
    """True if the program keeps the conformance contract."""
    tuples: Sequence[Sequence[Any]] = ([SENTENCE],)
    """The tuples that a bolt can work on which does not keep the contract."""

    def full_conf(self, **more: Any) -> dict[str, Any]:
        """Return the topology's conf, with ``more``."""
        return {**STORM_CONF, **self.conf, **more}

    def context(self) -> dict[str, Any]:
        """Return the context as Storm has it since 0.10."""
        streams = self.streams or STREAMS
        targets: dict[str, Any] = {}
        for name in streams:
            if name == "direct":
                targets[name] = {DIRECT: {"type": "DIRECT"}}
            elif name == "quiet":
                targets[name] = {}
            else:
                targets[name] = {SINK: {"type": "SHUFFLE"}}
        context: dict[str, Any] = {
            **self.old_context(),
            "componentid": self.component,
            "streams": list(streams),
            "stream->outputfields": {name: list(fields) for name, fields in streams.items()},
            "stream->target->grouping": targets,
            "source->stream->grouping": {},
            "source->stream->fields": {},
        }
        if self.kind == "bolt":
            context["source->stream->grouping"] = {SOURCE: {name: {"type": "SHUFFLE"} for name in SOURCES}}
            context["source->stream->grouping"][SOURCE]["other"] = {"type": "FIELDS", "fields": ["steps"]}
            context["source->stream->fields"] = {SOURCE: SOURCES}
        return context

    def old_context(self) -> dict[str, Any]:
        """Return the context as it was before 0.10: the task's id, and the component of each task."""
        tasks = {1: "__acker", **dict.fromkeys(SOURCE_TASKS, SOURCE), TASK: self.component}
        tasks |= dict.fromkeys(SINK_TASKS, SINK) | dict.fromkeys(DIRECT_TASKS, DIRECT)
        return {"taskid": TASK, "task->component": {str(task): name for task, name in tasks.items()}}

    def handshake(self, pid_dir: str, conf: Mapping[str, Any] | None = None, context: Any = None) -> dict[str, Any]:
        """Return the first message."""
        return {
            "pidDir": pid_dir,
            "context": self.context() if context is None else context,
            "conf": self.full_conf() if conf is None else dict(conf),
        }


def tuple_message(
    id: str, values: Sequence[Any], comp: str | None = SOURCE, stream: str = "default", task: int = SOURCE_TASK
) -> dict[str, Any]:
    """Return a tuple with its keys in the order in which Storm writes them: the values stand before the id."""
    return {"comp": comp, "tuple": list(values), "task": task, "stream": stream, "id": id}


def storm_text(value: Any) -> str:
    """Return JSON as Storm's json-smart writes it: no blanks, raw UTF-8, slashes escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("/", "\\/")


def framed(text: str) -> bytes:
    """Return a message's bytes."""
    return text.encode("utf-8", "surrogatepass") + b"\nend\n"
