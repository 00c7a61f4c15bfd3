"""The acker finds out when a spout's tuple is fully processed, in fixed memory per spout tuple.

Each delivery along an anchor has a random 64-bit edge id. The emitter and the receiver of an edge both send it to the
acker of the spout tuple's root id. The acker keeps only the xor of all that it was sent: 0 when every edge was both
made and acked. Source: Storm's "Guaranteeing message processing" page and its ``Acker`` (2.x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.runtime.counters import Counters
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNKNOWN = -1  # the spout task of a root whose init message has not come yet

_VALUE, _TASK, _FAILED = range(3)


class Acker:
    """One acker task.

    Messages of one root may come in any order. Entries live in three rotating buckets (Storm 2.x). An entry that is
    rotated out is forgotten without a message, since the spout task times out by itself.

    Args:
        complete: Sends its message ``(spout_task, root, ok)`` to the spout task.
        buckets: The number of buckets.

    Attributes:
        newest: The entries of the newest bucket; an entry's first item is the xor.
        heard: The number of messages to it so far.
        answered: The number of messages from it so far.
    """

    __slots__ = ("_buckets", "answered", "complete", "heard", "newest")

    def __init__(self, complete: Callable[[tuple[int, int, bool]], object], buckets: int = 3) -> None:
        self.complete = complete
        self.newest: dict[int, list[int]] = {}
        self._buckets = [self.newest, *({} for _ in range(buckets - 1))]
        self.heard = 0
        self.answered = 0

    def init(self, root: int, value: int, spout_task: int) -> None:
        """Handle ``__ack_init``: a spout tuple's root id, the xor of its edges, and the spout task."""
        self.heard += 1
        entry = self._find(root)
        if entry is None:
            if value:
                self.newest[root] = [value, spout_task, False]
            else:  # "Zero targets -> xor is 0 -> the acker acks at once"
                self.answered += 1
                self.complete((spout_task, root, True))
            return
        entry[_VALUE] ^= value
        entry[_TASK] = spout_task
        self.settle(root, entry)

    def ack(self, root: int, value: int) -> None:
        """Handle ``__ack_ack``: the acked tuple's edge, xored with all edges made with it as an anchor."""
        self.heard += 1
        entry = self.newest.get(root) or self._find_or_create(root)
        value ^= entry[_VALUE]
        entry[_VALUE] = value
        if not value:
            self.settle(root, entry)

    def fail(self, root: int) -> None:
        """Handle ``__ack_fail``: a tuple of this root failed, so that the root fails at once."""
        self.heard += 1
        entry = self._refreshed(root)
        entry[_FAILED] = True
        self.settle(root, entry)

    def reset_timeout(self, root: int) -> None:
        """Handle ``__ack_reset_timeout``: the entry counts as new."""
        self.heard += 1
        self._refreshed(root)

    def rotate(self) -> None:
        """Forget the oldest entries, at a tick."""
        self._buckets.pop()
        self.newest = {}
        self._buckets.insert(0, self.newest)

    def successor(self) -> Acker:
        """Return its replacement after it died, which knows no root, but keeps the counts."""
        new = Acker(self.complete, len(self._buckets))
        new.heard, new.answered = self.heard, self.answered
        return new

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def settle(self, root: int, entry: list[int]) -> None:
        """Complete or fail the root of an entry that changed, if it is time."""
        if entry[_TASK] == UNKNOWN:
            return
        if not entry[_VALUE]:  # "val == 0 wins over failed"
            self._forget(root)
            self.answered += 1
            self.complete((entry[_TASK], root, True))
        elif entry[_FAILED]:
            self._forget(root)
            self.answered += 1
            self.complete((entry[_TASK], root, False))

    def _find(self, root: int) -> list[int] | None:
        for bucket in self._buckets:
            if root in bucket:
                return bucket[root]
        return None

    def _find_or_create(self, root: int) -> list[int]:
        entry = self._find(root)
        if entry is None:
            entry = self.newest[root] = [0, UNKNOWN, False]
        return entry

    def _refreshed(self, root: int) -> list[int]:
        for bucket in self._buckets:
            if root in bucket:
                entry = bucket.pop(root)
                break
        else:
            entry = [0, UNKNOWN, False]
        self.newest[root] = entry
        return entry

    def _forget(self, root: int) -> None:
        for bucket in self._buckets:
            if bucket.pop(root, None) is not None:
                return


def acker_counters(ackers: Sequence[Acker]) -> Counters:
    """Return the ackers' counters as Storm counts them: messages are acked inputs, answers to spouts are emits."""
    heard, answered = sum(each.heard for each in ackers), sum(each.answered for each in ackers)
    return Counters(ACKER, "bolt", len(ackers), emitted=answered, transferred=answered, executed=heard, acked=heard)
