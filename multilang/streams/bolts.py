"""The bolts that run programs. They differ in the moment at which a tuple is processed, and the place of their memory."""

from __future__ import annotations

from multilang.component.batching import LingeringBolt
from multilang.component.bolt import AnchoredBolt, BasicBolt
from multilang.component.errors import FailedException, ReportedFailedException
from multilang.component.many import TupleList
from multilang.component.report import report_exception
from multilang.protocol.codec import encode_values
from multilang.state.bolt import Stateful
from multilang.streams.marks import PassingTask
from multilang.streams.memory import Memory
from multilang.streams.program import Machine
from multilang.windowing.passed import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.many import Tuples
    from multilang.component.streams import Stream
    from multilang.protocol.messages import Tuple
    from multilang.state.api import KeyValueState
    from multilang.streams.marks import Noted
    from multilang.streams.program import Program
    from multilang.streams.sinks import Sink

    _Group = tuple[list[tuple[Sink, list[Any]]], Sequence[Tuple] | None]

LINGER_SECS = 0.005
"""The longest time for which a tuple waits for others to combine its results with theirs."""

MOST_TUPLES = 1000
"""The most tuples that wait so."""


class Programmed(AnchoredBolt):
    """The base of the bolts that run a program.

    Args:
        program: The program.
        explained: Its lines in ``Topology.explain``.

    Attributes:
        passing: Passes on watermarks; None if there are none.
        half_sent: Whether some results of several tuples may have been emitted, when an exception was raised.
    """

    _machine: Machine
    passing: PassingTask | None = None
    half_sent = False

    def __init__(self, program: Program, explained: Sequence[str] = ()) -> None:
        self.program = program
        self.explained = list(explained)
        self._memory = Memory()

    def declared_streams(self) -> dict[str, Stream]:
        passing = self.program.passing
        rounds = {} if passing is None else passing.declared()
        return {**super().declared_streams(), **{sink.stream: sink.declared() for sink in self.program.sinks}, **rounds}

    def work(self, batches: Iterable[Tuples], anchors: Sequence[Tuple] | None = None) -> None:
        """Run tuples through the program, and emit the results.

        Args:
            batches: The tuples, each batch of one input.
            anchors: The anchors of the emits; None: the tuples in process.
        """
        self.send(self._machine.run(batches), anchors)

    def send(self, outputs: list[tuple[Sink, list[Any]]], anchors: Sequence[Tuple] | None = None) -> None:
        """Emit the results of tuples, and commit their changes."""
        self._send(((outputs, anchors),))

    def send_combined(self, outputs: list[tuple[Sink, list[Any]]]) -> None:
        """Emit the results of some tuples together, and commit their changes. See ``send_apart`` for exceptions."""
        self._send(((outputs, None),), checks=True)

    def send_apart(
        self, came: Iterable[tuple[Tuple, list[tuple[Sink, list[Any]]]]], anchors: Sequence[Tuple] | None = None
    ) -> None:
        """Emit the results of each of some tuples, and commit their changes.

        If it raises an exception and ``half_sent`` is False, nothing was emitted, so that each tuple may be processed by
        itself. Combined results are anchored to ``anchors``, all others to their own tuple: anchored to all, n tuples
        would be n * n pairs to track, and one that fails would make the others fail.
        """
        combined: list[tuple[Sink, list[Any]]] = []
        groups: list[_Group] = [(combined, anchors)]
        for tup, outputs in came:
            combined += [each for each in outputs if each[0].combines]
            groups.append(([each for each in outputs if not each[0].combines], [tup]))
        self._send(groups, checks=True)

    def _send(self, groups: Iterable[_Group], checks: bool = False) -> None:
        memory = self._memory
        try:
            ready = [
                (rows, stream, [] if stream.startswith(PREFIX) else anchors)
                for outputs, anchors in groups
                for stream, rows in _rows(outputs)
            ]
            if checks:
                self.half_sent = False
                for rows, _, _ in ready:
                    for row in rows:
                        encode_values(row)
                self.half_sent = True
            for rows, stream, anchors in ready:
                self.emit_many(rows, stream, anchors)
        except BaseException:
            memory.discard()
            if self.passing is not None:
                self.passing.discard()
            raise
        memory.commit()
        if self.passing is not None:
            self.passing.commit()

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        if self.program.passing is not None:
            self.passing = PassingTask(self.program.passing, self, conf, context)
        for sink in self.program.sinks:
            sink.start(context, self.passing)
        self._machine = Machine(self.program, self._memory, self.passing)


def _rows(outputs: list[tuple[Sink, list[Any]]]) -> list[tuple[str, list[list[Any]]]]:
    """Return the rows of all outputs, each list with its stream, before any is emitted."""
    if len(outputs) == 1:
        sink, elements = outputs[0]
        return sink.all_rows(elements)
    together: dict[Sink, list[Any]] = {}
    for sink, elements in outputs:
        if sink in together:
            together[sink].extend(elements)
        else:
            together[sink] = list(elements)
    return [rows for sink, elements in together.items() for rows in sink.all_rows(elements)]


class ChainBolt(Programmed, BasicBolt):
    """Processes each tuple at once, or those of a block together."""

    def process(self, tup: Tuple) -> None:
        if self.passing is not None and tup.stream.startswith(PREFIX):
            self.passing.take(tup)
            return
        self.work((TupleList((tup,)),))

    def process_many(self, tups: Tuples) -> None:
        if self.passing is not None and tups.stream.startswith(PREFIX):
            for tup in tups:
                self.passing.take(tup)
            return
        self.work((tups,))


class TogetherBolt(Programmed, LingeringBolt):
    """Processes tuples together, which wait for one another for a moment.

    A round of watermarks waits for the tuples before it. If others have joined them by then, it has the times known
    before all of these, and leaves new ones to the next round.
    """

    linger_secs = LINGER_SECS
    acks_by_itself = True
    _waiting: list[tuple[Tuple, Noted | None]]

    def process(self, tup: Tuple) -> None:
        passing = self.passing
        if passing is None:
            super().process(tup)
        elif not tup.stream.startswith(PREFIX):
            passing.hold(tup)
            if self._waiting:
                self._waiting = [
                    (each, passing.noted(each) if noted is None else noted) for each, noted in self._waiting
                ]
            super().process(tup)
        elif passing.takes_lead(tup):
            self.ack(tup)
        elif self._groups:
            self._waiting.append((tup, None))
        else:
            passing.take(tup)
            self.ack(tup)

    def _hand_over(self, key: Hashable, group: list[Tuple]) -> None:
        super()._hand_over(key, group)
        if self.passing is None:
            return
        self.passing.release()
        waiting, self._waiting = self._waiting, []
        for tup, noted in waiting:
            self.passing.take(tup, noted)
            self.ack(tup)

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        self._waiting = []
        super()._attach(collector, conf, context)


class CombiningBolt(TogetherBolt):
    """Processes tuples together, so that their results are combined before they are sent.

    They wait for one another for LINGER_SECS, and are acked when the results of all of them are acked. A result that is
    not combined is anchored to its own tuple alone. If a function fails, each tuple is processed by itself, so that only
    the one that causes it fails.
    """

    batch_size = MOST_TUPLES

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        self.half_sent = False
        try:
            if all(sink.combines for sink in self.program.sinks):
                inputs = [TupleList(tups)] if len(self.program.entries) == 1 else _by_input(tups)
                self.send_combined(self._machine.run(inputs))
            else:
                self.send_apart([(tup, self._machine.run((TupleList((tup,)),))) for tup in tups])
        except Exception:
            if len(tups) == 1 or self.half_sent:
                raise
        else:
            return
        for tup in tups:  # outside of the except block, so that their errors are shown without that exception
            self._alone(tup)

    def _alone(self, tup: Tuple) -> None:
        try:
            self.work((TupleList((tup,)),), [tup])
        except Exception as error:  # noqa: BLE001 - user code: its failure is the tuple's
            if not isinstance(error, FailedException) or isinstance(error, ReportedFailedException):
                report_exception(self, error, tup)
            self.fail(tup)


def _by_input(tups: list[Tuple]) -> list[Tuples]:
    """Return tuples by their input, those of one in order."""
    found: dict[tuple[str, str], TupleList] = {}
    for tup in tups:
        there = found.get((tup.component, tup.stream))
        if there is None:
            found[tup.component, tup.stream] = TupleList((tup,))
        else:
            there.append(tup)
    return list(found.values())


class WithState(Stateful):
    """The common part of bolts whose memory is in their state."""

    _memory: Memory

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        """Receive the state with the last committed accumulators."""
        self._memory.state = state


class StatefulChainBolt(WithState, ChainBolt):
    """A ChainBolt whose memory is part of its topology's checkpoints."""


class StatefulCombiningBolt(WithState, CombiningBolt):
    """A CombiningBolt whose memory is part of its topology's checkpoints."""
