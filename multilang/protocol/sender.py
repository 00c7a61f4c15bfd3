"""The messages that a component sends, checked and turned into bytes."""

from __future__ import annotations

from _thread import RLock
from collections import deque  # ujson has loaded it already

from multilang.protocol.codec import MAX_INT, MIN_INT, dumps, encode_id, encode_rows, reason_against
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.protocol.messages import SYSTEM_STREAM, Tuple
from multilang.protocol.outputs import Outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.protocol.messages import Values
    from multilang.protocol.outputs import OutStream

# Storm 2.6 to 2.8.8 casts the task of a direct emit to Long, while its parser makes an Integer of what fits in 32 bits.
# With this offset the task parses to a Long, which every version narrows back to 32 bits.
DIRECT_TASK_OFFSET = 2**32

_ASK = '"need_task_ids":false,'
_SILENT = _ASK.encode()  # can't be part of a value, whose quotes are escaped
_SYNC = '{"command":"sync"}\nend\n'


class ChildSender:
    """The sending half of a child's connection, with what it must know of what came in.

    Attributes:
        component: The component's id, "?" before the handshake.
        task: The task's id, -1 before the handshake.
        unfinished: The tuples that were received and neither acked nor failed, by id.
        commands_owed: The number of commands that a spout has received and not answered with sync.
        silent_emits: The number of emits that asked for no task ids.
        plain_ids: Whether no tuple id has come with a character that JSON escapes; Storm's never have one.
    """

    def __init__(self) -> None:
        self.component = "?"
        self.task = -1
        # The tuple that came last is added to the unfinished ones only when the next is asked for.
        self._yielded: Tuple | None = None
        self.unfinished: dict[str, Tuple] = {}
        self.commands_owed = 0
        self._ready = False  # the handshake has come
        self._answered = False  # the handshake has been answered
        self._commanded = False  # commands have come, so this is a spout
        self._out: list[str] = []
        self.write: Callable[[str], None] = self._out.append
        """The function that writes messages: to the buffer of ``data_to_send``, unless the owner replaces it."""
        self._aside: Callable[[str], None] | None = None  # takes log lines and errors that may not be sent
        self._awaited: deque[Any] = deque()  # tokens of the emits that wait for task ids, in order
        self._in_order = RLock()  # several threads may emit: tokens stand in the order in which their emits are written
        self.silent_emits = 0
        self._ask = _ASK  # empty for a parent that does not know need_task_ids and always sends task ids
        self._task_offset = DIRECT_TASK_OFFSET
        self._outputs = Outputs()
        self.plain = self._outputs.plain
        self.plain_ids = True

    def data_to_send(self) -> bytes:
        """Return everything that was sent since the last call, as bytes."""
        # Another thread may append meanwhile (a log line): take what is there, leave the rest.
        out = self._out
        n = len(out)
        if not n:
            return b""
        # Inside a JSON string, the replacement of a lone surrogate (of an id that came in, for example) is its escape.
        data = "".join(out[:n]).encode("utf-8", "backslashreplace")
        del out[:n]
        self.silent_emits += data.count(_SILENT)  # counting them here, all at once, is cheaper than one by one
        return data

    def send_pid(self, pid: int) -> None:
        """Answer the handshake."""
        if not self._ready:
            raise LocalProtocolError("the pid answers the handshake, which has not come yet")
        if self._answered:
            raise LocalProtocolError("the handshake has been answered; Storm takes a second pid for a broken command")
        self._answered = True
        self.write(f'{{"pid":{pid}}}\nend\n')

    def sync(self, exhausted: bool | None = None, busy: float | None = None, timer_secs: float | None = None) -> None:
        """Send sync: from a spout the last command is done, from a bolt a sign of life.

        Args:
            exhausted: For our own parent: whether a spout has no more; None: unknown.
            busy: For our own parent: the seconds in which the component was busy since its start; None: unknown.
            timer_secs: For our own parent: the seconds until a spout's next timer, after which it is to get a command;
                None: it has none.
        """
        if self.commands_owed:
            self.commands_owed -= 1
        elif self._commanded:
            raise LocalProtocolError(
                f"component {self.component!r}: no command waits for a sync; a second one would end the next command "
                "before it is done"
            )
        if exhausted is None and busy is None and timer_secs is None:
            self.write(_SYNC)
        else:
            more = "" if exhausted is None else f',"exhausted":{"true" if exhausted else "false"}'
            if timer_secs is not None:
                more += f',"timer_secs":{timer_secs:.6f}'
            self.write(f'{{"command":"sync"{more}{_busy(busy)}}}\nend\n')

    def sign_of_life(self, busy: float | None = None) -> None:
        """Send a bolt's sync that nobody asked for, from any thread.

        Args:
            busy: See ``sync``.
        """
        self.write(f'{{"command":"sync"{_busy(busy)}}}\nend\n')

    def timers(self, awaited: bool) -> None:
        """Report to our own parent whether this bolt has timers that it should wait for; Storm would ignore it."""
        self.write(f'{{"command":"sync","timers":{"true" if awaited else "false"}}}\nend\n')

    def unread(self, tuples: int) -> None:
        """Report to our own parent so many more emits that nobody gets, which were not sent; Storm would ignore it."""
        self.write(f'{{"command":"sync","unread":{tuples}}}\nend\n')

    def received(self, tup: Tuple | str) -> Tuple:
        """Return the unfinished tuple that ``tup`` (the tuple, a copy, or its id) stands for.

        Raises:
            LocalProtocolError: There is none.
        """
        return self._finishable(tup, "ack")

    def ack(self, tup: Tuple | str) -> None:
        """Ack an input: once, and after everything that is anchored to it."""
        if type(tup) is not Tuple or not tup.unfinished:
            tup = self._finishable(tup, "ack")
        tup.unfinished = False
        id = tup.id
        if self.unfinished:
            self.unfinished.pop(id, None)
        if self.plain_ids:
            self.write('{"command":"ack","id":"' + id + '"}\nend\n')
        else:
            self.write(f'{{"command":"ack","id":{dumps(id)}}}\nend\n')

    def fail(self, tup: Tuple | str) -> None:
        """Fail an input, so that the spout's tuple is replayed."""
        if not isinstance(tup, Tuple) or not tup.unfinished:
            tup = self._finishable(tup, "fail")
        tup.unfinished = False
        self.unfinished.pop(tup.id, None)
        self.write(f'{{"command":"fail","id":{dumps(tup.id)}}}\nend\n')

    def finish(self, ids: Sequence[str], ok: bool) -> None:
        """Ack or fail these inputs, which nothing will be anchored to any more."""
        command = "ack" if ok else "fail"
        for id in ids:
            self.write(f'{{"command":"{command}","id":{dumps(id)}}}\nend\n')

    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        token: Any = None,
    ) -> None:
        """Send a bolt's emit.

        Args:
            values: The tuple's values, one per field of the stream.
            stream: The stream's name; None is the default stream.
            anchors: Received tuples, or their ids, that are neither acked nor failed.
            direct_task: The target of a direct emit.
            token: When it is not None, task ids are wanted, and come as TaskIds with this token.

        Raises:
            LocalProtocolError: The protocol or the topology forbids this emit; nothing is sent.
        """
        out = self._outputs.streams.get(stream)
        if out is None:
            out = self._new_stream(stream)
        if direct_task is not None or out.direct:
            self._outputs.check_direct(out, direct_task)
        text = self._outputs.encode(out, values)
        head = self._head(out, anchors)
        if direct_task is None:
            if token is None and self._ask:
                self.write(head + self._ask + '"tuple":' + text + "}\nend\n")
            else:
                self.write_asking(head + '"tuple":' + text + "}\nend\n", token)
        else:
            self.write(f'{head}"task":{direct_task + self._task_offset},"tuple":{text}}}\nend\n')

    def write_asking(self, message: str, token: Any) -> None:
        """Write an emit whose task ids will come with this token."""
        with self._in_order:
            self._awaited.append(token)
            self.write(message)

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many emits of a bolt to one stream with the same anchors."""
        out = self._outputs.streams.get(stream)
        if out is None:
            out = self._new_stream(stream)
        if out.direct:
            self._outputs.check_direct(out, None)
        head = self._head(out, anchors)
        rows = list(rows)
        if self._ask:
            text = encode_rows(rows, out.arity, head + self._ask + '"tuple":[', "]}\nend\n")
            if text is not None:
                self.write(text)
                return
        for values in rows:
            text = self._outputs.encode(out, values)
            if self._ask:
                self.write(head + self._ask + '"tuple":' + text + "}\nend\n")
            else:
                self.write_asking(head + '"tuple":' + text + "}\nend\n", None)

    def emit_from_spout(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        token: Any = None,
    ) -> None:
        """Send a spout's emit.

        Args:
            values: The tuple's values, one per field of the stream.
            tup_id: The message id, a string or a number. Acks and fails of the tuple come with it; None: there are
                none.
            stream: The stream's name; None is the default stream.
            direct_task: The target of a direct emit.
            token: When it is not None, task ids are wanted, and come as TaskIds with this token.

        Raises:
            LocalProtocolError: The protocol or the topology forbids this emit; nothing is sent.
        """
        out = self._outputs.streams.get(stream)
        if out is None:
            out = self._new_stream(stream)
        if direct_task is not None or out.direct:
            self._outputs.check_direct(out, direct_task)
        text = self._outputs.encode(out, values)
        head = '{"command":"emit",' + out.part
        if type(tup_id) is str and tup_id.isalnum():
            head += f'"id":"{tup_id}",'
        elif type(tup_id) is int and MIN_INT <= tup_id <= MAX_INT:
            head += f'"id":{tup_id},'
        elif tup_id is not None:
            head += f'"id":{encode_id(tup_id)},'
        if direct_task is not None:
            head += f'"task":{direct_task + self._task_offset},'
        elif token is None and self._ask:
            head += self._ask
        else:
            self.write_asking(head + '"tuple":' + text + "}\nend\n", token)
            return
        self.write(head + '"tuple":' + text + "}\nend\n")

    def announce(self, least: int, interval: int) -> None:
        """Emit for Storm's counters alone, on a stream that Storm gives to each component and that nothing reads.

        Args:
            least: The least number that Storm is to count; it counts up to two intervals more.
            interval: Storm counts one of so many emits, drawn at random, as so many. Earlier emits may have begun an interval, of
                which the rest may count for nothing.
        """
        times = -(-least // interval) * interval + interval - 1
        self.write(times * f'{{"command":"emit","stream":"{SYSTEM_STREAM}",{_ASK}"tuple":["started"]}}\nend\n')

    def log(self, message: str, level: int = 2) -> None:
        """Send a line for the worker's log; level 0 is trace, 1 debug, 2 info, 3 warn, 4 error."""
        if self._aside is not None:
            self._aside(message)
            return
        if not self._ready:
            raise self._too_early("a log")
        self.write(f'{{"command":"log","msg":{_text(message)},"level":{level}}}\nend\n')

    def error(self, message: str) -> None:
        """Send an error for the worker's log and Storm's UI."""
        if self._aside is not None:
            self._aside(message)
            return
        if not self._ready:
            raise self._too_early("an error")
        self.write(f'{{"command":"error","msg":{_text(message)}}}\nend\n')

    def metrics(self, name: str, params: Any) -> None:
        """Send a value for a metric that the Java side registered; Storm halts the worker if the name is unknown."""
        if not self._ready:
            raise self._too_early("a metric")
        reason = reason_against(params)
        if reason is not None:
            raise UnserializableValue(f"the metric {name!r}: {reason}")
        self.write(f'{{"command":"metrics","name":{_text(name)},"params":{dumps(params)}}}\nend\n')

    def cut_off(self, refuse: Callable[[str], None], aside: Callable[[str], None]) -> None:
        """Send nothing any more, since this process was forked from the one whose conversation it is.

        Args:
            refuse: Takes each message instead of the parent, and raises the error for it.
            aside: Takes the text of each log line and error.
        """
        self.write = refuse
        self._aside = aside

    # ---- checks ----

    def _too_early(self, what: str) -> LocalProtocolError:
        return LocalProtocolError(f"{what} comes after the handshake: Storm would take it for the pid")

    def _new_stream(self, stream: str | None) -> OutStream:
        if not self._ready:
            raise self._too_early("an emit")
        return self._outputs.stream(stream)

    def _head(self, out: OutStream, anchors: Sequence[Tuple | str] | None) -> str:
        """Return the beginning of an emit's message: everything but need_task_ids, task and the values."""
        if anchors is None:
            return '{"command":"emit",' + out.part
        if not isinstance(anchors, (list, tuple)):
            given: Any = anchors
            kind = Tuple if isinstance(given, Tuple) else type(given)  # every engine has a tuple class of its own
            raise LocalProtocolError(
                f"component {self.component!r}: anchors is a list of tuples, not {kind.__name__}; write anchors=[tup]"
            )
        if not anchors:
            return '{"command":"emit",' + out.part
        ids = []
        for anchor in anchors:
            if not isinstance(anchor, Tuple) or not anchor.unfinished:
                anchor = self._finishable(anchor, "anchor")
            ids.append(dumps(anchor.id))
        return '{"command":"emit",' + out.part + '"anchors":[' + ",".join(ids) + "],"

    def _finishable(self, tup: Tuple | str, what: str) -> Tuple:
        """Return the received tuple that ``tup`` (or its id) stands for, if ``what`` may still be done to it."""
        if not isinstance(tup, (Tuple, str)):
            raise LocalProtocolError(
                f"component {self.component!r}: {what} takes a tuple that was received, not {type(tup).__name__}"
            )
        id = tup if isinstance(tup, str) else tup.id  # a copy has the same id
        found = self.unfinished.get(id)
        if found is None and self._yielded is not None and self._yielded.id == id:
            found = self._yielded
        if found is None or not found.unfinished:
            past = {"ack": "acked", "fail": "failed", "anchor": "used as an anchor"}[what]
            raise LocalProtocolError(
                f"component {self.component!r}: tuple {tup if isinstance(tup, str) else tup.id!r} can't be {past}: it was acked or "
                "failed before, or never received here. Each tuple is acked or failed once, after all that is anchored "
                "to it was emitted" + ("; a later emit has anchors=[]" if what == "anchor" else "")
            )
        return found

    def _ask_always(self) -> None:
        self._ask = ""
        self._outputs.nothing_plain()


def _text(text: object) -> str:
    """Return free text as a JSON string; characters without a UTF-8 form are escaped, since no log line may be lost."""
    return dumps(str(text).encode("utf-8", "backslashreplace").decode())


def _busy(secs: float | None) -> str:
    return "" if secs is None else f',"busy":{secs:.6f}'
