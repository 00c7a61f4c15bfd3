"""Storm's end of the conversation: what ShellSpout and ShellBolt say, and what they check of a component's answers.

Stricter than Storm where Storm lets a fault pass in silence (an undeclared number of values is the topology's to judge,
but a list where an object is due, an integer id or a second sync is refused here), and as strict where Storm halts the
worker: an id acked or failed twice, an anchor that is finished, a spout that acks. No I/O.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads
from multilang.protocol.errors import LocalProtocolError, RemoteProtocolError, shortened
from multilang.protocol.framing import DEFAULT_MAX_BUFFER, FrameReader
from multilang.protocol.messages import (
    DEFAULT_STREAM,
    ERROR,
    HEARTBEAT_STREAM,
    INFO,
    SYSTEM_TASK,
    TRACE,
    Ack,
    Emit,
    Error,
    Fail,
    Log,
    Message,
    Metrics,
    Pid,
    Sync,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

_TASK_MASK = 0xFFFFFFFF  # Storm narrows the task of a direct emit to 32 bits


class ParentConnection:
    """The parent's side of one child: ``kind`` "bolt" or "spout".

    ``receive_data`` turns the child's bytes into Pid, Emit, Ack, Fail, Log, Error, Metrics and Sync; the methods say
    things to the child; ``data_to_send`` gives the bytes to write.
    """

    def __init__(
        self, kind: Literal["bolt", "spout"], *, max_buffer: int = DEFAULT_MAX_BUFFER, strict: bool = True
    ) -> None:
        if kind not in ("bolt", "spout"):
            raise ValueError(f"kind is 'bolt' or 'spout', not {kind!r}")
        self.kind = kind
        self.strict = strict  # refuse what Storm passes over in silence, too
        self.pid: int | None = None
        self.unfinished: set[str] = set()  # ids of tuples that the bolt has neither acked nor failed
        self.command: str | None = None  # what the spout is busy with, until its sync
        self.task_ids_due = 0  # emits whose task ids were not sent yet
        self._set_up = False
        self._frames = FrameReader(max_buffer)
        self._out: list[str] = []
        self._readers: dict[str, Callable[[dict[str, Any], bytes], Message]] = {
            "emit": self._read_emit,
            "log": self._read_log,
            "error": self._read_error,
            "metrics": self._read_metrics,
            "sync": self._read_sync,
        }
        if kind == "bolt":
            self._readers["ack"] = self._read_ack
            self._readers["fail"] = self._read_fail

    # ---- what is said ----

    def data_to_send(self) -> bytes:
        """Everything said since the last call, as bytes."""
        data = "".join(self._out).encode()
        self._out.clear()
        return data

    def setup(self, conf: dict[str, Any], pid_dir: str, context: dict[str, Any]) -> None:
        """The handshake."""
        if self._set_up:
            raise LocalProtocolError("the handshake was sent before")
        self._set_up = True
        self._out.append(dumps({"pidDir": pid_dir, "conf": conf, "context": context}) + "\nend\n")

    def next(self) -> None:
        """Ask the spout for its next tuple."""
        self._command("next", '{"command":"next"}\nend\n')

    def activate(self) -> None:
        """Tell the spout that the topology is active."""
        self._command("activate", '{"command":"activate"}\nend\n')

    def deactivate(self) -> None:
        """Tell the spout that the topology is deactivated."""
        self._command("deactivate", '{"command":"deactivate"}\nend\n')

    def ack(self, id: Any) -> None:
        """Tell the spout that the tuple of this message id was fully processed."""
        self._command("ack", f'{{"command":"ack","id":{dumps(id)}}}\nend\n')

    def fail(self, id: Any) -> None:
        """Tell the spout that the tuple of this message id failed."""
        self._command("fail", f'{{"command":"fail","id":{dumps(id)}}}\nend\n')

    def tuple(self, id: str, component: str | None, stream: str, task: int, values: Sequence[Any]) -> None:
        """Give the bolt a tuple."""
        self.tuple_text(id, component, stream, task, dumps(values))

    def tuple_text(self, id: str, component: str | None, stream: str, task: int, values: str) -> None:
        """The same with the values as JSON text already, for a tuple that goes to several tasks."""
        self._only("bolt", "a tuple")
        self.unfinished.add(id)
        self._out.append(
            f'{{"id":"{id}","comp":{dumps(component)},"stream":{dumps(stream)},"task":{task},"tuple":{values}}}\nend\n'
        )

    def heartbeat(self, id: str) -> None:
        """Ask the bolt for a sign of life."""
        self._only("bolt", "a heartbeat")
        self._out.append(
            f'{{"id":"{id}","comp":null,"stream":"{HEARTBEAT_STREAM}","task":{SYSTEM_TASK},"tuple":[]}}\nend\n'
        )

    def task_ids(self, tasks: Sequence[int]) -> None:
        """Answer the oldest emit that wants task ids."""
        if self.task_ids_due <= 0:
            raise LocalProtocolError("no emit waits for task ids")
        self.task_ids_due -= 1
        self._out.append(f"[{','.join(map(str, tasks))}]\nend\n")

    def _command(self, name: str, text: str) -> None:
        self._only("spout", f"the command {name!r}")
        if self.command is not None:
            raise LocalProtocolError(f"the spout is still busy with {self.command!r}: it has not sent sync")
        self.command = name
        self._out.append(text)

    def _only(self, kind: str, what: str) -> None:
        if self.kind != kind:
            raise LocalProtocolError(f"{what} is for a {kind}, not for a {self.kind}")
        if not self._set_up:
            raise LocalProtocolError(f"{what} comes after the handshake")

    # ---- what comes in ----

    def receive_data(self, data: bytes) -> list[Message]:
        """The child's messages in ``data`` (b"": it closed its output).

        Raises RemoteProtocolError for what breaks the protocol; its ``events`` are the messages before it.
        """
        if not data:
            self._frames.close()
            return []
        events: list[Message] = []
        failure = None
        try:
            frames = self._frames.feed(data)
        except RemoteProtocolError as error:
            frames = error.events  # type: ignore[assignment]
            failure = error
        try:
            for frame in frames:
                events.append(self._read(frame))  # noqa: PERF401 - what came before a broken one is kept
        except RemoteProtocolError as error:
            failure = error
        if failure is not None:
            failure.events = list(events)
            raise failure
        return events

    def _read(self, frame: bytes) -> Message:
        try:
            message = loads(frame)
        except ValueError as error:
            what = "is empty" if not frame.strip() else f"is not JSON ({error})"
            raise _broken("a message", f"{what}; nothing but the protocol may be written to stdout", frame) from None
        if type(message) is not dict:
            raise _broken("a message", f"is {type(message).__name__}, not an object", frame)
        if self.pid is None:
            return self._read_pid(message, frame)
        command = message.get("command")
        if type(command) is not str:
            what = "lacks 'command'" if command is None else f"has command {command!r}, not a string"
            raise _broken("a message", what, frame)
        reader = self._readers.get(command)
        if reader is None:
            raise _broken(
                "a message",
                f"has command {command!r}; a {self.kind} may send {', '.join(sorted(self._readers))}",
                frame,
            )
        return reader(message, frame)

    def _read_pid(self, message: dict[str, Any], frame: bytes) -> Pid:
        pid = message.get("pid")
        if not self._set_up:
            raise _broken("a message", "came before the handshake", frame)
        if type(pid) is not int or pid < 0:
            found = f"has 'pid' {pid!r}" if "pid" in message else "lacks 'pid'"
            raise _broken("the answer to the handshake", f"{found}, where an integer is due", frame)
        self.pid = pid
        return Pid(pid)

    def _read_emit(self, message: dict[str, Any], frame: bytes) -> Emit:
        values = message.get("tuple")
        if type(values) is not list:
            found = f"has 'tuple' {shortened(dumps(values), 60)}" if "tuple" in message else "lacks 'tuple'"
            raise _broken("an emit", f"{found}, where an array is due", frame)
        stream = message.get("stream")
        if stream is None or stream == "":  # "Leave this empty to emit to default stream."
            stream = DEFAULT_STREAM
        elif type(stream) is not str:
            raise _broken("an emit", f"has 'stream' {stream!r}, where a string is due", frame)
        task = message.get("task")
        if task is not None:
            if type(task) is not int or task < 0:
                raise _broken("an emit", f"has 'task' {task!r}, where a task id is due", frame)
            task &= _TASK_MASK
        need = message.get("need_task_ids", True)
        if need is None:
            need = True
        elif type(need) is not bool:
            raise _broken("an emit", f"has 'need_task_ids' {need!r}, where true or false is due", frame)
        if task is not None:
            need = False  # "If not doing an emit direct, you will … receive the task ids"
        if self.kind == "bolt":
            anchors = message.get("anchors")
            if anchors is None:
                anchors = ()
            else:
                anchors = self._read_anchors(anchors, frame)
            emit = Emit(values, stream, None, anchors, task, need)
        else:
            if self.command is None and self.strict:
                raise _broken("an emit", "came after the spout's sync, with no command to answer", frame)
            emit = Emit(values, stream, message.get("id"), (), task, need)
        if need:
            self.task_ids_due += 1
        return emit

    def _read_anchors(self, anchors: object, frame: bytes) -> list[str]:
        if type(anchors) is str and not self.strict:
            anchors = [anchors]  # Storm takes a single id, too
        if type(anchors) is not list:
            raise _broken("an emit", f"has 'anchors' {shortened(dumps(anchors), 60)}, where an array is due", frame)
        for anchor in anchors:
            if type(anchor) is not str:
                raise _broken("an emit", f"has the anchor {anchor!r}, where a string is due", frame)
            if anchor not in self.unfinished:
                raise _broken("an emit", f"is anchored to {anchor!r}, which is finished or was never sent", frame)
        return anchors

    def _read_ack(self, message: dict[str, Any], frame: bytes) -> Ack:
        return Ack(self._finished(message, "ack", frame))

    def _read_fail(self, message: dict[str, Any], frame: bytes) -> Fail:
        return Fail(self._finished(message, "fail", frame))

    def _finished(self, message: dict[str, Any], command: str, frame: bytes) -> str:
        id = message.get("id")
        if type(id) is not str:
            found = f"has 'id' {id!r}" if "id" in message else "lacks 'id'"
            raise _broken(f"the command {command!r}", f"{found}, where the tuple's id, a string, is due", frame)
        try:
            self.unfinished.remove(id)
        except KeyError:
            raise _broken(
                f"the command {command!r}", f"names {id!r}, which was acked or failed before or never sent", frame
            ) from None
        return id

    def _read_log(self, message: dict[str, Any], frame: bytes) -> Log:
        text = message.get("msg")
        if type(text) is not str:
            if self.strict and text is not None:
                raise _broken("a log", f"has 'msg' {shortened(dumps(text), 60)}, where a string is due", frame)
            text = "null" if text is None else dumps(text)
        level = message.get("level", INFO)
        if type(level) is not int or not TRACE <= level <= ERROR:
            level = INFO  # as Storm does with a level that it does not know
        return Log(text, level)

    def _read_error(self, message: dict[str, Any], frame: bytes) -> Error:
        text = message.get("msg")
        return Error(text if type(text) is str else dumps(text))

    def _read_metrics(self, message: dict[str, Any], frame: bytes) -> Metrics:
        name = message.get("name")
        if type(name) is not str or not name:
            raise _broken("a metrics message", f"has 'name' {name!r}, where a string is due", frame)
        return Metrics(name, message.get("params"))

    def _read_sync(self, message: dict[str, Any], frame: bytes) -> Sync:
        if self.kind == "spout":
            if self.command is None and self.strict:
                raise _broken("a sync", "came with no command to answer", frame)
            self.command = None
        exhausted = message.get("exhausted")
        return Sync(exhausted if type(exhausted) is bool else None)


def _broken(what: str, how: str, frame: bytes) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} {how}: {shortened(frame)}")
