"""The rules of ShellBolt and ShellSpout: each message of the program is compared with what the parent knows.

The reaction of a real Storm to each fault was measured (fixtures/wire/misbehaviour.txt); ``halts`` is true where its
worker would have ended. Cases watch for findings by their codes.
"""

from __future__ import annotations

from typing import Any

from multilang.conformance.reading import Finding, ReadMessage
from multilang.conformance.values import cut, same
from multilang.conformance.world import DIRECT_TASKS, METRIC, World, storm_text

_BOLT = ("ack", "fail", "emit", "log", "error", "metrics", "sync")
_SPOUT = ("emit", "log", "error", "metrics", "sync")
_MAX_DETAIL = 600  # characters of a finding's text
_LARGEST_PLAIN = 2**31 - 1  # a JSON integer up to here is an Integer in Storm 2.6 and newer


class Monitor:
    """The parent's knowledge in one conversation."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pending: list[str] = []  # ids of tuples that the bolt has neither acked nor failed
        self.finished: dict[str, str] = {}  # id of a tuple -> "ack" or "fail"
        self.heartbeats: set[str] = set()
        self.under_way: dict[str, tuple[str, Any]] = {}  # JSON of a spout's id -> its tuple's stream and values
        self.commands = 0  # the number of commands that the spout has not answered
        self.tasks = set(world.old_context()["task->component"])  # that the context or the handshake named
        self.leaving = False  # True: its input was closed, or it was asked to end
        self.pid: Any = None
        self.given: set[int] = set()  # numbers of values that tuples to a bolt had
        self._widths: dict[str, int] = {}  # undeclared stream -> the number of values of its first emit
        self._found: list[Finding] = []

    def check(self, message: ReadMessage) -> list[Finding]:
        """Return what is wrong with the message, besides what reading it has found."""
        self._found = []
        if self.pid is None:
            self._pid(message)
            return self._found
        value = message.value
        command = value.get("command")
        if command is None:
            what = "pid.again" if "pid" in value else "command.missing"
            self._flag(what, f"has no 'command': {_shown(message)}")
        elif not isinstance(command, str):
            self._flag("command.type", f"has a 'command' that is no string: {_shown(message)}")
        else:
            self._command(command, message)
        return self._found

    def _flag(self, code: str, detail: str, halts: bool = True) -> None:
        self._found.append(Finding(code, cut(detail, _MAX_DETAIL), halts))

    def _pid(self, message: ReadMessage) -> None:
        if "pid" not in message.value:
            self._flag("pid.missing", f"the first message is {_shown(message)}, where the pid is due")
            return
        self.pid = message.value["pid"]
        if type(self.pid) is not int:
            self._flag("pid.type", f"the pid is {self.pid!r}, where a JSON integer is due")

    def _command(self, command: str, message: ReadMessage) -> None:
        spout = self.world.kind == "spout"
        if command not in (_SPOUT if spout else _BOLT):
            if spout:
                self._flag("command.unknown", f"a spout may not send {command!r}; Storm halts the worker")
            else:
                self._flag("command.unknown", f"{command!r} is no command, Storm ignores it", halts=False)
            return
        if spout and self.commands == 0:
            self._out_of_turn(command, message)
        self._texts(command, message)
        check = {
            "ack": self._finish,
            "fail": self._finish,
            "emit": self._emit,
            "metrics": self._metrics,
            "sync": self._sync,
        }.get(command)
        if check is not None:
            check(message)

    def _out_of_turn(self, command: str, message: ReadMessage) -> None:
        if command == "sync":
            self._flag("sync.twice", "a sync with no command to answer: Storm takes it for the next command's", False)
        elif command == "emit":
            self._flag("emit.late", f"an emit after the sync: {_shown(message)}", halts=False)
        # Logs, errors and metrics may come from other threads at any time: Storm reads them with the next command.

    def _texts(self, command: str, message: ReadMessage) -> None:
        """Check the two keys that Storm casts to strings in every command."""
        text = message.value.get("msg")
        if "msg" in message.value and text is not None and not isinstance(text, str):
            self._flag("error.type" if command == "error" else "log.type", f"'msg' is no string: {_shown(message)}")
        elif command in ("log", "error") and not isinstance(text, str):
            self._flag(f"{command}.empty", f"has no 'msg': {_shown(message)}", halts=False)
        level = message.value.get("level")
        if command == "log" and level is not None and (type(level) is not int or not 0 <= level <= 4):
            self._flag("log.level", f"the level {level!r} is none of 0 to 4; Storm takes 2", halts=False)
        stream = message.value.get("stream")
        if stream is not None and not isinstance(stream, str):
            self._flag("emit.stream-type", f"'stream' is no string: {_shown(message)}")

    def _sync(self, _message: ReadMessage) -> None:
        if self.world.kind == "spout":
            self.commands = max(0, self.commands - 1)

    def _finish(self, message: ReadMessage) -> None:
        word = str(message.command)
        id = message.value.get("id")
        if not isinstance(id, str):
            self._flag(f"{word}.id-type", f"the id is {id!r}, where the tuple's id, a string, is due")
        elif id in self.pending:
            self.pending.remove(id)
            self.finished[id] = word
        elif id in self.finished:
            self._flag(f"{word}.again", f"{word} of {id!r}, which had its {self.finished[id]} already")
        elif id in self.heartbeats:
            self._flag("heartbeat.finished", f"{word} of the heartbeat {id!r}, which is no tuple")
        elif self._is_rounded(id):
            self._flag("tuple.id", f"{word} of {id!r}, which was another number when it came")
        else:
            self._flag(f"{word}.unknown", f"{word} of {id!r}, which was never sent")

    def _is_rounded(self, id: str) -> bool:
        """Return whether an unknown id is one that came, read as a double and written again."""
        try:
            return float(id) in {float(each) for each in self.pending}
        except ValueError:
            return False

    def _metrics(self, message: ReadMessage) -> None:
        name = message.value.get("name")
        if not isinstance(name, str) or not name:
            self._flag("metrics.name", f"'name' is {name!r}, where the metric's name, a string, is due")
        elif self.world.contract and name != METRIC:
            self._flag("metrics.name", f"no metric {name!r} is registered")

    # ---- emits ----

    def _emit(self, message: ReadMessage) -> None:
        value = message.value
        if not isinstance(value.get("tuple"), list):
            self._flag("emit.tuple", f"'tuple' is {value.get('tuple')!r}, where an array is due")
            return
        self._stream(message)
        self._task(message)
        need = value.get("need_task_ids")
        if need is not None and not isinstance(need, bool):
            self._flag("emit.need", f"'need_task_ids' is {need!r}, where true or false is due")
        if self.world.kind == "bolt":
            self._anchors(message)
        elif value.get("id") is not None:
            self._message_id(value["id"], message)

    def _message_id(self, id: Any, message: ReadMessage) -> None:
        if type(id) not in (str, int, float):
            self._flag("emit.id-type", f"the id is {cut(str(id), 100)}, where a string or a number is due", halts=False)
        if self.world.contract:
            return  # its ids are the tester's own
        emitted = (message.stream, message.values)
        before = self.under_way.setdefault(storm_text(id), emitted)
        if before[0] == emitted[0] and not same(before[1], emitted[1]):
            found = f"the id {cut(str(id), 100)} of {_shown(message)} is that of a tuple under way, {cut(storm_text(before[1]), 100)}"
            self._flag("emit.id-again", found, halts=False)

    def _stream(self, message: ReadMessage) -> None:
        streams = self.world.streams
        stream = message.value.get("stream", "default")
        if stream == "":
            self._flag("emit.stream-empty", "'stream' is \"\": leave it out for the default stream")
        elif streams is None:
            if isinstance(stream, str | None):
                self._width(message)
        elif isinstance(stream, str):
            if stream not in streams:
                self._flag("emit.stream", f"the stream {stream!r} is not declared ({', '.join(streams)} are)")
            elif len(message.values) != len(streams[stream]):
                self._flag(
                    "emit.arity",
                    f"{len(message.values)} values on stream {stream!r}, which has {len(streams[stream])} fields",
                    halts=False,
                )

    def _width(self, message: ReadMessage) -> None:
        """Compare an emit to an undeclared stream with the first one to it. A bolt may emit tuples as they come, of any length."""
        width = len(message.values)
        first = self._widths.setdefault(message.stream, width)
        if width != first and len(self.given) <= 1:
            detail = f"{width} values on stream {message.stream!r}, where an emit before had {first}"
            self._flag("emit.arity", detail, halts=False)
        elif width == 0 and self.world.kind == "spout":
            self._flag("emit.arity", f"no values on stream {message.stream!r}", halts=False)

    def _task(self, message: ReadMessage) -> None:
        task = message.value.get("task")
        known = self.world.streams is not None
        if task is None:
            if known and message.stream == "direct":
                self._flag("direct.regular", "an emit without a task to a stream whose grouping is direct")
            return
        if type(task) is not int:
            self._flag("direct.type", f"'task' is {task!r}, where an integer is due")
            return
        if task <= _LARGEST_PLAIN:
            self._flag(
                "direct.plain",
                f"'task': {task}; Storm 2.6.0 to 2.8.8 reads an Integer and halts, task + 2**32 is right on every version",
                halts=False,
            )
        if str(message.task) not in self.tasks:
            self._flag("direct.nobody", f"no task {message.task} exists; Storm drops the tuple", halts=False)
        elif not known:
            return
        elif message.stream != "direct" or message.task not in DIRECT_TASKS:
            self._flag(
                "direct.grouping",
                f"a direct emit on {message.stream!r} to task {message.task}, whose grouping is not direct",
            )

    def _anchors(self, message: ReadMessage) -> None:
        anchors = message.value.get("anchors")
        if anchors is None:
            return
        if isinstance(anchors, str):
            self._flag("anchors.single", "'anchors' is one id, where an array is due", halts=False)
        elif not isinstance(anchors, list):
            self._flag("anchors.type", f"'anchors' is {anchors!r}, where an array of ids is due")
            return
        for anchor in message.anchors:
            if not isinstance(anchor, str):
                self._flag("anchors.type", f"the anchor {anchor!r} is no string")
            elif anchor in self.finished:
                self._flag("anchors.finished", f"is anchored to {anchor!r} after its {self.finished[anchor]}")
            elif anchor in self.heartbeats:
                self._flag("heartbeat.anchored", f"is anchored to the heartbeat {anchor!r}")
            elif anchor not in self.pending and self._is_rounded(anchor):
                self._flag("tuple.id", f"is anchored to {anchor!r}, which was another number when it came")
            elif anchor not in self.pending:
                self._flag("anchors.unknown", f"is anchored to {anchor!r}, which was never sent")
        if len(set(map(str, message.anchors))) < len(message.anchors):
            self._flag("anchors.twice", f"has the same anchor twice: {message.anchors!r}", halts=False)


def _shown(message: ReadMessage) -> str:
    return cut(message.raw.decode("utf-8", "backslashreplace").removesuffix("\nend\n"), 160)
