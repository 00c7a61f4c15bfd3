"""The program of one component: the stages that were fused into it, and how its tuples go through them.

The planner writes it, as plain data, and each task runs a copy of its own. Elements go through a stage in lists, so that
a stage costs one call for all elements of a batch of tuples; nothing leaves the task before all stages have succeeded.
"""

from __future__ import annotations

from multilang.component.errors import FailedException
from multilang.streams.copies import copied
from multilang.streams.errors import StageError
from multilang.streams.folds import Keyed
from multilang.streams.keys import decode
from multilang.streams.operations import Arm
from multilang.streams.sinks import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.many import Tuples
    from multilang.streams.memory import Memory
    from multilang.streams.operations import Operation


class Step:
    """A stage in a component, and what gets its elements there.

    Attributes:
        name: The stage's name.
        operation: The operation.
        next: The steps and sinks behind it.
    """

    __slots__ = ("name", "next", "operation")

    def __init__(self, name: str, operation: Operation) -> None:
        self.name = name
        self.operation = operation
        self.next: list[Step | Sink] = []


# ---- entries: how the tuples of one input become elements ----


def as_tuples(tups: Tuples) -> list[Any]:
    """Return the tuples themselves."""
    return list(tups)


def as_values(tups: Tuples) -> list[Any]:
    """Return the elements of a stream."""
    return [row[0] for row in tups.rows]


def as_pairs(tups: Tuples) -> list[Any]:
    """Return the pairs of a keyed stream."""
    return [(decode(row[0]), row[1]) for row in tups.rows]


def as_partials(tups: Tuples) -> list[Any]:
    """Return the pairs of keys and accumulators that were combined by the sender."""
    return [(decode(key), accumulator) for row in tups.rows for key, accumulator in row[1]]


def as_late(tups: Tuples) -> list[Any]:
    """Return the pairs of a keyed stream that came too late for their windows."""
    return [(decode(row[0]["values"][0]), row[0]["values"][1]) for row in tups.rows]


def _drop(_: list[Any]) -> None:
    """Let elements go that nobody gets."""


class Entry:
    """The way of one input's tuples into a program.

    Attributes:
        component: The input's component.
        stream: The input's stream.
        read: Makes elements of its tuples.
        steps: The steps that get them.
        method: The method of the steps' operations that takes them.
    """

    __slots__ = ("component", "method", "read", "steps", "stream")

    def __init__(
        self,
        component: str,
        stream: str,
        read: Callable[[Tuples], list[Any]],
        steps: Sequence[Step | Sink],
        method: str = "apply",
    ) -> None:
        self.component = component
        self.stream = stream
        self.read = read
        self.steps = list(steps)
        self.method = method


class Program:
    """All that a component does with its tuples.

    Attributes:
        entries: Its inputs.
        sinks: Its output streams.
        steps: All its steps.
    """

    def __init__(self, entries: Sequence[Entry], steps: Sequence[Step], sinks: Sequence[Sink]) -> None:
        self.entries = list(entries)
        self.steps = list(steps)
        self.sinks = list(sinks)

    def bind(self, memory: Memory) -> None:
        """Give the operations with a memory that of their task."""
        for step in self.steps:
            if isinstance(step.operation, Keyed):
                step.operation.memory = memory


class Machine:
    """A program at work in a task.

    Args:
        program: The program.
        memory: The memory of the task.
    """

    def __init__(self, program: Program, memory: Memory) -> None:
        program.bind(memory)
        self._outputs: list[tuple[Sink, list[Any]]] = []
        self._memory = memory
        self._pushes: dict[int, Callable[[list[Any]], None]] = {}
        self._entries = {
            (entry.component, entry.stream): (entry.read, self._all(entry.steps, entry.method))
            for entry in program.entries
        }
        self._starts = {step.name: self._push(step) for step in program.steps}

    def run(self, batches: Iterable[Tuples]) -> list[tuple[Sink, list[Any]]]:
        """Return what comes of some tuples: for each sink its elements.

        Args:
            batches: Tuples, each batch of one input.

        Raises:
            StageError: A stage's function raised an exception. Nothing has changed then.
        """
        outputs: list[tuple[Sink, list[Any]]] = []
        self._outputs = outputs
        try:
            for tups in batches:
                read, push = self._entries[tups.component, tups.stream]
                push(read(tups))
        except BaseException:
            self._memory.discard()
            raise
        return outputs

    def start(self, step: str, elements: list[Any]) -> list[tuple[Sink, list[Any]]]:
        """Return what comes of elements that begin at a step."""
        outputs: list[tuple[Sink, list[Any]]] = []
        self._outputs = outputs
        self._starts[step](elements)
        return outputs

    def _all(self, targets: Sequence[Step | Sink], method: str = "apply") -> Callable[[list[Any]], None]:
        pushes = [self._sink(each) if isinstance(each, Sink) else self._push(each, method) for each in targets]
        if len(pushes) < 2:
            return pushes[0] if pushes else _drop

        *others, last = pushes
        divided = all(isinstance(each, Sink) or isinstance(each.operation, Arm) for each in targets)

        def push(elements: list[Any]) -> None:
            for each in others:
                each(elements if divided else copied(elements))  # a function that changes an element changes its own
            last(elements)

        return push

    def _push(self, step: Step, method: str = "apply") -> Callable[[list[Any]], None]:
        made = self._pushes.get(id(step)) if method == "apply" else None
        if made is not None:
            return made
        apply, name, onward = getattr(step.operation, method), step.name, self._all(step.next)

        def push(elements: list[Any]) -> None:
            try:
                found = apply(elements)
            except FailedException:
                raise
            except Exception as error:
                raise StageError(name, error) from error
            if found:
                onward(found)

        if method == "apply":
            self._pushes[id(step)] = push
        return push

    def _sink(self, sink: Sink) -> Callable[[list[Any]], None]:
        def push(elements: list[Any]) -> None:
            self._outputs.append((sink, elements))

        return push
