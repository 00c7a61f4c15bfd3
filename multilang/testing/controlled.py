"""A bolt whose acks, fails and emits are decided by the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.bolt import Bolt
from multilang.protocol.codec import normalize
from multilang.testing.shared import Shared, check_reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple, Values

TICK_SECS = 0.02  # the interval in which a task asks for its orders; Storm's ticks are whole seconds


class HeldTuple:
    """A tuple that came to a ControlledBolt; ``held["word"]`` is a value by its field's name.

    Attributes:
        values: Its values.
        fields: The names of its fields.
        component: The component that emitted it.
        stream: The stream that it was emitted to.
        task: The task that has it.
        state: "held", "acked", "failed", or "lost" when that task died or its topology ended.
    """

    def __init__(self, control: Control, number: int, task: int, came: dict[str, Any]) -> None:
        self._control = control
        self._number = number
        self.task = task
        self.values: list[Any] = came["values"]
        self.fields: list[str] = came["fields"]
        self.component: str = came["component"]
        self.stream: str = came["stream"]
        self.state = "held"

    def ack(self) -> None:
        """Ack it, while the topology runs on.

        Raises:
            RuntimeError: It is not held any more.
        """
        self._end("acked")

    def fail(self) -> None:
        """Fail it, while the topology runs on.

        Raises:
            RuntimeError: It is not held any more.
        """
        self._end("failed")

    def emit(self, values: Values, stream: str | None = None) -> None:
        """Emit a tuple that is anchored to it.

        Args:
            values: The values of the new tuple.
            stream: The stream's name; the default stream if it is None.

        Raises:
            RuntimeError: It is not held any more.
        """
        self._order("emit", normalize(list(values)), stream)

    def __getitem__(self, key: int | str) -> Any:
        return self.values[self.fields.index(key) if isinstance(key, str) else key]

    def _end(self, state: str) -> None:
        self._order(state)
        self.state = state

    def _order(self, *order: Any) -> None:
        with self._control.lock:
            if self.state != "held":
                lost = "its topology has ended" if self._control.ended else "its task died"
                why = lost if self.state == "lost" else f"it is {self.state} already"
                raise RuntimeError(f"nothing can be done any more with the tuple {self.values!r}: {why}")
            self._control.orders.setdefault(self.task, []).append([self._number, *order])

    def __repr__(self) -> str:
        return f"<HeldTuple {self.values!r}, {self.state}>"


class Control(Shared):
    """The tuples that came, and the orders for them."""

    def __init__(self, decide: Callable[[HeldTuple], object] | None) -> None:
        super().__init__()
        self.decide = decide
        self.received: list[HeldTuple] = []
        self.orders: dict[int, list[list[Any]]] = {}
        self.ended = False

    def begin(self, task: int) -> None:
        """Note that a task begins, without the tuples of an earlier one in its place."""
        self.ended = False
        self.orders.pop(task, None)
        self._lose(held for held in self.received if held.task == task)

    def end(self) -> None:
        """Note that the topology has ended, so that no task asks for orders any more."""
        with self.lock:
            self.ended = True
            self.orders.clear()
            self._lose(self.received)

    def _lose(self, received: Iterable[HeldTuple]) -> None:
        for held in received:
            if held.state == "held":
                held.state = "lost"

    def came(self, task: int, tup: dict[str, Any]) -> list[Any]:
        """Keep a tuple that came; return its number, and the task's orders."""
        held = HeldTuple(self, len(self.received), task, tup)
        self.received.append(held)
        if self.decide is not None:
            self.decide(held)
        return [held._number, self.due(task)]

    def due(self, task: int) -> list[list[Any]]:
        """Return the orders for a task."""
        return self.orders.pop(task, [])


class ControlledBolt(Bolt):
    """Keeps its input tuples until the test decides about them.

    With processes, the topology must be built inside the test.

        bolt = ControlledBolt()
        builder.set_bolt("held", bolt).shuffle_grouping("words")
        ...
        run.wait(lambda _: len(bolt.received) == 2, timeout=10)
        bolt.received[0].ack()
        bolt.received[1].fail()
        run.wait(timeout=10)

    Args:
        fields: The fields of its output; None for no output.
        decide: Is called in the test's process with each HeldTuple as it comes, to decide at once.

    Attributes:
        received: All tuples that came, each a HeldTuple with ``ack()``, ``fail()`` and ``emit(values)``, which take
            effect while the topology runs on.
    """

    component_conf = {"topology.tick.tuple.freq.secs": TICK_SECS}

    def __init__(
        self, fields: Sequence[str] | None = None, decide: Callable[[HeldTuple], object] | None = None
    ) -> None:
        self.output_fields = None if fields is None else list(fields)  # type: ignore[misc]
        self._control = Control(decide)

    @property
    def received(self) -> list[HeldTuple]:
        """All tuples that came, in order."""
        with self._control.lock:
            return list(self._control.received)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        check_reachable(self._control, self._collector, f"what bolt {context.component!r} does, a ControlledBolt,")
        self._tuples: dict[int, Tuple] = {}
        self._control.call("begin", context.task)

    def after_end(self) -> None:
        self._control.end()

    def process(self, tup: Tuple) -> None:
        came = {"values": tup.values, "fields": tup.fields, "component": tup.component, "stream": tup.stream}
        number, orders = self._control.call("came", self.context.task, came)
        self._tuples[number] = tup
        self._do(orders)

    def process_tick(self, tup: Tuple) -> None:
        self._do(self._control.call("due", self.context.task))

    def _do(self, orders: list[list[Any]]) -> None:
        for number, what, *more in orders:
            if what == "emit":
                values, stream = more
                self.emit(values, stream, [self._tuples[number]])
            elif what == "acked":
                self.ack(self._tuples.pop(number))
            else:
                self.fail(self._tuples.pop(number))
