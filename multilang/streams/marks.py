"""The passing on of watermarks by the bolts of a program (see multilang.windowing.passed).

The time of an element is known where it is sent to its windows. There a task keeps the greatest time of each origin, by the
channel that the elements came by. Elements that are sent elsewhere carry the name of their origin.
"""

from __future__ import annotations

from multilang.component.streams import Stream
from multilang.windowing.batches import batch_of
from multilang.windowing.passed import PREFIX, ROUNDS, Rounds, channel_of, origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from multilang.component.bolt import AnchoredBolt
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple
    from multilang.windowing.passed import Channel, Ways

    Noted = dict[str, dict[str, int | None]]
    """The greatest times of origins, by stream."""

    Path = tuple[str, Channel | None]
    """The origin of an element, and the channel that it came by; None: its origin begins here."""

ORIGIN = "origin"
"""The field with the name of an element's origin."""


class Passing:
    """The declaration of what the tasks of a component do to pass on watermarks.

    Attributes:
        ways: How elements come to the component.
        secs: The seconds between two rounds.
        idle_secs: The seconds for which rounds go on without elements.
        sources: The components from which elements come whose origins begin here; none: the component makes them itself.
        timed: The streams to windows, whose rows have a time.
        plain: The streams to components that pass on watermarks, too.
    """

    def __init__(self, ways: Ways) -> None:
        self.ways = ways
        self.secs = 60.0
        self.idle_secs = 0.0
        self.sources: list[str] = []
        self.timed: list[str] = []
        self.plain: list[str] = []

    def declared(self) -> dict[str, Stream]:
        """Return the streams of the rounds."""
        return {PREFIX + stream: Stream(list(ROUNDS)) for stream in (*self.timed, *self.plain)}


class PassingTask:
    """Passes on watermarks in a task.

    Args:
        passing: What there is to do.
        bolt: The bolt.
        conf: Its conf.
        context: Its task's place.

    Attributes:
        here: The path of what the task makes by itself.
    """

    def __init__(self, passing: Passing, bolt: AnchoredBolt, conf: Mapping[str, Any], context: Context) -> None:
        self._passing = passing
        self._bolt = bolt
        self._me = context.task
        self._rounds = Rounds(passing.ways, context)
        self._has_rounds = batch_of(conf) is None
        self._greatest: dict[str, dict[Path, int]] = {stream: {} for stream in passing.timed}
        self._new: list[tuple[dict[Path, int], Path, int]] = []  # what was noted since the last commit
        self._met: dict[str, None] = {}  # the origins that begin here, of which elements came since the last round
        self._silent: dict[str, float] = {}  # the others, if there are rounds of them: since when
        self._begun: dict[int, Path] = {}  # by the source's task
        self._number = 0
        self._is_armed = False
        self.here: Path = (origin_of(context.task), None)

    def path_of(self, tup: Tuple, has_origin: bool) -> Path:
        """Return the path of the element of a tuple. ``has_origin``: whether the tuple tells its origin."""
        if has_origin:
            return tup.values[-1], channel_of(tup)
        path = self._begun.get(tup.task)
        if path is None:
            path = self._begun[tup.task] = origin_of(self._me, tup.task), None
        return path

    def meet(self, path: Path) -> None:
        """Take note that there are elements of a path. What becomes of them does not matter."""
        origin, channel = path
        if channel is None and self._has_rounds and origin not in self._met:
            if not self._is_armed:
                self._arm()
            self._met[origin] = None

    def _arm(self) -> None:
        """Set the timer of the next round, or of all rounds where some have no elements."""
        self._is_armed = True
        passing, context, every = self._passing, self._bolt.context, None
        if passing.idle_secs:
            every = passing.secs
            now = self._bolt.clock.monotonic()
            tasks = [task for source in passing.sources for task in context.tasks(source)]
            self._silent = dict.fromkeys(
                [origin_of(self._me, task) for task in tasks] if passing.sources else [self.here[0]], now
            )
        self._bolt.set_timer(passing.secs, self._begin, every=every)

    def note(self, stream: str, path: Path, times: Iterable[Any]) -> None:
        """Take note of the times of a path's elements that are sent to windows."""
        whole = [time for time in times if type(time) is int]  # windows refuse others
        if whole:
            self._new.append((self._greatest[stream], path, max(whole)))

    def commit(self) -> None:
        """Keep what was noted, since the elements were sent."""
        for there, path, time in self._new:
            there[path] = max(there.get(path, time), time)
        self._new.clear()

    def discard(self) -> None:
        """Forget what was noted since ``commit``, since the elements were not sent."""
        self._new.clear()

    def noted(self, tup: Tuple) -> Noted:
        """Return the greatest times by the channel of rounds, as they are known now: for each origin, those of the streams."""
        channel = channel_of(tup)
        return {origin: self._times((origin, channel)) for origin, _, _ in tup.values[0]}

    def _times(self, path: Path) -> dict[str, int | None]:
        """Return the greatest time of a path for each stream."""
        return {stream: there.get(path) for stream, there in self._greatest.items()}

    def take(self, tup: Tuple, noted: Noted | None = None) -> None:
        """Take rounds of a task before this one, and pass on those that are complete.

        Args:
            tup: The rounds.
            noted: The greatest times before them; None: those of now.
        """
        times, channel, complete = self.noted(tup) if noted is None else noted, channel_of(tup), []
        for origin, number, _ in tup.values[0]:
            found = self._rounds.arrive(origin, number, channel, times[origin])
            if found is not None:
                complete.append((origin, number, found))
        self._send(complete)

    def _begin(self) -> None:
        """Begin a round for the origins that begin here."""
        met, self._met = self._met, {}
        idle_secs = self._passing.idle_secs
        if idle_secs:
            now = self._bolt.clock.monotonic()
            self._silent.update(dict.fromkeys(met, now))
            met = dict.fromkeys(self._silent)
            self._silent = {origin: since for origin, since in self._silent.items() if now - since < idle_secs}
        else:
            self._is_armed = False
        self._number = max(self._number + 1, int(self._bolt.clock.time() * 1000))
        self._send([(origin, self._number, [self._times((origin, None))]) for origin in met])

    def _send(self, rounds: list[tuple[str, int, list[dict[str, int | None]]]]) -> None:
        """Send rounds with the greatest times by all channels, behind the elements."""
        if not rounds:
            return
        for stream in self._passing.timed:
            rows: list[list[Any]] = []
            for origin, number, found in rounds:
                times = [time for each in found if (time := each[stream]) is not None]
                rows.append([origin, number, max(times, default=None)])
            self._bolt.emit([rows], PREFIX + stream, [])
        for stream in self._passing.plain:
            self._bolt.emit([[[origin, number, None] for origin, number, _ in rounds]], PREFIX + stream, [])
