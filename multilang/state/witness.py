"""The comparison of a state with the positions of its sources, which are in another store, at the start of a topology.

Positions advance when tuples are acked, which is when the state has committed them. If the state is then restored from an
older copy, and the positions are not, all between the two would be missing. So a state has a token, which the topology's
first run draws at random.
Before a transaction is committed, the checkpoint spout notes the token and the transaction beside the positions: there is no position
of a transaction that is not noted. A start refuses a state with another token, or one that has not come to that transaction.

A state in memory has a new token at each start, and is not compared. It is noted all the same: positions that advanced beside it are
not those of the stored state that a topology had before.
"""

from __future__ import annotations

import os

from multilang.helpers.closing import close_all
from multilang.state.checked import position_of
from multilang.state.names import COMMITTED, PREPARING, TOKEN_KEY
from multilang.state.positions import Note, positions_url
from multilang.store.errors import FencedError, StateError, StoreGoneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    from multilang.state.api import KeyValueState
    from multilang.state.provider import StateProvider

    Elsewhere: TypeAlias = tuple[tuple[str, ...], Mapping[str, Any]]

_ANEW = "remove the positions (multilang state rm TOPOLOGY SPOUT), or set back the group of a queue (XGROUP SETID, kafka-consumer-groups.sh)"


def position_places(elsewhere: Iterable[Elsewhere], conf: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the stores in which the positions of sources are noted: a conf for each URL.

    Args:
        elsewhere: For each source that stores its position elsewhere, the conf keys of which one must be set for that, if any, and its conf.
        conf: The topology's conf.
    """
    found: dict[str, dict[str, Any]] = {}
    for keys, own in elsewhere:
        mine = {**conf, **own}
        if not keys or any(mine.get(key) is not None for key in keys):
            place = positions_url(mine)
            if place is not None:
                found.setdefault(place[0], mine)
    return found


class Witness:
    """The notes of one topology's state beside the positions of its sources.

    Args:
        elsewhere: See ``position_places``.
        conf: The topology's conf.
    """

    def __init__(self, elsewhere: Iterable[Elsewhere], conf: Mapping[str, Any]) -> None:
        self._notes = [note for own in position_places(elsewhere, conf).values() if (note := Note(own)).durable]
        self._token = ""
        self._is_reported = False

    def check(self, provider: StateProvider, state: KeyValueState[str, Any], warn: Callable[[str], None]) -> None:
        """Compare the state with the notes, and put a token into it if it has none, to be committed by the caller.

        Args:
            provider: The provider of the state, claimed.
            state: The checkpoint spout's own state, claimed.
            warn: Called with a text about each doubtful difference.

        Raises:
            StoreGoneError: The state is not that of the positions, or is older.
        """
        if not self._notes:
            return
        token = state.get(TOKEN_KEY)
        for note in self._notes:
            noted = note.read()
            note.hurry()
            if not provider.durable:
                continue
            if noted is not None:
                difference = difference_of(provider, state, noted, note.describe())
                if difference is not None:
                    raise StoreGoneError(difference)
            elif token and (txid := _progress(provider, state)[0]) >= 0:
                warn(
                    f"{note.describe()} has no positions that belong to the state in {provider.describe()}, which has transaction {txid}: "
                    "a source with its positions there begins at the beginning, and is counted again if this state counted it before. "
                    "If they are elsewhere, stop the topology and name that place"
                )
        self._token = token or os.urandom(8).hex()
        if not token:
            state.put(TOKEN_KEY, self._token)

    def note(self, txid: int, report: Callable[[str], None]) -> None:
        """Note a transaction before it is committed.

        A store that is away for a while does not stop checkpoints: no position can be saved there meanwhile.

        Args:
            txid: The transaction.
            report: Called with a text when a store is away.
        """
        problems = []
        for note in self._notes:  # each by itself: the positions in the others advance
            try:
                note.write(self._token, txid)
            except (FencedError, StoreGoneError):
                raise
            except StateError as problem:
                problems.append(str(problem))
        if problems and not self._is_reported:
            report(
                f"transactions can't be noted beside the positions now; it is tried again with each: {'; '.join(problems)}"
            )
        self._is_reported = bool(problems)

    def accept(self, provider: StateProvider, state: KeyValueState[str, Any]) -> list[str]:
        """Let the topology continue with the state as it is; the caller then removes the token of the state.

        Returns:
            A sentence for each accepted difference.
        """
        accepted = []
        for note in self._notes:
            noted = note.read()
            if noted is not None and difference_of(provider, state, noted, note.describe()) is not None:
                accepted.append(
                    f"{provider.describe()} lacks the tuples up to transaction {noted[1]}, which is noted in {note.describe()}"
                )
        if accepted:
            for note in self._notes:
                note.remove()
        return accepted

    def close(self) -> None:
        """Close the stores."""
        close_all(*(note.close for note in self._notes))


def difference_of(
    provider: StateProvider, state: KeyValueState[str, Any], noted: tuple[str, int], where: str
) -> str | None:
    """Return why a state must not be continued beside the positions of a store; None if it may.

    Args:
        provider: The provider of the state.
        state: The checkpoint spout's own state.
        noted: The note beside the positions.
        where: Their place, in the words of a message.
    """
    token, last = noted
    txid, phase = _progress(provider, state)
    if state.get(TOKEN_KEY) != token:
        what = (
            f"is not the one to which the positions in {where} belong{'' if txid >= 0 else ': it has nothing of this topology'}, so that "
            "what came before these positions may be missing"
        )
    elif txid < last or (txid == last and phase == PREPARING):
        what = (
            f"is older than the positions in {where}: it has transaction {txid} ({phase.lower()}), and they belong to {last}, so that "
            "what came between would be missing"
        )
    else:
        return None
    return (
        f"the state in {provider.describe()} {what}. Restore the newest copy, or positions of the same moment; to continue with both "
        f"as they are: multilang state accept TOPOLOGY; to begin at the beginning: remove the state, and {_ANEW}"
    )


def _progress(provider: StateProvider, state: KeyValueState[str, Any]) -> tuple[int, str]:
    return position_of(provider, state) or (-1, COMMITTED)
