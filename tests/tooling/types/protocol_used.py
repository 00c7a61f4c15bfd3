"""The protocol as a user with mypy --strict writes it; checked, not run, by test_types.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.protocol import (
    Ack,
    Activate,
    ChildConnection,
    Deactivate,
    Emit,
    Error,
    Fail,
    Heartbeat,
    LocalProtocolError,
    Log,
    Message,
    Metrics,
    Next,
    ParentConnection,
    Pid,
    RemoteProtocolError,
    Setup,
    Sync,
    TaskIds,
    Tuple,
    UnserializableValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def component(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """A bolt that says each value twice, with no I/O of its own."""
    child = ChildConnection(max_buffer=1 << 20)
    for chunk in chunks:
        for event in child.receive_data(chunk):
            if isinstance(event, Setup):
                conf: dict[str, Any] = event.conf
                child.send_pid(len(event.pid_dir) + len(conf) + len(event.context))
            elif isinstance(event, Heartbeat):
                child.sync()
            elif isinstance(event, TaskIds):
                tasks: list[int] = event.tasks
                child.log(f"{event.token}: {tasks}", 1)
            elif isinstance(event, Tuple):
                word: str = event["word"]
                first: str = event[0]
                child.emit([word, first], anchors=[event], token=len(event))
                child.emit((word,), "other", [event.id], direct_task=3)
                child.emit_many([[value] for value in event], anchors=[event])
                child.ack(event)
        yield child.data_to_send()


def spout(child: ChildConnection, event: Message) -> None:
    if isinstance(event, Ack | Fail):
        child.metrics("finished", {"id": event.id})
    elif isinstance(event, Next | Activate | Deactivate):
        child.emit_from_spout(["word"], 1, "default", None, object())
    child.sync(exhausted=True)


def parent(data: bytes) -> str:
    storm = ParentConnection("bolt", max_buffer=1000, strict=False)
    storm.setup({}, "/pids", {})
    storm.tuple("1", None, "default", 1, ["word"])
    try:
        commands: Sequence[Message] = storm.receive_data(data)
    except RemoteProtocolError as error:
        return f"{error}: {error.events}"
    except LocalProtocolError:
        return ""
    for command in commands:
        match command:
            case Pid(pid=int(pid)):
                return str(pid)
            case Emit():
                if command.need_task_ids:
                    storm.task_ids([1, 2])
                return f"{command.values} {command.stream} {command.task} {list(command.anchors)}"
            case Log() | Error():
                return command.message
            case Metrics():
                return command.name
            case Sync():
                return str(command.exhausted)
    return storm.data_to_send().decode()


def refusal(error: UnserializableValue) -> tuple[int | None, str]:
    return error.index, error.reason
