"""The program of one component: the stages that were fused into it, and the path of its tuples through them.

The planner writes it, as plain data, and each task runs a copy of its own. A stage gets lists of elements, so that it
costs one call for all elements of a batch of tuples; nothing leaves the task before all stages have succeeded.
"""

from __future__ import annotations

from multilang.component.errors import FailedException
from multilang.component.many import TupleList
from multilang.helpers.copies import copied
from multilang.protocol.messages import Tuple
from multilang.streams.errors import stage_error
from multilang.streams.folds import Keyed
from multilang.streams.keys import decode
from multilang.streams.operations import Arm
from multilang.streams.sinks import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.many import Tuples
    from multilang.streams.marks import Passing, PassingTask, Path
    from multilang.streams.memory import Memory
    from multilang.streams.operations import Operation


class Step:
    """A stage in a component, and the receivers of its elements there.

    Attributes:
        name: The stage's name.
        operation: The operation.
        next: The next steps and sinks.
    """

    __slots__ = ("name", "next", "operation")

    def __init__(self, name: str, operation: Operation) -> None:
        self.name = name
        self.operation = operation
        self.next: list[Step | Sink] = []


# ---- entries: the conversions of tuples to elements ----


def as_tuples(tups: Tuples) -> list[Any]:
    """Return the tuples themselves."""
    return list(tups)


def without_origin(tups: Tuples) -> list[Any]:
    """Return the tuples themselves, without the field with their origin."""
    place = tups.component, tups.stream
    fields = list((tups[0].schema or {}).get(place, ()))[:-1]
    schema = {place: {name: at for at, name in enumerate(fields)}}
    return [Tuple(tup.id, *place, tup.task, tup.values[:-1], schema) for tup in tups]


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
    """Return the pairs of a keyed stream that were too late for their windows."""
    return [(decode(row[0]["values"][0]), row[0]["values"][1]) for row in tups.rows]


def _drop(_: list[Any]) -> None:
    """Drop elements that have no receiver."""


class Entry:
    """The entry of one input's tuples into a program.

    Attributes:
        component: The input's component.
        stream: The input's stream.
        read: Makes elements of its tuples.
        steps: The steps that get them.
        method: The method of the steps' operations that takes them.
        has_origin: Whether the last value of each tuple is the name of its origin, which is no part of the element.
    """

    __slots__ = ("component", "has_origin", "method", "read", "steps", "stream")

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
        self.has_origin = False


class Program:
    """The processing of a component's tuples.

    Attributes:
        entries: Its inputs.
        sinks: Its output streams.
        steps: All its steps.
        passing: The passing on of watermarks; None: there are none.
    """

    def __init__(
        self, entries: Sequence[Entry], steps: Sequence[Step], sinks: Sequence[Sink], passing: Passing | None = None
    ) -> None:
        self.passing = passing
        self.entries = list(entries)
        self.steps = list(steps)
        self.sinks = list(sinks)

    def bind(self, memory: Memory) -> None:
        """Set the task's memory in the operations that need one."""
        for step in self.steps:
            if isinstance(step.operation, Keyed):
                step.operation.memory = memory


class Machine:
    """A program at work in a task.

    Args:
        program: The program.
        memory: The memory of the task.
        passing: Passes on watermarks in the task.
    """

    def __init__(self, program: Program, memory: Memory, passing: PassingTask | None = None) -> None:
        program.bind(memory)
        self._passing = passing
        self._path: Path = ("", None)  # that of the elements at work
        self._with_origin = {(entry.component, entry.stream) for entry in program.entries if entry.has_origin}
        self._outputs: list[tuple[Sink, list[Any]]] = []
        self._memory = memory
        self._pushes: dict[int, Callable[[list[Any]], None]] = {}
        self._entries = {
            (entry.component, entry.stream): (entry.read, self._all(entry.steps, entry.method))
            for entry in program.entries
        }
        self._starts = {step.name: self._push(step) for step in program.steps}

    def run(self, batches: Iterable[Tuples]) -> list[tuple[Sink, list[Any]]]:
        """Return the results of some tuples: for each sink its elements.

        Args:
            batches: Tuples, each batch of one input.

        Raises:
            MultilangError: A stage's function raised an exception. Nothing has changed then.
        """
        outputs: list[tuple[Sink, list[Any]]] = []
        self._outputs = outputs
        try:
            for tups in batches:
                read, push = self._entries[tups.component, tups.stream]
                for part in self._by_path(tups):
                    push(read(part))
        except BaseException:
            self._memory.discard()
            raise
        return outputs

    def start(self, step: str, elements: list[Any], of: Tuple | None = None) -> list[tuple[Sink, list[Any]]]:
        """Return the results of elements from a step on. ``of``: the tuple that they come of, if it is one."""
        if self._passing is not None:
            self._follow(self._passing.here if of is None else self._path_of(of))
        outputs: list[tuple[Sink, list[Any]]] = []
        self._outputs = outputs
        self._starts[step](elements)
        return outputs

    def _by_path(self, tups: Tuples) -> Iterable[Tuples]:
        """Yield the tuples of each path, in order, while it is the current path."""
        if self._passing is None:
            yield tups
        elif not isinstance(tups, TupleList) and (
            (tups.component, tups.stream) not in self._with_origin or len({row[-1] for row in tups.rows}) == 1
        ):  # which are all of one task
            self._follow(self._path_of(tups[0]))
            yield tups
        else:
            parts: dict[Path, TupleList] = {}
            for tup in tups:
                parts.setdefault(self._path_of(tup), TupleList()).append(tup)
            for path, part in parts.items():
                self._follow(path)
                yield part

    def _path_of(self, tup: Tuple) -> Path:
        assert self._passing is not None
        return self._passing.path_of(tup, (tup.component, tup.stream) in self._with_origin)

    def _follow(self, path: Path) -> None:
        """Set the path of the next elements."""
        assert self._passing is not None
        self._path = path
        self._passing.meet(path)

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
                raise stage_error(name, error) from error
            if found:
                onward(found)

        if method == "apply":
            self._pushes[id(step)] = push
        return push

    def _sink(self, sink: Sink) -> Callable[[list[Any]], None]:
        def push(elements: list[Any]) -> None:
            self._outputs.append((sink, [(self._path, elements)] if sink.passes else elements))

        return push
