"""Scripted conversations have the same answers with pystorm itself and with the layer, but for deliberate differences."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.compat.names import STAND_INS
from multilang.protocol.messages import Ack, Emit, Error, Fail, Log, Message, Metrics, Pid, Sync
from tests.compat.originals import needed, sdist
from tests.component.harness import ROOT, Child, Starter, context
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600 if SOAK else 600)]

SCRIPT = Path(__file__).with_name("scripted.py")
NUMBER = 200 if SOAK else 8
TUPLES = 12  # of a conversation
OUTPUTS = {"default": ["value"], "two": ["a", "b"], "direct": ["value"]}

DIFFERENCES = {
    "the text of an error": "the layer names the component, the task and the tuple as its engine does for all components",
    "a sync after an error": "pystorm sends one to be read at once; the engine here flushes by itself",
    "an error before its fail": "the layer fails the tuple first, so that it is replayed even if the report is what kills the task",
    "its own lines in the log": "pystorm logs the exception that ends it, its end, and failed tuples that it gives up; these are counted or "
    "reported here",
    "the prefix of a logger's line": "the engine's own handler writes time and level, which Storm writes, too",
}


class Conversation:
    """A seeded script of one component, and what a parent says to it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kind = self.random.choice(["Worker", "Worker", "Batch", "Plain", "Reliable"])
        self.is_spout = self.kind in ("Plain", "Reliable")
        flags: dict[str, Any] = {}
        if not self.is_spout:
            flags = {name: self.random.random() < 0.7 for name in ("auto_anchor", "auto_ack", "auto_fail")}
        if self.kind == "Batch":
            flags["ticks_between_batches"] = self.random.randint(1, 2)
        if self.kind == "Reliable":
            flags["max_fails"] = self.random.randint(0, 3)
        self.flags = flags
        self.raises = self.random.randrange(TUPLES) if self.random.random() < 0.4 else None
        self.steps = [self._actions(number) for number in range(TUPLES)]
        self.said = [self.random.random() for _ in range(200)]

    def _actions(self, number: int) -> list[Any]:
        draw = self.random
        kinds = ["emit", "emit", "emit", "log", "logger", "metric", "odd", "direct", "about"]
        actions: list[Any] = []
        for at in range(draw.randint(0, 4)):
            what = draw.choice(kinds)
            text = draw.choice(["plain", "ümlaut \u2603", "tab\tand\nline", ""])
            if what == "emit" and self.is_spout:
                id = None if self.kind == "Plain" and draw.random() < 0.3 else f"{number}.{at}"
                actions.append(["emit", [text], id, draw.random() < 0.3])
            elif what == "emit":
                stream, width = draw.choice([(None, 1), ("default", 1), ("two", 2)])
                width = 1 if self.kind == "Batch" else width
                anchors = draw.choice([None, None, "none", "self", "id"])
                actions.append(["emit", [text] * width, stream, anchors, draw.random() < 0.3])
            elif what == "log":
                actions.append(["log", text, draw.choice(["trace", "debug", "info", "warn", "error", "odd", None])])
            elif what == "logger":
                actions.append(["logger", text, draw.choice(["debug", "info", "warning", "error"])])
            elif what == "metric":
                actions.append(["metric", "m", draw.choice([1, 2.5, {"a": [1]}, None])])
            elif what == "odd":
                actions.append(["odd", draw.randrange(7)])
            elif self.kind == "Worker":
                actions.append([draw.choice(["values", what]), [text]])
        if self.kind == "Reliable":
            actions = [each for each in actions if each[0] not in ("odd", "direct")]  # its emits need an id
        # a tuple that pystorm has acked, and fails because of an exception, is what halts Storm's worker
        settles = self.kind == "Worker" and not self.flags["auto_ack"] and number != self.raises
        if settles and draw.random() < 0.8:
            actions.append([draw.choice(["ack", "ack", "fail"]), draw.random() < 0.5])
        if number == self.raises:
            actions.append(["raise", draw.choice(["KeyError", "ValueError"]), "on purpose"])
        return actions

    def hold(self, child: Child) -> None:
        """Say everything to a component, until it ends or has answered."""
        (self._as_spouts_parent if self.is_spout else self._as_bolts_parent)(child)
        if self.raises is None:
            child.close_input()
        child.ended()

    def _as_bolts_parent(self, child: Child) -> None:
        for number, actions in enumerate(self.steps):
            if number == self.raises and self.kind == "Batch":
                child.tick()
            child.give(actions, number % 3)
            if self.said[number] < 0.2:
                child.tick()
        child.give([["log", "the end", "info"]], "last")
        for _ in range(4):
            child.tick()
        if self.raises is None:
            child.until(lambda: any("§the end" in line for line in child.logged()))

    def _as_spouts_parent(self, child: Child) -> None:
        luck = iter(self.said)
        waiting: list[str] = []
        for number in range(TUPLES):
            if number == self.raises:
                child.say(lambda parent: parent.next())
                return
            waiting += [each.id for each in child.ask() if isinstance(each, Emit) and each.id is not None]
            while waiting and next(luck) < 0.6:
                id = waiting.pop(0)
                answer = "fail" if next(luck) < 0.4 else "ack"
                waiting += [each.id for each in child.ask(answer, id) if isinstance(each, Emit) and each.id is not None]


def held(seed: int, start: Starter, path: list[str]) -> tuple[list[object], Child]:
    """Hold a conversation; return what is compared of it."""
    conversation = Conversation(seed)
    conf = {"topology.name": "talks", "flags": conversation.flags, "topology.debug": seed % 2 == 0}
    conf["script"] = conversation.steps if conversation.is_spout else None
    child = start.command(
        [sys.executable, str(SCRIPT), conversation.kind],
        spout=conversation.is_spout,
        env={"PYTHONPATH": os.pathsep.join(path)},
        answer=lambda emit: [2] if emit.values[:1] == ["plain"] else [3, 2],
    )
    inputs = {"default": ["actions", "kind"]}
    child.set_up(conf, context(outputs=OUTPUTS, direct=["direct"], inputs=inputs, bolt=not conversation.is_spout))
    conversation.hold(child)
    return meaning(child.messages), child


def meaning(messages: list[Message]) -> list[object]:
    """Return what both engines must say alike: all but DIFFERENCES."""
    found: list[object] = []
    errors = 0
    for message in messages:
        if isinstance(message, Pid | Sync):
            continue
        if isinstance(message, Error):
            errors += 1
        elif isinstance(message, Log):
            if "§" in message.message:
                found.append(("log", message.message.partition("§")[2], message.level))
        elif isinstance(message, Emit):
            found.append(
                (
                    "emit",
                    message.values,
                    message.stream,
                    list(message.anchors),
                    message.id,
                    message.task,
                    message.need_task_ids,
                )
            )
        elif isinstance(message, Ack | Fail | Metrics):
            found.append(message)
    return [*found, ("errors", errors)]


def lines_of(found: list[object]) -> list[str]:
    return [repr(each) for each in found]


@pytest.mark.parametrize("seed", range(NUMBER))
def test_a_conversation_is_the_same_with_pystorm_and_with_the_layer(seed: int, tmp_path: Path) -> None:
    engines = {
        "pystorm": [str(sdist("pystorm", "3.1.4")), str(needed())],
        "layer": [str(ROOT), STAND_INS],
    }
    said: dict[str, list[object]] = {}
    ends: dict[str, Any] = {}
    for engine, path in engines.items():
        folder = tmp_path / engine
        folder.mkdir()
        starter = Starter(folder)
        try:
            said[engine], child = held(seed, starter, path)
            ends[engine] = child.process.returncode == 1
        finally:
            starter.clean_up()
    assert lines_of(said["layer"]) == lines_of(said["pystorm"])
    if Conversation(seed).raises is not None:
        assert ends["layer"] == ends["pystorm"]


def test_the_conversations_are_of_every_kind() -> None:
    talks = [Conversation(seed) for seed in range(200)]
    assert set(Counter(talk.kind for talk in talks)) == {"Worker", "Batch", "Plain", "Reliable"}
    assert {action[0] for talk in talks for actions in talk.steps for action in actions} == {
        *("about", "ack", "direct", "emit", "fail", "log", "logger", "metric", "odd", "raise", "values")
    }
    check: Callable[[Any], bool] = bool
    assert all(check(reason) for reason in DIFFERENCES.values())
