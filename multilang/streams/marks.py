"""The passing on of watermarks by the bolts of a program (see multilang.windowing.passed).

The time of an element is known where it is sent to its windows. There a task stores the greatest time of each origin, by
the channel of the elements. Elements that are sent elsewhere carry the name of their origin, except those to or from a
bolt of the user's, whose tuples are its own: before them, at each change of origin, a *lead* is sent on the stream of
rounds, which is a round without a number.
"""

from __future__ import annotations

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.filters import BoltFilter
from multilang.component.runner import start_bolt
from multilang.component.streams import Stream
from multilang.component.wrapper import Wrapper
from multilang.windowing.batches import batch_of
from multilang.windowing.passed import PREFIX, ROUNDS, Rounds, channel_of, origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from multilang.component.base import Component
    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple
    from multilang.windowing.passed import Channel, Ways

    Noted = dict[str, dict[str, int | None]]
    """The greatest times of origins, by stream."""

    Path = tuple[str, Channel | None]
    """The origin of an element, and its channel; None: its origin begins here."""

ORIGIN = "origin"
"""The field with the name of an element's origin."""


class Passing:
    """The declaration of how the tasks of a component pass on watermarks.

    Attributes:
        ways: The paths of elements to the component.
        secs: The seconds between two rounds.
        idle_secs: The seconds for which rounds are sent without elements.
        sources: The components of the elements whose origins begin here; none: the component makes them itself.
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
        passing: The declaration.
        bolt: The bolt.
        conf: Its conf.
        context: Its task's context.

    Attributes:
        here: The path of elements that the task makes by itself.
    """

    def __init__(self, passing: Passing, bolt: Bolt, conf: Mapping[str, Any], context: Context) -> None:
        self._passing = passing
        self._bolt = bolt
        self._me = context.task
        self._rounds = Rounds(passing.ways, context)
        self._has_rounds = batch_of(conf) is None
        self._greatest: dict[str, dict[Path, int]] = {stream: {} for stream in passing.timed}
        self._new: list[tuple[dict[Path, int], Path, int]] = []  # times noted since the last commit
        self._met: dict[str, None] = {}  # the origins that begin here, with elements since the last round
        self._silent: dict[str, float] = {}  # the others, if there are rounds of them: since when
        self._begun: dict[int, Path] = {}  # by the source's task
        self._led: dict[Channel, Path] = {}  # where tuples carry no origin: that of the lead before them
        self._paths: dict[int, Path] = {}  # by the tuple that waits for others
        self._leads: dict[str, str] = {}  # the origin of the last lead, by stream
        self._number = 0
        self._is_armed = False
        self.here: Path = (origin_of(context.task), None)

    def path_of(self, tup: Tuple, has_origin: bool) -> Path:
        """Return the path of the element of a tuple. ``has_origin``: whether the tuple carries its origin."""
        if has_origin:
            return tup.values[-1], channel_of(tup)
        if self._led:
            led = self._paths.get(id(tup)) or self._led.get(channel_of(tup))
            if led is not None:
                return led
        path = self._begun.get(tup.task)
        if path is None:
            path = self._begun[tup.task] = origin_of(self._me, tup.task), None
        return path

    def takes_lead(self, tup: Tuple) -> bool:
        """Return whether a tuple is a lead; if so, note the origin of its channel's next tuples."""
        origin, number, _ = tup.values[0][0]
        if number is None:
            channel = channel_of(tup)
            self._led[channel] = origin, channel
        return number is None

    def hold(self, tup: Tuple) -> None:
        """Store the path of a tuple that waits for others, until ``release``."""
        path = self._led.get(channel_of(tup)) if self._led else None
        if path is not None:
            self._paths[id(tup)] = path

    def release(self) -> None:
        """Clear the paths of tuples that waited."""
        self._paths.clear()

    def lead_rows(self, stream: str, path: Path) -> list[list[Any]]:
        """Return the lead to send before elements of a path on a stream whose tuples carry no origin, if one is needed."""
        if not self._has_rounds or self._leads.get(stream) == path[0]:
            return []
        self._leads[stream] = path[0]
        return [[[[path[0], None, None]]]]

    def meet(self, path: Path) -> None:
        """Note that there are elements of a path, whether or not they are sent on."""
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
        """Note the times of a path's elements that are sent to windows."""
        whole = [time for time in times if type(time) is int]  # windows refuse others
        if whole:
            self._new.append((self._greatest[stream], path, max(whole)))

    def commit(self) -> None:
        """Commit the noted times, since the elements were sent."""
        for there, path, time in self._new:
            there[path] = max(there.get(path, time), time)
        self._new.clear()

    def discard(self) -> None:
        """Discard the times noted since ``commit``, since the elements were not sent."""
        self._new.clear()
        self._leads.clear()

    def noted(self, tup: Tuple) -> Noted:
        """Return the greatest times so far by the channel of rounds: for each origin, those of the streams."""
        channel = channel_of(tup)
        return {origin: self._times((origin, channel)) for origin, _, _ in tup.values[0]}

    def _times(self, path: Path) -> dict[str, int | None]:
        """Return the greatest time of a path for each stream."""
        return {stream: there.get(path) for stream, there in self._greatest.items()}

    def take(self, tup: Tuple, noted: Noted | None = None) -> None:
        """Take rounds of an upstream task, and pass on those that are complete.

        Args:
            tup: The rounds.
            noted: The greatest times before them; None: the present ones.
        """
        if self.takes_lead(tup):
            return
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
        """Send rounds with the greatest times by all channels, after the elements."""
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
        self._leads.clear()  # so that leads are repeated for a restarted task


class PassingBolt(Wrapper):
    """A user's bolt that passes on watermarks: each of its tuples is of the origin of the one in process.

    Args:
        wrapped: The bolt, see ``lets_pass``.
        factory: See Wrapper.
        passing: The declaration.
    """

    acks_by_itself = True

    def __init__(self, wrapped: Component, factory: type[Component] | None, passing: Passing) -> None:
        super().__init__(wrapped, factory)
        self.passing = passing

    def declared_streams(self) -> dict[str, Stream]:
        return {**super().declared_streams(), **self.passing.declared()}

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._attach(collector, conf, context)
        passing = PassingTask(self.passing, self, conf, context)
        run = start_bolt(self.wrapped, BoltFilter(collector), conf, context)
        emit_many, ack = collector.emit_many, collector.ack

        def execute(tup: Tuple) -> None:
            if tup.stream.startswith(PREFIX):
                passing.take(tup)
                ack(tup)
                return
            if not tup.is_tick:
                path = passing.path_of(tup, False)
                passing.meet(path)
                for stream in self.passing.plain:
                    emit_many(passing.lead_rows(stream, path), PREFIX + stream, [])
            run(tup)

        return execute


def lets_pass(component: object) -> bool:
    """Return whether watermarks can be passed on through a bolt: it emits while it processes a tuple, and then acks it."""
    return (
        isinstance(component, BasicBolt)
        and not component.transformations
        and type(component).process_tick is Bolt.process_tick
    )
