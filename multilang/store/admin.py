"""List, copy and remove the places of a store, for ``multilang state`` with a URL."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from contextlib import ExitStack
from typing import TYPE_CHECKING

from multilang.store.claims import COMMAND, IMPORT, OWNER, RECORD, Owner, stored_owner, wait_until_free
from multilang.store.errors import InUseError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from multilang.store.interface import Store

FORMAT = 1
_AT_ONCE = 1000  # rows that are written in one step


class Entry:
    """A place in a store.

    Attributes:
        place: Its name.
        rows: The number of rows in each table.
        owner: The last owner; None: it was never claimed.
    """

    __slots__ = ("owner", "place", "rows")

    def __init__(self, place: str, rows: dict[str, int], owner: Owner | None) -> None:
        self.place = place
        self.rows = rows
        self.owner = owner

    @property
    def is_used(self) -> bool:
        """True if its owner has not ended, as far as is known."""
        return self.owner is not None and not self.owner.ended and not self.owner.is_dead()


def entries(store: Store, start: str = "") -> Iterator[Entry]:
    """Yield the places of a store, in the order of their names.

    Args:
        store: The store.
        start: A place: it and those below it; empty: all.
    """
    for place in _below(store, start) if start else sorted(store.places("")):
        rows = {table: sum(1 for _ in store.list(place, table)) for table in _tables(store, place)}
        yield Entry(place, rows, stored_owner(store, place))


def found(store: Store, place: str, key: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the tables of a place that have a key, each with its value.

    Args:
        store: The store.
        place: The place.
        key: The key.
    """
    for table in sorted(store.tables(place)):
        (value,) = store.get(place, table, [key])
        if value is not None:
            yield table, value


def export(store: Store, start: str = "") -> Iterator[dict[str, Any]]:
    """Yield a header, and then one object for each row. None of the places may be in use.

    Args:
        store: The store.
        start: The beginning of the names of the places.

    Raises:
        InUseError: A place is in use.
    """
    places = sorted(store.places(start))
    owners = [wait_until_free(store, place, None, what=place) for place in places]
    yield {"multilang-store": FORMAT, "from": store.describe()}
    for place in places:
        for table in sorted(store.tables(place)):
            for key, value in store.list(place, table):
                if table == OWNER and key != RECORD:
                    continue  # the fences and heartbeats of former claims
                yield {"place": place, "table": table, "key": _text(key), "value": _text(value)}
    for place, owner in zip(places, owners, strict=True):
        now = stored_owner(store, place)
        if (now and now.token) != (owner and owner.token):
            raise InUseError(
                f"{place!r} in {store.describe()} was used meanwhile, by {now}: end that one, and export again"
            )


def load(store: Store, lines: Iterable[dict[str, Any]]) -> int:
    """Write the rows that ``export`` yielded into places that have none yet.

    A place with an owner is owned by this process until all rows are there, with an epoch above the exported one. If this
    does not finish, nobody else can claim the place before it is removed.

    Args:
        store: The store.
        lines: The header and the rows.

    Returns:
        The number of rows.

    Raises:
        StateError: A line is wrong, or a place has rows already.
    """
    rows = iter(lines)
    if next(rows, {}).get("multilang-store") != FORMAT:
        raise StateError("this is not a file of multilang state export URL: its first line is not that of one")
    there = set(store.places(""))
    count = 0
    part: dict[tuple[str, str], dict[bytes, bytes | None]] = {}
    run = _run(IMPORT)
    claims = ExitStack()
    for number, line in enumerate(rows, 2):
        try:
            place, table, key, value = line["place"], line["table"], _bytes(line["key"]), _bytes(line["value"])
            owner = Owner.from_text(value) if (table, key) == (OWNER, RECORD) else None
        except (KeyError, TypeError, ValueError) as problem:
            raise StateError(f"line {number} is no row of a store: {line!r}") from problem
        if place in there and _tables(store, place):
            raise StateError(
                f"there is something at {place!r} in {store.describe()} already: remove it, or name another store"
            )
        there.discard(place)  # it has an owner's record alone, as a removed place
        if owner is not None:
            claims.callback(store.claim(place, run, owner.topology, above=owner.epoch, what=place).release)
        else:
            part.setdefault((place, table), {})[key] = value
        count += 1
        if count % _AT_ONCE == 0:
            _write(store, part)
    _write(store, part)
    claims.close()
    return count


def remove(store: Store, name: str) -> int:
    """Remove all rows of a place, and of those below it. Its owner's record stays, so that its epoch never falls.

    Args:
        store: The store.
        name: The name of the place.

    Returns:
        The number of places.

    Raises:
        InUseError: A topology uses it.
        StateError: There is no such place.
    """
    below = _below(store, name)
    places = [each for each in below if _tables(store, each) or _is_open(store, each)]
    if not places:
        raise StateError(f"there is nothing at {name!r} in {store.describe()}; multilang state ls shows what there is")
    parts = name.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    with ExitStack() as claims:
        for place in dict.fromkeys([*above, *below]):
            if stored_owner(store, place) is not None:
                claims.callback(store.claim(place, _run(COMMAND), "multilang state", what=place).release)
        for place in places:
            store.compare_and_write(place, {}, {}, _tables(store, place))
    return len(places)


def _below(store: Store, name: str) -> list[str]:
    """Return a place, if it has rows, and those below it."""
    return sorted(each for each in store.places(name) if f"{each}/".startswith(f"{name}/"))


def _tables(store: Store, place: str) -> list[str]:
    """Return the tables of a place, but for that of its owner."""
    return sorted(table for table in store.tables(place) if table != OWNER)


def _is_open(store: Store, place: str) -> bool:
    owner = stored_owner(store, place)
    return owner is not None and not owner.ended


def _run(kind: str) -> str:
    return f"{kind}{os.getpid()} {os.urandom(4).hex()}"


def _write(store: Store, part: dict[tuple[str, str], dict[bytes, bytes | None]]) -> None:
    for (place, table), rows in part.items():
        for portion in store.portions(rows.items()):
            store.compare_and_write(place, {}, {table: portion})
    part.clear()


def _text(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _bytes(found: Any) -> bytes:
    return b64decode(found["base64"]) if isinstance(found, dict) else str(found).encode()
