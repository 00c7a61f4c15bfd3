"""The component's end of the conversation: bytes in, events out; what it sends is in ``sender``.

It keeps these rules, since breaking one of them halts a Storm worker or loses data in silence:

- the first message is the handshake, and the first answer is the pid;
- a spout answers every command with one sync, after its emits and logs;
- a tuple is acked or failed once, and nothing is anchored to it after that ("Acked a non-existent or already
acked/failed id", "Anchored onto … after ack/fail");
- task ids come "in the same order as their corresponding emits", with tuples and commands in between;
- an emit names a declared stream, has as many values as the stream has fields, and is direct if, and only if, the
subscribers' grouping is direct.

No I/O here: the caller feeds what it read and writes what ``data_to_send`` returns.
"""

from __future__ import annotations

from multilang.protocol.bounds import tuple_beyond_bounds
from multilang.protocol.codec import loads
from multilang.protocol.errors import RemoteProtocolError, shortened, shown
from multilang.protocol.framing import DEFAULT_MAX_BUFFER, BrokenReader, FrameReader
from multilang.protocol.handshake import KINDS, read_setup
from multilang.protocol.messages import (
    HEARTBEAT_STREAM,
    Ack,
    Activate,
    Deactivate,
    Fail,
    Heartbeat,
    Message,
    Next,
    TaskIds,
    Tuple,
)
from multilang.protocol.sender import ChildSender
from multilang.settings import MAX_BUFFER, PARENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from multilang.protocol.messages import Schema

# The types of a tuple's id, comp, stream, task and tuple; a heartbeat's comp is null.
_TUPLE_KINDS = (str, str, str, int, list)
_NULL_COMPONENT_KINDS = (str, type(None), str, int, list)

_COMMANDS = {"next": Next, "activate": Activate, "deactivate": Deactivate}


class ChildConnection(ChildSender):
    """One child's side of the protocol, for a bolt and for a spout alike.

    Attributes:
        schema: The positions of the fields, by component and stream.
    """

    def __init__(self, max_buffer: int = DEFAULT_MAX_BUFFER) -> None:
        super().__init__()
        self.schema: Schema = {}
        self._frames = FrameReader(max_buffer, hides_first=True)
        self._answered_emits = False  # an emit that asked for task ids has got them
        self._escapes = False  # a backslash has come in

    # ---- incoming messages ----

    def receive_data(self, data: bytes) -> list[Message]:
        """Return the events in ``data`` (b"": the end of input).

        Raises:
            RemoteProtocolError: The parent broke the protocol. The error's ``events`` are those before the broken
                message; none come after it.
        """
        events: list[Message] = []
        try:
            for event in self.iter_data(data):
                events.append(event)  # noqa: PERF402 - what came before a broken one counts
        except RemoteProtocolError as error:
            error.events = list(events)
            raise
        return events

    def iter_data(self, data: bytes) -> Iterator[Message]:  # noqa: C901 - one loop, with no call per tuple
        """Yield the events in ``data`` one by one, each decoded when it is asked for.

        An event can be freed before the next is decoded. All must be taken before the next data is given.
        """
        if not data:
            self._frames.close()
            return
        schema = self.schema
        unfinished = self.unfinished
        new = Tuple.__new__
        escapes = self._escapes = self._escapes or b"\\" in data
        frames, failure = self._cut(data)
        try:
            if frames and not self._ready:
                limit = self._frames.max_buffer
                setup = read_setup(frames[0])
                self._ready = True
                self._learn(setup.conf, setup.context)
                yield setup
                frames = frames[1:]
                if self._frames.max_buffer != limit and failure is None:
                    # The conf's bound holds from here on, also for what has been read already.
                    frames, failure = self._cut(self._frames.take_back(frames))
            for frame in frames:
                try:
                    message = loads(frame)
                except ValueError as error:
                    if self._refused(frame):
                        continue
                    raise _broken("a message", f"is not JSON ({error})", frame) from None
                try:
                    id = message["id"]
                    component = message["comp"]
                    stream = message["stream"]
                    task = message["task"]
                    values = message["tuple"]
                except (KeyError, TypeError):
                    event = self._read_other(message, frame)
                    if event is not None:
                        yield event
                    continue
                kinds = (type(id), type(component), type(stream), type(task), type(values))
                if kinds != _TUPLE_KINDS and kinds != _NULL_COMPONENT_KINDS:
                    raise _wrong_tuple(message, frame)
                if task == -1 and stream == HEARTBEAT_STREAM:
                    yield Heartbeat(id)
                    continue
                # its fields are set here: a call of __init__ costs as much as everything else together
                tup = new(Tuple)
                tup.id = id
                tup.component = component
                tup.stream = stream
                tup.task = task
                tup.values = values
                tup.schema = schema
                tup.unfinished = True
                if escapes and not id.lstrip("-").isalnum():
                    self.plain_ids = False
                    self._outputs.nothing_plain()
                self._yielded = tup
                yield tup
                if tup.unfinished:  # most are acked by now, and need no entry that would be removed again
                    unfinished[id] = tup
        except RemoteProtocolError as error:
            failure = error
        if failure is not None:
            self._frames = BrokenReader(failure)
            raise failure

    def _cut(self, data: bytes) -> tuple[list[bytes], RemoteProtocolError | None]:
        try:
            return self._frames.feed(data), None
        except RemoteProtocolError as error:
            frames, error.events = error.events, []
            return frames, error  # type: ignore[return-value]

    def _refused(self, frame: bytes) -> bool:
        """Fail a tuple whose values no parser here takes; False if this is no such message.

        The process continues: a restarted one would get the same tuple, and end again.
        """
        found = tuple_beyond_bounds(frame)
        if found is None:
            return False
        known, why = found
        id, component, stream = known["id"], known["comp"], known["stream"]
        if type(id) is not str or type(stream) is not str:
            return False
        self.error(f"tuple {id} from {component!r}, stream {stream!r}, can't be read and fails: its message {why}")
        self.finish([id], ok=False)
        return True

    def _read_other(self, message: object, frame: bytes) -> Message | None:
        """Read a message that is no complete tuple; None for task ids that no emit asked for."""
        if type(message) is list:
            return self._read_task_ids(message, frame)
        if type(message) is not dict:
            raise _broken("a message", f"is {type(message).__name__}, neither an object nor an array", frame)
        if "tuple" in message:
            lacking = next(key for key in ("id", "comp", "stream", "task") if key not in message)
            raise _broken("a tuple", f"lacks {lacking!r}", frame)
        return self._read_command(message, frame)

    def _read_command(self, message: dict[str, Any], frame: bytes) -> Message:
        command = message.get("command")
        if type(command) is not str:
            what = "lacks 'command' and 'tuple'" if command is None else f"has command {shown(command)}, not a string"
            raise _broken("a message", what, frame)
        event: Message
        if command in _COMMANDS:
            event = _COMMANDS[command]()
        elif command in ("ack", "fail"):
            if "id" not in message:
                raise _broken(f"the command {command!r}", "lacks 'id'", frame)
            event = (Ack if command == "ack" else Fail)(message["id"])
        else:
            raise _broken(
                "a command",
                f"{shown(command)} is unknown; Storm has next, ack, fail, activate and deactivate",
                frame,
            )
        self.commands_owed += 1
        self._commanded = True
        return event

    def _read_task_ids(self, message: list[Any], frame: bytes) -> TaskIds | None:
        for task in message:
            if type(task) is not int:
                raise _broken("a list of task ids", f"holds {shown(task)}, not an integer", frame)
        awaited = self._awaited
        if not awaited:
            if not self.silent_emits:
                raise _broken("a list of task ids", "answers no emit", frame)
            # The parent does not know need_task_ids: from now on each emit that is not direct gets its list.
            if self._answered_emits:
                self.log(
                    "the parent sends task ids for every emit, need_task_ids or not; those that came before this line "
                    "may have been of an earlier emit",
                    3,
                )
            self._ask_always()
            awaited.extend([None] * self.silent_emits)
            self.silent_emits = 0
        token = awaited.popleft()
        self._answered_emits = self._answered_emits or token is not None
        return None if token is None else TaskIds(message, token)

    def _learn(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.task = context["taskid"]
        components = {int(task): name for task, name in context["task->component"].items()}
        self.component = context.get("componentid") or components.get(self.task, "?")
        self._outputs.learn(self.component, components, context)
        for component, streams in (context.get("source->stream->fields") or {}).items():
            for stream, fields in streams.items():
                self.schema[component, stream] = {field: i for i, field in enumerate(fields)}
        if "componentid" not in context:
            # before 0.10, need_task_ids may be unknown to the parent; with this, every list belongs to an emit
            self._ask_always()
        if conf.get(PARENT) == "local":
            self._task_offset = 0
        limit = conf.get(MAX_BUFFER)
        if type(limit) is int and limit > 0:
            self._frames.max_buffer = limit


def _broken(what: str, how: str, frame: bytes) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} {how}: {shortened(frame)}")


def _wrong_tuple(message: dict[str, Any], frame: bytes) -> RemoteProtocolError:
    kinds = {"id": str, "stream": str, "task": int, "tuple": list}
    wrong = [key for key, kind in kinds.items() if type(message[key]) is not kind]
    key = wrong[0] if wrong else "comp"
    due = KINDS[kinds[key]] if wrong else "a string or null"
    return _broken("a tuple", f"has {key!r} {shown(message[key])}, where {due} is due", frame)
