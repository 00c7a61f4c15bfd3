"""The two ends against each other: whatever they send, in whatever order and pieces, is understood as it was meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from multilang.protocol import (
    Ack,
    Activate,
    ChildConnection,
    Deactivate,
    Emit,
    Error,
    Fail,
    Heartbeat,
    LocalProtocolError,
    Log,
    Metrics,
    Next,
    ParentConnection,
    Pid,
    Setup,
    Sync,
    TaskIds,
    Tuple,
    UnserializableValue,
    fast_emit,
)
from tests.protocol.test_codec import TEXT, VALUES, same
from tests.protocol.wire import context

# Once something is wrong, hypothesis looks for the shortest conversation that shows it, for up to five minutes.
pytestmark = pytest.mark.timeout(900)

IDS = st.integers(-(2**63), 2**63 - 1).map(str)  # as Storm's are
ODD_IDS = TEXT  # as they might be
MESSAGE_IDS = TEXT | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PIECES = st.integers(1, 40)
TASKS = st.lists(st.integers(1, 9), max_size=4)


class Conversation(RuleBasedStateMachine):
    """The common part of both kinds: bytes in flight each way, and messages that a side has not understood yet."""

    kind: Any = ""

    def __init__(self) -> None:
        super().__init__()
        self.child = ChildConnection()
        self.parent = ParentConnection(self.kind)
        self.down = self.up = b""  # in flight: to the child, to the parent
        self.to_child: list[Any] = []  # meant, and not understood yet
        self.to_parent: list[Any] = []
        self.got_by_child: list[Any] = []  # understood, and not handled yet
        self.waiting: list[Any] = []  # tokens (None: not wanted) of emits that the parent has read, in order
        self.asked: list[Any] = []  # the same of emits that are on their way

    @initialize(conf=st.dictionaries(TEXT, VALUES, max_size=3), local=st.booleans(), pid=st.integers(0, 2**22))
    def shake_hands(self, conf: dict[str, Any], local: bool, pid: int) -> None:
        conf = {**conf, "multilang.parent": "local"} if local else conf
        self.parent.setup(conf, "/pids", context())
        self.to_child.append(Setup(conf, "/pids", context()))
        self.move_down(len(self.parent_says()))
        self.child.send_pid(pid)
        self.to_parent.append(Pid(pid))
        self.child_says()
        self.move_up(len(self.up))

    def parent_says(self) -> bytes:
        self.down += self.parent.data_to_send()
        return self.down

    def child_says(self) -> None:
        self.up += self.child.data_to_send()

    @rule(size=PIECES | st.just(10**9))
    def move_down(self, size: int) -> None:
        self.parent_says()
        piece, self.down = self.down[:size], self.down[size:]
        if piece:
            for event in self.child.receive_data(piece):
                self.understood(event, self.to_child)
                if isinstance(event, TaskIds):
                    assert event.token is not None
                self.got_by_child.append(event)

    @rule(size=PIECES | st.just(10**9))
    def move_up(self, size: int) -> None:
        self.child_says()
        piece, self.up = self.up[:size], self.up[size:]
        if piece:
            for command in self.parent.receive_data(piece):
                self.understood(command, self.to_parent)
                if isinstance(command, Emit) and command.need_task_ids:
                    self.waiting.append(self.asked.pop(0))

    def understood(self, event: Any, meant: list[Any]) -> None:
        expected = meant.pop(0)
        assert event == expected
        if isinstance(event, Tuple | Emit):
            assert same(event.values, expected.values)
        if isinstance(event, Emit | Ack | Fail):
            assert same(event.id, expected.id)

    @rule(tasks=TASKS)
    def answer_an_emit(self, tasks: list[int]) -> None:
        if not self.waiting:
            with pytest.raises(LocalProtocolError):
                self.parent.task_ids(tasks)
            return
        self.parent.task_ids(tasks)
        self.to_child.append(TaskIds(tasks, self.waiting.pop(0)))

    @rule(text=TEXT, level=st.integers(0, 4))
    def log(self, text: str, level: int) -> None:
        self.child.log(text, level)
        self.to_parent.append(Log(text, level))

    @rule(text=TEXT)
    def error(self, text: str) -> None:
        self.child.error(text)
        self.to_parent.append(Error(text))

    @rule(name=TEXT.filter(bool), params=VALUES)
    def metrics(self, name: str, params: Any) -> None:
        self.child.metrics(name, params)
        self.to_parent.append(Metrics(name, params))

    def stream_and_values(self, word: str, value: Any, choice: int) -> tuple[str | None, list[Any], int | None]:
        """A stream, values for its fields, and the task of a direct emit."""
        return [
            (None, [word, value], None),
            ("default", [value, word], None),
            ("routed", [value], 6),
            ("idle", [word, value, None], None),
            ("idle", [word, value, None], 3),
        ][choice]

    def meant(self, values: list[Any], stream: str | None, task: int | None, token: Any, **more: Any) -> None:
        need = token is not None and task is None
        self.to_parent.append(Emit(values, stream or "default", task=task, need_task_ids=need, **more))
        if need:
            self.asked.append(token)

    @invariant()
    def the_parent_owes_what_the_child_awaits(self) -> None:
        assert self.parent.task_ids_due == len(self.waiting)

    def teardown(self) -> None:
        """Check that what is in flight arrives, and nothing was lost."""
        self.move_up(10**9)
        while self.waiting:
            self.answer_an_emit([1])
        self.move_down(10**9)
        assert self.to_child == []
        assert self.to_parent == []
        assert self.asked == []
        self.child.receive_data(b"")
        self.parent.receive_data(b"")


class BoltConversation(Conversation):
    kind = "bolt"
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.arrived: dict[str, Tuple] = {}
        self.fast = fast_emit(self.child, self.slow)

    def slow(self, values: Any, stream: Any, anchors: Any, direct_task: Any, need: bool, callback: Any) -> None:
        self.child.emit(values, stream, anchors, direct_task, callback)

    @rule(target=sent, id=IDS | ODD_IDS, component=TEXT, values=st.lists(VALUES, max_size=3))
    def send_a_tuple(self, id: str, component: str, values: list[Any]) -> Any:
        if id in self.parent.unfinished:
            with pytest.raises(LocalProtocolError):
                self.parent.tuple(id, component, "default", 1, values)
            return multiple()
        self.parent.tuple(id, component, "default", 1, values)
        self.to_child.append(Tuple(id, component, "default", 1, values))
        return id

    @rule(id=IDS)
    def send_a_heartbeat(self, id: str) -> None:
        self.parent.heartbeat(id)
        self.to_child.append(Heartbeat(id))

    def handle(self) -> None:
        for event in self.got_by_child:
            if isinstance(event, Tuple):
                self.arrived[event.id] = event
        self.got_by_child.clear()

    @rule(
        ids=st.lists(sent, max_size=3),
        word=TEXT,
        value=VALUES,
        choice=st.integers(0, 4),
        token=st.none() | st.integers(),
        named=st.booleans(),
    )
    def emit(self, ids: list[str], word: str, value: Any, choice: int, token: int | None, named: bool) -> None:
        self.handle()
        stream, values, task = self.stream_and_values(word, value, choice)
        ids = list(dict.fromkeys(ids))
        anchors: list[Any] = [id if named else self.arrived.get(id, id) for id in ids]
        if all(id in self.child.unfinished for id in ids):
            self.child.emit(values, stream, anchors, task, token)
            self.meant(values, stream, task, token, anchors=ids)
        else:
            with pytest.raises(LocalProtocolError):
                self.child.emit(values, stream, anchors, task, token)

    @rule(id=sent, rows=st.lists(st.tuples(TEXT, VALUES), max_size=4), token=st.none() | st.integers())
    def emit_quickly(self, id: str, rows: list[tuple[str, Any]], token: Any) -> None:
        self.handle()
        anchors: list[Any] = [self.arrived.get(id, id)]
        for row in rows:
            if id in self.child.unfinished:
                self.fast(list(row), None, anchors, on_task_ids=token)
                self.meant(list(row), None, None, token, anchors=[id])
            else:
                with pytest.raises(LocalProtocolError):
                    self.fast(list(row), None, anchors)

    @precondition(lambda self: self.child.unfinished)
    @rule(bad=st.sampled_from([float("nan"), 2**63, b"x", {1: 2}, "\ud800", ["\udfff"]]), token=st.none() | st.just(1))
    def emit_what_can_not_be_sent(self, bad: Any, token: Any) -> None:
        self.child_says()
        tup = next(iter(self.child.unfinished.values()))
        with pytest.raises(UnserializableValue):
            self.child.emit(["a", bad], None, [tup], None, token)
        with pytest.raises(UnserializableValue):
            self.fast(["a", bad], None, [tup])
        assert self.child.data_to_send() == b""

    @rule(id=sent, fails=st.booleans(), named=st.booleans())
    def finish(self, id: str, fails: bool, named: bool) -> None:
        self.handle()
        finish = self.child.fail if fails else self.child.ack
        tup: Any = id if named else self.arrived.get(id, id)
        if id in self.child.unfinished:
            finish(tup)
            self.to_parent.append(Fail(id) if fails else Ack(id))
        else:
            with pytest.raises(LocalProtocolError):
                finish(tup)

    @rule()
    def give_a_sign_of_life(self) -> None:
        self.child.sync()
        self.to_parent.append(Sync())

    @invariant()
    def both_know_what_is_unfinished(self) -> None:
        on_their_way = {event.id for event in self.to_child if isinstance(event, Tuple)}
        finished = {event.id for event in self.to_parent if isinstance(event, Ack | Fail)}
        assert self.parent.unfinished == set(self.child.unfinished) | on_their_way | finished


class SpoutConversation(Conversation):
    kind = "spout"

    @rule(
        what=st.sampled_from(["next", "activate", "deactivate", "ack", "fail"]),
        id=MESSAGE_IDS,
    )
    def command(self, what: str, id: Any) -> None:
        send = getattr(self.parent, what)
        arguments = (id,) if what in ("ack", "fail") else ()
        if self.parent.command is not None:
            with pytest.raises(LocalProtocolError):
                send(*arguments)
            return
        send(*arguments)
        kinds = {"next": Next, "activate": Activate, "deactivate": Deactivate, "ack": Ack, "fail": Fail}
        self.to_child.append(kinds[what](*arguments))

    @precondition(lambda self: self.child.commands_owed)
    @rule(
        id=st.none() | MESSAGE_IDS,
        word=TEXT,
        value=VALUES,
        choice=st.integers(0, 4),
        token=st.none() | st.integers(),
    )
    def emit(self, id: Any, word: str, value: Any, choice: int, token: int | None) -> None:
        stream, values, task = self.stream_and_values(word, value, choice)
        self.child.emit_from_spout(values, id, stream, task, token)
        self.meant(values, stream, task, token, id=id)

    @rule(bad=st.sampled_from([float("inf"), -(2**63) - 1, {"a": {1}}, "\udc00"]), token=st.none() | st.just(1))
    def emit_what_can_not_be_sent(self, bad: Any, token: Any) -> None:
        self.child_says()
        with pytest.raises(UnserializableValue):
            self.child.emit_from_spout([bad, 1], "id", None, None, token)
        with pytest.raises(UnserializableValue):
            self.child.emit_from_spout([1, 1], bad, None, None, token)
        assert self.child.data_to_send() == b""

    @rule(exhausted=st.none() | st.booleans())
    def sync(self, exhausted: bool | None) -> None:
        if self.child.commands_owed:
            self.child.sync(exhausted)
            self.to_parent.append(Sync(exhausted))

    @invariant()
    def one_command_at_a_time(self) -> None:
        on_its_way = sum(isinstance(event, Next | Activate | Deactivate | Ack | Fail) for event in self.to_child)
        synced = sum(isinstance(event, Sync) for event in self.to_parent)
        assert (self.parent.command is not None) == (on_its_way + self.child.commands_owed + synced)


TestBolt = BoltConversation.TestCase
TestSpout = SpoutConversation.TestCase
