"""Plays a recorded conversation to a program, and finds the first answer that is different.

Each message of the parent is sent as it was recorded, when the program has said everything that comes before it in the
recording. Task ids are sent only if the program asks for them. Messages are compared by meaning: the order of keys, a
left-out default stream, need_task_ids, the two forms of a direct emit's task, and pids make no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from multilang.conformance.errors import BadFile, CaseFailed, Halted
from multilang.conformance.reading import ReadMessage, integer
from multilang.conformance.talk import Talk
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
    with Programs(target) as programs, programs.talk(target.timeout) as talk:
        return _Player(talk, frozenset(ignore)).play(recording)


class _Player:
    def __init__(self, talk: Talk, ignore: frozenset[str]) -> None:
        self.talk = talk
        self.ignore = ignore
        self.sent = "nothing"
        self.line = 0
        talk.holds_ids = True

    def play(self, recording: Recording) -> Difference | None:
        heard = self._heard()
        try:
            for self.line, direction, text in recording.messages:
                if direction == "in":
                    self._tell(text)
                    continue
                expected = _decoded(text)
                if expected.get("command") in self.ignore:
                    continue
                received = next(heard)
                if not same(meaning(expected), meaning(received.value)):
                    return self._difference("the program said something else", text, _written(received))
            return self._too_much(recording)
        except CaseFailed as failed:
            return self._difference(failed.why, text, failed.received or "nothing")
        except Halted as halted:
            return self._difference("the program broke the protocol", text, halted.finding.detail)

    def _tell(self, text: str) -> None:
        talk = self.talk
        if text.startswith("["):
            talk.take()
            if not talk.owed:
                return  # the program does not ask for task ids, or they are for an emit that is compared later
            talk.owed.pop(0)
        elif '"pidDir"' in text and not talk.is_set_up:
            talk.is_set_up = True
            where = json.dumps(talk.pid_dir)
            text = _PID_DIR.sub(lambda _: f'"pidDir":{where}', text, count=1)
        self.sent = text
        message = _decoded(text)
        if "tuple" in message:
            if message.get("stream") == "__heartbeat":
                talk.monitor.heartbeats.add(message["id"])
            else:
                talk.will_finish(message["id"])
        elif "command" in message:
            talk.monitor.commands += 1
        talk.say(text.encode("utf-8", "surrogatepass"))

    def _heard(self) -> Iterator[ReadMessage]:
        """Return the program's messages, waiting for each."""
        place = 0
        while True:
            at = place
            self.talk.wait(lambda at=at: len(self.talk.received) > at or None, "what the recording has here")  # type: ignore[misc]
            message = self.talk.received[place]
            place += 1
            if message.command not in self.ignore:
                yield message

    def _too_much(self, recording: Recording) -> Difference | None:
        talk = self.talk
        talk.monitor.leaving = True
        talk.child.close_input()
        if recording.is_cut_off:
            return None
        due = sum(d == "out" and _decoded(text).get("command") not in self.ignore for _, d, text in recording.messages)
        until = monotonic() + min(talk.timeout, 5)
        while not talk.child.output_ended and monotonic() < until:
            talk.child.pump(until)
            talk.take()
        ending = ("log", "error", "metrics")  # a program may report its end
        more = [each for each in talk.received if each.command not in self.ignore][due:]
        for message in more:
            if message.command not in ending:
                return self._difference("the program says more than the recording has", "nothing", _written(message))
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
