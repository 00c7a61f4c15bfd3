"""Random conversations, each of which can be had again from its seed and number.

A *soak* conversation is legal in every respect, in a random order and cut at random places: tuples, ticks, heartbeats, task
ids at once or late, acks and fails. A *fuzz* conversation has random values and random ways to spell JSON.

From time to time everything that was sent is waited for, and what came is compared with what is due. In between, the
monitor finds what no program may send.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from time import monotonic
from typing import Any

from multilang.conformance import random_values
from multilang.conformance.conversation import Conversation, Pieces
from multilang.conformance.world import SOURCE, SOURCE_TASK, framed, storm_text

_MOST_OPEN = 40  # messages that are not waited for; a ShellBolt sends no more than 100 tuples without an answer
_WAIT = 0.06  # how often everything is waited for before that
_CUT, _CUT_ODD = 0.05, 0.2  # how often a message comes in pieces, for each of which the program's reading is waited for
_LOOK = 0.3  # how often what came is read in between
_STREAMS = (None, None, "other", "pair", "quiet")
_IDS = object()  # stands for the value that a step with "ids" emits: the task ids of the emit before


class RandomConversation:
    """One conversation.

    Attributes:
        actions: The number of things that are done.
        done: The number of those that were done.
    """

    def __init__(
        self, conversation: Conversation, knows: Sequence[str], random: Random, actions: int, odd: bool
    ) -> None:
        """Prepare it.

        Args:
            conversation: The conversation, in which nothing was sent yet.
            knows: The steps of the contract that the program knows.
            random: The source of all that is random.
            actions: The number of things to do.
            odd: Whether values and their spelling are random.
        """
        self.conversation = conversation
        self.knows = knows
        self.random = random
        self.actions = actions
        self.done = 0
        self._odd = odd
        self._open = 0
        self._expected: list[Any] = []

    def play(self, until: float | None = None) -> None:
        """Have the conversation, up to its end or up to ``until``. Raises CaseFailed, Halted.

        Args:
            until: When to stop, in monotonic seconds; None: after all actions.
        """
        self._begin()
        while self.done < self.actions and (until is None or monotonic() < until):
            self._act()
            self.done += 1
            self._open += 1
            if self._open >= _MOST_OPEN or self.random.random() < _WAIT:
                self._wait()
            elif self.random.random() < _LOOK:
                self.conversation.child.pump(monotonic())
                self.conversation.take()
        self._wait()
        self.conversation.leave()

    def _begin(self) -> None:
        raise NotImplementedError

    def _act(self) -> None:
        raise NotImplementedError

    def _wait_for_answers(self) -> None:
        raise NotImplementedError

    def _wait(self) -> None:
        self.conversation.holds_ids = False
        self.conversation.answer()
        self._wait_for_answers()
        self._compare()
        self.conversation.forget()
        self._open = 0

    def _compare(self) -> None:
        conversation, due, self._expected = self.conversation, self._expected, []
        if not conversation.world.contract:
            return
        emits = [(place, each) for place, each in enumerate(conversation.received) if each.command == "emit"]
        conversation.same(len(emits), len(due), "the number of emits is another")
        for number, ((_, message), value) in enumerate(zip(emits, due, strict=True)):
            if value is _IDS:
                value = [["ids", conversation.answers[emits[number - 1][0]]]]
            conversation.same(message.values, value, "what was emitted is not what was asked for")

    def _send(self, message: dict[str, Any], texts: dict[str, str] | None = None) -> None:
        """Send a message, cut and spelled at random. ``texts`` has the JSON of some of its entries."""
        pairs = {key: self._text(value) for key, value in message.items()} | (texts or {})
        if self._odd:
            keys = self.random.sample(list(pairs), len(pairs))
            pairs = {key: pairs[key] for key in keys}
        text = ",".join(f'"{key}":{value}' for key, value in pairs.items())
        self.conversation.send(framed(f"{{{text}}}"), self._pieces())

    def _pieces(self, most: int = 6) -> Pieces | None:
        return random_values.pieces(self.random, _CUT_ODD if self._odd else _CUT, most)

    def _text(self, value: Any) -> str:
        return random_values.spelled(self.random, value) if self._odd else storm_text(value)

    def _value(self) -> Any:
        if self._odd:
            return random_values.value(self.random)
        return self.random.choice(("word", self.done, [self.done, None], "x" * self.random.randrange(3000)))

    # ---- steps ----

    def _steps(self, may_wait: bool) -> list[list[Any]]:
        """Return random steps, and expect what they emit."""
        steps: list[list[Any]] = []
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 5))):
            kind = self.random.choice(("emit", "emit", "emit", "log", "metric", "ids", "direct"))
            if kind in ("log", "metric") and kind in self.knows:
                steps.append([kind, "a line"] if kind == "log" else [kind, "conformance", 1])
            elif kind == "direct" and kind in self.knows:
                steps.append(["emit", [self._value()], {"stream": "direct", "task": self.random.choice((8, 9))}])
                self._expected.append(steps[-1][1])
            elif kind == "ids" and kind in self.knows and may_wait:
                steps.append(["emit", [self._value()], {"ids": True}])
                self._expected += [steps[-1][1], _IDS]
            else:
                stream = self.random.choice(_STREAMS)
                values = [self._value() for _ in range(2 if stream == "pair" else 1)]
                steps.append(["emit", values, *([{"stream": stream}] if stream else [])])
                self._expected.append(values)
        return steps


class RandomBolt(RandomConversation):
    """A conversation with a bolt."""

    def _begin(self) -> None:
        self._ends: dict[str, str] = {}  # id of a tuple -> how it is to end
        self._held: dict[str, str] = {}  # name -> id of a tuple that the bolt holds
        self._beats = 0
        self.conversation.handshake(pieces=self._pieces(20))

    def _act(self) -> None:
        action = self.random.choices((self._tuple, self._heartbeat, self._tick, self._hold), (80, 12, 4, 4))[0]
        action()

    def _tuple(self) -> None:
        conversation = self.conversation
        id = conversation.new_id()
        if conversation.world.contract:
            steps = self._steps(may_wait=True)
            self._ends[id] = self._end(steps, id)
            values: Any = [steps]
        else:
            values = self.random.choice(list(conversation.world.tuples))
        conversation.will_finish(id)
        message = {"id": id, "comp": SOURCE, "stream": "default", "task": SOURCE_TASK}
        self._send(message, {"tuple": self._text(values)})

    def _end(self, steps: list[list[Any]], id: str) -> str:
        """Let the steps end this tuple, and perhaps one that was held. Return how this one ends."""
        chance = self.random.random()
        if self._held and chance < 0.3:
            name = self.random.choice(list(self._held))
            how = self.random.choice([word for word in ("ack", "fail") if word in self.knows])
            self._ends[self._held.pop(name)] = how
            steps.append([how, name])
        if chance > 0.9 and "keep" in self.knows and "ack" in self.knows:
            name = f"k{self.done}"
            steps.append(["keep", name])
            self._held[name] = id
            return ""
        if chance > 0.8 and "fail" in self.knows:
            steps.append(["fail"])
            return "fail"
        return "ack"

    def _heartbeat(self) -> None:
        self._beats += 1
        self.conversation.heartbeat(pieces=self._pieces())

    def _tick(self) -> None:
        id = self.conversation.tuple([5], comp="__system", stream="__tick", task=-1)
        if self.conversation.world.contract:
            self._ends[id] = "ack"

    def _hold(self) -> None:
        if self.conversation.world.contract:
            self.conversation.holds_ids = not self.conversation.holds_ids

    def _wait_for_answers(self) -> None:
        conversation = self.conversation
        if conversation.world.contract:
            self._ends[conversation.steps()] = (
                "ack"  # tuples are worked on in order, so that those that are held are done, too
            )
        due = {id: how for id, how in self._ends.items() if how}
        if conversation.world.contract:
            conversation.wait(
                lambda: due.keys() <= conversation.monitor.finished.keys() or None,
                f"the ack (or fail) of each of {len(due)} tuples",
            )
        self._beats += 1
        conversation.heartbeat()
        conversation.wait_sync(self._beats)
        for id, how in due.items():
            conversation.same(conversation.monitor.finished.get(id), how, f"the tuple {id!r} has ended otherwise")
            del self._ends[id]


class RandomSpout(RandomConversation):
    """A conversation with a spout."""

    def _begin(self) -> None:
        self._ids: list[Any] = []  # of tuples that were neither acked nor failed
        self._rounds: list[tuple[list[Any], list[Any]]] = []  # for each next: what it emits, and the ids of that
        script: list[list[list[Any]]] = []
        if self.conversation.world.contract:
            script += [self._round(number) for number in range(self.actions)]
        on = {word: [["heard"]] for word in ("ack", "fail") if "heard" in self.knows}
        self.conversation.handshake(self._text(script), on=on, pieces=self._pieces(20))
        self._rounds.reverse()
        self.conversation.command("activate")

    def _round(self, number: int) -> list[list[Any]]:
        self._expected = []
        steps = self._steps(may_wait=True)
        ids: list[Any] = []
        for step in steps:
            if step[0] == "emit" and self.random.random() < 0.7:
                id = self.random.choice((f"{number}-{len(ids)}", number * 10 + len(ids) + 1))
                step[2:] = [{**(step[2] if len(step) > 2 else {}), "id": id}]
                ids.append(id)
        self._rounds.append((self._expected, ids))
        self._expected = []
        return steps

    def _act(self) -> None:
        action = self.random.choices((self._next, self._finish, self._pause), (60, 38, 2))[0]
        action()

    def _command(self, command: str, id: Any = "") -> None:
        conversation, before = self.conversation, self.conversation.syncs
        message = {"command": command, "id": id}
        conversation.begin(command, id, self._pieces(), self._text(message))
        conversation.wait(lambda: conversation.syncs > before or None, f"the sync that ends the command {command!r}")

    def _next(self) -> None:
        start = len(self.conversation.received)
        self._command("next")
        if self._rounds:
            emitted, ids = self._rounds.pop()
            self._expected += emitted
            self._ids += ids
        elif not self.conversation.world.contract:
            emits = (each for each in self.conversation.received[start:] if each.command == "emit")
            self._ids += [each.value["id"] for each in emits if each.value.get("id") is not None]

    def _finish(self) -> None:
        if not self._ids:
            self._next()
            return
        id = self._ids.pop(self.random.randrange(len(self._ids)))
        word = self.random.choice(("ack", "fail"))
        self._command(word, id)
        if self.conversation.world.contract and "heard" in self.knows:
            self._expected.append([[word, id]])

    def _pause(self) -> None:
        self._command("deactivate")
        for _ in range(self.random.randrange(3)):
            if self._ids:
                self._finish()
        self._command("activate")

    def _wait_for_answers(self) -> None:
        pass  # each command waits for its sync


def random_conversation(kind: str) -> Callable[..., RandomConversation]:
    """Return the class of conversations with a kind of program.

    Args:
        kind: ``"bolt"`` or ``"spout"``.
    """
    return RandomBolt if kind == "bolt" else RandomSpout
