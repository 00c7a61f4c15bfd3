"""Operations on windows, and the bolts that run them: windowed bolts with a program for each window."""

from __future__ import annotations

from datetime import timedelta

from multilang.helpers.copies import copied
from multilang.streams.bolts import Programmed
from multilang.streams.keys import decode
from multilang.streams.operations import Operation
from multilang.windowing.aggregates import Aggregate
from multilang.windowing.bolt import WindowedBolt
from multilang.windowing.declared import DeclaredWindows
from multilang.windowing.stateful import StatefulWindowedBolt
from multilang.windowing.window import RETRACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.streams.folds import Fold
    from multilang.streams.program import Program
    from multilang.windowing.passed import Ways
    from multilang.windowing.specs import Session, Sliding
    from multilang.windowing.window import Window

LEFT, RIGHT = ".left", ".right"
LATE = "late"


class WindowSettings:
    """The declaration of windows, as ``KeyedStream.window`` takes it; the names are those of WindowedBolt."""

    __slots__ = ("allowed_lateness", "idle_after", "lag", "timed", "watermark_interval", "window")

    def __init__(
        self,
        window: Sliding | Session,
        timed: bool,
        lag: timedelta | None = None,
        allowed_lateness: timedelta | None = None,
        idle_after: timedelta | None = None,
        watermark_interval: timedelta | None = None,
    ) -> None:
        self.window = window
        self.timed = timed
        self.lag = lag
        self.allowed_lateness = allowed_lateness
        self.idle_after = idle_after
        self.watermark_interval = watermark_interval

    @property
    def interval_secs(self) -> float:
        """The seconds between two watermarks."""
        given: Any = self.watermark_interval
        interval = DeclaredWindows.watermark_interval if given is None else given
        return _seconds(interval) or 1.0

    @property
    def idle_secs(self) -> float:
        """The seconds after which a silent source is left out; 0 if it is not."""
        return _seconds(self.idle_after)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WindowSettings):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name in self.__slots__[:1] if (value := getattr(self, name)) is not None]
        return ", ".join([repr(self.window), *given])


def _seconds(given: Any) -> float:
    """Return a duration in seconds; 0 for anything else, which is refused later."""
    return max(given.total_seconds(), 0.0) if isinstance(given, timedelta) else 0.0


class Windowed(Operation):
    """The base of operations on windows: each makes triples of a key, its window with the result's number in it, and a result."""

    is_head = True
    needs_values = True

    def __init__(self, name: str, settings: WindowSettings) -> None:
        self.name = name
        self.settings = settings

    def apply(self, elements: list[Any]) -> list[Any]:
        return elements

    def results(self, window: Window) -> list[Any]:
        """Return the results of a window."""
        raise NotImplementedError


class WindowFold(Windowed):
    """The fold of a window's values.

    Attributes:
        fold: The fold.
    """

    def __init__(self, name: str, settings: WindowSettings, fold: Fold) -> None:
        super().__init__(name, settings)
        self.fold = fold
        self.needs_values = fold.needs_values

    def results(self, window: Window) -> list[Any]:
        return [window.result]


class WindowJoin(Windowed):
    """Pairs of the values of two streams that are in one window.

    Args:
        name: The operation's name.
        settings: The windows, the same for both.
        combine: Makes results of the values of a key on the left and on the right.
    """

    def __init__(
        self, name: str, settings: WindowSettings, combine: Callable[[list[Any], list[Any]], list[Any]]
    ) -> None:
        super().__init__(name, settings)
        self.combine = combine

    def results(self, window: Window) -> list[Any]:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for tup in window.tuples:
            sides[tup.stream.endswith(RIGHT)].append(tup.values[1])
        return self.combine(*sides)


def inner(left: list[Any], right: list[Any]) -> list[Any]:
    """Return each value of the left with each of the right."""
    return [(one, other) for one in left for other in right]


def left_outer(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the inner join; the left's values with None if the right has none."""
    return inner(left, right or [None])


def right_outer(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the inner join; the right's values with None if the left has none."""
    return inner(left or [None], right)


def full_outer(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the inner join; the values of one side with None if the other has none."""
    return inner(left or [None], right or [None])


def grouped(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the pair of both lists."""
    return [(left, right)]


class Results(Operation):
    """Windows' results alone, without those that are retracted."""

    name = "result"

    def apply(self, elements: list[Any]) -> list[Any]:
        return [(key, result) for key, (window, _), result in elements if window.timing != RETRACTED]


class WithEnd(Operation):
    """Windows' results, each a pair of the window's end and the result, without those that are retracted."""

    name = "with_end"

    def apply(self, elements: list[Any]) -> list[Any]:
        return [(key, (window.end, result)) for key, (window, _), result in elements if window.timing != RETRACTED]


class WithWindow(Operation):
    """Windows' results, each a pair of a dict with the window's properties and the result."""

    name = "with_window"

    def apply(self, elements: list[Any]) -> list[Any]:
        return [(key, (_known(window, row), result)) for key, (window, row), result in elements]


def _known(window: Window, row: int) -> dict[str, Any]:
    return {
        "id": window.id,
        "number": window.number,
        "row": row,
        "timing": window.timing,
        "start": window.start,
        "end": window.end,
    }


class Late(Operation):
    """The pairs that were too late for their windows."""

    name = "late"
    is_head = True

    def apply(self, elements: list[Any]) -> list[Any]:
        return elements


class _OfValues(Aggregate):
    """A fold as the aggregate of a windowed bolt."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold

    def init(self) -> Any:
        return self._fold.init()

    def add(self, accumulator: Any, tup: Any) -> Any:
        return self._fold.add(accumulator, tup.values[1])

    def merge(self, first: Any, second: Any) -> Any:
        if self._fold.merge is None:
            return super().merge(first, second)
        return self._fold.merge(copied(first), copied(second))  # either is part of other windows, too

    def result(self, accumulator: Any) -> Any:
        result = self._fold.result
        own = copied(accumulator)
        return own if result is None else result(own)


class WindowProgram(Programmed, WindowedBolt):
    """Runs a program for each window.

    Args:
        name: The stage of the windows.
        operation: Its operation.
        program: The program, in which the stage is a step.
        explained: See Programmed.
        has_late: Whether late pairs have a subscriber.
        ways: The paths of elements to the windows, if they have a time.
    """

    key_by = "key"

    def __init__(
        self,
        name: str,
        operation: Windowed,
        program: Program,
        explained: Sequence[str],
        has_late: bool,
        ways: Ways | None,
    ) -> None:
        super().__init__(program, explained)
        self.ways = ways
        settings = operation.settings
        self.window = settings.window
        self.timestamp_field = "ts" if settings.timed else None
        for setting in ("lag", "allowed_lateness", "watermark_interval"):
            if getattr(settings, setting) is not None:
                setattr(self, setting, getattr(settings, setting))
        self.idle_after = settings.idle_after
        self.late_stream = LATE if has_late else None
        self.aggregate = _OfValues(operation.fold) if isinstance(operation, WindowFold) else None
        self._stage = name
        self._operation = operation

    def process_window(self, window: Window) -> None:
        wire: Any = window.key
        key = decode(wire)
        results = [(key, (window, row), result) for row, result in enumerate(self._operation.results(window))]
        if results:
            self.send(self._machine.start(self._stage, results))


class StatefulWindowProgram(WindowProgram, StatefulWindowedBolt):
    """A WindowProgram whose windows are part of its topology's checkpoints."""
