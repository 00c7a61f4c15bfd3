"""The maps that transactions have updated, noted beside the transactions, so that one that is gone is noticed.

A map that was deleted would begin with nothing while its transactions go on, and nothing would tell that all before is
missing. So whoever updates a map for the first time in an epoch notes its place and the epoch, and before that compares
what is noted with what is there.

The epoch does not tell an older copy of the same epoch. So one task of each bolt, the first to update the map, is its
keeper: it has a row in the map, ``$last/BOLT``, with the last transaction in which it updated the map, and a note beside the
transactions. A map that the bolt has as an attribute gets the row with every transaction from then on, even if a transaction
changes nothing there. Then the row is at least as high as the last committed transaction, and where the keeper updates the
map in any case, it costs nothing more. Any other map can't be found before it is updated, so each update of the keeper notes
its transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from hashlib import sha256
from typing import NamedTuple

from multilang.state.errors import StoreGoneError
from multilang.transactional.names import BEGINS, CURRENT, EPOCH, MAPS
from multilang.transactional.stores import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.state import TransactionalState

_FIX = (
    "Put it back, or a copy of the same moment; or begin anew: give TransactionalTopologyBuilder another id, and its maps "
    "other names. If a map is meant to begin with nothing, give it and its bolt other names"
)


class Noted(NamedTuple):
    """The facts that are noted of a map.

    Attributes:
        epoch: The last epoch in which it was updated; None: it never was.
        least: A transaction that it has, perhaps among later ones; 0: none is known.
        former: The place under which it is noted, if that is another one; "": none.
    """

    epoch: int | None
    least: int
    former: str = ""


class MapNotes(ABC):
    """The notes of the maps that transactions have updated: a map's place, the bolt that updated it, and the last epoch.

    Attributes:
        keeps: Whether a note is stored when ``put`` returns. Otherwise it is put with every update, since it may be lost
            with the task that put it.
    """

    keeps = True

    @abstractmethod
    def describe(self) -> str:
        """Return the place of the transactions in the words of a message."""

    @abstractmethod
    def get(self, place: str, keeper: str = "") -> Mapping[str, Any] | None:
        """Return the note of a map; None: there is none.

        Args:
            place: The map's place, in the words of a message.
            keeper: The bolt whose keeper made the note; "": any task made it.
        """

    def committed(self, epoch: int) -> int:
        """Return the last transaction that was committed in an epoch or before; 0: that is not known.

        Args:
            epoch: The epoch.
        """
        return 0

    @abstractmethod
    def all(self) -> list[Mapping[str, Any]]:
        """Return the notes of all maps."""

    @abstractmethod
    def put(self, note: Mapping[str, Any]) -> None:
        """Note that a map was updated. Nothing happens if the epoch of the note is over.

        Args:
            note: The note, with the keys "map", "bolt" and "epoch", and "hidden" if the map is not known before it is used; from the bolt's keeper also with "task" (its index), "txid",
                and "each" (whether the map gets its row with each transaction).
        """


class StoredNotes(MapNotes):
    """The notes in the store of the transactions.

    Args:
        conf: The conf, which names the store.
    """

    __slots__ = ("_conf",)

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = conf

    def describe(self) -> str:
        with closing(open_state(self._conf)) as state:
            return state.describe()

    def get(self, place: str, keeper: str = "") -> Mapping[str, Any] | None:
        with closing(open_state(self._conf)) as state:
            found: Mapping[str, Any] | None = state.get_data(path_of(place, keeper))
            return found

    def committed(self, epoch: int) -> int:
        with closing(open_state(self._conf)) as state:
            current = state.get_data(CURRENT) or 1  # first: a claim that comes meanwhile notes no less
            begins = state.get_data(BEGINS) or []
        if not any(each <= epoch for each, _ in begins):
            return 0  # it is too long ago
        return int(next((first for each, first in begins if each > epoch), current)) - 1

    def all(self) -> list[Mapping[str, Any]]:
        with closing(open_state(self._conf)) as state:
            return notes_in(state)

    def put(self, note: Mapping[str, Any]) -> None:
        with closing(open_state(self._conf)) as state:
            state.compare_and_write({EPOCH: note["epoch"]}, {path_of_note(note): note})


class MapRegistry:
    """The maps of a topology's transactions, as one bolt notes and compares them.

    Args:
        notes: The notes of these transactions.
        component: The bolt's id.
        places: The places of the maps that are known to be the bolt's, in the words of messages.
        task: The index of the task that updates maps; None: none does here.
        tasks: The number of the bolt's tasks.
        opaque: Whether a transaction may be repeated with another batch.
    """

    __slots__ = ("_component", "_kept", "_notes", "_places", "_task", "_tasks", "_updated", "opaque")

    def __init__(
        self,
        notes: MapNotes,
        component: str,
        places: Collection[str],
        task: int | None = None,
        tasks: int = 1,
        opaque: bool = False,
    ) -> None:
        self.opaque = opaque
        self._notes = notes
        self._component = component
        self._places = frozenset(places)
        self._task = task
        self._tasks = tasks
        self._kept: dict[str, Mapping[str, Any] | None] = {}  # by place, the keeper's note as it was read or put here
        self._updated: dict[str, TransactionAttempt] = {}  # by place, the last attempt that wrote the row

    @property
    def row(self) -> str:
        """The name of the row in a map that has the last transaction of this bolt."""
        return f"$last/{self._component}"

    @property
    def keeps(self) -> bool:
        """True if a note is stored when ``note`` returns."""
        return self._notes.keeps

    def noted(self, place: str) -> Noted:
        """Return what is noted of a map.

        Call it before the map itself is read. Another task may update the map and note it at any time, so that what is
        noted later says nothing of what was read.

        Args:
            place: The map's place, in the words of a message.
        """
        known, kept = self._notes.get(place), self._notes.get(place, self._component)
        if known is None and kept is None and place in self._places:
            return self._noted_elsewhere()
        return Noted(None if known is None else int(known["epoch"]), 0 if kept is None else self._least(kept))

    def compare(self, place: str, noted: Noted, epoch: int | None, last: str | None) -> None:
        """Check that a map is the one that these transactions updated.

        Args:
            place: The map's place, in the words of a message.
            noted: What ``noted`` returned before the map was read.
            epoch: The epoch in its own row; None: it has no such row, so that nothing was put there.
            last: The text of the row ``row``; None: it has no such row.

        Raises:
            StoreGoneError: It is gone or an older copy, or the bolt had another map.
        """
        if noted.epoch is None:
            if epoch is None and place in self._places:
                self._compare_renamed(place)
            return
        if epoch is None and noted.former:
            self._compare_renamed(place)
        txid = int(last or 0)
        if epoch is not None and epoch >= noted.epoch and txid >= noted.least:
            return
        where = self._notes.describe()
        if epoch is None:
            raise StoreGoneError(
                f"{place} is gone: these transactions ({where}) have updated it, and it has nothing of them now, so that "
                f"all before would be missing. {_FIX}"
            )
        has, has_not = (
            (f"in epoch {epoch}", f"in epoch {noted.epoch}")
            if epoch < noted.epoch
            else (f"by transaction {txid}", f"up to transaction {noted.least}")
        )
        raise StoreGoneError(
            f"{place}{f', which was {noted.former},' * bool(noted.former)} is an older copy: it was updated last {has} of these transactions ({where}), which "
            f"have updated it {has_not}, so that what came between would be missing. {_FIX}"
        )

    def note(self, place: str, attempt: TransactionAttempt) -> None:
        """Note that an attempt has updated a map. Nothing happens if its epoch is over.

        Args:
            place: The map's place, in the words of a message.
            attempt: The attempt.
        """
        self._notes.put(self._note(place, attempt))

    def may_keep(self, place: str) -> bool:
        """Return whether this task is the keeper of a map, or becomes it when it updates the map.

        Args:
            place: The map's place, in the words of a message.
        """
        return self._task is not None and self._keeper_of(place) in (None, self._task)

    def keep(self, place: str, attempt: TransactionAttempt) -> None:
        """Note that an attempt of this task has written the row ``row`` of a map.

        Args:
            place: The map's place, in the words of a message.
            attempt: The attempt.
        """
        self._updated[place] = attempt
        before = self._kept.get(place)
        each = place in self._places and self.keeps
        if not each or before is None or before["epoch"] != attempt.epoch or before["task"] != self._task:
            self._notes.put({**self._note(place, attempt), "txid": attempt.txid, "each": each, "task": self._task})
            self._kept[place] = self._notes.get(place, self._component)  # perhaps of another task, at the same time

    def is_due(self, place: str, attempt: TransactionAttempt) -> bool:
        """Return whether the row ``row`` of a map is still to be written by this task, although it changes nothing there.

        Args:
            place: The place of a map that is known to be the bolt's, in the words of a message.
            attempt: The attempt, whose batch is complete.
        """
        return self._task is not None and self._updated.get(place) != attempt and self._keeper_of(place) == self._task

    def _note(self, place: str, attempt: TransactionAttempt) -> dict[str, Any]:
        """Return the note of a map that an attempt has updated."""
        # One that was hidden from the beginning says nothing of the maps that are known.
        hidden = {} if place in self._places else {"hidden": True}
        return {"map": place, "bolt": self._component, "epoch": attempt.epoch, **hidden}

    def _keeper_of(self, place: str) -> int | None:
        if place not in self._kept:
            self._kept[place] = self._notes.get(place, self._component)
        note = self._kept[place]
        return None if note is None or note["task"] >= self._tasks else int(note["task"])

    def _least(self, kept: Mapping[str, Any]) -> int:
        """Return a transaction that a map has, by the note of its keeper."""
        return self._notes.committed(kept["epoch"]) if kept["each"] else int(kept["txid"])

    def _noted_elsewhere(self) -> Noted:
        """Return what is noted of the bolt's map under another place, if none of its present places is noted.

        It was moved, or its server or file has another name now. Of several, the one with the least is returned, since nobody knows
        which of them it was.
        """
        notes = [each for each in self._notes.all() if each["bolt"] == self._component]
        if self._places.intersection(each["map"] for each in notes):
            return Noted(None, 0)
        found = [Noted(int(each["epoch"]), self._least(each), each["map"]) for each in notes if each.get("each")]
        return min(found, default=Noted(None, 0))

    def _compare_renamed(self, place: str) -> None:
        notes = self._notes.all()
        before = [each["map"] for each in notes if each["bolt"] == self._component and not each.get("hidden")]
        if before and not self._places.intersection(before):
            raise StoreGoneError(
                f"bolt {self._component!r} has updated {before[0]} in these transactions ({self._notes.describe()}), and has {place} now, "
                f"where nothing is: all before would be missing. Give it the map that it had. {_FIX}"
            )


def notes_in(state: TransactionalState) -> list[Mapping[str, Any]]:
    """Return the notes of all maps in a store.

    Args:
        state: The store.
    """
    found = [state.get_data(f"{MAPS}/{name}") for name in state.list(MAPS)]
    return [each for each in found if each is not None]


def path_of_note(note: Mapping[str, Any]) -> str:
    """Return the path of a note in the store.

    Args:
        note: The note.
    """
    return path_of(note["map"], note["bolt"] if "txid" in note else "")


def path_of(place: str, keeper: str = "") -> str:
    """Return the path of a map's note in the store.

    Args:
        place: The map's place, in the words of a message.
        keeper: The bolt whose keeper makes the note; "": any task makes it.
    """
    name = f"{place}\0{keeper}" if keeper else place
    return f"{MAPS}/{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
