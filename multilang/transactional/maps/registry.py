"""The maps that transactions have updated, noted beside the transactions, so that one that is gone is noticed.

A map that was deleted would begin with nothing while its transactions go on, and nothing would tell that all before is
missing. So whoever updates a map for the first time in an epoch notes its place and the epoch, and before that compares
what is noted with what is there.
"""

from __future__ import annotations

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


class MapRegistry:
    """The maps of a topology's transactions, as one bolt notes and compares them.

    Args:
        conf: The conf, which names the store of the transactions.
        component: The bolt's id.
        places: The places of the maps that are known to be the bolt's, in the words of messages.
    """

    __slots__ = ("_component", "_conf", "_places")

    def __init__(self, conf: Mapping[str, Any], component: str, places: Collection[str]) -> None:
        self._conf = conf
        self._component = component
        self._places = frozenset(places)

    def noted(self, place: str) -> int | None:
        """Return the last epoch in which a map was updated; None: it never was.

        Call it before the map itself is read. Another task may update the map and note it at any time, so that what is
        noted later says nothing of what was read.

        Args:
            place: The map's place, in the words of a message.
        """
        with closing(open_state(self._conf)) as state:
            known = state.get_data(_path(place))
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
                with closing(open_state(self._conf)) as state:
                    self._compare_renamed(state, place)
            return
        if epoch is not None and epoch >= noted:
            return
        with closing(open_state(self._conf)) as state:
            where = state.describe()
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
        with closing(open_state(self._conf)) as state:
            noted = {"map": place, "bolt": self._component, "epoch": attempt.epoch}
            state.compare_and_write({EPOCH: attempt.epoch}, {_path(place): noted})

    def _compare_renamed(self, state: TransactionalState, place: str) -> None:
        noted = [state.get_data(f"{MAPS}/{name}") for name in state.list(MAPS)]
        before = [each["map"] for each in noted if each is not None and each["bolt"] == self._component]
        if before and not self._places.intersection(before):
            raise StoreGoneError(
                f"bolt {self._component!r} has updated {before[0]} in these transactions ({state.describe()}), and has {place} now, "
                f"where nothing is: all before would be missing. Give it the map that it had. {_FIX}"
            )


def _path(place: str) -> str:
    return f"{MAPS}/{sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
