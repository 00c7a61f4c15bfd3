"""A spout whose position outlives its task: whatever is killed, it goes on behind what was acked.

One call of ``next_tuple`` is a *turn*. When it is over, ``position()`` is where the next one begins. That is saved when
everything of this turn and of all turns before it is acked, so that nothing is passed over; what was acked and not saved
yet comes again.
"""

from __future__ import annotations

from collections import deque

from multilang.component.errors import ConfigError
from multilang.component.reliable import _key
from multilang.protocol.codec import dumps, loads, reason_against
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.replayable import ReplayableSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.state.positions import PositionStore


class PositionSpout(ReplayableSpout):
    """A source that is read by position, whose position is kept in SQLite or in Redis (``multilang.positions``).

    A subclass says its ``position`` and takes one back in ``seek``, which is called after ``initialize`` when a position was
    saved before. Whatever it skips without an emit is skipped for ever once its position is saved. Each tuple is processed
    at least once, whatever is killed: from the start of a task on, what was not acked is emitted again, and so is what was
    acked since the last save, at most ``save_secs`` before.

    A tuple that failed is replayed without limit, unless ``max_replays`` is set; what is given up counts as done. Each task
    has its own position; a topology that is started again has to give the spout as many tasks.

    With ``multilang.state.alignment: exact`` the position is part of the checkpoints instead, as for any ReplayableSpout.
    """

    max_replays = None
    save_secs: float = 1.0
    """Seconds between two times that the position is saved."""

    _positions: PositionStore | None = None
    _mark: str | None  # behind the last turn before which all is done
    _saved: str | None
    _save_at: float  # when to save next

    def emit(
        self,
        values: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """As ReliableSpout.emit; the tuple belongs to the turn."""
        if tup_id is None:
            self._serial = tup_id = self._serial + 1
        key = _key(tup_id)
        if key in self._sent:  # which is refused
            return super().emit(values, tup_id, stream, direct_task)
        turn = self._turn
        self._turn_of[key] = turn
        self._left[turn] = self._left.get(turn, 0) + 1
        try:
            return super().emit(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)
        except Exception:
            self._done(key)
            raise

    def ack(self, tup_id: Any) -> None:
        super().ack(tup_id)
        self._done(_key(tup_id))

    def fail(self, tup_id: Any) -> None:
        super().fail(tup_id)
        key = _key(tup_id)
        if key not in self._sent:  # it was given up
            self._done(key)

    def replay(self) -> bool:
        if self._positions is not None and self.clock() >= self._save_at:
            if not self._sent and not self._ends and self._turn not in self._left:
                self._mark = self._here()  # what was skipped, with nothing emitted
            self._save_or_tell()
        return super().replay()

    # ---- inside ----

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        if not self.save_secs >= 0:
            raise ConfigError(f"{type(self).__name__}.save_secs is {self.save_secs!r}; use seconds from 0")
        self._turn = 0
        self._turn_of: dict[Any, int] = {}  # message id -> turn, of what is neither acked nor given up
        self._left: dict[int, int] = {}  # turn -> how many of its tuples are neither; 0 where all are done
        self._ends: deque[tuple[int, str]] = deque()  # turn, and the position behind it
        self._mark = self._saved = None
        self._told = False
        self._tasks = len(context.tasks(context.component))

    def check_start(self, conf: dict[str, Any]) -> None:
        super().check_start(conf)
        from multilang.state.positions import open_positions

        open_positions(conf, type(self).__name__)  # is the setting right?

    def _runner_started(self, conf: dict[str, Any], context: Context) -> None:
        if self._collector.keeps_position:
            return
        from multilang.state.positions import open_positions

        positions = open_positions(conf, f"{context.component}/{context.task_index}")
        try:
            found = positions.claim(lambda text: self.log(text, "warn"))
            if found is not None:
                kept = loads(found)
                if kept["tasks"] != self._tasks:
                    raise StateError(
                        f"the position of {positions.name!r} is that of one of {kept['tasks']} tasks, and spout {context.component!r} "
                        f"has {self._tasks} now, which would divide the source in another way: give it as many as before, or "
                        "name another place in multilang.positions, where it begins at the beginning"
                    )
                self.seek(kept["position"])
        except BaseException:
            positions.close()
            raise
        self._mark = self._saved = found
        self._positions = positions
        self._save_at = self.clock() + self.save_secs
        inner = self.next_tuple

        def next_tuple() -> None:
            inner()
            turn = self._turn
            if turn in self._left:
                self._ends.append((turn, self._here()))
                self._turn = turn + 1

        self.next_tuple = next_tuple  # type: ignore[method-assign]

    def _runner_ended(self) -> None:
        positions, self._positions = self._positions, None
        try:
            super()._runner_ended()
        finally:
            if positions is not None:
                try:
                    self._save(positions)
                finally:
                    positions.close()

    def _done(self, key: Any) -> None:
        turn = self._turn_of.pop(key, None)
        if turn is not None:
            self._left[turn] -= 1

    def _here(self) -> str:
        position = self.position()
        reason = "it is None" if position is None else reason_against(position)
        if reason is not None:
            raise ConfigError(
                f"{type(self).__name__}.position() returned {position!r}, which can't be kept ({reason}); return where the next "
                "tuple comes from, as JSON has it"
            )
        return dumps({"position": position, "tasks": self._tasks})

    def _save_or_tell(self) -> None:
        """A store that is away for a while costs repeats after a kill, and is no reason to end."""
        assert self._positions is not None
        try:
            self._save(self._positions)
            self._told = False
        except (FencedError, StoreGoneError):
            raise
        except StateError as problem:
            if not self._told:
                self._told = True
                self.report_error(f"the position can't be saved now, and is tried again: {problem}")
        self._save_at = self.clock() + self.save_secs

    def _save(self, positions: PositionStore) -> None:
        ends, left = self._ends, self._left
        while ends and not left[ends[0][0]]:
            turn, self._mark = ends.popleft()
            del left[turn]
        if self._mark is not None and self._mark != self._saved:
            positions.save(self._mark)
            self._saved = self._mark
