"""A block: many tuples from one task to another, as a single tuple on the wire.

Its text is JSON, ``[["default", [[...], [...]]], ["errors", [[...]]]]``: runs of tuples of one stream, in the order in
which they were emitted. The text travels inside a JSON string, where each ``"`` is escaped. So the quotes are exchanged
for ``'`` when the text has none of those; a text that begins with ``'`` was changed in this way. A mark before it limits
which tuples may be in a block with its tuples and those that come of them: see ``APART`` and ``LOOSE``.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads
from multilang.protocol.errors import RemoteProtocolError, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.exchange.routes import Route

TOGETHER = ""
"""The mark of tuples of which a failure causes a replay: in blocks with others of this mark."""
APART = " "
"""The mark of tuples that failed before: each in a block of its own."""
LOOSE = "~"
"""The mark of tuples of which a failure causes no replay: in blocks with others of this mark, so that no replayed tuple waits for
them or fails with them."""

MAX_BYTES = 65536  # of a block's text, about; more would gain nothing and make others wait


class OpenBlock:
    """The tuples for one task that were emitted and not sent yet.

    Attributes:
        task: The task.
        route: The stream of the last tuple; None while it is empty.
        append: Adds a tuple's JSON.
        holders: The inputs that it is anchored to; or, of a spout, the tuples with message ids.
        last: The last of its holders; None while it has no tuples.
        mark: The mark of its holders.
        size: The bytes of its counted tuples.
    """

    __slots__ = ("_runs", "append", "holders", "last", "mark", "route", "size", "task")

    def __init__(self, task: int) -> None:
        self.task = task
        self._begin()

    def _begin(self) -> None:
        self.route: Route | None = None
        self.holders: dict[Any, None] = {}
        self.last: Any = None
        self.mark = TOGETHER
        self.size = 0
        self._runs: list[tuple[Route, list[str]]] = []

    def turn(self, route: Route) -> None:
        """Begin a run of another stream."""
        rows: list[str] = []
        self._runs.append((route, rows))
        self.append: Callable[[str], None] = rows.append
        self.route = route

    def take_so_far(self, most: int) -> list[tuple[int, str]]:
        """Return blocks with the tuples that it has now, and leave it open, in another thread than the one that adds tuples.

        Tuples that are added meanwhile stay: each step on the lists is atomic.

        Args:
            most: As in ``take``.
        """
        runs = self._runs[:]  # none, where the other thread is about to begin the first
        taken = [(route, rows, rows[:]) for route, rows in runs]
        complete = runs[:-1]
        del self._runs[: len(complete)]
        for _, rows, copy in taken:
            del rows[: len(copy)]
        mark = self.mark
        return [
            (tuples, mark + text) for tuples, text in _blocks([(route, copy) for route, _, copy in taken if copy], most)
        ]

    def take(self, most: int | None = None) -> list[tuple[int, str]]:
        """Return the blocks to send, each with the number of its tuples and its text, and begin anew.

        Args:
            most: The largest number of tuples in a block, which then is no longer than MAX_BYTES, either; None: all
                tuples are one block.
        """
        runs = [(route, rows) for route, rows in self._runs if rows]
        mark = self.mark
        self._begin()
        return [(tuples, mark + text) for tuples, text in _blocks(runs, most)]


def _blocks(runs: list[tuple[Route, list[str]]], most: int | None) -> list[tuple[int, str]]:
    if most is None or sum(len(rows) for _, rows in runs) <= most:
        one = [(route.name, ",".join(rows), len(rows)) for route, rows in runs]
        if most is None or sum(len(text) for _, text, _ in one) <= MAX_BYTES:
            return [_block(one)] if one else []
    return list(_parts(runs, most))


def _parts(runs: list[tuple[Route, list[str]]], most: int) -> Iterator[tuple[int, str]]:
    """Yield blocks of at most so many tuples and, unless a single tuple is larger, MAX_BYTES."""
    part: list[tuple[str, str, int]] = []
    tuples = size = 0
    for route, rows in runs:
        begin = 0
        for index, row in enumerate(rows):
            if tuples and (tuples == most or size + len(row) > MAX_BYTES):
                if index > begin:
                    part.append((route.name, ",".join(rows[begin:index]), index - begin))
                yield _block(part)
                part, begin, tuples, size = [], index, 0, 0
            tuples += 1
            size += len(row) + 1
        part.append((route.name, ",".join(rows[begin:]), len(rows) - begin))
    yield _block(part)


def _block(runs: list[tuple[str, str, int]]) -> tuple[int, str]:
    text = "[" + ",".join([f"[{name},[{rows}]]" for name, rows, _ in runs]) + "]"
    return sum(tuples for _, _, tuples in runs), text if "'" in text else "'" + text.replace('"', "'")


def mark_of(values: list[Any]) -> str:
    """Return the mark of a block that was read before."""
    mark: str = values[1][0]
    return mark if mark in (APART, LOOSE) else TOGETHER


def read_block(values: list[Any]) -> list[tuple[str, list[list[Any]]]]:
    """Return the runs of a block, each a stream's name and its tuples' values.

    Args:
        values: The values of the tuple on the wire.

    Raises:
        RemoteProtocolError: It is no block.
    """
    try:
        tuples, text = values
        if text[0] in (APART, LOOSE):
            text = text[1:]
        runs: list[tuple[str, list[list[Any]]]] = loads(text[1:].replace("'", '"') if text[0] == "'" else text)
        if sum(len(rows) for _, rows in runs) == tuples:
            return runs
    except (AttributeError, LookupError, TypeError, ValueError):
        pass
    raise RemoteProtocolError(f"a block of tuples can't be read: {shortened(dumps(values).encode())}")
