"""The checkpoint spout of exact alignment, which also gives the sources their turns and tracks their tuples."""

from __future__ import annotations

from multilang.state import settings
from multilang.state.names import COMMITTED, COMMITTING, MORE, PREPARE, PREPARING, STREAMS, TURN, TURNS
from multilang.state.providers import check_durable
from multilang.state.spout import CheckpointSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context

_MAX_OPEN = 8  # turns in flight
_MOST_TUPLES = 1600  # of a source, about, in all turns in flight
_FIRST_TUPLES = 8  # the same at the start, when the time that a tuple takes is unknown
_PAUSE_SECS = 0.0005  # between two turns
_LONGEST_PAUSE_SECS = 0.05  # between two turns, while no source has anything


class ExactCheckpointSpout(CheckpointSpout):
    """A checkpoint spout that also sends turns. A turn is two tuples: one to emit under, and a question.

    The ack of the first says that all tuples of the turn were processed. The question asks the sources for more: a
    source that has more fails it, and it is acked when no source has. Turns become smaller when the tuples in flight
    take a good part of the message timeout. Otherwise slow bolts would never finish a turn in time, and everything
    would be rolled back for ever.
    """

    output_streams = {**STREAMS, **TURNS}
    questions = frozenset({MORE})

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._serial = 0
        self._most = _FIRST_TUPLES
        self._slow = (conf.get(settings.TIMEOUT) or 30) / 4  # seconds
        # By turn: when it began, the value of _most then, and the permitted number of open turns per open turn.
        self._open: dict[int, tuple[float, int, float]] = {}
        self._of_checkpoint: set[int] = set()  # the turns before the last prepare
        self._prepared = False  # all tasks have prepared; the tuples before the prepare may still be in flight
        self._active = True
        self._asked: int | None = None  # the turn whose question has no answer yet
        self._idle = 0
        self._uncommitted = True  # tuples may have come since the last committed prepare
        self._since_prepare = True
        self._next_turn = float("-inf")
        super().initialize(conf, context)

    def begin(self) -> None:
        check_durable(self._provider)
        super().begin()
        if self.state == COMMITTED:
            self._undo()  # undo the turns of an earlier process of this spout

    def next_tuple(self) -> None:
        if self._prepared and not self._of_checkpoint & self._open.keys() and not self.recovering:
            # Every tuple before the prepare was processed, so none can be lost any more.
            self._prepared = False
            super().prepared()
        if self.recovering or not self._prepared:
            super().next_tuple()
        if (
            self._active
            and not self.recovering
            and self._asked is None
            and len(self._open) < min(_MAX_OPEN, self._most)
            and (now := self.clock()) >= self._next_turn
        ):
            self._serial = self._asked = turn = self._serial + 1
            self._open[turn] = now, self._most, min(_MAX_OPEN, self._most) / (len(self._open) + 1)
            self.emit([turn, max(1, self._most // _MAX_OPEN)], f"{TURN} {turn}", TURN)
            self.emit([turn], f"{MORE} {turn}", MORE)

    def ack(self, tup_id: Any) -> None:
        if type(tup_id) is not str:
            super().ack(tup_id)
            return
        kind, turn = _turn_of(tup_id)
        if kind == TURN:
            if turn in self._open:
                self._pace(*self._open.pop(turn))
        elif turn == self._asked:
            self._asked = None
            self._idle += 1
            pause = min(_PAUSE_SECS * 2 ** min(self._idle, 10), _LONGEST_PAUSE_SECS)
            self._next_turn = self.clock() + pause

    def fail(self, tup_id: Any) -> None:
        if type(tup_id) is not str:
            if not self.recovering:
                self._most = max(1, self._most // 2)
            super().fail(tup_id)
            return
        kind, turn = _turn_of(tup_id)
        if kind == MORE:
            if turn == self._asked:
                self._asked = None
                self._idle = 0
                self._uncommitted = self._since_prepare = True
                self._next_turn = self.clock() + _PAUSE_SECS
        elif turn in self._open and not self.recovering:
            self.log(f"a tuple of turn {turn} failed; all goes back to what is committed", "warn")
            self.recovering = True
            self._most = max(1, self._most // 2)
            if self.state == COMMITTED:
                self._undo()

    def is_question(self, tup_id: Any) -> bool:
        return type(tup_id) is str and _turn_of(tup_id)[0] == MORE

    def source_id(self, tup_id: Any) -> Any:
        """Return one id for all turns: the tuples of a failed turn are emitted in later ones, so none is lost."""
        return TURN if type(tup_id) is str else tup_id

    def exhausted(self) -> bool:
        """Return whether nothing is in flight, no source has more, and everything that they gave is committed."""
        return (
            super().exhausted()
            and not self._open
            and self._asked is None
            and (self._idle > 0 or not self._active)
            and not self._uncommitted
        )

    def activate(self) -> None:
        self._active = True

    def deactivate(self) -> None:
        self._active = False  # the sources get no turns

    def prepared(self) -> None:
        self._prepared = True  # the tuples before it may still be in flight

    def recovered(self) -> None:
        self._prepared = False
        if self.state == COMMITTING:
            self.committed()
            self._save(self.txid + 1, PREPARING)  # to undo what came after it
            return
        super().recovered()
        if not self.recovering:
            self._open.clear()
            self._asked = None
            # The sources went back, so they may have more again.
            self._idle = 0
            self._next_turn = float("-inf")

    def committed(self) -> None:
        self._uncommitted = self._since_prepare

    def _pace(self, began: float, most: int, share: float) -> None:
        took = (self.clock() - began) * share  # the estimated time with the permitted number of turns in flight
        if took > self._slow:
            self._most = min(self._most, max(1, most // 2))
        elif took < self._slow / 2:
            self._most = max(self._most, min(_MOST_TUPLES, most * 2))

    def _ask(self, action: str) -> None:
        if action == PREPARE:
            self._of_checkpoint = set(self._open)
            # An open question may still be answered with tuples before the prepare; then one more checkpoint follows.
            self._since_prepare = False
        super()._ask(action)

    def _undo(self) -> None:
        self._uncommitted = self._since_prepare = True
        self._save(self.txid + 1, PREPARING)


def _turn_of(tup_id: str) -> tuple[str, int]:
    kind, _, turn = tup_id.partition(" ")
    return kind, int(turn)
