"""Helpers for the tests of the protocol: the captured conversations, the two ends, and ways to cut bytes into
pieces.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.protocol import (
    Ack,
    Activate,
    ChildConnection,
    Deactivate,
    Emit,
    Fail,
    Heartbeat,
    Log,
    Message,
    Next,
    ParentConnection,
    Pid,
    RemoteProtocolError,
    Setup,
    Sync,
    TaskIds,
    Tuple,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CAPTURES = Path(__file__).parents[2] / "fixtures" / "wire"
END = b"\nend\n"


def conversation(name: str) -> list[tuple[str, bytes]]:
    """A capture's messages in order: direction ("in": Storm wrote it; "out": the component did) and bytes."""
    rows = [json.loads(line) for line in (CAPTURES / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return [(row["d"], row["raw"].encode()) for row in rows if row["d"] in ("in", "out")]


CONVERSATIONS = sorted(path.name.removesuffix(".jsonl") for path in CAPTURES.glob("*.jsonl"))


# ---- what a message means, by a JSON library that is not ours ----


def decoded(raw: bytes) -> Any:
    assert raw.endswith(END)
    return json.loads(raw[: -len(END)])


def meaning_of_input(message: Any) -> Message:
    """The event that a message of Storm's is."""
    if isinstance(message, list):
        return TaskIds(message, "token")
    if "conf" in message:
        return Setup(message["conf"], message["pidDir"], message["context"])
    if "tuple" in message:
        if message["stream"] == "__heartbeat":
            return Heartbeat(message["id"])
        return Tuple(message["id"], message["comp"], message["stream"], message["task"], message["tuple"])
    commands = {"next": Next, "activate": Activate, "deactivate": Deactivate}
    if message["command"] in commands:
        return commands[message["command"]]()
    return {"ack": Ack, "fail": Fail}[message["command"]](message["id"])


def meaning_of_output(message: Any) -> Message:
    """The command that a component's message is."""
    if "pid" in message:
        return Pid(message["pid"])
    command = message["command"]
    if command == "emit":
        task = message.get("task")
        return Emit(
            message["tuple"],
            message.get("stream", "default"),
            message.get("id"),
            message.get("anchors", []),
            None if task is None else task % 2**32,
            message.get("need_task_ids", True) and task is None,
        )
    if command in ("ack", "fail"):
        return {"ack": Ack, "fail": Fail}[command](message["id"])
    if command == "log":
        return Log(message["msg"], message["level"])
    assert command == "sync"
    return Sync()


# ---- the two ends ----


def context(**changes: Any) -> dict[str, Any]:
    """The context of task 4, one of two of the bolt ``split``; a change to None takes a key out."""
    found = {
        "taskid": 4,
        "componentid": "split",
        "task->component": {"1": "__acker", "2": "count", "3": "count", "4": "split", "5": "split", "6": "audit"},
        "streams": ["default", "routed", "idle"],
        "stream->outputfields": {"default": ["word", "n"], "routed": ["word"], "idle": ["a", "b", "c"]},
        "stream->target->grouping": {
            "default": {"count": {"type": "FIELDS", "fields": ["word"]}},
            "routed": {"audit": {"type": "DIRECT"}},
        },
        "source->stream->grouping": {"lines": {"default": {"type": "SHUFFLE"}}},
        "source->stream->fields": {"lines": {"default": ["line", "number"]}},
        **changes,
    }
    return {key: value for key, value in found.items() if value is not None}


OLD_CONTEXT = {"taskid": 4, "task->component": {"2": "count", "3": "count", "4": "split", "5": "split"}}  # before 0.10


def handshake(conf: dict[str, Any] | None = None, **changes: Any) -> bytes:
    message = {"pidDir": "/pids", "conf": conf or {}, "context": context(**changes)}
    return json.dumps(message).encode() + END


def shaken_child(conf: dict[str, Any] | None = None, **changes: Any) -> ChildConnection:
    """A child that has answered its handshake and sent the answer."""
    child = ChildConnection()
    child.receive_data(handshake(conf, **changes))
    child.send_pid(77)
    child.data_to_send()
    return child


def shaken_parent(kind: Any = "bolt", tuples: Iterable[str] = (), *, strict: bool = True) -> ParentConnection:
    """A parent whose child has answered the handshake; of a bolt, it has sent ``tuples``; of a spout, a next."""
    parent = ParentConnection(kind, strict=strict)
    parent.setup({}, "/pids", context())
    parent.receive_data(b'{"pid":77}\nend\n')
    for id in tuples:
        parent.tuple(id, "lines", "default", 1, ["a line", 1])
    if kind == "spout":
        parent.next()
    parent.data_to_send()
    return parent


def tuple_bytes(id: str = "11", values: Sequence[Any] = ("a line", 1)) -> bytes:
    message = {"id": id, "comp": "lines", "stream": "default", "task": 1, "tuple": list(values)}
    return json.dumps(message).encode() + END


def received(child: ChildConnection, id: str = "11", values: Sequence[Any] = ("a line", 1)) -> Tuple:
    """A tuple that has just reached ``child``."""
    (tup,) = child.receive_data(tuple_bytes(id, values))
    assert isinstance(tup, Tuple)
    return tup


def sent_by(connection: ChildConnection | ParentConnection) -> list[Any]:
    """Return what ``connection`` has sent since the last call, as JSON."""
    data = connection.data_to_send()
    assert not data or data.endswith(END)
    return [json.loads(text) for text in data.split(END)[:-1]]


# ---- bytes in pieces ----


def whole(data: bytes) -> Iterator[bytes]:
    yield data


def one_at_a_time(data: bytes) -> Iterator[bytes]:
    for i in range(len(data)):
        yield data[i : i + 1]


def random_pieces(seed: int) -> Callable[[bytes], Iterator[bytes]]:
    def cut(data: bytes) -> Iterator[bytes]:
        rng = random.Random(seed)
        at = 0
        while at < len(data):
            size = rng.choice((1, 2, 3, 5, 8, 40, 400, 4000))
            yield data[at : at + size]
            at += size

    return cut


def outcome(connection: ChildConnection | ParentConnection, pieces: Iterable[bytes]) -> tuple[list[Any], str | None]:
    """The events in ``pieces`` and then the end of input, and the error that ended them, if one did."""
    events: list[Any] = []
    try:
        for piece in pieces:
            events += connection.receive_data(piece)
        connection.receive_data(b"")
    except RemoteProtocolError as error:
        return events + error.events, str(error)
    return events, None
