"""Checks of a provider that a user wrote, before it stores anything.

Without these checks a missing method would show only where it is used: at the first checkpoint, in another task, after
a crash.
"""

from __future__ import annotations

from multilang.state.api import KeyValueState, State
from multilang.state.names import (
    COMMITTED,
    COMMITTING,
    EVERY_KEY,
    PREPARING,
    SPOUT,
    STATE_KEY,
    TASKS_KEY,
    WHOLE_KEY,
    namespace,
    split_namespace,
)
from multilang.state.provider import StateProvider
from multilang.store.calls import check_attributes, check_calls, class_of, is_own, look_at
from multilang.store.errors import StoreGoneError, WrongProviderError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from multilang.store.calls import Calls

# The arguments with which the library calls each method.
_PROVIDER: Calls = {
    "new_state": (("count-0",),),
    "namespaces": ((),),
    "txids": (("count-0",),),
    "replace": (({},),),
    "claim": ((),),
    "renew": ((),),
    "check_free": ((),),
    "check": ((),),
    "describe": ((),),
    "close": ((),),
}
_STATE: Calls = {
    "claim": ((1,),),
    "prepare_commit": ((0,),),
    "commit": ((0,), ()),
    "rollback": ((),),
    "close": ((),),
}
_KEY_VALUE: Calls = {
    "get": (("key",), ("key", None)),
    "put": (("key", 1),),
    "delete": (("key",),),
    "items": ((),),
}


def check_provider(provider: StateProvider, name: str) -> None:
    """Check the methods of a provider, and of its state ``name``. Nothing is written.

    Raises:
        WrongProviderError: A method or an attribute is missing, or does not take the arguments it will be called with.
    """
    if not is_own(provider):
        return
    check_calls(provider, StateProvider, _PROVIDER)
    check_attributes(provider)
    state_of(provider, name, KeyValueState).close()


def state_of(provider: StateProvider, name: str, kind: type[Any] = State) -> Any:
    """Return the state of a namespace, checked to be of the class ``kind``."""
    state = provider.new_state(name)
    if not isinstance(state, kind):
        raise WrongProviderError(
            f"{class_of(provider)}.new_state({name!r}) returned {shown(state)}; return a multilang.state.{kind.__name__}"
        )
    look_at(state, State, _STATE)
    if isinstance(state, KeyValueState):
        look_at(state, KeyValueState, _KEY_VALUE)
    return state


def epoch_of(provider: StateProvider) -> int:
    """Claim the stored states, and return the epoch."""
    epoch: Any = provider.claim()
    if type(epoch) is not int or epoch < 0:
        raise WrongProviderError(
            f"{class_of(provider)}.claim() returned {shown(epoch)}; return the owner's epoch, a whole number that is larger than all "
            "before it, or 0 if the provider knows no owners"
        )
    return epoch


def check_committed(
    provider: StateProvider, name: str, state: KeyValueState[str, Any], key: str, value: Mapping[str, Any]
) -> None:
    """Check that the state ``name`` returns the committed ``value``; if it is durable, a second state must, too."""
    if not is_own(provider):
        return
    found = state.get(key)
    if found != value:
        raise WrongProviderError(
            f"{class_of(provider)}: the state of {name!r} gives {shown(found)} for {key!r}, where {value!r} was put and committed; "
            "get(key, default) returns the value, an object as a dict and a list as a list"
        )
    if not provider.durable:
        return
    other = state_of(provider, name, KeyValueState)
    try:
        found = other.get(key)
    finally:
        other.close()
    if found != value:
        raise WrongProviderError(
            f"{class_of(provider)} says that it is durable, and a second state of {name!r} gives {shown(found)} for {key!r}, where "
            f"{value!r} was committed: commit() stores it before it returns, or else write `durable = False` in the class"
        )


def tasks_of(provider: StateProvider, coordinator: KeyValueState[str, Any]) -> dict[str, int]:
    """Return the number of tasks that each component had when it was stored last."""
    found = coordinator.get(TASKS_KEY)
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(type(count) is int for count in found.values()):
        raise _changed(provider, TASKS_KEY, found, "an object of components with their number of tasks")
    return found


def position_of(provider: StateProvider, coordinator: KeyValueState[str, Any]) -> tuple[int, str] | None:
    """Return the last transaction and its phase; None before the first transaction."""
    found = coordinator.get(STATE_KEY)
    if found is None:
        return None
    if (
        not isinstance(found, list | tuple)
        or len(found) != 2
        or type(found[0]) is not int
        or found[1] not in (PREPARING, COMMITTING, COMMITTED)
    ):
        raise _changed(provider, STATE_KEY, found, "[transaction, 'PREPARING', 'COMMITTING' or 'COMMITTED']")
    return found[0], found[1]


def check_progress(provider: StateProvider, coordinator: KeyValueState[str, Any]) -> None:
    """Raise StoreGoneError when the checkpoint spout has no progress stored, and a task has committed a transaction.

    The transactions would be counted from 0 again, and each task would refuse what it has committed already.
    """
    if type(provider).txids is StateProvider.txids or position_of(provider, coordinator) is not None:
        return
    for name in names_of(provider):
        task = split_namespace(name)
        if task is None or task[0] == SPOUT:
            continue
        committed, _ = txids_of(provider, name)
        if committed is not None and committed >= 0:
            raise StoreGoneError(
                f"the state of {namespace(SPOUT, 0)!r}, which has the progress of the checkpoints, is missing in {provider.describe()}, where "
                f"{name!r} has committed transaction {committed}. Restore it, or replace all by a whole copy (multilang "
                "state import TOPOLOGY FILE --replace); or remove all that is stored there, to begin with nothing"
            )


def check_whole(provider: StateProvider, coordinator: KeyValueState[str, Any], components: Iterable[str]) -> None:
    """Raise StoreGoneError when the state of a task of ``components`` is missing, or older than that of the others."""
    tasks = tasks_of(provider, coordinator)
    whole = set(coordinator.get(WHOLE_KEY) or ()) & set(components)
    names = [namespace(each, index) for each in sorted(whole) for index in range(tasks.get(each, 0))]
    if not names or type(provider).txids is StateProvider.txids:
        return  # a provider that does not know the transactions
    there: list[str] | None = None
    every: Any = coordinator.get(EVERY_KEY)
    for name in names:
        committed, prepared = txids_of(provider, name)
        if committed is not None and every is not None and committed < every:
            raise StoreGoneError(
                f"the state of {name!r} in {provider.describe()} is an older copy: it has transaction {committed}, and all tasks have "
                f"committed {every}, so that what came between would be missing in this one. Restore it, or replace all by a "
                "whole copy (multilang state import TOPOLOGY FILE --replace)"
            )
        if committed is None and prepared is None:
            there = names_of(provider) if there is None else there
            if name not in there:
                raise StoreGoneError(
                    f"the state of {name!r} is missing in {provider.describe()}, where a transaction of it was committed. Restore it, or "
                    "replace all by a whole copy (multilang state import TOPOLOGY FILE --replace)"
                )


def noted_whole(coordinator: KeyValueState[str, Any], components: Iterable[str], others: Iterable[str] = ()) -> None:
    """Put, to be committed with a transaction, that all tasks of these components have committed it.

    ``others``: components of the topology that may have committed an earlier one.
    """
    known = coordinator.get(WHOLE_KEY) or []
    whole = sorted({*components, *(set(known) & set(others))})
    if whole != known:
        coordinator.put(WHOLE_KEY, whole)


def items_of(provider: StateProvider, name: str, state: KeyValueState[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the keys of a state with their values, each checked to be a pair."""
    item: Any
    for item in state.items():
        if not isinstance(item, tuple) or len(item) != 2:
            raise WrongProviderError(
                f"{class_of(provider)}: items() of the state {name!r} gives {shown(item)}; it gives (key, value), one by one"
            )
        yield item


def names_of(provider: StateProvider) -> list[str]:
    """Return the namespaces that hold anything, checked to be a list of texts."""
    names: Any = provider.namespaces()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WrongProviderError(f"{class_of(provider)}.namespaces() returned {shown(names)}; return a list of texts")
    return names


def txids_of(provider: StateProvider, name: str) -> tuple[int | None, int | None]:
    """Return the transactions of a namespace that were committed and prepared last."""
    return _pair(provider.txids(name), f"{class_of(provider)}.txids({name!r})", ", (None, None) if that is not known")


def _pair(found: Any, call: str, unless: str) -> tuple[int | None, int | None]:
    if (
        not isinstance(found, tuple | list)
        or len(found) != 2
        or not all(type(each) in (int, type(None)) for each in found)
    ):
        raise WrongProviderError(
            f"{call} returned {shown(found)}; return the transactions that were committed and prepared last, two whole "
            f"numbers{unless}"
        )
    return found[0], found[1]


def _changed(provider: StateProvider, key: str, found: object, was: str) -> WrongProviderError:
    return WrongProviderError(
        f"{provider.describe()}: the checkpoint spout's state has {shown(found)} for {key!r}, where {was} was put: a state gives "
        "back what JSON makes of a value, lists as lists and objects as dicts"
    )
