"""The kinds of windows: tumbling and sliding ones, by count or duration, and sessions."""

from __future__ import annotations

from datetime import timedelta

from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Size: TypeAlias = int | timedelta

_LONGEST_MS = 2**31 - 1  # Storm's Duration is an int of milliseconds
_MOST = 2**31 - 1  # and its Count an int


def milliseconds(number: float) -> timedelta:
    """Return a duration of so many milliseconds."""
    return _duration("milliseconds", number)


def seconds(number: float) -> timedelta:
    """Return a duration of so many seconds."""
    return _duration("seconds", number)


def minutes(number: float) -> timedelta:
    """Return a duration of so many minutes."""
    return _duration("minutes", number)


def hours(number: float) -> timedelta:
    """Return a duration of so many hours."""
    return _duration("hours", number)


def days(number: float) -> timedelta:
    """Return a duration of so many days."""
    return _duration("days", number)


def _duration(unit: str, number: object) -> timedelta:
    if isinstance(number, int | float) and not isinstance(number, bool):
        try:
            return timedelta(**{unit: number})
        except (OverflowError, ValueError):  # not finite, or too long
            pass
    raise ConfigError(
        f"{unit}({number!r}) is no duration; give a finite number that is not above 24.8 days, such as {unit}(10)"
    )


class Sliding:
    """Windows of one length, of which one ends at every slide (Storm's ``withWindow``).

    A length or slide that is a whole number counts tuples; one that is a ``timedelta``, as ``seconds(10)`` makes, is a
    duration. Each of the four combinations is possible.

    Args:
        length: The length of a window.
        slide: The distance between the ends of two windows; 1 tuple unless given.

    Raises:
        ConfigError: A length or slide is not above 0, or longer than Storm's durations can be.
    """

    def __init__(self, length: Size, slide: Size = 1) -> None:
        self.length = length
        self.slide = slide
        self.length_count, self.length_ms = _sizes(length, f"{self!r}: length")
        self.slide_count, self.slide_ms = _sizes(slide, f"{self!r}: slide")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sliding):
            return NotImplemented
        return (self.length, self.slide) == (other.length, other.slide)

    def __hash__(self) -> int:
        return hash((self.length, self.slide))

    def __repr__(self) -> str:
        return f"Sliding({shown(self.length)}, {shown(self.slide)})"


class Tumbling(Sliding):
    """Windows that follow one another without gap or overlap (Storm's ``withTumblingWindow``).

    Args:
        length: The length of a window: a whole number of tuples, or a duration such as ``seconds(10)``.

    Raises:
        ConfigError: The length is not above 0, or longer than Storm's durations can be.
    """

    def __init__(self, length: Size) -> None:
        super().__init__(length, length)

    def __repr__(self) -> str:
        return f"Tumbling({shown(self.length)})"


class Session:
    """Windows of tuples that follow one another within a gap; a pause as long as the gap ends a session.

    Args:
        gap: The duration without a tuple that ends a session, such as ``minutes(30)``.

    Raises:
        ConfigError: The gap is no duration above 0.
    """

    def __init__(self, gap: timedelta) -> None:
        if not isinstance(gap, timedelta):
            raise ConfigError(f"Session({gap!r}): the gap is a duration; write Session(minutes(30)), for example")
        self.gap = gap
        _, self.gap_ms = _sizes(gap, f"{self!r}: gap")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Session):
            return NotImplemented
        return self.gap == other.gap

    def __hash__(self) -> int:
        return hash(self.gap)

    def __repr__(self) -> str:
        return f"Session({shown(self.gap)})"


def duration_ms(value: object, what: str, least: int = 0) -> int:
    """Return a duration in milliseconds.

    Args:
        value: A ``timedelta``.
        what: The setting, for the message.
        least: The smallest number of milliseconds that may be given.

    Raises:
        ConfigError: It is no duration, or too short or long.
    """
    if not isinstance(value, timedelta):
        raise ConfigError(f"{what} is {value!r}; write a duration, such as seconds(10)")
    ms = value / timedelta(milliseconds=1)
    if ms != int(ms):
        raise ConfigError(f"{what} is {shown(value)}; durations are whole milliseconds")
    if ms < least:
        raise ConfigError(f"{what} is {shown(value)}; write a duration of {least} ms or more")
    if ms > _LONGEST_MS:
        raise ConfigError(f"{what} is {shown(value)}, and Storm's durations have {_LONGEST_MS} ms (24.8 days) at most")
    return int(ms)


def _sizes(value: object, what: str) -> tuple[int, int]:
    """Return a size as (count, milliseconds), one of which is 0."""
    if isinstance(value, timedelta):
        return 0, duration_ms(value, what, 1)
    if type(value) is not int:
        raise ConfigError(f"{what} is {value!r}; write a whole number of tuples, or a duration, such as seconds(10)")
    if value < 1:
        raise ConfigError(f"{what} is {value}; a window has 1 tuple or more")
    if value > _MOST:
        raise ConfigError(f"{what} is more than {_MOST}, which Storm's counts have at most")
    return value, 0


def shown(value: object) -> str:
    """Return a size as it is written in a declaration."""
    if not isinstance(value, timedelta):
        return repr(value)
    secs = value.total_seconds()
    for name, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if secs and secs % size == 0:
            return f"{name}({int(secs // size)})"
    return f"seconds({secs:g})" if secs >= 1 else f"milliseconds({secs * 1000:g})"
