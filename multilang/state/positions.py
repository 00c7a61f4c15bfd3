"""The stored positions of spouts, each with an owner, and the note of the state to which they belong.

Each task has a place of its own in the store, ``position/TOPOLOGY/COMPONENT/INDEX``, with one row. It claims the place before it reads
the row, and each save carries the claim's fence. So a process that was stopped, and whose task was restarted meanwhile, can't move the
position when it is resumed.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.settings import POSITIONS, STORE
from multilang.state.declared import Declared, others_identity
from multilang.store.claims import claim_for
from multilang.store.errors import FencedError, StateError
from multilang.store.opening import open_store, store_class
from multilang.store.settings import name_in, place_of, store_url, stored_name, url_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from multilang.store.claims import Claim
    from multilang.store.interface import Store

_TABLE, _KEY = "position", b""  # the row that a place has


class Position:
    """The stored position of one task.

    Args:
        conf: The component's conf.
        name: The task's name: ``COMPONENT/0``.

    Raises:
        ConfigError: The conf names no store, or lacks one on a cluster (``is_unset``).
    """

    def __init__(self, conf: Mapping[str, Any], name: str) -> None:
        check_positions(conf, name)
        self.name = name
        self._conf = conf
        self._store = _opened(conf)
        self._claim: Claim | None = None

    def claim(self) -> str | None:
        """Become the owner of the position, and return the text that was saved last; None if nothing was saved.

        Raises:
            InUseError: Another run of the topology owns it.
        """
        place = _place(self._conf, self.name)
        self._claim = claim_for(self._conf, self._store, place, f"the position of {self.name!r}")
        self._store.hurry()  # a position that is not saved now is saved later
        return self._text(place)

    def save(self, text: str) -> None:
        """Replace the saved text, if this task still owns the position.

        Raises:
            FencedError: Another task owns it; nothing was saved.
        """
        self._write(text.encode())

    def remove(self) -> None:
        """Remove the saved text, if this task still owns the position.

        Raises:
            FencedError: Another task owns it; nothing was removed.
        """
        self._write(None)

    def all(self) -> dict[str, str]:
        """Return the saved texts of all tasks of the topology, by ``COMPONENT/INDEX``. They may be another run's."""
        start = _place(self._conf, "")
        found = {name_in(place.removeprefix(start)): self._text(place) for place in self._store.places(start)}
        return {name: text for name, text in found.items() if text is not None}

    def describe(self) -> str:
        """Return the place of the positions in the words of a message."""
        return self._store.describe()

    def close(self) -> None:
        """Release the position, so that another run may claim it without waiting."""
        claim, self._claim = self._claim, None
        try:
            if claim is not None:
                claim.release()
        finally:
            self._store.close()

    def _text(self, place: str) -> str | None:
        (text,) = self._store.get(place, _TABLE, [_KEY])
        return None if text is None else text.decode()

    def _write(self, text: bytes | None) -> None:
        if self._claim is None:
            raise StateError(f"the position of {self.name!r} is written before it was claimed: call claim() first")
        self._claim.write({_TABLE: {_KEY: text}})


class Note:
    """One row beside the positions of a topology: the token of the state that they belong to, and its last transaction.

    No claim protects it. The owner of the state writes it, and replaces only the note that it has read at its start, or one of
    an earlier transaction of the same state.

    Args:
        conf: The conf of a component with positions.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._store = _opened(conf)
        self._place = _place(conf)
        self._known: bytes | None = None

    @property
    def durable(self) -> bool:
        """False if the positions end with this process."""
        return self._store.durable

    def read(self) -> tuple[str, int] | None:
        """Return the token and the transaction; None if nothing is noted.

        Raises:
            StateError: It can't be read, or is damaged.
        """
        self._known = self._row()
        return self._noted(self._known)

    def write(self, token: str, txid: int) -> None:
        """Note a transaction of a state.

        Raises:
            FencedError: Another state, or a later transaction of this one, was noted meanwhile; nothing was changed.
        """
        text = dumps([token, txid]).encode()
        there = self._known
        while not self._replace(there, text):
            there = self._row()
            if there == text:  # by an attempt whose answer was lost, or under another name of the same store
                break
            found = self._noted(there)
            if found is None or found[0] != token or found[1] > txid:
                raise FencedError(
                    f"the note of the state beside the positions in {self.describe()} was changed meanwhile: another run of the "
                    "topology has taken over, or the positions were removed while they were in use"
                )
        self._known = text

    def remove(self) -> None:
        """Remove the note. No topology may be running."""
        self._replace(self._row(), None)

    def hurry(self) -> None:
        """Shorten the timeouts of the store from now on."""
        self._store.hurry()

    def describe(self) -> str:
        """Return the place of the positions in the words of a message."""
        return self._store.describe()

    def close(self) -> None:
        """Close the connection."""
        self._store.close()

    def _row(self) -> bytes | None:
        return self._store.get(self._place, _TABLE, [_KEY])[0]

    def _replace(self, there: bytes | None, text: bytes | None) -> bool:
        return self._store.compare_and_write(self._place, {_TABLE: {_KEY: there}}, {_TABLE: {_KEY: text}})

    def _noted(self, row: bytes | None) -> tuple[str, int] | None:
        if row is None:
            return None
        try:
            token, txid = loads(row)
            return str(token), int(txid)
        except (ValueError, TypeError):
            raise StateError(
                f"{self.describe()}: the note of the state is {row!r}: it was changed by hand, or damaged. Restore it, or "
                "remove the positions: multilang state rm TOPOLOGY SPOUT"
            ) from None


def open_positions(conf: Mapping[str, Any], name: str) -> Position:
    """Return the position of the task ``name``, in the store that the conf names.

    Raises:
        ConfigError: The setting is wrong, or missing on a cluster.
    """
    return Position(conf, name)


def positions_url(conf: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the URL of the store of positions, and the conf key that has it; None if there is none on a cluster.

    A path in ``multilang.positions`` is that of an SQLite file.

    Raises:
        ConfigError: The setting is no text.
    """
    found = store_url(conf, POSITIONS)
    if found is None:
        return None
    given, setting = found
    if not isinstance(given, str):
        store_class(given, setting)  # which raises an error for a wrong one
    return url_of(given) if setting == POSITIONS else given, setting


def declared_of(text: str) -> Declared | None:
    """Return the declaration of the spout that saved this text; None: any other was accepted."""
    found = loads(text).get("source")
    return None if found is None else Declared.from_json(found)


def refused_positions(
    saved: Mapping[str, str], component: str, tasks: int, components: Collection[str], now: Declared
) -> str | None:
    """Return the reason why a spout must not resume from these positions, or begin beside them; None if it may.

    Args:
        saved: The saved texts of the topology, by ``COMPONENT/INDEX``.
        component: The spout.
        tasks: Its number of tasks.
        components: All components of the topology.
        now: The spout's declaration.
    """
    for name, text in sorted(saved.items()):
        owner = name.rpartition("/")[0]
        if owner == component and (before := loads(text)["tasks"]) != tasks:
            return (
                f"the position of {name!r} is that of one of {before} tasks, and spout {component!r} has {tasks} now, which would "
                f"divide the source in another way: give it as many as before, or, if it is to begin at the beginning: multilang "
                f"state rm TOPOLOGY {component}"
            )
        if owner not in components:
            return (
                f"there is a position of {owner!r}, which the topology does not have: under another name it would begin at the "
                f"beginning. If it was renamed: multilang state rename TOPOLOGY {owner} NEW; if it was removed: multilang state rm "
                f"TOPOLOGY {owner}; or else give it its name back"
            )
    by_component = {name.rpartition("/")[0]: declared_of(text) for name, text in saved.items()}
    before = by_component.pop(component, None)
    if before is None or before.is_like(now):
        return None
    former = sorted(each for each, its in by_component.items() if its is not None and its.is_like(now))
    if former:
        return (
            f"{component!r} has what {former[0]!r} had when its position was saved ({', '.join(before.changed(now)) or now.name}), so that "
            "one would resume from the other's position: give the components their names back; if it is meant: multilang state accept "
            "TOPOLOGY"
        )
    return others_identity(component, before, now)


def saved_positions(conf: Mapping[str, Any]) -> dict[str, str]:
    """Return the saved texts of a topology, by ``COMPONENT/INDEX``, without a claim."""
    try:
        store = open_positions(conf, "")
    except ConfigError as problem:
        if not problem.is_unset:
            raise
        return {}
    try:
        return store.all()
    finally:
        store.close()


def move_positions(conf: Mapping[str, Any], old: str, new: str | None) -> int:
    """Give the positions of a component to another one or, without ``new``, remove them.

    After a crash it can be repeated.

    Returns:
        The number of positions.

    Raises:
        InUseError: The topology runs.
        StateError: There is a position of ``new`` already.
    """
    mine = {name: text for name, text in saved_positions(conf).items() if name.rpartition("/")[0] == old}
    for name, text in mine.items():
        source = open_positions(conf, name)
        try:
            source.claim()
            if new is not None:
                _copy(conf, f"{new}/{name.rpartition('/')[2]}", text)
            source.remove()
        finally:
            source.close()
    if mine and new is None and not saved_positions(conf):
        note = Note(conf)  # there is no position left that belongs to a state
        try:
            note.remove()
        finally:
            note.close()
    return len(mine)


def accept_positions(conf: Mapping[str, Any], declared: Mapping[str, Declared]) -> list[str]:
    """Let spouts resume from their positions although they are declared in another way than when these were saved.

    Args:
        conf: The topology's conf.
        declared: The declarations of its spouts.

    Returns:
        A sentence for each accepted difference.

    Raises:
        InUseError: The topology runs.
    """
    accepted: dict[str, str] = {}
    for name, text in saved_positions(conf).items():
        component = name.rpartition("/")[0]
        before, now = declared_of(text), declared.get(component)
        if before is None or now is None or before.is_like(now):
            continue
        changed = ", ".join(before.changed(now)) or f"{now.name} instead of {before.name}"
        accepted[component] = (
            f"{component!r} resumes from its position, although it is declared in another way ({changed})"
        )
        store = open_positions(conf, name)
        try:
            store.claim()
            store.save(dumps({key: value for key, value in loads(text).items() if key != "source"}))
        finally:
            store.close()
    return list(accepted.values())


def check_positions(conf: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError if ``open_positions`` would refuse the setting, or it is missing (``is_unset``)."""
    if positions_url(conf) is None:
        raise ConfigError(
            f"the position of {name!r} has no place that every worker reaches: set {STORE} to redis://HOST:PORT/DATABASE or, where "
            "there is one machine, to sqlite:///FOLDER/FILE.sqlite",
            is_unset=True,
        )
    _opened(conf)


def positions_class(conf: Mapping[str, Any]) -> type[Store] | None:
    """Return the class of the store of positions; None if the conf names none on a cluster.

    Raises:
        ConfigError: The setting is wrong.
    """
    found = positions_url(conf)
    return None if found is None else store_class(*found)


def _opened(conf: Mapping[str, Any]) -> Store:
    found = positions_url(conf)
    assert found is not None  # checked before
    return open_store(found[0], conf, found[1])


def _place(conf: Mapping[str, Any], *name: str) -> str:
    """Return the place of a task's position, ``COMPONENT/INDEX``; without it, the place above all of the topology's."""
    return place_of("position", stored_name(conf), *(part for each in name for part in each.rsplit("/", 1)))


def _copy(conf: Mapping[str, Any], name: str, text: str) -> None:
    target = open_positions(conf, name)
    try:
        there = target.claim()
        if there not in (None, text):
            raise StateError(
                f"{target.describe()} has a position of {name!r} already; remove it first, with multilang state rm TOPOLOGY "
                f"{name.rpartition('/')[0]}"
            )
        if there is None:
            target.save(text)
    finally:
        target.close()
