"""The stores of spouts' positions, each with an owner; the table of databases has their classes.

The rules of ``multilang.state.owner`` hold: a task claims its position before it reads it, and each save compares the
claim in the same step. So a process that was stopped, and whose task was started again meanwhile, can't move the
position when it wakes up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.component.errors import ConfigError, NotSetError
from multilang.dotted import by_dotted_name
from multilang.masked import masked_text
from multilang.protocol.codec import dumps, loads
from multilang.state.declared import Declared, others_identity
from multilang.state.errors import FencedError, StateError, StoreGoneError
from multilang.state.names import SPOUT
from multilang.state.old_databases import DATABASES
from multilang.state.owner import claim
from multilang.state.settings import POSITIONS
from multilang.store.settings import may_return, owner_of, state_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, TypeVar

    from multilang.state.owner import OwnedPlace, Ownership

    S = TypeVar("S", bound="PositionStore")

_FILES = "sqlite"  # the database of a setting that is a path
_NOTES = f"{SPOUT}/0"  # the note beside the positions; see multilang.state.witness
_SAME = {"rediss": "redis"}  # the schemes with TLS


class PositionStore(ABC):
    """The stored position of one task.

    Args:
        conf: The component's conf.
        name: The task's name: ``COMPONENT/0``.
        place: What ``place_of`` returned for the setting.

    Attributes:
        form: The form of the setting, in the words of a message.
        requires: The packages that workers need: import names, and what to install for each; see
            ``Component.requires``.
    """

    form = ""

    requires: Mapping[str, str] = {}

    _where: str

    def __init__(self, conf: Mapping[str, Any], name: str, place: Any) -> None:
        self.conf = conf
        self.name = f"{owner_of(conf)[1]}:{name}"
        self._owned: Ownership | None = None

    def claim(self, warn: Callable[[str], None]) -> str | None:
        """Become the owner of the position, and return the text that was saved last; None if nothing was saved.

        Raises:
            InUseError: Another run of the topology owns it.
        """
        run, topology = owner_of(self.conf)
        place = self._place()
        try:
            self._owned = claim(place, run, topology, warn, may_return(self.conf))
        except BaseException:
            place.close()
            raise
        return self._load()

    @property
    def token(self) -> str:
        """A text that tells this task's claim from every other; empty if it has claimed nothing."""
        return "" if self._owned is None else self._owned.token

    def owner_token(self) -> str:
        """Return the token of the stored owner, which may be that of a claim under another name of the place.

        Nothing is claimed. It is empty if there is no owner, or one of an earlier version.
        """
        place = self._place()
        try:
            owner = place.owner()
            return "" if owner is None else owner.token
        finally:
            place.close()

    def save(self, text: str) -> None:
        """Replace the saved text, if this task still owns the position.

        Raises:
            FencedError: Another task owns it; nothing was saved.
        """
        if self._owned is None:
            raise StateError(f"the position of {self.name!r} is saved before it was claimed: call claim() first")
        self._save(text, self._owned.epoch)

    def all(self) -> dict[str, str]:
        """Return the saved texts of all tasks of the topology, by ``COMPONENT/INDEX``. They may be another run's."""
        start = self.name.partition(":")[0] + ":"  # a topology's name has no colon
        found = {name.removeprefix(start): text for name, text in self._all(start).items()}
        return {name: text for name, text in found.items() if name.partition("/")[0] != SPOUT}

    def remove(self) -> None:
        """Remove the saved text, if this task still owns the position.

        Raises:
            FencedError: Another task owns it; nothing was removed.
        """
        if self._owned is None:
            raise StateError(f"the position of {self.name!r} is removed before it was claimed: call claim() first")
        self._remove(self._owned.epoch)

    def describe(self) -> str:
        """Return the place of the positions in the words of a message."""
        return self._where

    def close(self) -> None:
        """Release the position, so that another run may claim it without waiting."""
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.release()

    @classmethod
    def place_of(cls, url: str) -> Any:
        """Return the place in the database that a URL names.

        Args:
            url: The setting's URL, whose scheme is the database's name.

        Raises:
            ValueError: It is no URL of this database.
        """
        raise ValueError(url)

    @abstractmethod
    def _place(self) -> OwnedPlace: ...

    @abstractmethod
    def _load(self) -> str | None: ...

    @abstractmethod
    def _save(self, text: str, epoch: int) -> None: ...

    @abstractmethod
    def _remove(self, epoch: int) -> None: ...

    @abstractmethod
    def _all(self, start: str) -> dict[str, str]: ...

    def _fenced(self, by: object, where: str) -> FencedError:
        return FencedError(
            f"the position of {self.name!r} in {where} was taken over by {by} meanwhile: this task was stopped or cut off, and "
            "moves it no more"
        )

    def _gone(self, where: str) -> StoreGoneError:
        return StoreGoneError(
            f"the position of {self.name!r} in {where} was deleted while it was in use: put it back, or start the topology again, "
            "which then begins at the beginning"
        )


def open_positions(conf: Mapping[str, Any], name: str) -> PositionStore:
    """Return the store of the position of the task ``name``, as ``multilang.positions`` sets it.

    Raises:
        ConfigError: The setting is wrong, or missing on a cluster.
    """
    check_positions(conf, name)
    if conf.get(POSITIONS) is None:
        place = state_file(owner_of(conf)[1], "positions")
        return positions_class(conf)(conf, name, place)
    kind, place = _named(conf)
    return kind(conf, name, place)


def open_notes(conf: Mapping[str, Any], source: str = "") -> PositionStore | None:
    """Return the store of what is noted beside the positions; None if there is no place for positions.

    Args:
        conf: The conf of the component with positions.
        source: For a source that keeps its progress itself, what tells it from others, in the words of a message; "" for positions.
    """
    try:
        return _of_source(open_positions(conf, _note_of(source)), source)
    except NotSetError:
        return None


def notes_in(kind: type[S], conf: Mapping[str, Any], place: Any, source: str) -> S:
    """Return the store of what is noted beside a source that keeps its progress itself.

    Args:
        kind: The class for the source's database.
        conf: The source's conf.
        place: The place of the source, as ``PositionStore.place_of`` returns one.
        source: What tells the source from others, in the words of a message.
    """
    return _of_source(kind(conf, _note_of(source), place), source)


def _note_of(source: str) -> str:
    return f"{_NOTES}/{source}" if source else _NOTES


def _of_source(store: S, source: str) -> S:
    if source:
        store._where = f"{store._where}, of {source}"
    return store


def open_set_notes(conf: Mapping[str, Any]) -> PositionStore | None:
    """Return the store of what is noted beside positions that are kept only where the conf says so; None if it doesn't."""
    return None if conf.get(POSITIONS) is None else open_notes(conf)


def declared_of(text: str) -> Declared | None:
    """Return what the spout that saved this text was declared with; None: an earlier version saved it, or it was accepted."""
    found = loads(text).get("source")
    return None if found is None else Declared.from_json(found)


def refused_positions(
    kept: Mapping[str, str], component: str, tasks: int, components: Collection[str], now: Declared
) -> str | None:
    """Return the reason why a spout must not go on from these positions, or begin beside them; None if it may.

    Args:
        kept: The saved texts of the topology, by ``COMPONENT/INDEX``.
        component: The spout.
        tasks: Its number of tasks.
        components: All components of the topology.
        now: What the spout is declared with.
    """
    for name, text in sorted(kept.items()):
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
    by_component = {name.rpartition("/")[0]: declared_of(text) for name, text in kept.items()}
    before = by_component.pop(component, None)
    if before is None or before.is_like(now):
        return None
    former = sorted(each for each, its in by_component.items() if its is not None and its.is_like(now))
    if former:
        return (
            f"{component!r} has what {former[0]!r} had when its position was saved ({', '.join(before.changed(now)) or now.name}), so that "
            "one would go on from the other's position: give the components their names back; if it is meant: multilang state accept "
            "TOPOLOGY"
        )
    return others_identity(component, before, now)


def kept_positions(conf: Mapping[str, Any]) -> dict[str, str]:
    """Return the saved texts of a topology, by ``COMPONENT/INDEX``. Nothing is claimed, and nothing is made."""
    try:
        store = open_positions(conf, "")
    except NotSetError:
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
    mine = {name: text for name, text in kept_positions(conf).items() if name.rpartition("/")[0] == old}
    for name, text in mine.items():
        source = open_positions(conf, name)
        try:
            source.claim(lambda _: None)
            if new is not None:
                _copy(conf, f"{new}/{name.rpartition('/')[2]}", text)
            source.remove()
        finally:
            source.close()
    if mine and new is None and not kept_positions(conf):
        _remove_note(conf)
    return len(mine)


def _remove_note(conf: Mapping[str, Any]) -> None:
    """Remove the note of a state's transactions: there is no position left that belongs to it."""
    store = open_positions(conf, _NOTES)
    try:
        if store.claim(lambda _: None) is not None:
            store.remove()
    finally:
        store.close()


def accept_positions(conf: Mapping[str, Any], declared: Mapping[str, Declared]) -> list[str]:
    """Let spouts go on from their positions although they are declared in another way than when these were saved.

    Args:
        conf: The topology's conf.
        declared: What its spouts are declared with.

    Returns:
        What was accepted, in sentences.

    Raises:
        InUseError: The topology runs.
    """
    said: dict[str, str] = {}
    for name, text in kept_positions(conf).items():
        component = name.rpartition("/")[0]
        before, now = declared_of(text), declared.get(component)
        if before is None or now is None or before.is_like(now):
            continue
        changed = ", ".join(before.changed(now)) or f"{now.name} instead of {before.name}"
        said[component] = f"{component!r} goes on from its position, although it is declared in another way ({changed})"
        store = open_positions(conf, name)
        try:
            store.claim(lambda _: None)
            store.save(dumps({key: value for key, value in loads(text).items() if key != "source"}))
        finally:
            store.close()
    return list(said.values())


def _copy(conf: Mapping[str, Any], name: str, text: str) -> None:
    target = open_positions(conf, name)
    try:
        there = target.claim(lambda _: None)
        if there not in (None, text):
            raise StateError(
                f"{target.describe()} has a position of {name!r} already; remove it first, with multilang state rm TOPOLOGY "
                f"{name.rpartition('/')[0]}"
            )
        if there is None:
            target.save(text)
    finally:
        target.close()


def check_positions(conf: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError if the setting is one that ``open_positions`` would refuse; NotSetError if it is missing. Nothing is opened."""
    if conf.get(POSITIONS) is not None:
        _named(conf)
    elif conf.get("multilang.parent") not in ("local", "spark"):
        raise NotSetError(
            f"the position of {name!r} has no place that every worker reaches: set {POSITIONS} to redis://HOST:PORT/DATABASE or, "
            "where there is one machine, to an SQLite file's path"
        )


def positions_class(conf: Mapping[str, Any]) -> type[PositionStore]:
    """Return the class of stores that ``multilang.positions`` names.

    Raises:
        ConfigError: The setting is wrong.
    """
    if conf.get(POSITIONS) is None:
        found: type[PositionStore] = by_dotted_name(DATABASES[_FILES].positions)
        return found
    return _named(conf)[0]


def _named(conf: Mapping[str, Any]) -> tuple[type[PositionStore], Any]:
    """Return the class that the setting names, and the place in its database."""
    given = conf[POSITIONS]
    kinds: dict[str, type[PositionStore]] = {
        name: by_dotted_name(row.positions) for name, row in DATABASES.items() if row.positions
    }
    what = f"{POSITIONS} is {given!r}; use {', or '.join(kind.form for kind in kinds.values())}"
    if not isinstance(given, str) or not given or "\0" in given:
        raise ConfigError(what)
    if "://" not in given:
        return kinds[_FILES], given
    try:
        kind = kinds[_SAME.get(scheme := given.partition("://")[0].lower(), scheme)]
        return kind, kind.place_of(given)
    except KeyError:
        raise ConfigError(what) from None
    except (ValueError, ConfigError) as problem:
        raise ConfigError(f"{masked_text(what)}: {problem}") from None
