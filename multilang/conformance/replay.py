"""Plays a recorded conversation to a program, and finds the first answer that is different.

Each message of the parent is sent as it was recorded, when the program has sent everything that comes before it in the
recording. Task ids are sent only if the program asks for them. Messages are compared by meaning: the order of keys, a
left-out default stream, need_task_ids, the two forms of a direct emit's task, and pids make no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from multilang.conformance.conversation import Conversation
from multilang.conformance.errors import BadFile, CaseFailed, Halted
from multilang.conformance.reading import ReadMessage, integer
from multilang.conformance.target import Programs, Target
from multilang.conformance.values import same

_PID_DIR = re.compile(r'"pidDir":\s*"(?:[^"\\]|\\.)*"')


@dataclass
class Difference:
    """The first difference. ``line``: of the recording, from 1; ``sent``: the last message to the program."""

    line: int
    why: str
    expected: str
    received: str
    sent: str


@dataclass
class Recording:
    """A conversation: line number, direction and text of each message."""

    messages: list[tuple[int, str, str]]
    kind: str

    @property
    def is_cut_off(self) -> bool:
        """True if it ends before the program has answered everything. A worker may end its components at any time."""
        due = 0
        for _, direction, text in self.messages:
            message = _decoded(text)
            if direction == "in":
                due += "tuple" in message or "command" in message
            else:
                due -= message.get("command") in ("ack", "fail", "sync")
        return due > 0


def read_recording(path: Path) -> Recording:
    """Read a file that ``record`` has written. Raises BadFile."""
    messages: list[tuple[int, str, str]] = []
    spout = False
    number = 0
    try:
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            row = json.loads(line or "{}")
            if row.get("d") in ("in", "out"):
                messages.append((number, row["d"], str(row["raw"])))
                spout = spout or (row["d"] == "in" and "command" in _decoded(row["raw"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadFile(
            f"{path} is no recording of multilang conformance record that can be played: line {number}: "
            f"{type(error).__name__}: {error}"  # repr() of a UnicodeDecodeError has the whole file
        ) from None
    if not messages or '"pidDir"' not in messages[0][2]:
        raise BadFile(f"{path} does not begin with a handshake")
    return Recording(messages, "spout" if spout else "bolt")


def replay(recording: Recording, target: Target, ignore: Sequence[str] = ()) -> Difference | None:
    """Return the first difference, or None if there is none.

    ``ignore``: commands, such as log, that are not compared.
    """
    target.kind = recording.kind
    target.contract = False
    with Programs(target) as programs, programs.conversation(target.timeout) as conversation:
        return _Player(conversation, frozenset(ignore)).play(recording)


class _Player:
    def __init__(self, conversation: Conversation, ignore: frozenset[str]) -> None:
        self.conversation = conversation
        self.ignore = ignore
        self.sent = "nothing"
        self.line = 0
        conversation.holds_ids = True

    def play(self, recording: Recording) -> Difference | None:
        messages = self._messages()
        try:
            for self.line, direction, text in recording.messages:
                if direction == "in":
                    self._send(text)
                    continue
                expected = _decoded(text)
                if expected.get("command") in self.ignore:
                    continue
                received = next(messages)
                if not same(meaning(expected), meaning(received.value)):
                    return self._difference("the program sent something else", text, _written(received))
            return self._too_much(recording)
        except CaseFailed as failed:
            return self._difference(failed.why, text, failed.received or "nothing")
        except Halted as halted:
            return self._difference("the program broke the protocol", text, halted.finding.detail)

    def _send(self, text: str) -> None:
        conversation = self.conversation
        if text.startswith("["):
            conversation.take()
            if not conversation.owed:
                return  # the program does not ask for task ids, or they are for an emit that is compared later
            conversation.owed.pop(0)
        elif '"pidDir"' in text and not conversation.is_set_up:
            conversation.is_set_up = True
            where = json.dumps(conversation.pid_dir)
            text = _PID_DIR.sub(lambda _: f'"pidDir":{where}', text, count=1)
        self.sent = text
        message = _decoded(text)
        if "tuple" in message:
            if message.get("stream") == "__heartbeat":
                conversation.monitor.heartbeats.add(message["id"])
            else:
                conversation.will_finish(message["id"])
        elif "command" in message:
            conversation.monitor.commands += 1
        conversation.send(text.encode("utf-8", "surrogatepass"))

    def _messages(self) -> Iterator[ReadMessage]:
        """Return the program's messages, waiting for each."""
        received = self.conversation.received
        for place in count():
            self.conversation.wait(
                lambda place=place: len(received) > place or None,  # type: ignore[misc]
                "what the recording has here",
            )
            message = received[place]
            if message.command not in self.ignore:
                yield message

    def _too_much(self, recording: Recording) -> Difference | None:
        conversation = self.conversation
        conversation.monitor.leaving = True
        conversation.child.close_input()
        if recording.is_cut_off:
            return None
        due = sum(d == "out" and _decoded(text).get("command") not in self.ignore for _, d, text in recording.messages)
        until = monotonic() + min(conversation.timeout, 5)
        while not conversation.child.output_ended and monotonic() < until:
            conversation.child.pump(until)
            conversation.take()
        ending = ("log", "error", "metrics")  # a program may report its end
        more = [each for each in conversation.received if each.command not in self.ignore][due:]
        for message in more:
            if message.command not in ending:
                return self._difference("the program sends more than the recording has", "nothing", _written(message))
        return None

    def _difference(self, why: str, expected: str, received: str) -> Difference:
        return Difference(self.line, why, expected.removesuffix("\nend\n"), received, self.sent.removesuffix("\nend\n"))


def _written(message: ReadMessage) -> str:
    return message.raw.decode("utf-8", "backslashreplace").removesuffix("\nend\n")


def _decoded(text: str) -> dict[str, Any]:
    found = json.loads(text.removesuffix("end\n"), parse_int=integer)
    return found if isinstance(found, dict) else {}


def meaning(message: dict[str, Any]) -> dict[str, Any]:
    """Return a component's message without what makes no difference."""
    if "pid" in message:
        return {"pid": None}
    if message.get("command") != "emit":
        return {key: value for key, value in message.items() if value is not None}
    task = message.get("task")
    return {
        "command": "emit",
        "tuple": message.get("tuple"),
        "stream": message.get("stream") or "default",
        "anchors": message.get("anchors") or [],
        "id": message.get("id"),
        "task": task & 0xFFFFFFFF if isinstance(task, int) else None,
    }
