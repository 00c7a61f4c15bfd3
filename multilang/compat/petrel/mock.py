"""Tests of single components and of chains of them, without Storm."""

from __future__ import annotations

from collections import deque, namedtuple
from itertools import pairwise

from multilang.compat.petrel import storm
from multilang.compat.storm.calls import enter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

STORM_TUPLE, LIST, TUPLE, NAMEDTUPLE = range(4)


class MockSpout(storm.Spout):
    """A spout that emits given values.

    Args:
        output_fields: The names of its fields.
        data: The values, one list for each tuple.
    """

    def __init__(self, output_fields: Any, data: Sequence[Any]) -> None:
        self.output_fields = output_fields
        self.data = data
        self.index = 0

    def declareOutputFields(self) -> Any:  # noqa: N802 - Petrel's name
        """Return the names of its fields."""
        return self.output_fields

    def nextTuple(self) -> None:  # noqa: N802 - the same
        if self.index < len(self.data):
            storm.emit(self.data[self.index])
            self.index += 1


class _Kept:
    """The calls of a component under test, whose tuples are kept."""

    def __init__(self) -> None:
        self.emitted: deque[storm.Tuple] = deque()
        self.processed: list[storm.Tuple] = []

    def emit(
        self,
        tup: Any,
        stream: Any = None,
        third: Any = None,
        directTask: Any = None,  # noqa: N803 - Petrel's
        need_task_ids: bool = False,
        id: Any = None,
        anchors: Any = (),
    ) -> Any:
        self.emitted.append(storm.Tuple(id, None, stream, directTask, tup))
        return [] if need_task_ids else None

    def ack(self, tup: Any) -> None:
        """Take no notice."""

    fail = ack


def run_simple_topology(
    config: Any, emitters: Sequence[Any], result_type: int = NAMEDTUPLE, max_spout_emits: int | None = None
) -> dict[Any, list[Any]]:
    """Run a spout and bolts in a chain, and return what each of them emitted.

    Args:
        config: The conf that ``initialize`` gets; None: it is not called.
        emitters: The spout, and the bolts one after the other.
        result_type: NAMEDTUPLE, LIST, TUPLE or STORM_TUPLE.
        max_spout_emits: The number of tuples after which the spout is asked no more; it ends when it emits none, too.

    Raises:
        ValueError: There is no such ``result_type``.
    """
    if result_type not in range(4):
        raise ValueError(
            f"result_type is {result_type!r}; use mock.NAMEDTUPLE, mock.LIST, mock.TUPLE or mock.STORM_TUPLE"
        )
    kept = {id(each): _Kept() for each in emitters}

    def act(emitter: Any, call: Callable[..., object], *args: Any) -> None:
        enter(kept[id(emitter)])
        try:
            call(*args)
        finally:
            enter(None)

    if config is not None:
        for each in emitters:
            act(each, each.initialize, config, {})
    spout = emitters[0]
    emitted = kept[id(spout)].emitted
    before = -1
    while before < len(emitted) and (max_spout_emits is None or len(emitted) < max_spout_emits):
        before = len(emitted)
        act(spout, spout.nextTuple)
    for source, bolt in pairwise(emitters):
        waiting = kept[id(source)]
        while waiting.emitted:
            tup = waiting.emitted.popleft()
            waiting.processed.append(tup)
            act(bolt, bolt.process, tup)
    return {
        each: _results(each, [*kept[id(each)].processed, *kept[id(each)].emitted], result_type) for each in emitters
    }


def _results(emitter: Any, tuples: Iterable[storm.Tuple], result_type: int) -> list[Any]:
    if result_type == STORM_TUPLE:
        return list(tuples)
    if result_type == NAMEDTUPLE:
        kind = namedtuple(f"{type(emitter).__name__}Tuple", emitter.declareOutputFields())  # type: ignore[misc]  # noqa: PYI024
        return [kind(*each.values) for each in tuples]
    return [(list if result_type == LIST else tuple)(each.values) for each in tuples]


class Mock:
    """The same as a class; see run_simple_topology."""

    run_simple_topology = staticmethod(run_simple_topology)
