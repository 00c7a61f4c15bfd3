"""The pending tuples of a spout task, in rotating buckets (Storm's RotatingMap)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Value = TypeVar("Value")


class RotatingMap(Generic[Value]):
    """A map whose entries expire: each ``rotate`` drops what was put before the last ``buckets - 1`` rotations.

    When it is rotated every T seconds and has two buckets, an entry expires after T to 2T, as in Storm's spout
    executor. No entry needs a timer of its own.
    """

    __slots__ = ("_buckets", "newest")

    def __init__(self, buckets: int = 2) -> None:
        if buckets < 2:
            raise ValueError(f"a rotating map needs at least 2 buckets, not {buckets}")
        self.newest: dict[int, Value] = {}
        self._buckets: list[dict[int, Value]] = [self.newest, *({} for _ in range(buckets - 1))]

    def put(self, key: int, value: Value) -> None:
        """Put or replace an entry, which then counts as new."""
        for bucket in self._buckets[1:]:
            bucket.pop(key, None)
        self.newest[key] = value

    def get(self, key: int) -> Value | None:
        """Return the value, or None."""
        for bucket in self._buckets:
            if key in bucket:
                return bucket[key]
        return None

    def remove(self, key: int) -> Value | None:
        """Remove the value and return it; None when it is not there."""
        for bucket in self._buckets:
            if key in bucket:
                return bucket.pop(key)
        return None

    def rotate(self) -> dict[int, Value]:
        """Start a new bucket, drop the oldest one and return its entries."""
        expired = self._buckets.pop()
        self.newest = {}
        self._buckets.insert(0, self.newest)
        return expired

    def restore(self, key: int, value: Value) -> None:
        """Restore an entry that expired, which expires again at the next rotation."""
        self._buckets[-1][key] = value

    def values(self) -> Iterator[Value]:
        """Return all values, those of the newest bucket first."""
        for bucket in self._buckets:
            yield from bucket.values()

    def clear(self) -> None:
        """Drop everything, as when the task dies."""
        for bucket in self._buckets:
            bucket.clear()

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def __contains__(self, key: int) -> bool:
        return any(key in bucket for bucket in self._buckets)
