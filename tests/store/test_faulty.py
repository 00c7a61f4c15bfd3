"""Each law finds the store that breaks it: here is one fault of each kind, and the test that has to fail."""

from __future__ import annotations

import copy
import unicodedata
from contextlib import ExitStack
from functools import partial
from time import sleep

import pytest

from multilang.store import StateError, claims
from multilang.store.memory import MemoryStore
from multilang.testing.store_machine import check_stores
from multilang.testing.stores import DurableStoreLaws, LocalStoreLaws, Process, StoreLaws
from tests.store.file_store import FileStore, put


class Changed(MemoryStore):
    """A write is changed before it is made."""

    def changed(self, place, expected, changes, cleared, merged):
        return place, expected, changes, cleared, merged

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        return super().compare_and_write(*self.changed(place, expected, changes, cleared, merged))


def changing(**how):
    """Return a store that changes these arguments of a write."""

    class Changing(Changed):
        def changed(self, *arguments):
            names = ("place", "expected", "changes", "cleared", "merged")
            given = dict(zip(names, arguments, strict=True))
            return [how[name](**given) if name in how else given[name] for name in names]

    return Changing


class WritesThoughRefused(MemoryStore):
    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        did = super().compare_and_write(place, expected, changes, cleared, merged)
        if not did and len(expected) > 1:
            super().compare_and_write(place, {}, dict([*changes.items()][:1]))
        return did


class EmptyIsNone(MemoryStore):
    def get(self, place, table, keys):
        return [value or None for value in super().get(place, table, keys)]


class InTwoSteps(MemoryStore):
    """Compares first, and writes afterwards."""

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        if not super().compare_and_write(place, expected, {}):
            return False
        sleep(0.001)
        return super().compare_and_write(place, {}, changes, cleared, merged)


class MergedLast(MemoryStore):
    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        did = super().compare_and_write(place, expected, changes, cleared)
        return did and super().compare_and_write(place, {}, {}, (), merged)


class MergesEmptyValues(MemoryStore):
    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        if merged is None:
            return super().compare_and_write(place, expected, changes, cleared)
        source, target = merged
        rows = dict(self.list(place, source)) if source not in cleared else {}
        if not super().compare_and_write(place, expected, {target: rows}, [*cleared, source]):
            return False
        return super().compare_and_write(place, {}, changes)


class NamesFolded(MemoryStore):
    def fold(self, name):
        return name

    def get(self, place, table, keys):
        return super().get(self.fold(place), self.fold(table), keys)

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        def folded(rows):
            return {self.fold(table): more for table, more in rows.items()}

        cleared = [self.fold(table) for table in cleared]
        return super().compare_and_write(self.fold(place), folded(expected), folded(changes), cleared, merged)


class CaseFolded(NamesFolded):
    def fold(self, name):
        return name.lower()


class Stripped(NamesFolded):
    def fold(self, name):
        return name.strip()


class Normalised(NamesFolded):
    def fold(self, name):
        return unicodedata.normalize("NFC", name)


class Cut(NamesFolded):
    def fold(self, name):
        return name[:100]


class EmptyPlaces(MemoryStore):
    def places(self, start):
        return [name for name in self._places if name.startswith(start)]


class PlacesByPattern(MemoryStore):
    def places(self, start):
        found = super().places("")
        return [name for name in found if name[: len(start)].replace("_", "%") == start.replace("_", "%")]


class TextValues(MemoryStore):
    def list(self, place, table):
        for key, value in super().list(place, table):
            yield key.decode("utf-8", "replace").encode(), value


class ListsByPosition(MemoryStore):
    """Portions by the number of rows, which shifts when a row before it goes."""

    def list(self, place, table):
        start = 0
        while rows := sorted(super().list(place, table))[start : start + 500]:
            yield from rows
            start += 500


class HeldUp(MemoryStore):
    def list(self, place, table):
        self.reading = True
        yield from super().list(place, table)
        self.reading = False

    def compare_and_write(self, *arguments, **more):
        if getattr(self, "reading", False):
            raise StateError("somebody reads")
        return super().compare_and_write(*arguments, **more)


class Cached(MemoryStore):
    """Each object remembers what it has read."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def get(self, place, table, keys):
        if table == claims.OWNER:
            return super().get(place, table, keys)
        return [
            self.seen.setdefault((place, table, key), *super(Cached, self).get(place, table, [key])) for key in keys
        ]


class Copied(MemoryStore):
    def __deepcopy__(self, memo):
        return copy.copy(self)


IN_PROCESS = [
    (changing(expected=lambda **_: {}), "a_write_is_made_only_if_each_expected_row_is_there"),
    (
        changing(expected=lambda expected, **_: dict([*expected.items()][:1])),
        "a_write_is_made_only_if_each_expected_row_is_there",
    ),
    (
        changing(expected=lambda expected, **_: {t: {k: v for k, v in r.items() if v is not None} for t, r in expected.items()}),
        "a_write_is_made_only_if_each_expected_row_is_there",
    ),
    (
        changing(changes=lambda changes, **_: {t: {k: v or None for k, v in r.items()} for t, r in changes.items()}),
        "keys_and_values_are_any_bytes",
    ),
    (WritesThoughRefused, "a_write_is_made_only_if_each_expected_row_is_there"),
    (EmptyIsNone, "keys_and_values_are_any_bytes"),
    (InTwoSteps, "threads_that_use_one_store_and_others_count_right"),
    (changing(cleared=lambda **_: ()), "tables_are_cleared_then_merged_then_changed"),
    (changing(merged=lambda **_: None), "tables_are_cleared_then_merged_then_changed"),
    (MergedLast, "tables_are_cleared_then_merged_then_changed"),
    (MergesEmptyValues, "tables_are_cleared_then_merged_then_changed"),
    (CaseFolded, "names_of_places_and_tables_are_any_text"),
    (Stripped, "names_of_places_and_tables_are_any_text"),
    (Normalised, "names_of_places_and_tables_are_any_text"),
    (Cut, "names_of_places_and_tables_are_any_text"),
    (PlacesByPattern, "names_of_places_and_tables_are_any_text"),
    (EmptyPlaces, "keys_and_values_are_any_bytes"),
    (TextValues, "keys_and_values_are_any_bytes"),
    (ListsByPosition, "a_long_table_is_listed_whole_while_somebody_writes"),
    (HeldUp, "who_stops_reading_holds_nobody_up"),
    (Copied, "a_store_goes_with_a_copy_of_a_component_and_says_what_it_is"),
    (InTwoSteps, "of_several_that_claim_at_once_each_has_its_own_epoch_and_the_last_one_writes"),
    (Cached, "a_claim_sees_what_the_owners_before_wrote"),
    (
        changing(expected=lambda expected, **_: {t: r for t, r in expected.items() if t != claims.OWNER}),
        "a_place_that_was_removed_is_not_written_to_by_its_owner_before",
    ),
]  # fmt: skip


@pytest.fixture
def quick(monkeypatch):
    for name, secs in (("BEAT_SECS", 3600.0), ("CLAIM_SECS", 0.3), ("LEASE_SECS", 3600.0)):
        monkeypatch.setattr(claims, name, secs)


@pytest.mark.parametrize(("kind", "law"), IN_PROCESS, ids=[f"{kind.__name__} {law}" for kind, law in IN_PROCESS])
def test_a_law_finds_the_store_that_breaks_it(kind, law, quick):
    store = kind()
    method = getattr(StoreLaws(), f"test_{law}")
    arguments = {"store": store, "opened": lambda: store}
    with pytest.raises((AssertionError, StateError, pytest.fail.Exception)):
        method(**{name: arguments[name] for name in names_of(method)})


@pytest.mark.parametrize("kind", [MergedLast, Cached])
def test_random_calls_find_the_store_that_breaks_a_law(kind, quick):
    store = kind()
    with pytest.raises(AssertionError, match=r"laws? \d"):
        check_stores((store, store))


class Torn(FileStore):
    """The rows of each table are on the disk at another time."""

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        if len(changes) < 2 or set(changes) != {"data", "meta"}:
            return super().compare_and_write(place, expected, changes, cleared, merged)
        first, *more = changes.items()
        done = super().compare_and_write(place, expected, dict([first]), cleared, merged)
        return done and super().compare_and_write(place, {}, dict(more))


class TooSoon(FileStore):
    def compare_and_write(self, *arguments, **more):
        self.trace("synced")
        return super().compare_and_write(*arguments, **more)


class Untraced(FileStore):
    def __setattr__(self, name, value):
        if name != "trace":
            super().__setattr__(name, value)


class Checked(FileStore):
    """Compares, and writes afterwards: what a process that is stopped between the two does not notice."""

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        with self._locked():
            tables = self._read(place)
            if any(tables.get(t, {}).get(key) != value for t, rows in expected.items() for key, value in rows.items()):
                return False
        self.trace("write")
        with self._locked():
            tables = self._read(place)
            for table in cleared:
                tables.pop(table, None)
            for table, rows in changes.items():
                put(tables, table, rows)
            self._write(place, tables)
        return True


class Full(FileStore):
    """Answers True for what it can't write."""

    def _write(self, place, tables):
        try:
            super()._write(place, tables)
        except OSError:
            pass


class MadeAnew(FileStore):
    """A file that is lost is made anew, from memory."""

    kept = {}

    def _read(self, place):
        return super()._read(place) or self.kept.get(place, {})

    def _write(self, place, tables):
        self.kept[place] = tables
        super()._write(place, tables)


_KILLED = DurableStoreLaws.test_a_write_in_which_the_process_is_killed_is_made_whole_or_not_at_all
_STOPPED = DurableStoreLaws.test_an_owner_that_was_stopped_is_taken_over_from_and_writes_nothing_when_it_is_resumed
_FULL = LocalStoreLaws.test_a_full_disk_is_reported_and_what_was_written_stays
_LOST = LocalStoreLaws.test_a_lost_file_is_reported_and_nothing_is_written_into_nothing
DURABLE = [
    (Torn, _KILLED, {}, "all of a write is there, or nothing"),
    (TooSoon, _KILLED, {}, "'synced' came before the write was on the disk"),
    (Untraced, _KILLED, {}, r"calls self.trace\('write'\) nowhere"),
    (Checked, _STOPPED, {"step": "write"}, "law 8: an owner that was taken over from has written"),
    (Full, _FULL, {}, "law 1: a write to a full disk was answered"),
    (MadeAnew, _LOST, {"lost": "files", "silent": None}, "DID NOT RAISE"),
]


@pytest.mark.parametrize(("kind", "law", "more", "says"), DURABLE, ids=[kind.__name__ for kind, *_ in DURABLE])
def test_a_law_of_processes_finds_the_store_that_breaks_it(kind, law, more, says, tmp_path, quick, monkeypatch):
    if kind is Torn:
        monkeypatch.setattr("multilang.testing.stores.LIMIT", 1.0)  # nothing more will be there
    folder = tmp_path / "store"
    opened = partial(kind, f"{kind.__module__}.{kind.__name__}:{folder}")
    with ExitStack() as stack:

        def start(task, *arguments):
            process = Process(opened(), task, *arguments)
            stack.callback(process.close)
            return process

        arguments = {"opened": opened, "start": start, "monkeypatch": monkeypatch, "tmp_path": folder, **more}
        with pytest.raises((AssertionError, pytest.fail.Exception), match=says):
            law(LocalStoreLaws(), **{name: arguments[name] for name in names_of(law)})


def names_of(law):
    return law.__code__.co_varnames[1 : law.__code__.co_argcount]
