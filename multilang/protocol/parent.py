"""Storm's end of the conversation: what ShellSpout and ShellBolt send, and their checks of a component's answers.

It is as strict as Storm where Storm halts the worker: an id that is acked or failed twice, an anchor that is finished,
a spout that acks. ``strict`` also refuses what Storm accepts in silence although something is lost: a second sync, a
bolt's unknown command, NaN, a lone surrogate, text after the JSON. Some things only the topology knows (streams, their
number of values, tasks, registered metrics); the owner of the connection checks them. No I/O.

ujson reads a little more than JSON: ``-`` is 0, ``01`` is 1, ``1.`` is 1.0, and strings may hold raw control
characters. Storm's json-smart, in the permissive mode that Storm uses, reads even more. Since nothing is lost, this is
allowed.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads, reason_against
from multilang.protocol.errors import LocalProtocolError, RemoteProtocolError, UnserializableValue, shortened, shown
from multilang.protocol.faults import LARGE, as_storm_reads, fault, first_object, loses_delete
from multilang.protocol.framing import DEFAULT_MAX_BUFFER, BrokenReader, FrameReader
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
    from collections.abc import Callable, Container, Sequence
    from typing import Any, Literal

_TASK_MASK = 0xFFFFFFFF  # Storm narrows the task of a direct emit to 32 bits
_UNKNOWN_PID = 0

_FOREVER = 1e12  # seconds; no child was ever busy for so long


class ParentConnection:
    """The parent's side of the conversation with one child.

    ``receive_data`` turns the child's bytes into Pid, Emit, Ack, Fail, Log, Error, Metrics and Sync; the methods send
    messages to the child; ``data_to_send`` returns the bytes to write.

    Args:
        kind: "bolt" or "spout".
        max_buffer: The largest message, in bytes.
        strict: Also refuse what Storm accepts in silence.

    Attributes:
        pid: The child's process id; None before it has answered the handshake.
        unfinished: The ids of the tuples that the bolt has neither acked nor failed.
        late: The ids of finished tuples that emits may still be anchored to.
        command: The command that the spout is busy with, until its sync.
        task_ids_due: The number of emits that wait for their task ids.
    """

    def __init__(
        self, kind: Literal["bolt", "spout"], *, max_buffer: int = DEFAULT_MAX_BUFFER, strict: bool = True
    ) -> None:
        if kind not in ("bolt", "spout"):
            raise ValueError(f"kind is 'bolt' or 'spout', not {kind!r}")
        self.kind = kind
        self.strict = strict
        self.pid: int | None = None
        self.unfinished: set[str] = set()
        self.late: Container[str] = ()
        self.command: str | None = None
        self.task_ids_due = 0
        self._set_up = False
        # U+007F has come: it is looked for once in all that is read, and only then in each message
        self._deletes = False
        self._frames = FrameReader(max_buffer)
        self._out: list[str] = []
        self._sources: dict[tuple[str | None, str, int], str] = {}  # the part of a message that names a tuple's source
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

    # ---- outgoing messages ----

    def data_to_send(self) -> bytes:
        """Return everything that was sent since the last call, as bytes."""
        data = "".join(self._out).encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
        self._out.clear()
        return data

    def setup(self, conf: dict[str, Any], pid_dir: str, context: dict[str, Any]) -> None:
        """Send the handshake."""
        if self._set_up:
            raise LocalProtocolError("the handshake was sent before")
        for what, part in (("conf", conf), ("context", context)):
            for key, value in part.items():
                reason = reason_against(key) or reason_against(value)
                if reason is not None:
                    raise UnserializableValue(f"the handshake's {what}, key {key!r}: {reason}")
        self._set_up = True
        self._out.append(dumps({"pidDir": pid_dir, "conf": conf, "context": context}) + "\nend\n")

    def next(self) -> None:
        """Ask the spout for its next tuple."""
        self._command("next", '{"command":"next"}\nend\n')

    def activate(self) -> None:
        """Send "activate" to the spout."""
        self._command("activate", '{"command":"activate"}\nend\n')

    def deactivate(self) -> None:
        """Send "deactivate" to the spout."""
        self._command("deactivate", '{"command":"deactivate"}\nend\n')

    def ack(self, id: Any) -> None:
        """Send the ack of the tuple with this message id to the spout."""
        self._command("ack", f'{{"command":"ack","id":{_id(id)}}}\nend\n')

    def fail(self, id: Any) -> None:
        """Send the fail of the tuple with this message id to the spout."""
        self._command("fail", f'{{"command":"fail","id":{_id(id)}}}\nend\n')

    def tuple(self, id: str, component: str | None, stream: str, task: int, values: Sequence[Any]) -> None:
        """Send the bolt a tuple.

        Raises:
            UnserializableValue: JSON does not have one of the values; nothing is sent.
        """
        try:
            text = dumps(values)
        except (OverflowError, TypeError, ValueError):
            for index, value in enumerate(values):
                reason = reason_against(value)
                if reason is not None:
                    raise UnserializableValue(reason, index) from None
            raise
        self.tuple_text(id, component, stream, task, text)

    def tuple_text(self, id: str, component: str | None, stream: str, task: int, values: str) -> None:
        """Send a tuple whose values are JSON text already, as when it goes to several tasks."""
        self._only("bolt", "a tuple")
        if id in self.unfinished:
            raise LocalProtocolError(f"the bolt has a tuple with the id {id!r} already")
        self.unfinished.add(id)
        source = self._sources.get((component, stream, task))
        if source is None:
            source = f',"comp":{dumps(component)},"stream":{dumps(stream)},"task":{task},"tuple":'
            self._sources[component, stream, task] = source
        # Ids of tuples are digits, which need no escape.
        quoted = f'"{id}"' if id.isdigit() else dumps(id)
        self._out.append(f'{{"id":{quoted}{source}{values}}}\nend\n')

    def heartbeat(self, id: str) -> None:
        """Ask the bolt for a sign of life."""
        self._only("bolt", "a heartbeat")
        self._out.append(
            f'{{"id":{dumps(id)},"comp":null,"stream":"{HEARTBEAT_STREAM}","task":{SYSTEM_TASK},"tuple":[]}}\nend\n'
        )

    def task_ids(self, tasks: Sequence[int]) -> None:
        """Answer the oldest emit that waits for task ids."""
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

    # ---- incoming messages ----

    def receive_data(self, data: bytes) -> list[Message]:
        """Return the child's messages in ``data`` (b"": it closed its output).

        Raises:
            RemoteProtocolError: The child broke the protocol. The error's ``events`` are the messages before the broken
                one; none come after it.
        """
        if not data:
            self._frames.close()
            return []
        if b"\x7f" in data:
            self._deletes = True
        events: list[Message] = []
        failure = None
        try:
            frames = self._frames.feed(data)
        except RemoteProtocolError as error:
            frames = error.events  # type: ignore[assignment]
            failure = error
        try:
            for frame in frames:
                message = self._read(frame)
                if message is not None:
                    events.append(message)
        except RemoteProtocolError as error:
            failure = error
        if failure is not None:
            self._frames = BrokenReader(failure)
            failure.events = list(events)
            raise failure
        return events

    def _read(self, frame: bytes) -> Message | None:
        try:
            message = loads(frame)
        except ValueError as error:
            if self.strict:
                raise _not_json(frame, error) from None
            try:
                message = first_object(frame)  # Storm drops what follows it
            except ValueError:
                raise _not_json(frame, error) from None
        if type(message) is not dict:
            raise _broken("a message", f"is {type(message).__name__}, not an object", frame)
        if self._deletes and self.strict and b"\x7f" in frame and b"\\" in frame and loses_delete(frame):
            raise _broken(
                "a message", "has U+007F in a string with an escape, where Storm drops it; write \\u007f", frame
            )
        if self.pid is None:
            return self._read_pid(message, frame)
        command = message.get("command")
        if type(command) is not str:
            what = "lacks 'command'" if command is None else f"has command {shown(command)}, not a string"
            raise _broken("a message", what, frame)
        reader = self._readers.get(command)
        if reader is None:
            if self.kind == "bolt" and not self.strict:
                return None  # Storm ignores it, too
            raise _broken(
                "a message",
                f"has command {shown(command)}; a {self.kind} may send {', '.join(sorted(self._readers))}",
                frame,
            )
        return reader(message, frame)

    def _read_pid(self, message: dict[str, Any], frame: bytes) -> Pid:
        pid = message.get("pid")
        if not self._set_up:
            raise _broken("a message", "came before the handshake", frame)
        if "pid" not in message and not self.strict:
            pid = _UNKNOWN_PID
        if type(pid) is not int or pid < 0:
            found = f"has 'pid' {shown(pid)}" if "pid" in message else "lacks 'pid'"
            raise _broken("the answer to the handshake", f"{found}, where an integer is due", frame)
        self.pid = pid
        return Pid(pid)

    def _read_emit(self, message: dict[str, Any], frame: bytes) -> Emit:
        values = message.get("tuple")
        if type(values) is not list:
            found = f"has 'tuple' {shown(values)}" if "tuple" in message else "lacks 'tuple'"
            raise _broken("an emit", f"{found}, where an array is due", frame)
        stream = message.get("stream")
        if stream is None or stream == "":  # "Leave this empty to emit to default stream."
            stream = DEFAULT_STREAM
        elif type(stream) is not str:
            raise _broken("an emit", f"has 'stream' {shown(stream)}, where a string is due", frame)
        task = message.get("task")
        if task is not None:
            if type(task) is not int or task < 0:
                raise _broken("an emit", f"has 'task' {shown(task)}, where a task id is due", frame)
            task = task & _TASK_MASK if task else None  # to Storm, 0 is no task
        # There are many emits: only values that may change on their way are checked one by one.
        for value in values:
            kind = type(value)
            if kind is not int and (kind is not str or not value.isascii()):
                values = self._checked_values(values, frame)
                break
        need = message.get("need_task_ids", True)
        if need is None:
            need = True
        elif type(need) is not bool:
            raise _broken("an emit", f"has 'need_task_ids' {shown(need)}, where true or false is due", frame)
        if task is not None:
            need = False  # "If not doing an emit direct, you will … receive the task ids"
        if self.kind == "bolt":
            anchors = message.get("anchors")
            anchors = () if anchors is None else self._read_anchors(anchors, frame)
            emit = Emit(values, stream, None, anchors, task, need)
        else:
            emit = self._spout_emit(values, stream, message.get("id"), task, need, frame)
        if need:
            self.task_ids_due += 1
        return emit

    def _checked_values(self, values: list[Any], frame: bytes) -> list[Any]:
        """Return the values as Storm reads them."""
        large = False
        for index, value in enumerate(values):
            what = fault(value, 2, self.strict)
            if what is LARGE:
                large = True
            elif what is not None:
                raise _broken("an emit", f"has a 'tuple' whose value {index} {what}", frame)
        read = as_storm_reads(frame) if large else None
        return values if read is None else read["tuple"]

    def _spout_emit(self, values: list[Any], stream: str, id: Any, task: int | None, need: bool, frame: bytes) -> Emit:
        if self.command is None and self.strict:
            raise _broken("an emit", "came after the spout's sync, with no command to answer", frame)
        what = None if type(id) is int else fault(id, 1, self.strict)
        if what is LARGE:
            id = (as_storm_reads(frame) or {"id": id})["id"]
        elif what is not None:
            raise _broken("an emit", f"has an 'id' that {what}", frame)
        return Emit(values, stream, id, (), task, need)

    def _read_anchors(self, anchors: object, frame: bytes) -> list[str]:
        if type(anchors) is str:
            anchors = [anchors]  # Storm takes a single id, too
        if type(anchors) is not list:
            raise _broken("an emit", f"has 'anchors' {shown(anchors)}, where an array is due", frame)
        for anchor in anchors:
            if type(anchor) is not str:
                raise _broken("an emit", f"has the anchor {shown(anchor)}, where a string is due", frame)
            if anchor not in self.unfinished and anchor not in self.late:
                raise _broken("an emit", f"is anchored to {shown(anchor)}, which is finished or was never sent", frame)
        return anchors

    def _read_ack(self, message: dict[str, Any], frame: bytes) -> Ack:
        return Ack(self._finished(message, "ack", frame))

    def _read_fail(self, message: dict[str, Any], frame: bytes) -> Fail:
        return Fail(self._finished(message, "fail", frame))

    def _finished(self, message: dict[str, Any], command: str, frame: bytes) -> str:
        id = message.get("id")
        if type(id) is not str:
            found = f"has 'id' {shown(id)}" if "id" in message else "lacks 'id'"
            raise _broken(f"the command {command!r}", f"{found}, where the tuple's id, a string, is due", frame)
        try:
            self.unfinished.remove(id)
        except KeyError:
            raise _broken(
                f"the command {command!r}", f"names {shown(id)}, which was acked or failed before or never sent", frame
            ) from None
        return id

    def _read_log(self, message: dict[str, Any], frame: bytes) -> Log:
        text = message.get("msg")
        if type(text) is not str:
            if self.strict and text is not None:
                raise _broken("a log", f"has 'msg' {shown(text)}, where a string is due", frame)
            text = "null" if text is None else shown(text, 1000)
        level = message.get("level", INFO)
        if type(level) is not int or not TRACE <= level <= ERROR:
            level = INFO  # as Storm does with a level that it does not know
        return Log(text, level)

    def _read_error(self, message: dict[str, Any], frame: bytes) -> Error:
        text = message.get("msg")
        if type(text) is not str:
            text = "null" if text is None else shown(text, 1000)
        return Error(text)

    def _read_metrics(self, message: dict[str, Any], frame: bytes) -> Metrics:
        name = message.get("name")
        if type(name) is not str or not name:
            raise _broken("a metrics message", f"has 'name' {shown(name)}, where a string is due", frame)
        params = message.get("params")
        what = fault(params, 1, self.strict)
        if what is LARGE:
            params = (as_storm_reads(frame) or message)["params"]
        elif what is not None:
            raise _broken("a metrics message", f"has 'params' that {what}", frame)
        return Metrics(name, params)

    def _read_sync(self, message: dict[str, Any], frame: bytes) -> Sync:
        if self.kind == "spout":
            if self.command is None and self.strict:
                raise _broken("a sync", "came with no command to answer", frame)
            self.command = None
        exhausted, timers = message.get("exhausted"), message.get("timers")
        busy: Any = message.get("busy")
        secs: Any = message.get("timer_secs")
        unread = message.get("unread")
        return Sync(
            exhausted if type(exhausted) is bool else None,
            float(busy) if type(busy) in (int, float) and 0 <= busy < _FOREVER else None,
            timers if type(timers) is bool else None,
            float(secs) if type(secs) in (int, float) and 0 <= secs < _FOREVER else None,
            unread if type(unread) is int and unread > 0 else 0,
        )


def _id(id: object) -> str:
    try:
        return dumps(id)
    except (OverflowError, TypeError, ValueError):
        raise UnserializableValue(f"the message id {shown(id)}: {reason_against(id)}") from None


def _not_json(frame: bytes, error: ValueError) -> RemoteProtocolError:
    if not frame.strip():
        return _broken("a message", "is empty; nothing but the protocol may be written to stdout", frame)
    for line in frame.split(b"\n"):
        if line[:3] == b"end" and not line.strip(b"end \t\r"):
            return _broken(
                "a message",
                f"is followed by {line.decode()!r}: only a line 'end' alone ends it, or Storm reads on and drops the next",
                frame,
            )
    return _broken("a message", f"is not JSON ({error}); nothing but the protocol may be written to stdout", frame)


def _broken(what: str, how: str, frame: bytes) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} {how}: {shortened(frame)}")
