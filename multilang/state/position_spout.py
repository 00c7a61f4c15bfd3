"""A spout whose position survives its task: after a crash it resumes after the last acked tuple.

One call of ``next_tuple`` is a *turn*. At its end, ``position()`` is the place where the next turn begins. That
position is saved when everything of this turn and of all turns before it is acked, so nothing is skipped. Tuples that
were acked after the last save are emitted again.
"""

from __future__ import annotations

from collections import deque

from multilang.component.base import typed_as
from multilang.component.errors import ConfigError
from multilang.component.reliable import ReliableSpout, key_of
from multilang.protocol.codec import dumps, loads, reason_against
from multilang.settings import POSITIONS, STORE
from multilang.state.declared import Declared, changed_text
from multilang.state.replayable import ReplayableSpout
from multilang.store.errors import FencedError, StateError, StoreGoneError, UnusableStateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Values
    from multilang.state.positions import Position


class PositionSpout(ReplayableSpout):
    """A spout that reads by position and stores the position in the store that ``multilang.store`` names.

    A subclass defines ``position``, and ``seek``, which is called after ``initialize`` if a position was saved before.
    Rows that it skips without an emit are skipped for ever once its position is saved. Each tuple is processed at least
    once, whatever is killed: a restarted task emits what was not acked, and also what was acked after the last save, which
    is at most ``save_secs`` old.

    A failed tuple is replayed without limit, unless ``max_replays`` is set; a tuple that is given up counts as done.
    Each task has its own position, so a restarted topology must give the spout the same number of tasks and the same
    name; otherwise it is refused.

    With ``multilang.state.alignment: exact`` the position is part of the checkpoints instead, as for any
    ReplayableSpout.

    Attributes:
        save_secs: Seconds between two saves of the position.
        max_replays: How often a failed tuple is replayed before it is given up; None: until it is acked.
        needs_positions: Whether it always stores its position. If not, it does so only where the conf has
            ``multilang.store`` or ``multilang.positions``, and a restarted task begins at the beginning elsewhere.
    """

    emits_again = True
    save_secs: float = 1.0
    needs_positions: ClassVar[bool] = True

    _positions: Position | None = None
    _mark: str | None  # the position after the last turn up to which all is done
    _saved: str | None
    _save_at: float  # when to save next

    @typed_as(ReliableSpout.emit)
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple of the current turn as ReliableSpout.emit does."""
        if tup_id is None:
            self._serial = tup_id = self._serial + 1
        key = key_of(tup_id)
        if key in self._sent:  # super() refuses a message id that is in flight
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
        self._done(key_of(tup_id))

    def fail(self, tup_id: Any) -> None:
        super().fail(tup_id)
        key = key_of(tup_id)
        if key not in self._sent:  # the tuple was given up
            self._done(key)

    def replay(self) -> bool:
        if self._positions is not None and self.clock() >= self._save_at:
            if not self._sent and not self._ends and self._turn not in self._left:
                self._mark = self._here()  # rows were skipped, and nothing is in flight
            self._save_or_tell()
        return super().replay()

    @property
    def stored_elsewhere(self) -> tuple[str, ...]:
        """The conf keys of which one must be set for it to store its position apart from checkpoints; none: it always does."""
        return () if self.needs_positions else (POSITIONS, STORE)

    # ---- inside ----

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        self._declared = Declared.of(self)  # before anything else sets attributes
        super()._attach(collector, conf, context)
        if not self.save_secs >= 0:
            raise ConfigError(f"{type(self).__name__}.save_secs is {self.save_secs!r}; use seconds from 0")
        self._turn = 0
        self._turn_of: dict[Any, int] = {}  # message id -> turn, for tuples in flight
        self._left: dict[int, int] = {}  # turn -> its tuples in flight; 0 when all are done
        self._ends: deque[tuple[int, str]] = deque()  # each turn with the position after it
        self._mark = self._saved = None
        self._is_reported = False
        self._tasks = len(context.tasks(context.component))
        # Only the position changes in the saved text.
        self._about = f',"tasks":{self._tasks},"source":{dumps(self._declared.to_json())}}}'
        if collector.replays_by_position:  # then no tuple need be stored for a replay
            self._shadow(PositionSpout, {"emit": collector.emit})
        elif not self.keeps_position(conf):  # then no turn is counted
            self._shadow(PositionSpout, {"emit": super().emit, "ack": super().ack, "fail": super().fail})
            self._emits_plainly = type(self).emit is PositionSpout.emit

    def keeps_position(self, conf: Mapping[str, Any]) -> bool:
        """Return whether it stores its position with this conf, apart from checkpoints."""
        return self.needs_positions or any(conf.get(key) is not None for key in self.stored_elsewhere)

    def check_start(self, conf: dict[str, Any]) -> None:
        super().check_start(conf)
        if not self.keeps_position(conf):
            return
        from multilang.state.positions import check_positions

        check_positions(conf, type(self).__name__)

    def _runner_started(self, conf: dict[str, Any], context: Context) -> None:
        if self._collector.keeps_position or not self.keeps_position(conf):
            return
        from multilang.state.positions import declared_of, open_positions, refused_positions

        positions = open_positions(conf, f"{context.component}/{context.task_index}")
        try:
            found = positions.claim()
            # Another task may have saved something while this one's share was empty.
            components = set(context.task_component.values())
            saved = positions.all()
            refused = refused_positions(saved, context.component, self._tasks, components, self._declared)
            if refused is not None:
                raise UnusableStateError(f"{refused} ({positions.describe()})")
            before = None if found is None else declared_of(found)
            changed = None if before is None else changed_text(context.component, before, self._declared, True)
            if changed is not None:
                self.log(f"{changed} ({positions.describe()})", "warn")
            if found is not None:
                self.seek(loads(found)["position"])
        except BaseException:
            positions.close()
            raise
        self._mark = self._saved = found
        self._positions = positions
        self._save_at = self.clock() + self.save_secs

    def _around_next(self, call: Callable[[], None]) -> Callable[[], None]:
        if self._positions is None:
            return call

        def turn_taken() -> None:
            call()
            turn = self._turn
            if turn in self._left:
                self._ends.append((turn, self._here()))
                self._turn = turn + 1

        return turn_taken

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
                f"{type(self).__name__}.position() returned {position!r}, which can't be stored ({reason}); return where the next "
                "tuple comes from, as JSON has it"
            )
        return f'{{"position":{dumps(position)}{self._about}'

    def _save_or_tell(self) -> None:
        """Save the position; report an error once if the store is away.

        A store that is away for a while costs repeats after a crash, and is no reason to end.
        """
        assert self._positions is not None
        try:
            self._save(self._positions)
            self._is_reported = False
        except (FencedError, StoreGoneError):
            raise
        except StateError as problem:
            if not self._is_reported:
                self._is_reported = True
                self.report_error(f"the position can't be saved now, and is tried again: {problem}")
        self._save_at = self.clock() + self.save_secs

    def _save(self, positions: Position) -> None:
        ends, left = self._ends, self._left
        while ends and not left[ends[0][0]]:
            turn, self._mark = ends.popleft()
            del left[turn]
        if self._mark is not None and self._mark != self._saved:
            positions.save(self._mark)
            self._saved = self._mark
