"""Panes: parts of windows, each of which holds the accumulator of its tuples."""

from __future__ import annotations

from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence
    from typing import Any, Protocol, TypeAlias

    from multilang.component.errors import FailedException
    from multilang.protocol.messages import Tuple

    Key: TypeAlias = Hashable

    Due: TypeAlias = "tuple[Key, Sequence[Pane], Sequence[Pane], Sequence[Pane], int]"
    """A window to evaluate: see ``Keeper.fire_all``."""

    DroppedPane: TypeAlias = "tuple[Key, int, Pane]"
    """A pane that is in no later window, with its key and its place."""

    class Holder(Protocol):
        """Something that holds tuples, which are in ``held`` as in a Pane; each is equal to itself alone."""

        @property
        def held(self) -> Sequence[Tuple]: ...

    class Keeper(Protocol):
        """The bolt as its windows see it.

        Attributes:
            needs_panes: True if it needs the panes of a window whose accumulator is merged already.
            most_dropped: The most panes that may wait for one another to be dropped together.
        """

        needs_panes: bool
        most_dropped: int

        def begin(self, key: Key, slot: int, tup: Tuple) -> Pane:
            """Return a new pane that has a tuple; there is none if the tuple fails."""

        def put(self, key: Key, slot: int, pane: Pane, tup: Tuple) -> object:
            """Add a tuple to a pane."""

        def check_merge(self, key: Key, panes: Sequence[Pane], tup: Tuple) -> object:
            """Check that panes of a key and a tuple can be merged: otherwise the tuple fails."""

        def merge(self, key: Key, first: Pane, second: Pane) -> object:
            """Add all of the second pane of a key to the first."""

        def fire(
            self,
            key: Key,
            bounds: tuple[int | None, int],
            panes: Sequence[Pane],
            new: Sequence[Pane],
            timing: str,
            number: int,
            at: int,
        ) -> object:
            """Evaluate a window; see ``fire_all``."""

        def fire_all(self, bounds: tuple[int | None, int], timing: str, at: int, due: Iterable[Due]) -> object:
            """Evaluate windows with the same bounds, each before the next one is taken.

            Args:
                bounds: Their start and end.
                timing: EARLY, ON_TIME or LATE.
                at: Their end among their key's windows: a time, or a position in the key's tuples.
                due: Of each window its key; its panes, in order, which may be missing unless ``needs_panes`` if they are
                    merged; those that were in no window before; the panes to merge, which may be one that has them all; and
                    the number of its evaluations before.
            """

        def show_again(self, key: Key, pane: Pane) -> object:
            """Restore all tuples of a pane of a key, since the window that had them is retracted."""

        def drop(self, key: Key, slot: int, pane: Pane, seen: bool = True) -> object:
            """Drop a pane, which is in no later window; ``seen``: it was in one."""

        def drop_all(self, dropped: Sequence[DroppedPane], seen: bool = True) -> object:
            """Drop panes, which are in no later window; ``seen``: they were in one."""

        def unassigned(self, tup: Tuple) -> object:
            """Take a tuple that is in no window, since there are gaps between the windows."""

        def waits(self, waiting: Waiting) -> object:
            """Note a tuple that waits for earlier ones."""

        def released(self, waiting: Waiting) -> object:
            """Note that a tuple's wait is over: it is added next."""

        def added(self) -> object:
            """Note that a tuple that had waited is in its windows."""

        def refused(self, tup: Tuple, error: FailedException) -> object:
            """Fail a tuple that had waited, and that its windows refuse."""


EARLY = "early"
ON_TIME = "on time"
LATE = "late"
RETRACTED = "retracted"


class Pane:
    """A part of a window, which several windows may share.

    Attributes:
        accumulator: Its tuples, or what the aggregate makes of them.
        count: The number of its tuples.
        held: The tuples to ack when it is dropped.
        ids: The message ids of its tuples; None if they have none.
        first: The timestamp of its earliest tuple, where that matters.
        last: The timestamp of its latest tuple, where that matters.
        fired: The number of times that it was in an evaluated window, where that matters.
        numbers: The numbers of evaluations of windows whose first pane it was, by their ends; of a session, by the name in
            its id. None: there were none.
        shown: A pane with the tuples of earlier evaluations that are not accumulating, in case they are retracted; None: none.
        slot: Its place among the panes of its key, where there is state.
        dirty: True if it must be saved at the next checkpoint.
        chunks: The parts of it that the state has, by their first tuple; None: none of them.
        fresh_from: The number of its tuples that the state has.
        spilled: The part of it that is in the state alone: the number of its first tuples, or 1 for an accumulator.
    """

    __slots__ = (
        "accumulator",
        "chunks",
        "count",
        "dirty",
        "fired",
        "first",
        "fresh_from",
        "held",
        "ids",
        "last",
        "numbers",
        "shown",
        "slot",
        "spilled",
    )

    def __init__(self, accumulator: Any) -> None:
        self.accumulator = accumulator
        self.count = 0
        self.held: list[Tuple] = []
        self.ids: list[Any] | None = None
        self.first = 0
        self.last = 0
        self.fired = 0
        self.numbers: dict[int, int] | None = None
        self.shown: Pane | None = None
        self.slot = 0
        self.dirty = False
        self.chunks: list[int] | None = None
        self.fresh_from = 0
        self.spilled = 0


class Waiting:
    """A tuple that waits for its turn; ``again`` are its replays that arrived meanwhile."""

    __slots__ = ("again", "is_stored", "key", "slot", "ts", "tup")

    def __init__(self, key: Key, slot: int, ts: int, tup: Tuple) -> None:
        self.key = key
        self.slot = slot
        self.ts = ts
        self.tup = tup
        self.again: list[Tuple] = []
        self.is_stored = False

    @property
    def held(self) -> list[Tuple]:
        """The tuple and its replays."""
        return [self.tup, *self.again]


class Agenda:
    """The keys of which a window ends, by the time of the end."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._keys: dict[int, dict[Key, None]] = {}

    def add(self, end: int, key: Key) -> None:
        """Note that a window of ``key`` ends at ``end``."""
        keys = self._keys.get(end)
        if keys is None:
            keys = self.at(end)
        keys[key] = None

    def at(self, end: int) -> dict[Key, None]:
        """Return the keys of which a window ends at ``end``, to add one to them."""
        keys = self._keys.get(end)
        if keys is None:
            keys = self._keys[end] = {}
            heappush(self._ends, end)
        return keys

    def take(self, before: int) -> tuple[int, dict[Key, None]] | None:
        """Return the first end before an instant, with its keys in the order in which they were added."""
        ends = self._ends
        if not ends or ends[0] >= before:
            return None
        end = heappop(ends)
        return end, self._keys.pop(end)

    @property
    def next(self) -> int | None:
        """The first end; None if there is none."""
        return self._ends[0] if self._ends else None


class Windows:
    """The windows of one task, of all keys; the base of their kinds.

    Time is in milliseconds. ``advance`` evaluates all windows that end before the watermark; a window holds the times
    up to and with its end.

    Args:
        keeper: The bolt.
        lateness: The milliseconds for which evaluated windows are retained.

    Attributes:
        watermark: All windows that end before it were evaluated.
        counted: The keys whose ``counts`` changed, where there is state; otherwise None.
    """

    words = ""
    """The kind of windows, for messages and for the check of stored ones."""

    in_order = False
    """True if ``add`` takes tuples in the order of their timestamps, after ``advance`` with the timestamp."""

    def __init__(self, keeper: Keeper, lateness: int = 0) -> None:
        self.keeper = keeper
        self.lateness = lateness
        self.watermark = -(2**63)
        self.counted: dict[Key, None] | None = None

    def add(self, key: Key, ts: int, tup: Tuple) -> None:
        """Add a tuple to its windows, which may evaluate some."""
        raise NotImplementedError

    def advance(self, watermark: int) -> None:
        """Evaluate the windows that end before ``watermark``."""
        raise NotImplementedError

    def next_due(self) -> int | None:
        """Return the time after which a watermark evaluates something; None if there is none."""
        raise NotImplementedError

    def fire_early(self, key: Key, slot: int, pane: Pane) -> None:
        """Evaluate the window that consists of this pane, before its end."""
        raise NotImplementedError

    def load(self, key: Key, slot: int, pane: Pane) -> None:
        """Restore a pane from a checkpoint, after ``resume``."""
        raise NotImplementedError

    def resume(self, watermark: int) -> None:
        """Resume from the watermark of a checkpoint."""
        self.watermark = watermark

    def holders(self) -> Iterator[Holder]:
        """Yield all holders of tuples."""
        raise NotImplementedError

    def counts(self) -> dict[Key, int]:
        """Return the number of tuples so far by key, where windows depend on it."""
        return {}

    def follow_counts(self, counted: dict[Key, None]) -> None:
        """Note in ``counted`` each key whose count changes."""
        self.counted = counted

    def load_count(self, key: Key, count: int) -> None:
        """Restore the number of a key's tuples from a checkpoint."""
