"""The bytes that the parent writes, and the right answers to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHUNK = 1000  # tuples
TURNS = 200  # turns of a verification
TEXT = (
    "storm makes it easy to reliably process unbounded streams of data doing for realtime processing what batch did for "
    "processing naïve “quoted” größe topology a tuple is acked once every tuple in its tree has been processed"
)
WORDS = TEXT.split()
BIG = 1_000_000  # characters


def message(value: object) -> bytes:
    """Return a message as Storm writes it: compact, raw UTF-8, slashes escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("/", "\\/")
    return text.encode() + b"\nend\n"


def setup(pid_dir: Path, work: str) -> bytes:
    """Return a handshake of the size of a real one: about 300 keys of conf, and a context of 0.10 and later."""
    kind = "spout" if work.startswith("spout") else "bolt"
    fields = ["word", "n"] if work == "count" or kind == "spout" else ["text"]
    conf: dict[str, object] = {
        f"topology.some.setting.of.storm.{n}": [n, True, f"value/{n}", None][n % 4] for n in range(290)
    }
    conf |= {"topology.name": "benchmark", "topology.debug": False, "topology.message.timeout.secs": 30}
    component, source = ("words", {}) if kind == "spout" else ("bolt", {"words": {"default": ["text", "n"]}})
    context = {
        "componentid": component,
        "taskid": 3,
        "task->component": {"1": "__acker", "2": "after", "3": component, "4": "words"},
        "streams": ["default"],
        "stream->outputfields": {"default": fields},
        "stream->target->grouping": {"default": {"after": {"type": "SHUFFLE"}}},
        "source->stream->fields": source,
        "source->stream->grouping": {name: {"default": {"type": "SHUFFLE"}} for name in source},
    }
    return message({"conf": conf, "pidDir": str(pid_dir), "context": context})


def big_text(kind: str) -> str:
    """Return 1 MB of text for a value: `ascii` prose with some line ends and quotes, or `unicode`, mostly not ASCII."""
    line = (
        'the quick brown fox said "jump" over a lazy dog\n'
        if kind == "ascii"
        else "быстрая лиса прыгает, größe 漢字 “ok”\n"
    )
    return (line * (BIG // len(line) + 1))[:BIG]


def inputs(work: str) -> list[list[Any]]:
    """Return the values of the tuples of one chunk."""
    if work == "split":
        return [[" ".join(WORDS[(n * 7 + i * 3) % len(WORDS)] for i in range(10)), n] for n in range(CHUNK)]
    if work.startswith("echo"):
        return [[big_text(work.partition("-")[2]), n] for n in range(4)]
    return [[WORDS[n * 7 % len(WORDS)], n] for n in range(CHUNK)]


def chunk(work: str, task_ids: bool) -> bytes:
    """Return tuples as Storm writes them.

    With `task_ids`, each is followed by the task ids for a child that waits for them.
    """
    emits = {"split": 10, "filter": 0}.get(work, 1)
    ids = b"[2]\nend\n" * emits if task_ids else b""
    return b"".join(
        message({"comp": "words", "tuple": values, "task": 4, "stream": "default", "id": tuple_id(n)}) + ids
        for n, values in enumerate(inputs(work))
    )


def tuple_id(n: int) -> str:
    """Return an id of 19 characters, so that the parent can replace it in place; half of Storm's ids are negative."""
    return str(8_000_000_000_000_000_000 + n) if n % 2 == 0 else str(-800_000_000_000_000_000 - n)


def turn(work: str) -> bytes:
    if work == "heartbeat":
        return message({"comp": None, "tuple": [], "task": -1, "stream": "__heartbeat", "id": tuple_id(0)})
    return message({"command": "next"})


def expected(work: str) -> list[tuple[Any, ...]]:
    """Return the meaning of the right commands of a child, in order: one chunk for a bolt, TURNS turns for a spout."""
    commands: list[tuple[Any, ...]] = []
    if work == "heartbeat":
        return [("sync",)] * TURNS
    if work.startswith("spout"):
        per_next = int(work[5:])
        for n in range(TURNS):
            commands += [("emit", ["word", i], [], str(i)) for i in range(n * per_next, (n + 1) * per_next)]
            commands.append(("sync",))
        return commands
    counts: dict[str, int] = {}
    for n, values in enumerate(inputs(work)):
        if work == "split":
            commands += [("emit", [word], [tuple_id(n)], None) for word in values[0].split(" ")]
        elif work == "count":
            counts[values[0]] = counts.get(values[0], 0) + 1
            commands.append(("emit", [values[0], counts[values[0]]], [tuple_id(n)], None))
        elif work.startswith("echo"):
            commands.append(("emit", [values[0]], [tuple_id(n)], None))
        commands.append(("ack", tuple_id(n)))
    return commands


def meaning(output: bytes) -> list[tuple[Any, ...]]:
    """Return the emits, acks, fails and syncs of a child's output in one form, without logs and the pid."""
    found: list[tuple[Any, ...]] = []
    for text in output.decode().split("\nend\n")[:-1]:
        said = json.loads(text)
        command = said.get("command")
        if command == "emit":
            odd = said.get("stream") not in (None, "default") or said.get("task") is not None
            found.append(("odd" if odd else "emit", said["tuple"], said.get("anchors") or [], said.get("id")))
        elif command in ("ack", "fail"):
            found.append((command, said["id"]))
        elif command == "sync":
            found.append(("sync",))
        elif command not in ("log", None):
            found.append((command, text[:1000]))
    return found
