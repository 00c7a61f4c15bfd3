"""The window that ``process_window`` gets."""

from __future__ import annotations

from multilang.protocol.codec import dumps
from multilang.windowing.panes import EARLY, LATE, ON_TIME, RETRACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple
    from multilang.windowing.aggregates import Aggregate
    from multilang.windowing.panes import Key, Pane

__all__ = ["EARLY", "LATE", "ON_TIME", "RETRACTED", "Window"]


class Window:
    """A window in evaluation. It may be used until ``process_window`` returns.

    Attributes:
        key: The value of the field in ``key_by``, or a tuple of values if there are several; None without ``key_by``.
        start: The time before its first moment, in milliseconds: a window by duration holds the times after ``start``
            up to and with ``end``. A session's start is the time of its first tuple. None if the length is a count.
        end: The time of its end, in milliseconds. A session ends one gap after its last tuple. A window by count ends
            with its last tuple.
        timing: "on time"; or "early" if tuples are still expected, or "late" if it was evaluated before and a late tuple
            arrived; or "retracted" if it is a session that was evaluated before, and another one has its tuples now.
        number: The number of earlier evaluations of a window with this id.
        count: The number of its tuples.
    """

    __slots__ = (
        "_aggregate",
        "_expired",
        "_new",
        "_panes",
        "_place",
        "count",
        "end",
        "key",
        "number",
        "start",
        "timing",
    )

    def __init__(
        self,
        key: Key,
        bounds: tuple[int | None, int],
        panes: Sequence[Pane],
        count: int,
        new: Sequence[Pane],
        expired: Sequence[Tuple] | str,
        aggregate: Aggregate | None,
        timing: str,
        number: int,
        place: Sequence[int | None],
    ) -> None:
        self.key = key
        self.start, self.end = bounds
        self.timing = timing
        self.number = number
        self.count = count
        self._panes = panes
        self._new = new
        self._expired = expired
        self._aggregate = aggregate
        self._place = place

    @property
    def id(self) -> str:
        """A text that is unique among this bolt's windows, and the same at each evaluation.

        Emit it with ``number`` and ``timing``, and a sink can store results under id and number: a replayed result then
        replaces itself, and of an id the one with the greatest number counts, unless it is "retracted".
        """
        task, *place = self._place
        return dumps([self.key if task is None else task, *place])  # a key may be None, too

    @property
    def tuples(self) -> list[Tuple]:
        """Its tuples: by event time in the order of arrival within each slice, otherwise in the order of arrival.

        Raises:
            TypeError: The bolt has an aggregate, so that tuples are not stored.
        """
        self._check_has_tuples("tuples")
        return [tup for pane in self._panes for tup in pane.accumulator]

    @property
    def new(self) -> list[Tuple]:
        """Those of its tuples that the window before did not have.

        Raises:
            TypeError: The bolt has an aggregate, so that tuples are not stored.
        """
        self._check_has_tuples("new")
        return [tup for pane in self._new for tup in pane.accumulator]

    @property
    def expired(self) -> list[Tuple]:
        """The tuples that windows had, and none has any more, since the window before this one.

        They are acked. So a sum that is updated by ``new`` and ``expired`` is always that of ``tuples``.

        Raises:
            TypeError: They are not kept: with ``key_by`` unless ``keep_expired`` is set, and with an aggregate or state.
        """
        self._check_has_tuples("expired")
        if isinstance(self._expired, str):
            raise TypeError(self._expired)
        return list(self._expired)

    @property
    def result(self) -> Any:
        """The result of the aggregate.

        Raises:
            TypeError: The bolt has no aggregate, or its aggregate returns nothing.
        """
        aggregate, panes = self._aggregate, self._panes
        if aggregate is None:
            raise TypeError(
                "window.result is an aggregate's: set aggregate = Count(), for example, or use window.tuples"
            )
        accumulator = panes[0].accumulator
        for pane in panes[1:]:
            accumulator = aggregate.merge(accumulator, pane.accumulator)
        if accumulator is None and aggregate.init() is not None:
            raise TypeError(
                f"{type(aggregate).__name__}.add or its merge returned None: return the accumulator, also if it is the same object, changed"
            )
        return aggregate.result(accumulator)

    def _check_has_tuples(self, name: str) -> None:
        if self._aggregate is not None:
            raise TypeError(
                f"window.{name}: a bolt with an aggregate keeps no tuples; use window.result, or set aggregate = None"
            )

    def __repr__(self) -> str:
        key = "" if self.key is None else f"{self.key!r}, "
        return f"<Window {key}({self.start}, {self.end}], {self.count} tuples, {self.timing}>"
