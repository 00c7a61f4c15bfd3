"""The laws of ``multilang.store.interface`` as tests, which every database passes, one of your own, too.

Example:
    from multilang.testing.stores import DurableStoreLaws


    class TestFiles(DurableStoreLaws):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: open_store(f"shop.files.FileStore:{tmp_path}")
"""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, ClassVar

import pytest

from multilang.store import claims
from multilang.store.errors import FencedError, InUseError, StateError, StoreGoneError
from multilang.testing.store_process import AFTER, BEFORE, whole_step
from multilang.testing.store_process import count as count_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.store.interface import Rows, Store

    OpenStore = Callable[[], Store]

NAMES = (
    *(
        "a",
        "ab",
        "A",
        "a ",
        " a",
        "a:b",
        "a::b",
        "a/b",
        "a//b",
        "/a",
        "a/",
        ".",
        "..",
        "a/../b",
        "%",
        "a%",
        "a%2Fb",
        "a_b",
    ),
    *("{}", "{a}", "a{b}c", "$a", "a*", "a?", "[a]", "a\\b", 'a"b', "a'b", "a;--", "a\nb", "a\tb", "0", "-1", "None"),
    *("é", "e\u0301", "É", "日本語", "\U0001f600", "\u2028", "x" * 200, "x" * 199 + "y", "é" * 200),
)
BYTES = (
    b"",
    b"\0",
    b"a\0",
    b"a",
    b"A",
    b"a ",
    b"\n",
    b"\r\n",
    b"\xff",
    b"\xc3\x28",
    b"\xc3\xa9",
    b"e\xcc\x81",
    b"{}",
    b"$",
)
EVERY_BYTE = bytes(range(256))
LIMIT = 60.0  # seconds for what takes a moment


class StoreLaws:
    """The laws of every store. Override ``open_store``."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Return a function that returns a new object for the same database each time, as another process has it.

        The database is empty at first, and each test needs another one.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a fixture open_store(self)")

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An owner is soon known to beat, and only tests with ``silent`` wait for a lease."""
        monkeypatch.setattr(claims, "BEAT_SECS", 0.05)
        monkeypatch.setattr(claims, "CLAIM_SECS", 0.3)
        monkeypatch.setattr(claims, "LEASE_SECS", 3600.0)

    @pytest.fixture
    def silent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Owners do not beat, and their lease is short."""
        monkeypatch.setattr(claims, "BEAT_SECS", 3600.0)
        monkeypatch.setattr(claims, "LEASE_SECS", 0.3)

    @pytest.fixture
    def opened(self, open_store: OpenStore) -> Iterator[OpenStore]:
        """The same as ``open_store``; what it opened is closed after the test."""
        found: list[Store] = []

        def opened() -> Store:
            found.append(open_store())
            return found[-1]

        yield opened
        for each in found:
            each.close()

    @pytest.fixture
    def store(self, opened: OpenStore) -> Store:
        """A store."""
        return opened()

    # --- laws 1 and 3: compared and written in one step -------------------------------------------------------------------

    def test_a_write_is_made_only_if_each_expected_row_is_there(self, store: Store) -> None:
        rows = {"t": {b"one": b"1", b"empty": b""}, "u": {b"one": b"2"}}
        assert store.compare_and_write("p", {"t": {b"one": None, b"empty": None}}, rows), "absent rows were expected"
        fitting: list[Rows] = [
            {},
            {"t": {}},
            {"t": {b"one": b"1"}},
            {"t": {b"empty": b""}},
            {"t": {b"none": None}},
            {"none": {b"one": None}},
            {"t": {b"one": b"1", b"empty": b"", b"none": None}, "u": {b"one": b"2", b"empty": None}},
        ]
        for number, expected in enumerate(fitting):
            mark = {"marks": {b"last": b"%d" % number}}
            assert store.compare_and_write("p", expected, mark) is True, f"law 1: {expected} is there"
            assert store.get("p", "marks", [b"last"]) == [b"%d" % number], (
                f"law 1: {expected} is there: nothing was written"
            )
        wrong: list[Rows] = [
            {"t": {b"one": b"2"}},
            {"t": {b"one": b""}},
            {"t": {b"one": None}},
            {"t": {b"empty": None}},
            {"t": {b"empty": b"\0"}},
            {"t": {b"none": b""}},
            {"t": {b"none": b"1"}},
            {"none": {b"one": b"1"}},
            {"t": {b"one": b"1", b"empty": b"", b"none": None}, "u": {b"one": b"1"}},
            {"t": {b"one": b"1"}, "u": {b"one": None}},
            {"u": {b"one": b"2"}, "t": {b"one": b"1", b"empty": b"1"}},
        ]
        before = contents(store, "p", "t", "u", "marks", "more")
        for expected in wrong:
            changes: Rows = {"t": {b"one": None, b"new": b"1"}, "u": {b"one": b"3"}, "more": {b"new": b"1"}}
            for cleared, merged in ((), None), (("t", "u"), None), ((), ("u", "t")), (("t",), ("u", "more")):
                did = store.compare_and_write("p", expected, changes, cleared, merged)
                assert did is False, f"law 1: {expected} is not there, and the write was made"
                assert contents(store, "p", *before) == before, (
                    f"law 3: {expected} is not there, and something was changed"
                )
        assert store.compare_and_write("other", {"t": {b"one": b"1"}}, {"t": {b"one": b"1"}}) is False, (
            "of another place"
        )
        assert store.places("") == ["p"], "law 3: nothing was changed, and there is a new place"

    def test_tables_are_cleared_then_merged_then_changed(self, store: Store) -> None:
        def after(
            cleared: tuple[str, ...], merged: tuple[str, str] | None, changes: Rows
        ) -> dict[str, dict[bytes, bytes]]:
            for table in ("from", "to"):
                assert store.compare_and_write("p", {}, {}, [table])
            rows = {"from": {b"a": b"2", b"b": b"", b"c": b"2"}, "to": {b"a": b"1", b"b": b"1", b"d": b"1"}}
            assert store.compare_and_write("p", {}, rows)
            assert store.compare_and_write("p", {"to": {b"a": b"1"}}, changes, cleared, merged)
            return contents(store, "p", "from", "to")

        into = ("from", "to")
        assert after((), into, {}) == {"from": {}, "to": {b"a": b"2", b"c": b"2", b"d": b"1"}}, (
            "rows that are merged replace those of the same key, an empty value removes the row, and their table is emptied"
        )
        assert after(("to",), into, {}) == {"from": {}, "to": {b"a": b"2", b"c": b"2"}}, "cleared before merged"
        assert after(("from",), into, {}) == {"from": {}, "to": {b"a": b"1", b"b": b"1", b"d": b"1"}}, (
            "cleared before merged"
        )
        assert after(("from", "to"), into, {}) == {"from": {}, "to": {}}, "cleared before merged"
        changes: Rows = {"from": {b"a": b"3", b"c": b""}, "to": {b"a": b"3", b"b": b"", b"c": None, b"none": None}}
        assert after((), into, changes) == {
            "from": {b"a": b"3", b"c": b""},
            "to": {b"a": b"3", b"b": b"", b"d": b"1"},
        }, "changes are written last, and an empty value of theirs is a value"
        assert after(("from", "to"), None, changes) == {
            "from": {b"a": b"3", b"c": b""},
            "to": {b"a": b"3", b"b": b""},
        }, "changes are written after tables are cleared"
        assert after((), ("none", "to"), {})["to"] == {b"a": b"1", b"b": b"1", b"d": b"1"}, (
            "merged from a table without rows"
        )
        assert after(("none",), ("to", "none"), {})["to"] == {}, "merged into a table without rows"
        assert contents(store, "p", "none") == {"none": {b"a": b"1", b"b": b"1", b"d": b"1"}}

    @pytest.mark.parametrize("step", ["write", "sync", "synced"])
    def test_a_write_that_fails_at_a_step_is_made_whole_or_not_at_all(self, opened: OpenStore, step: str) -> None:
        store, seen = opened(), []

        def trace(name: str) -> None:
            seen.append(name)
            if name == step:
                raise ValueError(f"failed at {step}")

        assert store.compare_and_write("p", {}, BEFORE)
        store.trace = trace
        with suppress(ValueError, StateError):
            whole_step(store, "p")
        del store.trace
        for each in (store, opened()):
            found = contents(each, "p", *BEFORE)
            assert found in (BEFORE, AFTER), f"law 1: a part of a step that failed at {step!r} was written"
        assert step != "synced" or step not in seen or found == AFTER, "law 2: 'synced' came before the write was done"
        assert store.compare_and_write("p", {}, {"t": {b"later": b"1"}}), (
            "after an error, the store can still be written to"
        )
        assert opened().get("p", "t", [b"later"]) == [b"1"]

    def test_a_large_step_is_made_whole_or_refused_whole(self, store: Store) -> None:
        for part in store.portions((b"%d" % number, b"x" * 20) for number in range(3000)):
            assert store.compare_and_write("p", {}, {"from": part})
        assert store.compare_and_write("p", {}, {"to": {b"1": b"old", b"kept": b"1"}})
        changes = {b"%d" % number: b"y" * 20 for number in range(1000)}
        try:
            assert store.compare_and_write("p", {"to": {b"1": b"old"}}, {"more": changes}, [], ("from", "to"))
        except StateError:
            expected = {"from": 3000, "to": 2, "more": 0}
        else:
            expected = {"from": 0, "to": 3001, "more": 1000}
        found = {table: len(rows) for table, rows in contents(store, "p", *expected).items()}
        assert found == expected, "law 1: a large step was made in part"

    def test_threads_that_use_one_store_and_others_count_right(self, opened: OpenStore) -> None:
        one, other = opened(), opened()
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(count_on, store, "p", 25) for store in (one, one, other, opened())]:
                done.result()
        assert one.get("p", "t", [b"n"]) == [b"100"], "law 1: an increment by compare_and_write was lost or made twice"

    # --- what can be stored -------------------------------------------------------------------------------------------------

    def test_keys_and_values_are_any_bytes(self, opened: OpenStore) -> None:
        rows = dict(zip(BYTES, reversed(BYTES), strict=True))
        rows |= {EVERY_BYTE: EVERY_BYTE[::-1], **{bytes([each]) * 3: bytes([each]) for each in range(256)}}
        store, other = opened(), opened()
        assert store.compare_and_write("p", {}, {"t": rows})
        assert store.compare_and_write("p", {"t": rows}, {}), "law 1: rows of any bytes can be expected"
        for each in (store, other):
            assert each.get("p", "t", [*rows]) == [*rows.values()], "get gives values in the order of the keys"
            assert contents(each, "p", "t") == {"t": rows}
            assert all(type(part) is bytes for row in each.list("p", "t") for part in row)
        assert store.compare_and_write("p", {}, {"t": dict.fromkeys(rows)})
        assert contents(store, "p", "t") == {"t": {}}
        assert store.places("") == [], "a place without rows is none"

    def test_keys_and_values_may_be_as_large_as_the_store_says(self, store: Store) -> None:
        value, key = b"\xff\0" * (min(store.largest, 1_000_000) // 2), b"k" * min(store.largest, 1000)
        assert store.compare_and_write("p", {}, {"t": {key: value}})
        assert store.get("p", "t", [key]) == [value]
        assert store.compare_and_write("p", {"t": {key: value}}, {"t": {key: b""}})
        assert contents(store, "p", "t") == {"t": {key: b""}}

    def test_names_of_places_and_tables_are_any_text(self, opened: OpenStore) -> None:
        store, other = opened(), opened()
        for number, name in enumerate(NAMES):
            value = b"%d" % number
            assert store.compare_and_write(name, {name: {b"k": None}}, {name: {b"k": value}}), (
                f"place {name!r} is another one, too"
            )
            assert store.compare_and_write("tables", {name: {b"k": None}}, {name: {b"k": value}}), (
                f"table {name!r} is another, too"
            )
        for number, name in enumerate(NAMES):
            value = b"%d" % number
            assert other.get(name, name, [b"k"]) == [value], f"place {name!r}"
            assert other.get("tables", name, [b"k"]) == [value], f"table {name!r}"
            assert [*other.list("tables", name)] == [(b"k", value)], f"table {name!r}"
        for start in ("", *NAMES, "tab", "a%2", "$", "x" * 150):
            expected = sorted(name for name in (*NAMES, "tables") if name.startswith(start))
            assert sorted(other.places(start)) == expected, f"the places that begin with {start!r}"
        for name in NAMES[::2]:
            assert store.compare_and_write(name, {}, {}, [name])
        assert sorted(other.places("")) == sorted((*NAMES[1::2], "tables")), "a place without rows is none"
        assert sorted(other.tables("tables")) == sorted(NAMES), "the tables of a place"

    def test_what_is_not_there_is_none(self, store: Store) -> None:
        for _ in range(2):
            assert store.get("p", "t", [b"k", b"", b"k"]) == [None, None, None]
            assert store.get("p", "t", []) == []
            assert [*store.list("p", "t")] == []
            assert store.compare_and_write("p", {}, {}, ["t"], ("t", "u")), "to change nothing is no error"
            assert store.compare_and_write("p", {}, {"t": {b"k": None}}), "to remove what is not there is no error"
        assert [*store.places("")] == []
        assert [*store.tables("p")] == []
        assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
        assert store.get("p", "t", [b"k", b"none", b"k"]) == [b"1", None, b"1"]

    # --- law 10: reading --------------------------------------------------------------------------------------------------

    def test_a_long_table_is_listed_whole_while_somebody_writes(self, opened: OpenStore) -> None:
        store, other = opened(), opened()
        for part in store.portions((b"%d" % number, b"value") for number in range(25_000)):
            assert store.compare_and_write("p", {}, {"t": part})
        stays = {b"%d" % number for number in range(25_000) if number % 10}
        given: list[bytes] = []
        for number, (key, value) in enumerate(store.list("p", "t")):
            given.append(key)
            assert value in (b"value", b"changed"), "law 10: a value that was never there"
            if number % 1000 == 0:
                start = number // 1000 * 10
                changes: dict[bytes, bytes | None] = {b"%d" % (each * 10): None for each in range(start, start + 5)}
                changes |= {b"%d" % (24_990 - each * 10): b"changed" for each in range(start, start + 5)}
                changes |= {b"new %d" % each: b"value" for each in range(start, start + 5)}
                assert other.compare_and_write("p", {}, {"t": changes, "u": {b"%d" % number: b"1"}})
        staying = [key for key in given if key in stays]
        assert len(staying) == len(set(staying)), "law 10: a row that was there all the time was given twice"
        assert set(staying) == stays, "law 10: a row that was there all the time was not given"

    def test_who_stops_reading_holds_nobody_up(self, opened: OpenStore) -> None:
        store, other = opened(), opened()
        assert store.compare_and_write("p", {}, {"t": {b"%d" % number: b"1" for number in range(3000)}})
        rows = store.list("p", "t")
        next(rows)
        for number, each in enumerate((store, other, store)):
            assert each.compare_and_write("p", {}, {"t": {b"new": b"%d" % number}}), (
                "law 10: a reader keeps nobody from writing"
            )
            assert each.get("p", "t", [b"new"]) == [b"%d" % number]
        assert len({key for key, _ in rows} - {b"new"}) == 2999, "law 10: it resumes reading where it was"

    def test_rows_are_divided_as_the_store_wants_them(self, store: Store) -> None:
        class Narrow(type(store)):  # type: ignore[misc]  # whatever class it is
            portion_rows = 3
            portion_bytes = 10

        rows: list[tuple[bytes, bytes | None]] = [
            (b"1", b"1"),
            (b"2", b""),
            (b"3", None),
            (b"4", b"x" * 20),
            (b"5", b"1"),
        ]
        narrow = copy.copy(store)
        narrow.__class__ = Narrow
        assert [*narrow.portions(rows)] == [dict(rows[:3]), dict(rows[3:4]), dict(rows[4:])]
        assert [*narrow.portions([])] == [{}]

    def test_who_closes_a_store_closes_no_other(self, opened: OpenStore) -> None:
        store, other = opened(), opened()
        for number, each in enumerate((store, other)):
            assert each.compare_and_write("p", {}, {"t": {b"%d" % number: b"1"}})
        other.close()
        assert store.get("p", "t", [b"1"]) == [b"1"]
        assert store.compare_and_write("p", {"t": {b"1": b"1"}}, {"t": {b"1": b"2"}})
        assert opened().get("p", "t", [b"1"]) == [b"2"]

    def test_a_store_goes_with_a_copy_of_a_component_and_says_what_it_is(self, store: Store) -> None:
        assert copy.deepcopy({"store": store})["store"] is store, "copies of a component write to the same place"
        text = store.describe()
        assert text.strip() == text != "", "describe() is for messages"
        assert "\n" not in text, "describe() is a part of a sentence"
        store.check()

    # --- laws 5 to 9: owners ----------------------------------------------------------------------------------------------

    def test_each_claim_raises_the_epoch_and_nothing_else_does(self, opened: OpenStore) -> None:
        epochs = []
        for above in (0, 0, 0, 7, 3, 0):
            claim = opened().claim("p", "run", "tested", above=above)
            epochs.append(claim.epoch)
            assert claim.write({"t": {b"k": b"1"}})
            claim.check()
            wait_for_a_beat(opened(), "p")
            assert claims.stored_owner(opened(), "p").epoch == claim.epoch  # type: ignore[union-attr]
            claim.release()
        assert epochs == [1, 2, 3, 8, 9, 10], "law 6: each claim raises the epoch, and nothing else does"
        claim = opened().claim("p", "run", "tested")
        assert (claim.renew(), claim.renew(), claim.epoch) == (12, 13, 13)
        claim.release()
        assert opened().claim("q", "run", "tested").epoch == 1, "each place has its own owner"

    def test_a_former_owner_can_write_nothing(self, opened: OpenStore) -> None:
        old = opened().claim("p", "run", "tested", what="the tested rows")
        assert old.write({"t": {b"k": b"old"}})
        fence = old.fence
        new = opened().claim("p", "run", "tested")
        store = opened()
        before = contents(store, "p", "t", "u")
        for expected in ({}, {"t": {b"k": b"old"}}, {"t": {b"k": b"other"}}):
            with pytest.raises(
                FencedError, match=r"the tested rows in .* was taken over by topology 'tested' \(process \d+ on "
            ):
                old.write({"t": {b"k": b"late"}}, expected, ("u",))
        for what in (old.check, old.renew):
            with pytest.raises(FencedError, match="taken over by topology 'tested'"):
                what()
        assert store.compare_and_write("p", fence, {"t": {b"k": b"late"}}, ["t"], ("t", "u")) is False, (
            "law 8: an old fence"
        )
        assert store.beat("p", fence, 1) is False, "law 8: a beat of a former owner"
        old.release()
        assert contents(store, "p", "t", "u") == before, "law 8: something was changed under a claim that was replaced"
        assert new.write({"t": {b"k": b"new"}}), "law 8: a former owner can release nothing"
        assert not claims.stored_owner(store, "p").ended  # type: ignore[union-attr]
        new.release()

    def test_a_former_owner_does_not_end_the_beats_of_the_next_one(self, opened: OpenStore, silent: None) -> None:
        store = opened()
        old, new = (store.claim("p", "run", "tested") for _ in range(2))
        assert store.beat("p", new.fence, 1)
        beats = store.beats("p")
        old.release()
        assert opened().beats("p") == beats != None, "law 9: the beats of an owner were removed by the one before"  # noqa: E711
        assert new.write({})

    def test_a_place_that_was_removed_is_not_written_to_by_its_owner_before(self, opened: OpenStore) -> None:
        store = opened()
        claim = store.claim("p", "run", "tested")
        assert claim.write({"t": {b"k": b"1"}})
        assert store.compare_and_write("p", {}, {}, ["t", claims.OWNER])
        with pytest.raises(StoreGoneError, match=r"the record of its owner is missing"):
            claim.write({"t": {b"k": b"late"}})
        with pytest.raises(StoreGoneError):
            claim.renew()
        assert store.places("") == [], "law 8: something was written to a place that was removed"
        for _ in range(3):  # of an older epoch, of the same one, and of a newer one
            again = opened().claim("p", "run", "tested")
            with pytest.raises((StoreGoneError, FencedError)):
                claim.write({"t": {b"k": b"late"}})
            assert contents(store, "p", "t") == {"t": {}}, (
                "law 8: the fence of a place that was removed fits the new one"
            )
            assert again.write({})
            again.release()
        claim.release()
        with pytest.raises((StoreGoneError, FencedError)):
            claim.write({"t": {b"k": b"late"}})

    def test_a_renewed_claim_continues_and_its_fence_before_does_not(self, opened: OpenStore) -> None:
        store = opened()
        claim = store.claim("p", "run", "tested")
        old, token = claim.fence, claim.token
        assert claim.renew() == 2
        assert claim.token != token
        assert store.compare_and_write("p", old, {"t": {b"k": b"late"}}) is False, (
            "law 8: renewing removes the fence before"
        )
        assert claim.write({"t": {b"k": b"1"}}, {"t": {b"k": None}})
        wait_for_a_beat(store, "p")
        claim.release()
        assert opened().claim("p", "other", "tested").epoch == 3

    def test_a_write_beside_a_renewal_is_made(self, opened: OpenStore) -> None:
        claim = opened().claim("p", "run", "tested")
        with ThreadPoolExecutor(1) as pool:
            renewals = pool.submit(lambda: [claim.renew() for _ in range(30)])
            written = 0
            while not renewals.done() or not written:
                assert claim.write({"t": {b"k": b"%d" % written}}), (
                    "law 3: nothing was expected, and the write was refused"
                )
                written += 1
        assert renewals.result() == [*range(2, 32)]
        claim.release()

    def test_an_unexpected_row_is_no_takeover(self, opened: OpenStore) -> None:
        claim = opened().claim("p", "run", "tested")
        assert claim.write({"t": {b"k": b"1"}}, {"t": {b"k": b"0"}}) is False
        assert claim.write({"t": {b"k": b"1"}}, {"t": {b"k": None}}) is True
        claim.release()

    def test_another_run_is_refused_by_name_while_the_owner_beats(self, opened: OpenStore) -> None:
        claim = opened().claim("p", "first", "shop")
        message = r"the rows in .* is in use by topology 'shop' \(process \d+ on .+, since \d{4}-\d\d-\d\d .*; end that one first"
        with pytest.raises(InUseError, match=message):
            opened().claim("p", "second", "tested", what="the rows")
        with pytest.raises(InUseError, match=message):
            claims.wait_until_free(opened(), "p", "second", what="the rows")
        assert claim.write({"t": {b"k": b"1"}}), "law 9: a refused owner changes nothing"
        claim.release()
        assert claims.wait_until_free(opened(), "p", "second").ended  # type: ignore[union-attr]
        assert opened().claim("p", "second", "tested").epoch == 2

    def test_an_owner_that_beats_no_more_is_taken_over_from_after_its_lease(
        self, opened: OpenStore, silent: None
    ) -> None:
        first = opened().claim("p", "first", "shop")
        warned: list[str] = []
        began = monotonic()
        second = opened().claim("p", "second", "tested", warned.append)
        assert monotonic() - began >= claims.LEASE_SECS, "law 9: another run takes over after the lease alone"
        assert (second.epoch, len(warned)) == (2, 1)
        assert "is taken over from topology 'shop'" in warned[0]
        with pytest.raises(FencedError):
            first.write({"t": {b"k": b"late"}})

    def test_the_same_run_takes_over_at_once(self, opened: OpenStore) -> None:
        first = opened().claim("p", "run", "tested")
        second = opened().claim("p", "run", "tested")
        first.release()  # which is the owner's no more, and lets nothing go
        with pytest.raises(InUseError):
            opened().claim("p", "other", "tested")
        second.release()

    def test_a_former_owner_does_not_return_unless_it_may(self, opened: OpenStore, silent: None) -> None:
        opened().claim("p", "first", "tested")
        second = opened().claim("p", "second", "tested")
        for _ in range(2):
            with pytest.raises(FencedError, match=r"was taken over by topology 'tested' .* it ends here"):
                opened().claim("p", "first", "tested", may_return=False)
            second.release()
        assert opened().claim("p", "first", "tested", may_return=True).epoch == 3
        assert opened().claim("p", "first", "tested", may_return=False).epoch == 4, (
            "the owner's own run is no earlier one"
        )

    def test_of_several_that_claim_at_once_each_has_its_own_epoch_and_the_last_one_writes(
        self, opened: OpenStore
    ) -> None:
        stores = [opened() for _ in range(4)]
        for number in range(5):
            together = threading.Barrier(len(stores))

            def run(
                store: Store, together: threading.Barrier = together, place: str = f"p{number}"
            ) -> tuple[int, int | None]:
                together.wait()
                claim = store.claim(place, "run", "tested")
                (text,) = store.get(place, "t", [b"n"])
                seen = int(text or 0)
                try:
                    assert claim.write({"t": {b"n": b"%d" % (seen + 1)}})
                except FencedError:
                    return claim.epoch, None
                return claim.epoch, seen

            with ThreadPoolExecutor(len(stores)) as pool:
                did = [*pool.map(run, stores)]
            assert sorted(epoch for epoch, _ in did) == [1, 2, 3, 4], "law 6: no two claims have the same epoch"
            written = [seen for _, seen in sorted(did) if seen is not None]
            assert written == [*range(len(written))], "law 5: a claim did not see what an owner before had written"
            assert max(did)[1] is not None, "law 8: the last claim was refused"

    def test_a_claim_sees_what_the_owners_before_wrote(self, opened: OpenStore) -> None:
        stores = [opened() for _ in range(3)]
        for number in range(30):
            store = stores[number % 3]
            claim = store.claim("p", "run", "tested")
            assert store.get("p", "t", [b"n"]) == [b"%d" % number if number else None], "law 5: get shows an older row"
            assert [*store.list("p", "t")] == ([(b"n", b"%d" % number)] if number else []), (
                "law 5: list shows an older row"
            )
            assert claim.write({"t": {b"n": b"%d" % (number + 1)}})

    def test_a_damaged_record_is_reported_and_not_replaced(self, store: Store) -> None:
        for text in (b"", b"{}", b"no JSON", b"\xff", b'{"epoch": 1}', b"[]"):
            assert store.compare_and_write("p", {}, {claims.OWNER: {b"owner": text}})
            with pytest.raises(StateError, match=r"the record of its owner is b.*changed by hand, or damaged"):
                store.claim("p", "run", "tested")
            assert store.get("p", claims.OWNER, [b"owner"]) == [text]

    def test_a_record_without_its_fence_is_reported_and_not_replaced(self, store: Store) -> None:
        claim = store.claim("p", "run", "tested")
        assert store.compare_and_write("p", claim.fence, {claims.OWNER: {claim.token.encode(): None}})
        with pytest.raises(StoreGoneError, match="its owner's record is not that of its last claim"):
            store.claim("p", "run", "tested")
        claim.release()

    # A database's client does, in a thread of its own.
    @pytest.mark.filterwarnings("ignore:Do not use the `random` module")
    def test_two_stores_do_what_a_dict_does(self, opened: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Random calls and owners by two objects at the same database, against a model; the series that fails is shown."""
        pytest.importorskip("hypothesis", reason="this test needs hypothesis: pip install hypothesis")
        from multilang.testing.store_machine import check_stores

        monkeypatch.setattr(claims, "BEAT_SECS", 3600.0)
        check_stores((opened(), opened()))


class DurableStoreLaws(StoreLaws):
    """The laws of a store that outlives a process: those of every store, and what other processes find when one was killed."""

    rounds: ClassVar[int] = 2
    """The number of times that a process is killed at a random moment."""

    @pytest.fixture
    def start(self, open_store: OpenStore) -> Iterator[Callable[..., Process]]:
        """Return a function that starts a task of ``store_process`` with the store in another process."""
        found: list[Process] = []

        def start(task: str, *arguments: Any) -> Process:
            found.append(Process(open_store(), task, *arguments))
            return found[-1]

        yield start
        for each in found:
            each.close()

    def test_a_store_goes_to_another_process(self, opened: OpenStore) -> None:
        store = opened()
        assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
        again = pickle.loads(pickle.dumps(store))  # noqa: S301  # of this test
        assert again.get("p", "t", [b"k"]) == [b"1"]
        assert again.compare_and_write("p", {"t": {b"k": b"1"}}, {"t": {b"k": b"2"}})
        assert store.get("p", "t", [b"k"]) == [b"2"]
        again.close()

    def test_processes_that_count_at_once_count_right(self, store: Store, start: Callable[..., Process]) -> None:
        running = [start("count", "p", 40) for _ in range(3)]
        count_on(store, "p", 40)
        for each in running:
            assert each.process.wait(LIMIT) == 0
        assert store.get("p", "t", [b"n"]) == [b"160"], (
            "law 1: an increment by compare_and_write was lost or made twice"
        )

    def test_a_write_in_which_the_process_is_killed_is_made_whole_or_not_at_all(
        self, opened: OpenStore, start: Callable[..., Process]
    ) -> None:
        killed = [*start("killed_at_each_step", "p").lines()]
        assert "write" in killed, "compare_and_write calls self.trace('write') nowhere: call it when it begins"
        assert "synced" in killed, (
            "compare_and_write calls self.trace('synced') nowhere: call it when the write is done"
        )
        for call, step in enumerate(killed):
            store, place = opened(), f"p{call}"
            wait_until(  # what the one that was killed had sent already may arrive later
                partial(holds, store, place, (BEFORE, AFTER)),
                f"law 1: after a kill at {step!r}, all of a write is there, or nothing",
            )
            if step == "synced":
                assert contents(store, place, *BEFORE) == AFTER, "law 2: 'synced' came before the write was on the disk"
            assert store.compare_and_write(place, {}, {"t": {b"later": b"1"}}), (
                "nobody is held up by one that was killed"
            )

    def test_what_was_answered_is_there_after_a_kill_at_any_moment(
        self, opened: OpenStore, start: Callable[..., Process]
    ) -> None:
        for seed in range(self.rounds):
            chance = random.Random(seed)
            process = start("write_on", "p", 50)
            lines = process.lines()
            for _ in range(chance.randint(1, 20)):
                answered = next(lines)
            sleep(chance.uniform(0, 0.02))
            process.kill()
            answered = [answered, *lines][-1]
            store = opened()
            wait_until(partial(is_of_one_step, store, "p"), f"law 1: a part of a step was written, seed {seed}")
            rows = contents(store, "p", "t")["t"]
            assert len(rows) == 50
            assert int(rows[b"0"]) in (answered, answered + 1), f"law 2: a write that was answered is lost, seed {seed}"

    def test_an_owner_that_was_killed_is_taken_over_from_at_once(
        self, opened: OpenStore, start: Callable[..., Process]
    ) -> None:
        process = start("own", "p", "killed", 0.05, None)
        assert next(process.lines()) == 1
        process.kill()
        warned: list[str] = []
        assert opened().claim("p", "next", "tested", warned.append).epoch == 2  # the lease is an hour
        assert warned == []

    @pytest.mark.parametrize("step", [None, "write"])
    def test_an_owner_that_was_stopped_is_taken_over_from_and_writes_nothing_when_it_is_resumed(
        self, opened: OpenStore, start: Callable[..., Process], monkeypatch: pytest.MonkeyPatch, step: str | None
    ) -> None:
        """Stop it between two writes, or in the midst of one. It is resumed when its place has another owner."""
        process = start("own", "p", "stopped", 0.05, step)
        lines = process.lines()
        assert next(lines) == 1
        if step is None:
            process.send(signal.SIGSTOP)
        else:
            process.resume()
        wait_until(process.is_stopped, f"the owner stops at {step!r}; call self.trace({step!r})")
        monkeypatch.setattr(claims, "LEASE_SECS", 0.5)
        second = opened().claim("p", "second", "tested")
        assert second.epoch == 2
        assert second.write({"t": {b"row": b"of the second one"}})
        process.send(signal.SIGCONT)
        if step is None:
            process.resume()
        assert next(lines) == "FencedError", "law 8: an owner that was taken over from has written"
        assert contents(opened(), "p", "t") == {"t": {b"row": b"of the second one"}}
        second.release()


class LocalStoreLaws(DurableStoreLaws):
    """The laws of a store in files. They are all in the folder ``tmp_path`` of pytest."""

    def test_a_full_disk_is_reported_and_what_was_written_stays(
        self, opened: OpenStore, start: Callable[..., Process]
    ) -> None:
        *answered, error = start("fill", "p", 300_000).lines()
        assert isinstance(error, str), "law 1: a write to a full disk was answered"
        store = opened()
        found = contents(store, "p", "t", "u")
        assert sorted(map(int, found["t"])) in (answered, [*answered, len(answered)]), (
            "law 2: what was answered is there"
        )
        assert found["u"] == {b"last": max(found["t"], key=int)}, "law 1: a write to a full disk was made in part"
        assert store.compare_and_write("p", {}, {"t": {b"more": b"1"}}), "there is space again"

    @pytest.mark.parametrize("lost", ["files", "folder"])
    def test_a_lost_file_is_reported_and_nothing_is_written_into_nothing(
        self, opened: OpenStore, tmp_path: Path, lost: str, silent: None
    ) -> None:
        store, other = opened(), opened()
        claim = store.claim("p", "run", "tested")
        assert claim.write({"t": {b"k": b"1"}})
        assert other.get("p", "t", [b"k"]) == [b"1"]
        away = tmp_path.with_name(f"{tmp_path.name}-away")
        if lost == "folder":
            tmp_path.rename(away)
        else:
            away.mkdir()
            for each in tmp_path.iterdir():
                each.rename(away / each.name)
        for _ in range(2):
            with pytest.raises(StateError) as raised:
                claim.write({"t": {b"k": b"2"}})
        assert isinstance(raised.value, StoreGoneError), f"a removed store is a StoreGoneError: {raised.value!r}"
        fresh = opened()
        if lost == "folder" and not tmp_path.exists():
            tmp_path.mkdir()
        assert fresh.places("") == [], "something was written into nothing"


class Process:
    """A process with a task of ``store_process``."""

    def __init__(self, store: Store, task: str, *arguments: Any) -> None:
        program = Path(__file__).with_name("store_process.py")
        run = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
        self.process = subprocess.Popen(
            [sys.executable, "-c", run, program, task, *map(json.dumps, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(base64.b64encode(pickle.dumps(store)).decode() + "\n")
        self.process.stdin.flush()
        store.close()

    def lines(self) -> Iterator[Any]:
        """Yield what it prints; the end of a process that failed is no end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # of one that is killed the last may be a part
                yield json.loads(line)
        assert self.process.wait() <= 0, "the process failed; its error is shown above"

    def resume(self) -> None:
        """Let it continue with the next part of its task."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def send(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def is_stopped(self) -> bool:
        """Return whether a signal has stopped it."""
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(self.process.pid)], capture_output=True, text=True, check=True
        )
        return state.stdout.startswith("T")

    def kill(self) -> None:
        """Kill it, and wait until it has ended; what it has printed can still be read."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Kill it, and close its pipes."""
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def contents(store: Store, place: str, *tables: str) -> dict[str, dict[bytes, bytes]]:
    """Return all rows of tables. A row that is given twice is an error."""
    found = {}
    for table in tables:
        rows = [*store.list(place, table)]
        found[table] = dict(rows)
        assert len(rows) == len(found[table]), f"law 10: a row of table {table!r} was given twice"
    return found


def holds(store: Store, place: str, either: tuple[Rows, ...]) -> bool:
    """Return whether a place has one of these contents."""
    return contents(store, place, *either[0]) in either


def is_of_one_step(store: Store, place: str) -> bool:
    """Return whether all values of a table are the same one."""
    return len({value for _, value in store.list(place, "t")}) == 1


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    deadline = monotonic() + LIMIT
    while not condition():
        assert monotonic() < deadline, f"not within {LIMIT:g} s: {what}"
        sleep(0.01)


def wait_for_a_beat(store: Store, place: str) -> None:
    """Wait until the owner has beaten once more."""
    before = store.beats(place)
    wait_until(lambda: store.beats(place) != before, "law 9: an owner beats, and beats() differs after each")
