"""Notes of the state beside the positions of sources, so that an older copy of the state is noticed.

Positions go on when tuples are acked, which is when the state has committed them. If the state is then put back to an
older copy, and the positions in another store are not, all between the two would be missing. So before a transaction is
committed, the checkpoint spout notes it in each store that keeps positions: there is no position of a transaction that is
not noted. When a topology starts, and has claimed both, the state must have every transaction that is noted.

A number alone would not tell a copy that went on by itself. So each run has a token, which the state keeps and the note
names. What differs is refused; a state that has nothing at all was removed on purpose, as a rule, and begins with a warning.
Such a state keeps the notes that it began with, since they are replaced at its first commit only, and it may die before.

Where nothing is noted, although the state had sources with positions before, these were removed, or are elsewhere: a warning
says so.

A state in memory has nothing to be compared, and is noted all the same: positions that went on beside it are not those of the
stored state that a topology had before.
"""

from __future__ import annotations

import os

from multilang.component.closing import close_all
from multilang.protocol.codec import dumps, loads
from multilang.state.checked import position_of
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.names import BEGUN_KEY, PREPARING, RUNS_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Protocol, TypeAlias

    from multilang.state.api import KeyValueState
    from multilang.state.provider import StateProvider

    class NoteStore(Protocol):
        """One text in a store that keeps positions; a PositionStore is one."""

        @property
        def token(self) -> str: ...

        def owner_token(self) -> str: ...

        def claim(self, warn: Callable[[str], None]) -> str | None: ...

        def save(self, text: str) -> None: ...

        def remove(self) -> None: ...

        def describe(self) -> str: ...

        def close(self) -> None: ...

    Opener: TypeAlias = Callable[[Mapping[str, Any]], NoteStore | None]

_ANEW = "remove the positions (multilang state rm TOPOLOGY SPOUT), or set back the group of a queue (XGROUP SETID, kafka-consumer-groups.sh)"
_RUNS = 50  # tokens of runs that the state keeps, besides those that are noted


class Witness:
    """The notes of one topology's transactions in the stores of its sources' positions.

    Args:
        kept: For each source that keeps its position elsewhere, what opens its store, and its own conf.
        conf: The topology's conf.
    """

    def __init__(self, kept: Iterable[tuple[Opener, Mapping[str, Any]]], conf: Mapping[str, Any]) -> None:
        self._stores: dict[str, NoteStore] = {}
        self._run = os.urandom(8).hex()
        self._noted: int | None = None
        self._in_memory = False
        self._told = False
        for opener, own in kept:
            store = opener({**conf, **own})
            if store is not None:
                self._stores.setdefault(store.describe(), store)

    def check(self, provider: StateProvider, state: KeyValueState[str, Any], warn: Callable[[str], None]) -> None:
        """Claim the notes, compare the state with them, and put this run's token into it, to be committed by the caller.

        Args:
            provider: The provider of the state, claimed.
            state: The checkpoint spout's own state, claimed.
            warn: Called with a text for what may be meant.

        Raises:
            StoreGoneError: The state is an older copy.
        """
        self._in_memory = not provider.durable
        noted = set()
        for where, text in self._claimed(warn):
            if self._in_memory:
                continue
            difference = None if text is None else difference_of(provider, state, text, where)
            if difference is not None:
                raise StoreGoneError(difference)
            if text is None:
                position = position_of(provider, state)
                if position is not None and position[0] >= 0 and state.get(RUNS_KEY):
                    warn(
                        f"{where} has no positions that belong to the state in {provider.describe()}, which has transaction {position[0]}: "
                        "what keeps its positions there begins at the beginning, and is counted again if this state counted it before. "
                        "If they are elsewhere, stop the topology and name that place"
                    )
                continue
            noted.add(loads(text)["run"])
            if _is_empty(provider, state):
                state.put(BEGUN_KEY, sorted({*(state.get(BEGUN_KEY) or ()), text}))
                warn(
                    f"{provider.describe()} has nothing of this topology, and {where} has positions that belong to a state with "
                    f"transaction {loads(text)['txid']}: the topology begins with an empty state in the middle of its source. To "
                    f"begin at the beginning, stop it and {_ANEW}, too"
                )
        if self._stores and not self._in_memory:
            known = state.get(RUNS_KEY) or []
            # A run that ended before its first commit is not noted: any number of them may follow the one that is.
            kept = [run for run in known[:-_RUNS] if run in noted] + known[-_RUNS:]
            state.put(RUNS_KEY, [*kept, self._run])

    def note(self, txid: int, report: Callable[[str], None]) -> None:
        """Note a transaction before it is committed.

        A store that is away for a while does not stop checkpoints: no position can be saved there meanwhile.

        Args:
            txid: The transaction.
            report: Called with a text when a store is away.
        """
        if txid == self._noted:
            return
        text = dumps({"run": self._run, "txid": txid, **({"memory": True} if self._in_memory else {})})
        problems = []
        for store in self._stores.values():  # each by itself: the positions in the others go on
            try:
                store.save(text)
            except (FencedError, StoreGoneError):
                raise
            except StateError as problem:
                problems.append(str(problem))
        if not problems:
            self._noted, self._told = txid, False
        elif not self._told:
            self._told = True
            report(
                f"transactions can't be noted beside the positions now; it is tried again with each: {'; '.join(problems)}"
            )

    def accept(self, provider: StateProvider, state: KeyValueState[str, Any]) -> list[str]:
        """Let the topology go on with the state as it is, and return what was accepted, in sentences."""
        said = []
        for where, text in self._claimed(lambda _: None):
            if text is not None and difference_of(provider, state, text, where) is not None:
                self._stores[where].remove()
                said.append(
                    f"{provider.describe()} lacks what came up to transaction {loads(text)['txid']}, which {where} tells of"
                )
        return said

    def _claimed(self, warn: Callable[[str], None]) -> Iterator[tuple[str, str | None]]:
        """Claim the notes, and yield each place with what is noted there. A place with two names is claimed once."""
        tokens: set[str] = set()
        for where, store in list(self._stores.items()):
            if tokens and store.owner_token() in tokens:
                del self._stores[where]
                store.close()
                continue
            text = store.claim(warn)
            tokens.add(store.token)
            yield where, text

    def close(self) -> None:
        """Release the notes."""
        close_all(*(store.close for store in self._stores.values()))


def difference_of(provider: StateProvider, state: KeyValueState[str, Any], text: str, where: str) -> str | None:
    """Return why a state must not go on beside the positions of a store; None if it may.

    Args:
        provider: The provider of the state.
        state: The checkpoint spout's own state.
        text: What is noted beside the positions.
        where: Their place, in the words of a message.
    """
    position = position_of(provider, state)
    if position is None or text in (state.get(BEGUN_KEY) or ()):
        return None  # it has nothing, or began with nothing in spite of this note: it is no copy
    noted = loads(text)
    txid, phase = position
    runs = state.get(RUNS_KEY)
    is_behind = txid < noted["txid"] or (txid == noted["txid"] and phase == PREPARING)
    if noted.get("memory"):
        return (
            f"the state in {provider.describe()} is not the one to which the positions in {where} belong: they went on beside a "
            "state in memory, which is gone, so that what came since would be missing. To go on without it: multilang state "
            f"accept TOPOLOGY; to begin at the beginning: remove the state, and {_ANEW}"
        )
    if not is_behind and (not runs or noted["run"] in runs):
        return None
    what = (
        f"has transaction {txid} ({phase.lower()}), and the positions in {where} belong to {noted['txid']}"
        if is_behind
        else f"is not the one to which the positions in {where} belong, although it has as many transactions"
    )
    return (
        f"the state in {provider.describe()} is an older copy: it {what}, so that what came between would be missing. Put back the "
        "newest copy, or positions of the same moment; to go on without it: multilang state accept TOPOLOGY; to begin at the "
        f"beginning: remove the state, and {_ANEW}"
    )


def _is_empty(provider: StateProvider, state: KeyValueState[str, Any]) -> bool:
    return position_of(provider, state) is None
