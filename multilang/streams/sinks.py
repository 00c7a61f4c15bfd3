"""The output streams of a program, and the conversion of elements to their rows."""

from __future__ import annotations

from multilang.component.errors import FailedException
from multilang.component.streams import Stream
from multilang.streams.errors import stage_error
from multilang.streams.keys import encode, part_of
from multilang.streams.marks import ORIGIN
from multilang.windowing.passed import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.streams.folds import Fold
    from multilang.streams.marks import PassingTask, Path

VALUE = ("value",)
KEY_AND_VALUE = ("key", "value")
KEY_VALUE_TIME = ("key", "value", "ts")


class Sink:
    """One output stream.

    Attributes:
        stage: The stage whose elements it gets.
        stream: The stream's name.
        fields: The stream's fields.
        combines: Whether it gains by many elements at once.
        looks_at_values: Whether it needs the values of pairs, and not their keys alone.
        takes_keys: Whether its elements are keys alone, and not pairs; it may be set for a sink that uses no values.
        passes: Whether watermarks are passed on by the stream; its elements are then pairs of a path and elements.
        timed: Whether its rows have a time.
        leads: Whether leads carry the origin of its rows; if neither is set, the rows have its name.
    """

    combines = False
    looks_at_values = True
    takes_keys = False
    passes = False
    timed = False
    leads = False

    def __init__(self, stage: str, stream: str, fields: Sequence[str]) -> None:
        self.stage = stage
        self.stream = stream
        self.fields = list(fields)

    def declared(self) -> Stream:
        """Return the declaration of its stream."""
        return Stream([*self.fields, ORIGIN] if self.passes and not self.timed and not self.leads else self.fields)

    def start(self, context: Context, passing: PassingTask | None) -> None:
        """Note its task, and what passes on watermarks there."""
        self._passing = passing

    def all_rows(self, elements: list[Any]) -> list[tuple[str, list[list[Any]]]]:
        """Return the rows for some elements, and the leads for them, each list with its stream."""
        passing = self._passing
        if not self.passes or passing is None:
            return [(self.stream, self.rows(elements))]
        parts: dict[Path, list[Any]] = {}
        for path, part in elements:
            parts.setdefault(path, []).extend(part)
        if self.leads:
            return [
                each
                for path, part in parts.items()
                for each in (
                    (PREFIX + self.stream, passing.lead_rows(self.stream, path)),
                    (self.stream, self.rows(part)),
                )
            ]
        found: list[list[Any]] = []
        for path, part in parts.items():
            rows = self.rows(part)
            if self.timed:
                passing.note(self.stream, path, [row[2] for row in rows])
                found += rows
            else:
                found += [[*row, path[0]] for row in rows]
        return [(self.stream, found)]

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        """Return the rows for some elements, with the fields that are its own."""
        raise NotImplementedError


class Values(Sink):
    """A stream of elements."""

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        return [[element] for element in elements]


class Pairs(Sink):
    """A stream of pairs."""

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        return [[encode(key), value] for key, value in elements]


class Keys(Sink):
    """A stream of pairs whose values are not used."""

    looks_at_values = False

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        if self.takes_keys:
            return [[encode(key), None] for key in elements]
        return [[encode(key), None] for key, _ in elements]


class Triples(Sink):
    """A stream of keys, values and times."""

    timed = True

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        return [[encode(key), value, ts] for key, value, ts in elements]


class TimedKeys(Sink):
    """A stream of keys and times, with values that are not used."""

    timed = True

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        return [[encode(key), None, ts] for key, _, ts in elements]


class Forwarded(Sink):
    """A stream of a spout's or bolt's own tuples, as they are."""

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        return [element.values for element in elements]


class Named(Sink):
    """A stream for a user's bolt: each element's items are the values of its fields."""

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        width = len(self.fields)
        if width == 1:
            return [[element] for element in elements]
        for element in elements:
            if not isinstance(element, list | tuple) or len(element) != width:
                raise stage_error(
                    self.stage,
                    ValueError(
                        f"the element {element!r:.80} has no {width} items for the fields {', '.join(self.fields)}"
                    ),
                )
        return [list(element) for element in elements]


class Partials(Sink):
    """A stream of partial results: all keys of one task of the target in one tuple, each with its accumulator.

    Args:
        stage: The stage whose elements it gets.
        target: The component that merges them, also the stream's name.
        fold: The way in which they are combined.
    """

    combines = True

    def __init__(self, stage: str, target: str, fold: Fold) -> None:
        super().__init__(stage, target, ("part", "partials"))
        self._fold = fold
        self.looks_at_values = fold.needs_values
        self._target = target
        self._tasks = 1

    def start(self, context: Context, passing: PassingTask | None) -> None:
        super().start(context, passing)
        self._tasks = len(context.tasks(self._target))

    def rows(self, elements: list[Any]) -> list[list[Any]]:
        try:
            fold = self._fold
            partials = fold.partial_of_keys(elements) if self.takes_keys else fold.partial(elements)
        except FailedException:
            raise
        except Exception as error:
            raise stage_error(self._target, error) from error
        parts: dict[int, list[Any]] = {}
        tasks = self._tasks
        for key, accumulator in partials.items():
            wire = encode(key)
            parts.setdefault(part_of(wire, tasks) if tasks > 1 else 0, []).append([wire, accumulator])
        return [[part, partials] for part, partials in parts.items()]
