"""One conversation with the program: the messages that a case sends, and the waits for the program's messages.

A wait ends when the expected message has come, when the program has ended, or at a generous time limit. Whether a
message did *not* come is checked after a following message and its answer, never by waiting for silence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

from multilang.conformance.child import StartedProgram
from multilang.conformance.differences import case_of_difference
from multilang.conformance.errors import CaseFailed, DiedAtStart, Halted, SlowStart
from multilang.conformance.monitor import Monitor
from multilang.conformance.reading import Finding, OutputReader, ReadMessage, leftover, unclosed_message
from multilang.conformance.values import cut, same, shown
from multilang.conformance.world import SINK_TASKS, SOURCE, SOURCE_TASK, World, framed, storm_text, tuple_message

Found = TypeVar("Found")
Pieces = Callable[[bytes], Iterable[bytes]]
SCRIPT = "conformance.script"
ON = "conformance.on"
_PLACE = "@here@"
_MAX_TRANSCRIPT = 200  # messages of the transcript of a conversation that is too long to be stored whole
_SHORT_SCRIPT = 20_000  # characters; a longer script may take its time to be read, which is no slow start
_MOST = 20_000  # messages at most that may come before the expected one, or before another tuple is finished
_MOMENT = 0.02  # seconds in which a message that nobody asked for may come; no verdict depends on it, only its name
_OFTEN = 0.01  # seconds between two looks at what is no message
_KINDS = 4  # of so many emits of an ordinary program one goes to all tasks, one to none, and the others to one
_DRIPS = 6  # times the limit that one message may take, if it comes in pieces


class Out(list[ReadMessage]):
    """Messages of the program, in order."""

    def of(self, *commands: str) -> Out:
        """Return the messages with one of these commands."""
        return Out(message for message in self if message.command in commands)

    @property
    def emits(self) -> Out:
        """The emits."""
        return self.of("emit")

    @property
    def values(self) -> list[Any]:
        """The values of the emits, each a list."""
        return [message.values for message in self.emits]

    @property
    def words(self) -> list[str | None]:
        """The commands."""
        return [message.command for message in self]


class Transcript(list[tuple[str, bytes]]):
    """Direction ("sent", "received") and bytes of each message, in order.

    Attributes:
        times: When each was sent or read, in seconds since the beginning.
        sent: The number of bytes to the program.
        received: The number of bytes from the program.
        forgotten: The number of messages that were dropped.
    """

    def __init__(self) -> None:
        """Begin an empty transcript, now."""
        super().__init__()
        self.times: list[float] = []
        self.sent = 0
        self.received = 0
        self.forgotten = 0
        self._start = monotonic()

    def append(self, message: tuple[str, bytes]) -> None:
        """Add a message, now.

        Args:
            message: Its direction and its bytes.
        """
        super().append(message)
        self.times.append(monotonic() - self._start)
        if message[0] == "sent":
            self.sent += len(message[1])
        else:
            self.received += len(message[1])

    def forget(self, most: int) -> None:
        """Drop messages, so that the first half of ``most`` and the last ``most`` are left.

        Args:
            most: The number of messages.
        """
        if len(self) > 2 * most:
            self.forgotten += len(self) - most - most // 2
            del self[most // 2 : -most], self.times[most // 2 : -most]


class Conversation:
    """One conversation; see the module."""

    def __init__(self, child: StartedProgram, world: World, pid_dir: str, timeout: float) -> None:
        self.child = child
        self.world = world
        self.kind = world.kind
        self.pid_dir = pid_dir
        self.timeout = timeout
        self.start_timeout = timeout  # for the pid and its file
        self.monitor = Monitor(world)
        self.transcript = Transcript()
        self.findings: list[Finding] = []
        self.received = Out()
        self.syncs = 0
        self.commands = 0  # that a spout was sent
        self.holds_ids = False  # task ids are held back until answer()
        self.owed: list[ReadMessage] = []  # emits that want task ids and have none yet
        self.varies_ids = not world.contract  # emits get the task ids of one task, of several, or of none
        self.answers: dict[int, list[int]] = {}  # the task ids that an emit got, by its place in ``received``
        self.is_set_up = False
        self.is_inactive = False  # True: a spout was deactivated
        self.start = monotonic()
        self.in_vain = 0.0  # seconds waited for what need not happen, and did not
        self._had_pid_file = False
        self._reader = OutputReader()
        self._ids = 0
        self._gathered: list[bytes] | None = None  # what is sent in one write

    # ---- sending ----

    def send(self, data: bytes, pieces: Pieces | None = None) -> None:
        """Send exact bytes; ``pieces`` cuts them, and each piece is sent when the program has read the one before."""
        self.transcript.append(("sent", data))
        if self._gathered is not None:
            self._gathered.append(data)
        elif pieces is None:
            self.child.write(data)
        else:
            self.child.write_pieces(pieces(data))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Gather what is sent meanwhile into one write."""
        gathered: list[bytes] = []
        self._gathered = gathered
        try:
            yield
        finally:
            self._gathered = None
        self.child.write(b"".join(gathered))

    def handshake(
        self,
        script: str = "[]",
        on: Mapping[str, Any] | None = None,
        *,
        conf: Mapping[str, Any] | None = None,
        context: Any = None,
        text: Callable[[str], str] | None = None,
        pieces: Pieces | None = None,
    ) -> ReadMessage:
        """Send the handshake and wait for the pid. ``script``: the JSON text of what a spout does on each next."""
        self.introduce(script, on, conf=conf, context=context, text=text, pieces=pieces)
        is_usual = (conf, context, text, pieces) == (None, None, None, None) and len(script) < _SHORT_SCRIPT
        return self.wait_pid(is_usual)

    def wait_pid(self, is_usual: bool = True) -> ReadMessage:
        """Wait for the pid. ``is_usual``: the handshake was as in all conversations, so that none is at fault in its failure."""
        try:
            answer = self._wait_as_at_start(
                lambda: self.received[0] if self.received else None, "the pid, in answer to the handshake"
            )
        except CaseFailed as failure:
            if not is_usual:
                raise
            if not failure.timed_out:
                raise DiedAtStart(failure.why, failure.expected, failure.received) from None
            raise self._slow_start("pid", failure) from None
        self._had_pid_file = str(self.monitor.pid) in self.pid_files()
        return answer

    def wait_pid_file(self) -> str:
        """Wait for the file that is named by the pid, and return its path; the pid has come."""
        name = str(self.monitor.pid)
        if self._had_pid_file and name not in self.pid_files():
            raise CaseFailed("the PID file vanished", f"the file {name}", f"the files {self.pid_files()}")
        try:
            self._wait_as_at_start(lambda: name in self.pid_files() or None, f"a file {name!r} in pidDir", often=True)
        except CaseFailed as failure:
            if not failure.timed_out:
                raise
            raise self._slow_start(f"file {name!r} in pidDir", failure) from None
        return os.path.join(self.pid_dir, name)

    def _wait_as_at_start(self, look: Callable[[], Found | None], what: str, often: bool = False) -> Found:
        limit, self.timeout = self.timeout, max(self.timeout, self.start_timeout)
        try:
            return self.wait(look, what, often)
        finally:
            self.timeout = limit

    def _slow_start(self, what: str, failure: CaseFailed) -> SlowStart:
        limit = max(self.timeout, self.start_timeout)
        why = f"slow start: no {what} came for {limit:g} s; --timeout gives it more"
        return SlowStart(why, failure.expected, failure.received, timed_out=True)

    def introduce(
        self,
        script: str = "[]",
        on: Mapping[str, Any] | None = None,
        *,
        conf: Mapping[str, Any] | None = None,
        context: Any = None,
        text: Callable[[str], str] | None = None,
        pieces: Pieces | None = None,
    ) -> None:
        """Send the handshake."""
        full = dict(self.world.full_conf() if conf is None else conf)
        if self.kind == "spout" and self.world.contract:
            full |= {SCRIPT: _PLACE, ON: dict(on or {})}
        self.monitor.tasks |= set((context or {}).get("task->component", ()))
        written = storm_text(self.world.handshake(self.pid_dir, full, context))
        written = written.replace(f'"{_PLACE}"', script)
        self.send(framed(written if text is None else text(written)), pieces)
        self.is_set_up = True

    def flush(self) -> None:
        """Wait until all that was sent is in the program's pipe."""
        until = monotonic() + self.timeout
        while self.child.unsent and not self.child.output_ended:
            if not self.child.pump(until) and monotonic() >= until:
                raise CaseFailed(
                    "it does not read its input", "that it reads", f"{self.child.unsent} bytes unread", True
                )

    def new_id(self) -> str:
        """Return an id as Storm makes them, a 64-bit number as text, which is new in this conversation."""
        self._ids += 1
        return str((-1) ** self._ids * (6955786537413359385 + 7919 * self._ids))

    def tuple(
        self,
        values: Sequence[Any] = (),
        *,
        id: str | None = None,
        comp: str | None = SOURCE,
        stream: str = "default",
        task: int = SOURCE_TASK,
        text: str | None = None,
        pieces: Pieces | None = None,
    ) -> str:
        """Send a tuple to a bolt as Storm writes it, and return its id. ``text``: its values' exact JSON."""
        id = self.new_id() if id is None else id
        self.will_finish(id)
        self.monitor.given.add(len(values))
        message = storm_text(tuple_message(id, values if text is None else [], comp, stream, task))
        if text is not None:
            message = message.replace('"tuple":[]', f'"tuple":{text}', 1)
        self.send(framed(message), pieces)
        return id

    def will_finish(self, id: str) -> None:
        """Expect an ack or fail of a tuple that ``send`` sends."""
        self.monitor.pending.append(id)

    def steps(self, *steps: Sequence[Any], **more: Any) -> str:
        """Send a tuple whose first value has the bolt's steps."""
        return self.tuple([list(steps), *more.pop("rest", ())], **more)

    def work(self, *steps: Sequence[Any]) -> str | None:
        """Shake hands with the program, and let it do these steps: a spout at its first next, a bolt for its first tuple.

        Returns:
            The tuple's id; None for a spout. Nothing is waited for.
        """
        if self.kind == "spout":
            self.handshake(storm_text([steps]))
            self.command("activate")
            self.begin("next")
            return None
        self.handshake()
        return self.steps(*steps)

    def heartbeat(self, id: str | None = None, comp: str | None = None, pieces: Pieces | None = None) -> str:
        """Send a heartbeat as Storm 2 does."""
        id = self.new_id() if id is None else id
        self.monitor.heartbeats.add(id)
        self.send(framed(storm_text(tuple_message(id, [], comp, "__heartbeat", -1))), pieces)
        return id

    def beat(self) -> None:
        """Send a heartbeat, and wait for its answer."""
        before = self.syncs
        self.heartbeat()
        self.wait_sync(before + 1)

    def wait_sync(self, count: int) -> None:
        """Wait for so many syncs since the beginning."""
        self.wait(lambda: self.syncs >= count or None, '{"command": "sync"} in answer to a heartbeat')

    def begin(self, command: str, id: Any = "", pieces: Pieces | None = None, text: str | None = None) -> None:
        """Send a command to a spout as ShellSpout does, without waiting for its sync."""
        self.monitor.commands += 1
        self.commands += 1
        if command in ("ack", "fail"):
            self.monitor.under_way.pop(storm_text(id), None)
        self.is_inactive = command == "deactivate" or (self.is_inactive and command != "activate")
        self.send(framed(storm_text({"id": id, "command": command}) if text is None else text), pieces)

    def command(self, command: str, id: Any = "", pieces: Pieces | None = None, text: str | None = None) -> Out:
        """Send a command to a spout, wait for the sync, and return the messages up to it."""
        start = len(self.received)
        before = self.syncs
        self.begin(command, id, pieces, text)
        self.wait(lambda: self.syncs > before or None, f"the sync that ends the command {command!r}")
        return Out(self.received[start:])

    def next(self) -> Out:
        """Send one next, and return the messages up to its sync."""
        return self.command("next")

    def answer(self, count: int | None = None) -> None:
        """Send task ids that were held back."""
        for message in self.owed[:count]:
            self._send_ids(message)
        del self.owed[:count]

    # ---- steps, for bolts and spouts alike ----

    def perform(self, *rounds: Sequence[Sequence[Any]]) -> list[Out]:
        """Have the program do rounds of steps, a bolt on one tuple each, a spout on one next each."""
        return self.perform_text(*(storm_text(list(round)) for round in rounds))

    def perform_text(self, *rounds: str, pieces: Pieces | None = None) -> list[Out]:
        """Do the same as ``perform`` with the steps' exact JSON. ``pieces`` cuts the message that has them."""
        if self.kind == "spout":
            if not self.is_set_up:
                self.handshake(f"[{','.join(rounds)}]", pieces=pieces)
                self.command("activate")
            return [self.next() for _ in rounds]
        if not self.is_set_up:
            self.handshake()
        return [self._tuple_done(text, pieces) for text in rounds]

    def echo(self, text: str, pieces: Pieces | None = None) -> Any:
        """Have the program emit the value with this JSON text, and return the value that it emitted."""
        [out] = self.perform_text(f'[["emit",[{text}]]]', pieces=pieces)
        if len(out.emits) != 1 or len(out.emits[0].values) != 1:
            culprit = case_of_difference(out.values, [[json.loads(text)]])
            raise CaseFailed(
                "one emit with one value is due", f'emit "tuple": [{text[:200]}]', _listed(out), culprit=culprit
            )
        return out.emits[0].values[0]

    def unchanged(self, values: Sequence[Any], why: str, texts: Sequence[str] = ()) -> None:
        """Have the program emit these values in a list, and each by itself, and fail unless they are the same. ``texts``: their JSON."""
        texts = texts or [storm_text(value) for value in values]
        emits = (f'["emit",[{text}]]' for text in (f"[{','.join(texts)}]", *texts))
        [out] = self.perform_text(f"[{','.join(emits)}]")
        self.emitted(out, [[list(values)], *([value] for value in values)], why)

    def _tuple_done(self, text: str, pieces: Pieces | None) -> Out:
        start = len(self.received)
        id = self.tuple(text=f"[{text}]", pieces=pieces)
        self.finished(id)
        return Out(self.received[start:])

    # ---- waiting ----

    def wait(self, look: Callable[[], Found | None], what: str, often: bool = False) -> Found:
        """Wait until ``look`` returns something other than None, and return it.

        ``often``: that may happen without a message of the program, so it is polled.
        """
        until = monotonic() + self.timeout
        last = until + (_DRIPS - 1) * self.timeout
        most, finished = len(self.received) + _MOST, len(self.monitor.finished)
        unsent, unread = self.child.unsent, len(self.child.unread)
        while True:
            self.take()
            found = look()
            if found is not None:
                return found
            if self.child.output_ended:
                self._ended(what)
            if len(self.monitor.finished) > finished:
                most, finished = len(self.received) + _MOST, len(self.monitor.finished)
            if len(self.received) > most:
                raise CaseFailed(
                    f"{_MOST:,} messages came, and none of them is {what}", what, _listed(self.received[-3:])
                )
            moved = self.child.pump(min(until, monotonic() + _OFTEN) if often else until)
            if self.child.unsent < unsent:  # it is reading, piece by piece
                unsent, until = self.child.unsent, monotonic() + self.timeout
            if len(self.child.unread) > unread:  # it is writing, a message in small pieces perhaps
                until = min(last, monotonic() + self.timeout)
            unread = len(self.child.unread)
            if not moved and monotonic() >= until:
                unclosed = unclosed_message(self.child.unread)
                if unclosed is not None:
                    self._found(unclosed)
                raise CaseFailed(
                    f"nothing came for {self.timeout:g} s where {what} is due",
                    what,
                    _listed(self.received[-3:]) or "nothing",
                    timed_out=True,
                )

    def finished(self, id: str) -> str:
        """Wait for a tuple's ack or fail, and return which it was."""
        finished = self.monitor.finished
        return self.wait(lambda: finished.get(id), f"the ack (or fail) of tuple {id!r}")

    def barrier(self) -> None:
        """Wait until a bolt has finished all that it was sent: an empty tuple after it, or a heartbeat, is answered."""
        if self.world.contract:
            self.finished(self.steps())
        else:
            self.beat()

    def settle(self) -> None:
        """Wait until superfluous messages, if there are any, must have come."""
        if not self.is_set_up or self.child.output_ended:
            return
        self.answer()
        if self.kind == "bolt":
            self.barrier()
            return
        if self.is_inactive:
            self.command("activate")  # Storm sends next to an active spout only
        self.next()

    def linger(self) -> None:
        """Read what comes within a moment without being asked for; what comes later is found all the same."""
        until = monotonic() + _MOMENT + min(0.3, (monotonic() - self.start) / 20)
        while not self.child.output_ended and monotonic() < until:
            self.child.pump(until)
            self.take()

    def look_at_pid_file(self) -> None:
        """Find out whether the PID file vanished while the program runs."""
        if not self._had_pid_file or self.monitor.leaving or self.child.output_ended:
            return
        if str(self.monitor.pid) in self.pid_files():
            return
        try:
            self.settle()
        except (CaseFailed, Halted):
            return  # no answer shows that it still runs: a program that ends may remove its file
        vanished = f"the PID file {self.monitor.pid} was there with the pid, and vanished while the program runs"
        self.findings.append(Finding("pid.vanished", vanished, halts=False))

    def leave(self, limit: float | None = None) -> None:
        """Close the input and read the output to its end. If the program does not end then, the runner ends it.

        What is wrong with what it writes then is found, but ends no conversation, for it is over.
        """
        self.monitor.leaving = True
        self.child.close_input()
        until = monotonic() + (self.timeout if limit is None else limit)
        try:
            while not self.child.output_ended and monotonic() < until:
                self.child.pump(until)
                self.take()
        except Halted:
            return
        found = leftover(self.child.unread)
        if found is not None and self.child.output_ended:
            self.findings.append(found)

    def take(self) -> None:
        """Read the messages that have come, check them, and answer emits with task ids."""
        while (message := self._reader.take(self.child.unread)) is not None:
            self.transcript.append(("received", message.raw))
            message.place = len(self.received)
            self.received.append(message)
            if message.command == "sync":
                self.syncs += 1
            findings = message.findings
            if not any(finding.halts for finding in findings):
                findings = findings + self.monitor.check(message)
            for finding in findings:
                self._found(finding)
            if message.command == "emit" and message.task is None and message.value.get("need_task_ids") is not False:
                self.owed.append(message)
                if not self.holds_ids:
                    self.answer()
        if self.child.flooded:
            self._found(Finding("framing.flood", f"more than {len(self.child.unread) >> 20} MiB without a line 'end'"))

    def _found(self, finding: Finding) -> None:
        self.findings.append(finding)
        if finding.halts:
            raise Halted(finding)

    def _send_ids(self, message: ReadMessage) -> None:
        sent = len(self.answers)
        ids = [] if message.stream == "quiet" else [SINK_TASKS[sent % len(SINK_TASKS)]]
        if self.varies_ids and sent % _KINDS == 1:
            ids = []  # as of a stream that nobody subscribes to
        elif self.varies_ids and sent % _KINDS == _KINDS - 1:
            ids = list(SINK_TASKS)  # as of an all grouping
        self.answers[message.place] = ids
        self.send(framed(storm_text(ids)))

    def _ended(self, what: str) -> None:
        left = leftover(self.child.unread)
        if left is not None:
            self.transcript.append(("received", bytes(self.child.unread[-2000:])))
            self.child.unread.clear()
            self.findings.append(left)
        status = self.child.wait(monotonic() + 1)
        how = "closed its output" if status is None else f"ended with status {status}"
        if status is not None and status < 0:
            how = f"was ended by signal {-status}"
        error = self.child.error_text.decode("utf-8", "replace").strip()[-600:]
        if left is not None:
            raise Halted(left)
        raise CaseFailed(
            f"the program {how} where {what} is due", what, f"{how}{f'; on standard error: {error}' if error else ''}"
        )

    def forget(self) -> None:
        """Drop the messages so far, but for the last ones in the transcript, so that a long conversation needs no more memory.

        Emits that wait for their task ids must have been answered.
        """
        self.received.clear()
        self.answers.clear()
        self.transcript.forget(_MAX_TRANSCRIPT)

    # ---- checking ----

    def check(self, holds: object, why: str, expected: str, received: object) -> None:
        """Fail unless ``holds`` is true."""
        if not holds:
            raise CaseFailed(why, expected, received if isinstance(received, str) else shown(received))

    def same(self, received: Any, expected: Any, why: str) -> None:
        """Fail unless both are the same JSON; 1 and 1.0 are the same, 1 and true are not."""
        if not same(received, expected):
            culprit = case_of_difference(received, expected)
            raise CaseFailed(why, shown(expected), shown(received), culprit=culprit)

    def emitted(self, out: Out, expected: Sequence[Any], why: str) -> None:
        """Fail unless the emits have these values, in this order."""
        self.same(out.values, list(expected), why)

    def pid_files(self) -> list[str]:
        """Return the names in the folder of PID files."""
        try:
            return sorted(os.listdir(self.pid_dir))
        except OSError:
            return []  # the program removed the folder

    @property
    def outputs(self) -> Iterator[bytes]:
        """The program's output, message by message."""
        return (data for direction, data in self.transcript if direction == "received")


def _listed(messages: Sequence[ReadMessage]) -> str:
    texts = [each.raw.decode("utf-8", "backslashreplace").replace("\nend\n", "") for each in messages]
    return "  |  ".join(cut(text, 200) for text in texts)
