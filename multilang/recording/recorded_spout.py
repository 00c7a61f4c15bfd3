"""A run on a recording: spouts that emit what was recorded, in the place of a topology's own."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.recording.file import Recording
from multilang.state.replayable import ReplayableSpout
from multilang.topology.errors import did_you_mean
from multilang.topology.replace import with_spouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from multilang.component.context import Context
    from multilang.recording.file import Emitted
    from multilang.topology.model import Topology

RECORDED, FAST = "recorded", "fast"


class RecordedSpout(ReplayableSpout):
    """Emits what a spout emitted when it was recorded; what fails now is replayed as by any ReliableSpout.

    The tuples of a recorded task all come from one task, in their order. A tuple that was unreliable is so again. Its
    position is the number of its tuples so far, so that it may take part in checkpoints of exact alignment.

    Args:
        path: The recording.
        spout: The spout that was recorded.
        pace: "recorded": at the times of the recording; "fast": as fast as it goes.
    """

    def __init__(self, path: str, spout: str, pace: str = FAST) -> None:
        self.path = path
        self.spout = spout
        self.pace = pace

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._tasks, self._index = len(context.tasks(context.component)), context.task_index
        self._began: float | None = None
        self._waits = False  # a timer is set for the next tuple
        self.seek(0)

    def position(self) -> int:
        """Return the number of tuples that were emitted."""
        return self._read

    def seek(self, position: int) -> None:
        """Continue after a number of tuples."""
        self._rows = self._own()
        self._read = 0
        self._next = next(self._rows, None)
        while self._read < position:
            if self._next is None:
                raise ConfigError(
                    f"{self.path} has {self._read} tuples of spout {self.spout!r} for this task, and the run that is continued was "
                    f"after {position}: restore the whole recording, or start without the stored state"
                )
            self._advance()

    def identity(self) -> str:
        """Return the recording, with the time at which it began, and the spout."""
        return f"{self.path} of {Recording(self.path).began} {self.spout}"

    def next_tuple(self) -> None:
        if self._next is None:
            return
        if self.pace == FAST:
            self._emit_next()
        elif not self._waits:
            self._wait()

    def _wait(self) -> None:
        """Set a timer for the next tuple: it keeps the time, where a spout that emits nothing is asked ever less often."""
        if self._next is not None:
            now = self.clock.monotonic()
            if self._began is None:
                # Behind a position, the time before it is not waited for.
                self._began = now - (self._next.at if self._read else self._first_at)
            self._waits = True
            self.set_timer(max(0.0, self._began + self._next.at - now), self._emit_due)

    def _emit_due(self) -> None:
        self._waits = False
        assert self._began is not None
        while self._next is not None and self._began + self._next.at <= self.clock.monotonic():
            self._emit_next()
        self._wait()

    def _emit_next(self) -> None:
        found = self._next
        assert found is not None
        self._advance()
        if found.id is None:
            self._collector.emit(found.values, None, found.stream, found.direct)
        else:
            self.emit(found.values, None, found.stream, found.direct)

    def exhausted(self) -> bool:
        return self._next is None

    def _own(self) -> Iterator[Emitted]:
        recording = Recording(self.path)
        self._first_at = recording.first_at
        for each in recording.emitted(self.spout):
            if each.task % self._tasks == self._index:
                yield each

    def _advance(self) -> None:
        self._read += 1
        self._next = next(self._rows, None)


def replayed(topology: Topology, recording: Recording, pace: str = FAST) -> Topology:
    """Return a topology whose spouts emit what was recorded.

    Args:
        topology: The topology.
        recording: The recording, of this topology or of one with the same spouts and streams.
        pace: "recorded": at the times of the recording; "fast": as fast as it goes.

    Raises:
        ConfigError: The recording has other spouts, or other streams of them.
        TopologyError: The spouts can't be replaced.
        ValueError: There is no such pace.
    """
    if pace not in (RECORDED, FAST):
        raise ValueError(f"pace {pace!r}: use {RECORDED!r} or {FAST!r}")
    own = {id: spec for id, spec in topology.declared.spouts.items() if not id.startswith("$")}
    for id, streams in recording.spouts.items():
        if id not in own:
            raise ConfigError(
                f"{recording.path} was recorded of spout {id!r}, which topology {topology.name!r} does not have; "
                f"{did_you_mean(id, own)}"
            )
        now = {name: list(stream.fields) for name, stream in own[id].streams.items()}
        for name, fields in streams.items():
            if now.get(name) != fields:
                has = f"has the fields {', '.join(now[name])}" if name in now else "is not there"
                raise ConfigError(
                    f"{recording.path} was recorded of spout {id!r} with the fields {', '.join(fields)} of stream {name!r}, "
                    f"which {has} now"
                )
    missing = [id for id in own if id not in recording.spouts]
    if missing:
        raise ConfigError(
            f"{recording.path} has nothing of spout {missing[0]!r} of topology {topology.name!r}; it was recorded of "
            f"{recording.topology!r}, with {', '.join(map(repr, recording.spouts))}"
        )
    spouts: dict[str, Spout] = {id: RecordedSpout(recording.path, id, pace) for id in own}
    return with_spouts(topology, spouts, f"a run on {recording.path}")
