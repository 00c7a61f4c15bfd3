"""Random calls of two stores at one database, compared with dicts; ``stores`` has the laws."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from multilang.store import claims
from multilang.store.claims import OWNER
from multilang.store.errors import FencedError, StoreGoneError

if TYPE_CHECKING:
    from typing import Any

    from multilang.store.claims import Claim
    from multilang.store.interface import Rows, Store

    Tables = dict[str, dict[bytes, bytes]]

PLACES = ("a", "ab", "b%")
TABLES = ("t", "T")
KEYS = st.sampled_from((b"", b"k", b"K", b"k\0", b"\xff"))
VALUES = st.sampled_from((b"", b"0", b"1")) | st.binary(max_size=5)
SOME_STORE = st.sampled_from((0, 1))
SOME_PLACE = st.sampled_from(PLACES)
SOME_TABLE = st.sampled_from(TABLES)
SOME_CHANGES = st.dictionaries(SOME_TABLE, st.dictionaries(KEYS, VALUES | st.none(), max_size=4), max_size=2)
SOME_CLEARED = st.sets(SOME_TABLE, max_size=2)
SOME_MERGED = st.sampled_from((None, TABLES, TABLES[::-1]))
EXAMPLES = 2  # as many times fewer than hypothesis is set to make: each step is several requests
_numbers = count()


class Place:
    """The expected rows of a place, and its owner."""

    def __init__(self) -> None:
        self.tables: Tables = {}
        self.epoch = 0
        self.owner: Claim | None = None
        self.ended = False

    def fits(self, expected: Rows) -> bool:
        """Return whether all these rows are there."""
        return all(
            self.tables.get(table, {}).get(key) == value
            for table, rows in expected.items()
            for key, value in rows.items()
        )

    def write(self, changes: Rows, cleared: set[str], merged: tuple[str, str] | None) -> None:
        """Change rows."""
        for table in cleared:
            self.tables.pop(table, None)
        if merged is not None:
            rows = self.tables.pop(merged[0], {})
            self._put(merged[1], {key: value or None for key, value in rows.items()})
        for table, more in changes.items():
            self._put(table, dict(more))

    def _put(self, table: str, rows: dict[bytes, bytes | None]) -> None:
        into = self.tables.setdefault(table, {})
        for key, value in rows.items():
            if value is None:
                into.pop(key, None)
            else:
                into[key] = value


class Calls(RuleBasedStateMachine):
    """Calls of two stores. Each series has places of its own."""

    stores: tuple[Store, Store]

    def __init__(self) -> None:
        super().__init__()
        self.start = f"machine {next(_numbers)}:"
        self.places = {name: Place() for name in PLACES}
        self.claims: list[tuple[str, Claim]] = []

    def teardown(self) -> None:
        """Let go of all."""
        for _, claim in self.claims:
            claim.release()

    def expected(self, data: st.DataObject, place: Place) -> tuple[dict[str, dict[bytes, bytes | None]], bool]:
        """Draw rows to be expected, most of them right, and return whether all are."""
        keys = [(table, key) for table, rows in place.tables.items() for key in rows]
        anywhere = st.tuples(SOME_TABLE, KEYS)
        drawn = data.draw(st.lists(st.sampled_from(keys) | anywhere if keys else anywhere, max_size=4))
        found: dict[str, dict[bytes, bytes | None]] = {}
        for table, key in drawn:
            found.setdefault(table, {})[key] = place.tables.get(table, {}).get(key)
        if drawn and data.draw(st.integers(0, 2)) == 0:
            table, key = data.draw(st.sampled_from(drawn))
            found[table][key] = data.draw(VALUES | st.none())
        return found, place.fits(found)

    @rule(
        store=SOME_STORE,
        name=SOME_PLACE,
        data=st.data(),
        changes=SOME_CHANGES,
        cleared=SOME_CLEARED,
        merged=SOME_MERGED,
    )
    def compare_and_write(
        self,
        store: int,
        name: str,
        data: st.DataObject,
        changes: dict[str, Any],
        cleared: set[str],
        merged: tuple[str, str] | None,
    ) -> None:
        """Write, expecting what is there or something else."""
        place = self.places[name]
        expected, fits = self.expected(data, place)
        did = self.stores[store].compare_and_write(self.start + name, expected, changes, cleared, merged)
        assert did is fits, (
            f"laws 1 and 3: the expected rows are {'' if fits else 'not '}there, and the answer is {did}"
        )
        if fits:
            place.write(changes, cleared, merged)
        for table in TABLES:
            self.list(1 - store, name, table)
            self.get(1 - store, name, table, [b"none"])

    @rule(store=SOME_STORE, name=SOME_PLACE, table=SOME_TABLE, keys=st.lists(KEYS, max_size=5))
    def get(self, store: int, name: str, table: str, keys: list[bytes]) -> None:
        """Read some rows."""
        rows = self.places[name].tables.get(table, {})
        keys = [*keys, *rows]
        assert self.stores[store].get(self.start + name, table, keys) == [rows.get(key) for key in keys], "law 5: get"

    def list(self, store: int, name: str, table: str) -> None:
        """Read all rows of a table."""
        found = sorted(self.stores[store].list(self.start + name, table))
        assert found == sorted(self.places[name].tables.get(table, {}).items()), "laws 5 and 10: list"

    @rule(store=SOME_STORE, start=st.sampled_from(("", "a", "ab", "b", "b%", "_")))
    def list_places(self, store: int, start: str) -> None:
        """Read the names of places."""
        expected = {
            name
            for name, place in self.places.items()
            if name.startswith(start) and (any(place.tables.values()) or place.epoch)
        }
        found = self.stores[store].places(self.start + start)
        assert sorted(found) == sorted(self.start + name for name in expected), f"the places that begin with {start!r}"
        for name in expected:
            tables = [table for table, rows in self.places[name].tables.items() if rows]
            found = [table for table in self.stores[store].tables(self.start + name) if table != OWNER]
            assert sorted(found) == sorted(tables), f"the tables of {name!r}"


class Owners(Calls):
    """Owners of places, which write there."""

    @rule(store=SOME_STORE, name=SOME_PLACE, above=st.integers(0, 5))
    def claim(self, store: int, name: str, above: int) -> None:
        """Take a place over, as the same run may at once."""
        place = self.places[name]
        found = self.stores[store].claim(self.start + name, "run", "tested", above=above)
        self.claims.append((name, found))
        assert found.epoch == max(place.epoch, above) + 1, "law 6: a claim raises the epoch by one"
        place.owner, place.epoch, place.ended = found, found.epoch, False

    def some_claim(self, data: st.DataObject) -> tuple[str, Claim, Place]:
        """Draw a claim, of the owner or of one before."""
        name, claim = data.draw(st.sampled_from(self.claims[-4:]))
        return name, claim, self.places[name]

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), changes=SOME_CHANGES, cleared=SOME_CLEARED)
    def write_as_owner(self, data: st.DataObject, changes: dict[str, Any], cleared: set[str]) -> None:
        """Write under a claim, which may be replaced already."""
        _, claim, place = self.some_claim(data)
        expected, fits = self.expected(data, place)
        if place.owner is not claim:
            with pytest.raises((FencedError, StoreGoneError)):
                claim.write(changes, expected, tuple(cleared))
            return
        did = claim.write(changes, expected, tuple(cleared))
        assert did is fits, (
            f"laws 1 and 3: the expected rows are {'' if fits else 'not '}there, and the answer is {did}"
        )
        if fits:
            place.write(changes, cleared, None)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        """Raise the epoch of a claim."""
        _, claim, place = self.some_claim(data)
        if place.owner is not claim:
            with pytest.raises((FencedError, StoreGoneError)):
                claim.renew()
            return
        place.epoch += 1
        assert claim.renew() == place.epoch, "law 6: it raises the epoch by one"

    @precondition(lambda self: self.claims)
    @rule(store=SOME_STORE, data=st.data(), number=st.integers(0, 2**40))
    def beat(self, store: int, data: st.DataObject, number: int) -> None:
        """Send a heartbeat of an owner."""
        name, claim, place = self.some_claim(data)
        did = self.stores[store].beat(self.start + name, claim.fence, number)
        assert did is (place.owner is claim), "law 8: a beat is one of the owner"

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Let a place go."""
        name, claim, place = self.some_claim(data)
        claim.release()
        self.claims.remove((name, claim))
        place.ended = place.ended or place.owner is claim
        owner = claims.stored_owner(self.stores[0], self.start + name)
        assert (owner is not None and owner.ended) == place.ended, "law 8: only the owner releases its place"

    @rule(store=SOME_STORE, name=SOME_PLACE)
    def remove(self, store: int, name: str) -> None:
        """Remove all rows of a place, those of its owner, too."""
        assert self.stores[store].compare_and_write(self.start + name, {}, {}, [*TABLES, claims.OWNER])
        self.places[name] = Place()


def check_stores(stores: tuple[Store, Store]) -> None:
    """Compare two stores at the same database with the model, in fewer series than hypothesis is set to make."""
    found = settings()
    found = settings(
        max_examples=max(found.max_examples // EXAMPLES, 20),
        stateful_step_count=20,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to look for a shorter series that fails takes minutes
    )
    for kind in (Calls, Owners):
        run_state_machine_as_test(type(kind.__name__, (kind,), {"stores": stores}), settings=found)
