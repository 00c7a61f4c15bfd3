"""Watermarks that are passed on: tasks between sources and windows forward the least watermark of their inputs.

The elements that one task of a source sends to one task downstream stay in order: the pair of tasks is their *origin*.
That second task, the *first* of the origin, begins a new round for it every so often, if there were elements: after the
elements, it sends the number of the round to each task that its elements may reach. Such a task forwards the number as
soon as it has arrived by each *channel*, which is a task that may send elements of the origin: no element before that
round can arrive any more. The number arrives at the windows with the greatest time of the origin's elements before it;
the least of these, over all origins, is the watermark. So an element is late at its windows only if its own source's task
had sent a later one before (less the lag), and no task need get elements of each origin.

A round is one tuple, on a stream beside that of the elements, so that it arrives after them. Its value is a list of
``[origin, number, greatest time]``. The next round makes up for one that is lost with a task that dies. Where windows
leave out idle origins, rounds are sent for a while without elements: rounds without a later time mean that an origin is
idle, with nothing in flight. If no element of an origin arrives at the windows for 30 seconds, since a filter drops them
all, the windows continue without it, too.
"""

from __future__ import annotations

from multilang.windowing.watermarks import Watermarks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple

    Channel = tuple[str, str, int]
    """A component, its stream of elements, and one of its tasks."""

PREFIX = "$watermark."
"""The beginning of the name of a stream of rounds; the name of the stream of the elements follows."""

ROUNDS = ("rounds",)
"""The fields of such a stream."""

_MOST = 100  # rounds of an origin that are not complete
BARREN_MS = 30_000  # after which elements that don't arrive at the windows no longer hold them up
_LOST_MS = 30_000  # without a round of an origin that is not idle: the task where it begins has ended


class Ways:
    """The paths of elements to a component: the declaration, as plain data.

    Attributes:
        firsts: The first components of origins, each with the components that it gets elements from; one that makes the
            elements itself has none.
        inputs: The inputs, as component and stream, each with the first components whose elements arrive by it.
    """

    def __init__(self, firsts: Mapping[str, Sequence[str]], inputs: Mapping[tuple[str, str], Sequence[str]]) -> None:
        self.firsts = {first: list(sources) for first, sources in firsts.items()}
        self.inputs = {place: list(found) for place, found in inputs.items()}


def channel_of(tup: Tuple) -> Channel:
    """Return the channel of a tuple of elements or of rounds."""
    return tup.component, tup.stream.removeprefix(PREFIX), tup.task


def origin_of(first: int, source: int | None = None) -> str:
    """Return the name of an origin: the task that is the first, and that of the source, if it is another one."""
    return str(first) if source is None else f"{first}.{source}"


class Rounds:
    """The incomplete rounds that have arrived at a task.

    Args:
        ways: The paths of elements to the task.
        context: The task's context.
    """

    def __init__(self, ways: Ways, context: Context) -> None:
        self._ways = ways
        self._context = context
        self._expected: dict[str, int] = {}  # the number of an origin's channels
        self._open: dict[str, dict[int, dict[Channel, Any]]] = {}
        self._latest: dict[str, dict[Channel, int]] = {}  # the last round of an origin by each channel

    def origins(self) -> dict[str, str]:
        """Return all origins, each with the component of its source."""
        tasks = self._context.tasks
        found = {}
        for first, sources in self._ways.firsts.items():
            for task in tasks(first):
                if not sources:
                    found[origin_of(task)] = first
                for source in sources:
                    found.update({origin_of(task, each): source for each in tasks(source)})
        return found

    def arrive(self, origin: str, number: int, channel: Channel, value: Any) -> list[Any] | None:
        """Note a round that has arrived by a channel, with a value.

        Returns:
            The values of all channels, if it is complete; None otherwise.
        """
        rounds = self._open.setdefault(origin, {})
        latest = self._latest.setdefault(origin, {})
        if number < latest.get(channel, number):  # the first has restarted, with another clock
            rounds.clear()
            latest.clear()
        latest[channel] = number
        for each in list(rounds):
            if each < number and channel not in rounds[each]:
                del rounds[each]  # it will never arrive by this channel
        if number not in rounds and any(each > number for each in latest.values()):
            return None  # it will never arrive by another channel
        values = rounds.setdefault(number, {})
        values[channel] = value
        if len(values) < self._channels(origin):
            if len(rounds) > _MOST:  # a channel is far behind: every second one is enough
                for each in list(rounds)[:-1:2]:
                    del rounds[each]
            return None
        for each in list(rounds):  # those before it arrived before it by each channel
            del rounds[each]
            if each == number:
                break
        return list(values.values())

    def _channels(self, origin: str) -> int:
        number = self._expected.get(origin)
        if number is None:
            first = self._context.task_component[int(origin.partition(".")[0])]
            number = self._expected[origin] = sum(
                1 if component == first else len(self._context.tasks(component))
                for (component, _), firsts in self._ways.inputs.items()
                if first in firsts
            )
        return number


class PassedWatermarks(Watermarks):
    """The watermark of a task whose inputs pass on theirs.

    Args:
        ways: The paths of elements to the task.
        context: The task's context.
        lag_ms: The milliseconds by which tuples may be out of order.
        idle_ms: The milliseconds of silence after which an origin is idle; None: never.
        now: The time of the clock, in milliseconds.
    """

    def __init__(self, ways: Ways, context: Context, lag_ms: int, idle_ms: int | None, now: float) -> None:
        super().__init__({}, lag_ms, idle_ms, now)
        self._rounds = Rounds(ways, context)
        self._origins = self._rounds.origins()
        self._marks: dict[str, int] = {}  # of each origin
        self._marked: dict[str, float] = {}  # when it had its last mark; before that, its first round
        self._last_rounds: dict[str, float] = {}  # when it had its last round

    def take(self, rounds: Iterable[Sequence[Any]], channel: Channel, now: float) -> None:
        """Take rounds that arrived by a channel."""
        for origin, number, greatest in rounds:
            if origin not in self._origins:
                continue  # of a task of another run
            found = self._rounds.arrive(origin, number, channel, greatest)
            if found is None:
                continue
            if not self._last_rounds:
                self._began = now
            self._last_rounds[origin] = now
            self._marked.setdefault(origin, now)
            latest = max((time for time in found if time is not None), default=None)
            before = self._marks.get(origin)
            if latest is not None and (before is None or latest > before):
                self._marks[origin] = latest
                self._marked[origin] = now

    def _is_idle(self, origin: str, now: float) -> bool:
        idle_ms = self._idle_ms
        if idle_ms is None:  # there are rounds only of origins with new elements, none of which reached the windows
            return origin in self._last_rounds and self._is_barren(origin, BARREN_MS)
        if origin not in self._last_rounds:
            return now - self._began >= idle_ms
        last_round = self._last_rounds[origin]
        return self._is_barren(origin, idle_ms) or now - last_round >= max(idle_ms, _LOST_MS)

    def _is_barren(self, origin: str, ms: float) -> bool:
        """Return whether rounds of an origin have arrived for so long without a later time."""
        return self._last_rounds[origin] - self._marked[origin] >= ms

    def _waits(self, now: float) -> bool:
        return any(origin not in self._marks and not self._is_idle(origin, now) for origin in self._origins)

    def _least(self, now: float) -> int | None:
        active = [mark for origin, mark in self._marks.items() if not self._is_idle(origin, now)]
        if not active and self._idle_ms is None:
            active = [*self._marks.values()]
        return min(active, default=None)

    def barren(self, now: float) -> set[tuple[str, int]]:
        """Return the sources, as (component, task), that windows leave out since no elements of them arrive."""
        if self._idle_ms is not None:
            return set()  # idle_after leaves them out
        return {
            (self._origins[each], int(each.split(".")[-1])) for each in self._last_rounds if self._is_idle(each, now)
        }

    def silent(self) -> list[tuple[str, str]]:
        """Return the sources, as (component, stream), of which a task has sent nothing to the windows yet."""
        sources = dict.fromkeys(source for origin, source in self._origins.items() if origin not in self._marks)
        return [(source, "default") for source in sources]

    def saved(self) -> dict[str, Any]:
        return {**super().saved(), "marks": self._marks}

    def restore(self, saved: Mapping[str, Any], now: float, tasks: Mapping[int, str]) -> None:
        super().restore(saved, now, tasks)
        self._marks = {origin: mark for origin, mark in saved.get("marks", {}).items() if origin in self._origins}
        self._last_rounds = dict.fromkeys(self._marks, now)
        self._marked = dict(self._last_rounds)
