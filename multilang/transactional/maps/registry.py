"""The maps that transactions have updated, noted beside the transactions, so that one that is gone is noticed.

A map that was deleted would begin with nothing while its transactions go on, and nothing would tell that all before is
missing. So whoever updates a map for the first time in an epoch notes its place and the epoch, and before that compares
what is noted with what is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from hashlib import sha256

from multilang.state.errors import StoreGoneError
from multilang.transactional.names import EPOCH, MAPS
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
    def get(self, place: str) -> Mapping[str, Any] | None:
        """Return the note of a map; None: there is none.

        Args:
            place: The map's place, in the words of a message.
        """

    @abstractmethod
    def all(self) -> list[Mapping[str, Any]]:
        """Return the notes of all maps."""

    @abstractmethod
    def put(self, note: Mapping[str, Any]) -> None:
        """Note that a map was updated. Nothing happens if the epoch of the note is over.

        Args:
            note: The note, with the keys "map", "bolt" and "epoch".
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

    def get(self, place: str) -> Mapping[str, Any] | None:
        with closing(open_state(self._conf)) as state:
            found: Mapping[str, Any] | None = state.get_data(path_of(place))
            return found

    def all(self) -> list[Mapping[str, Any]]:
        with closing(open_state(self._conf)) as state:
            return notes_in(state)

    def put(self, note: Mapping[str, Any]) -> None:
        with closing(open_state(self._conf)) as state:
            state.compare_and_write({EPOCH: note["epoch"]}, {path_of(note["map"]): note})


class MapRegistry:
    """The maps of a topology's transactions, as one bolt notes and compares them.

    Args:
        notes: The notes of these transactions.
        component: The bolt's id.
        places: The places of the maps that are known to be the bolt's, in the words of messages.
    """

    __slots__ = ("_component", "_notes", "_places")

    def __init__(self, notes: MapNotes, component: str, places: Collection[str]) -> None:
        self._notes = notes
        self._component = component
        self._places = frozenset(places)

    @property
    def keeps(self) -> bool:
        """True if a note is stored when ``note`` returns."""
        return self._notes.keeps

    def noted(self, place: str) -> int | None:
        """Return the last epoch in which a map was updated; None: it never was.

        Call it before the map itself is read. Another task may update the map and note it at any time, so that what is
        noted later says nothing of what was read.

        Args:
            place: The map's place, in the words of a message.
        """
        known = self._notes.get(place)
        return None if known is None else int(known["epoch"])

    def compare(self, place: str, noted: int | None, epoch: int | None) -> None:
        """Check that a map is the one that these transactions updated.

        Args:
            place: The map's place, in the words of a message.
            noted: What ``noted`` returned before the map was read.
            epoch: The epoch in its own row; None: it has no such row, so that nothing was put there.

        Raises:
            StoreGoneError: It is gone or an older copy, or the bolt had another map.
        """
        if noted is None:
            if epoch is None and place in self._places:
                self._compare_renamed(place)
            return
        if epoch is not None and epoch >= noted:
            return
        where = self._notes.describe()
        if epoch is None:
            raise StoreGoneError(
                f"{place} is gone: these transactions ({where}) have updated it, and it has nothing of them now, so that "
                f"all before would be missing. {_FIX}"
            )
        raise StoreGoneError(
            f"{place} is an older copy: it was updated last in epoch {epoch} of these transactions ({where}), which "
            f"have updated it in epoch {noted}, so that what came between would be missing. {_FIX}"
        )

    def note(self, place: str, attempt: TransactionAttempt) -> None:
        """Note that an attempt has updated a map. Nothing happens if its epoch is over.

        Args:
            place: The map's place, in the words of a message.
            attempt: The attempt.
        """
        self._notes.put({"map": place, "bolt": self._component, "epoch": attempt.epoch})

    def _compare_renamed(self, place: str) -> None:
        before = [each["map"] for each in self._notes.all() if each["bolt"] == self._component]
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


def path_of(place: str) -> str:
    """Return the path of a map's note in the store.

    Args:
        place: The map's place, in the words of a message.
    """
    return f"{MAPS}/{sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
