"""Marks of how far sources were read, by partition, from which spouts resume after a restart.

A group is one reading of a source, by several runs in turn. A run claims the group's place, and each of its tasks claims the
partitions that it reads: a row for each partition has the task's token, and every save expects it. So a task whose partition
was claimed again changes nothing. The first task of another run removes all tokens when it writes its own, before it reads
the marks.

A task that has claimed its partitions checks that the source is the same one as before, and then resumes at the marks.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from multilang.component.errors import ChangedRowsError, ConnectorError
from multilang.protocol.codec import dumps, loads
from multilang.settings import MARKS as STORE
from multilang.settings import STORE as COMMON
from multilang.store.claims import stored_owner
from multilang.store.errors import FencedError
from multilang.store.interface import Store, ignore
from multilang.store.opening import open_store
from multilang.store.settings import own_store, state_file, store_url, url_of
from spark_bridge.sources.source import Comparison, Mark, carried_on, described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import Any

    from multilang.store.claims import Claim
    from spark_bridge.sources.source import PartitionSource


_PLACES = "source/"
_MARKS = "marks"  # partition -> its mark
_READERS = "readers"  # partition -> the token of the task that reads it
_RUN = b"run"  # the row of readers with the run that they belong to


class Marks:
    """The marks of a group: how far each partition of a source was read.

    Args:
        store: The store; it stays open.
        group: The group's name, with the component: ``nightly/orders``.
    """

    def __init__(self, store: Store, group: str) -> None:
        self.group = group
        self._store = store
        self._place = place_of_group(group)
        self._claim: Claim | None = None
        self._token = b""

    def claim(
        self,
        partitions: Collection[int],
        run: str,
        topology: str,
        warn: Callable[[str], None] = ignore,
        may_return: bool = True,
    ) -> None:
        """Make this task the only reader of these partitions, until they are claimed again.

        Several tasks of one run may read for a group at once, each its own partitions.

        Args:
            partitions: The partitions of this task.
            run: The topology's ``storm.id``.
            topology: The topology's name, for messages.
            warn: Called with a text when the group is taken from a run that neither ended nor beats.
            may_return: Whether a run that was taken over from may claim again once its successor has ended.

        Raises:
            InUseError: Another run reads for this group.
            FencedError: Another run, or a later task of this one, has claimed meanwhile.
        """
        self.release()
        what = f"the group {self.group!r}"
        self._claim = self._store.claim(self._place, run, topology, warn, may_return=may_return, what=what)
        try:
            self._enter(self._claim, partitions)
        except BaseException:
            self.release()
            raise

    def load(self) -> dict[int, Mark]:
        """Return the marks of all partitions of the group, whichever task reads them."""
        return {int(key): Mark(*loads(value)) for key, value in self._store.list(self._place, _MARKS)}

    def save(self, marks: Mapping[int, Mark]) -> None:
        """Store these marks of partitions that this task has claimed: all or none.

        Args:
            marks: Partition -> how far it was read.

        Raises:
            FencedError: One of the partitions was claimed again.
        """
        expected = {_READERS: {b"%d" % each: self._token for each in marks}}
        if not self._store.compare_and_write(self._place, expected, {_MARKS: _rows(marks)}):
            raise self._refused([*marks])

    def replace(self, marks: Mapping[int, Mark]) -> None:
        """Store these marks, and no others. The group was claimed, and no run reads for it.

        Args:
            marks: Partition -> how far it was read.

        Raises:
            FencedError: A run has claimed the group.
        """
        assert self._claim is not None
        self._claim.write({_MARKS: _rows(marks)}, cleared=(_MARKS,))

    def release(self) -> None:
        """Let another run claim the group."""
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.release()

    def _enter(self, claim: Claim, partitions: Collection[int]) -> None:
        """Write this task's token for its partitions.

        Other tasks of the run claim at the same time, and each claim removes the fence of the one before: any of them shows
        that the run still owns the group.
        """
        self._token = dumps([claim.epoch, claim.token]).encode()
        run = dumps(claim.owner.run).encode()
        keys = [b"%d" % each for each in partitions]
        while True:
            owner = stored_owner(self._store, self._place)
            if owner is None or owner.run != claim.owner.run:
                claim.check()
                continue
            before, *tokens = self._store.get(self._place, _READERS, [_RUN, *keys])
            if before == run and any(token is not None and loads(token)[0] > claim.epoch for token in tokens):
                raise self._refused(partitions)
            expected = {**owner.fence, _READERS: dict(zip((_RUN, *keys), (before, *tokens), strict=True))}
            changes = {_READERS: {_RUN: run, **dict.fromkeys(keys, self._token)}}
            cleared = () if before == run else (_READERS,)
            if self._store.compare_and_write(self._place, expected, changes, cleared):
                return

    def _refused(self, partitions: Collection[int]) -> FencedError:
        """Return the error for partitions of which one was claimed again."""
        why = "was stopped or cut off meanwhile, and its progress since is not stored"
        owner = stored_owner(self._store, self._place)
        if self._claim is not None and owner is not None and owner.run != self._claim.owner.run:
            return FencedError(f"group {self.group!r} is read by {owner} by now: this run {why}")
        tokens = self._store.get(self._place, _READERS, [b"%d" % each for each in partitions])
        lost = [each for each, token in zip(partitions, tokens, strict=True) if token != self._token]
        return FencedError(
            f"partition {', '.join(map(str, lost))} of group {self.group!r} is read by another task by now: this one {why}"
        )


class Resume:
    """The offsets at which a task resumes.

    They are found in steps, because rows that were read before may have to be read again.

    Attributes:
        positions: Partition -> the offset to begin at.
        totals: Partition -> the checksum of the rows before.
        marks: What the store has of this task's partitions.
        about: The description of the source to store from now on.
    """

    def __init__(
        self,
        source: PartitionSource,
        stored: Marks,
        mine: Collection[int],
    ) -> None:
        """Begin with the partitions ``mine``, which were claimed in ``stored``."""
        self.positions: dict[int, int] = {}
        self.totals: dict[int, int] = {}
        self._source = source
        self._stored = stored
        self.about: dict[str, Any] = described(source)
        marks = stored.load()
        self.marks = {each: marks.get(each, Mark(0)) for each in mine}
        self._own = self._comparison(self.marks)
        self._others: Comparison | None = None

    def step(self) -> bool:
        """Do one step, and return whether there is more to do. Raises ChangedRowsError when it is another source."""
        if self._others is None:
            if not self._own.step():
                self._note()
                # The other tasks' partitions are compared, too, since rows may have moved between partitions. Most need
                # not be read, as their own tasks have noted this source by now.
                marks = self._stored.load()
                self._others = self._comparison({each: mark for each, mark in marks.items() if each not in self.marks})
            return True
        if self._others.step():
            return True
        self._find()
        return False

    def _comparison(self, marks: dict[int, Mark]) -> Comparison:
        return Comparison(self._source, marks, f"group {self._stored.group!r}", "another group")

    def _note(self) -> None:
        """Store what was found, so that the next comparison need not read everything."""
        found = {
            each: Mark(mark.watermark, self._own.totals[each], self.about)
            for each, mark in self.marks.items()
            if mark.watermark and mark.source != self.about
        }
        if found:
            self._stored.save(found)
            self.marks.update(found)

    def _find(self) -> None:
        known = self._source.progress()
        for each, mark in self.marks.items():
            end = max(mark.watermark, known.get(each, 0))  # acked up to there, as the store or the source knows
            at, total = carried_on(self._source, each, mark.watermark, self._own.totals[each], end)
            if at < end:
                raise ChangedRowsError(
                    f"partition {each} of the source {self._source.name!r} has {at:,} rows, of which {end:,} were acked"
                )
            self.positions[each], self.totals[each] = at, total


def marks_store(store: Store | str | None, conf: Mapping[str, Any]) -> Store:
    """Return the store of a spout's marks. It connects at its first use.

    Args:
        store: The store that the spout was given: an object, a URL, or the path of an SQLite file. None: the one that the conf
            names, or else one SQLite file for all topologies of this user on this machine. A simulated run has its own.
        conf: The topology's conf.
    """
    is_simulated = own_store(conf) is not None
    if isinstance(store, Store) and not (is_simulated and store.durable):
        return store
    if store is not None and not is_simulated:
        return open_store(url_of(store), conf, STORE)
    is_named = is_simulated or conf.get(STORE) is not None or conf.get(COMMON) is not None
    found = store_url(conf, STORE) if is_named else None
    url, setting = found or (f"sqlite://{state_file('watermarks', 'sources')}", STORE)
    return open_store(url_of(url) if setting == STORE else url, conf, setting)


def place_of_group(group: str) -> str:
    """Return the place of a group in a store.

    Args:
        group: The group's name, with the component.
    """
    return f"{_PLACES}{group}"


def components(store: Store, group: str, topology: str) -> list[str]:
    """Return the components of a topology that have read something for a group.

    Args:
        store: The store.
        group: The group as the user named it, without a component.
        topology: The topology's name.
    """
    start = f"{_PLACES}{group}/"
    found = []
    for place in sorted(store.places(start)):
        owner = stored_owner(store, place)
        component = place[len(start) :]
        if owner is not None and owner.topology == topology and _read(Marks(store, f"{group}/{component}").load()):
            found.append(component)
    return found


def rename_progress(store: Store | str, group: str, old: str, new: str) -> int:
    """Give the progress of a component that was renamed to the component of its new name.

    Args:
        store: The store of the progress, its URL, or the path of its SQLite file.
        group: The group.
        old: The component's former name.
        new: Its name now.

    Returns:
        The number of partitions.

    Raises:
        ConnectorError: There is no progress of ``old``, or there is one of ``new``.
        InUseError: A topology reads for one of them now.
    """
    with _opened(store) as opened:
        source, target = Marks(opened, f"{group}/{old}"), Marks(opened, f"{group}/{new}")

        def check() -> None:
            if _read(target.load()):
                raise ConnectorError(
                    f"{opened.describe()} has progress of {target.group!r} already: forget_progress(STORE, {group!r}, {new!r}) first"
                )

        last = stored_owner(opened, place_of_group(source.group))
        if last is None or not _read(source.load()):
            raise ConnectorError(f"{opened.describe()} has no progress of {source.group!r}")
        check()
        with _idle(source, last.topology), _idle(target, last.topology):
            check()  # once more, since no other run writes now
            moved = source.load()
            target.replace(moved)  # first, so that nothing is lost if this process dies here
            source.replace({})
    return _read(moved)


def forget_progress(store: Store | str, group: str, component: str) -> int:
    """Remove the progress of a component, which begins at the beginning then.

    Args:
        store: The store of the progress, its URL, or the path of its SQLite file.
        group: The group.
        component: The component.

    Returns:
        The number of partitions.

    Raises:
        InUseError: A topology reads for it now.
    """
    with _opened(store) as opened:
        marks = Marks(opened, f"{group}/{component}")
        last = stored_owner(opened, place_of_group(marks.group))
        if last is None:
            return 0
        with _idle(marks, last.topology):
            count = _read(marks.load())
            marks.replace({})
    return count


@contextmanager
def _opened(store: Store | str) -> Iterator[Store]:
    opened = marks_store(store, {})
    try:
        yield opened
    finally:
        if opened is not store:
            opened.close()


@contextmanager
def _idle(marks: Marks, topology: str) -> Iterator[None]:
    """Claim a group that no run reads for, in the name of a topology."""
    marks.claim((), f"by hand {os.urandom(8).hex()}", topology)
    try:
        yield
    finally:
        marks.release()


def _rows(marks: Mapping[int, Mark]) -> dict[bytes, bytes | None]:
    return {b"%d" % each: dumps([mark.watermark, mark.total, mark.source]).encode() for each, mark in marks.items()}


def _read(marks: Mapping[int, Mark]) -> int:
    """Return the number of partitions of which something was read."""
    return sum(mark.watermark > 0 for mark in marks.values())
