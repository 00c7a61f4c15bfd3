"""The acker finds out when a spout's tuple is fully processed, in fixed memory per spout tuple.

Each delivery along an anchor has a random 64-bit edge id. The emitter and the receiver of an edge both send it to the
acker of the spout tuple's root id. The acker keeps only the xor of all that it was sent: 0 when every edge was both
made and acked. Source: Storm's "Guaranteeing message processing" page and its ``Acker`` (2.x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.engine.counters import Counters
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# An entry is one number, since there is one for each tuple in flight: the xor, a bit for a failure, and the spout task
# and 1; the task is 0 until the root's init message arrives.
_VALUE = (1 << 64) - 1
_FAILED = 1 << 64
_TASK_BITS = 65


class Acker:
    """One acker task.

    Messages of one root may arrive in any order. Entries are in three rotating buckets (Storm 2.x). An entry that is
    rotated out is dropped without a message, since the spout task times out by itself.

    Args:
        complete: Sends its message ``(spout_task, root, ok)`` to the spout task.
        buckets: The number of buckets.

    Attributes:
        newest: The entries of the newest bucket.
        received: The number of messages to it so far.
        answered: The number of messages from it so far.
    """

    __slots__ = ("_buckets", "answered", "complete", "newest", "received")

    def __init__(self, complete: Callable[[tuple[int, int, bool]], object], buckets: int = 3) -> None:
        self.complete = complete
        self.newest: dict[int, int] = {}
        self._buckets = [self.newest, *({} for _ in range(buckets - 1))]
        self.received = 0
        self.answered = 0

    def init(self, root: int, value: int, spout_task: int) -> None:
        """Handle ``__ack_init``: a spout tuple's root id, the xor of its edges, and the spout task."""
        self.received += 1
        task = self.begun(spout_task)
        bucket = self._bucket(root)
        if bucket is not None:
            self._change(bucket, root, bucket[root] ^ value | task)
        elif value:
            self.newest[root] = value | task
        else:  # "Zero targets -> xor is 0 -> the acker acks at once"
            self.answered += 1
            self.complete((spout_task, root, True))

    def begun(self, spout_task: int) -> int:
        """Return what is or-ed to the edge of a new root, of which no message arrived yet, to be its entry in ``newest``."""
        return spout_task + 1 << _TASK_BITS

    def ack(self, root: int, value: int) -> None:
        """Handle ``__ack_ack``: the acked tuple's edge, xored with all edges made with it as an anchor."""
        self.received += 1
        newest = self.newest
        entry = newest.get(root)
        if entry is not None:
            entry ^= value
            if entry & _VALUE or not entry >> _TASK_BITS:
                newest[root] = entry
            else:  # the same as in _change, without a call
                del newest[root]
                self.answered += 1
                self.complete(((entry >> _TASK_BITS) - 1, root, True))
        elif (bucket := self._bucket(root)) is None:
            newest[root] = value
        else:
            self._change(bucket, root, bucket[root] ^ value)

    def fail(self, root: int) -> None:
        """Handle ``__ack_fail``: a tuple of this root failed, so that the root fails at once."""
        self.received += 1
        self._change(self.newest, root, self._taken(root) | _FAILED)

    def rotate(self) -> None:
        """Drop the oldest entries, at a tick."""
        self._buckets.pop()
        self.newest = {}
        self._buckets.insert(0, self.newest)

    def successor(self) -> Acker:
        """Return its replacement after it died, which has its counts, but no roots."""
        new = Acker(self.complete, len(self._buckets))
        new.received, new.answered = self.received, self.answered
        return new

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def _change(self, bucket: dict[int, int], root: int, entry: int) -> None:
        """Put a changed entry into its bucket, or complete or fail the root if that is due."""
        task = entry >> _TASK_BITS
        if not task or (entry & _VALUE and not entry & _FAILED):
            bucket[root] = entry
            return
        bucket.pop(root, None)
        self.answered += 1
        self.complete((task - 1, root, not entry & _VALUE))  # "val == 0 wins over failed"

    def _bucket(self, root: int) -> dict[int, int] | None:
        """Return the bucket that has a root; None if none has."""
        for bucket in self._buckets:
            if root in bucket:
                return bucket
        return None

    def _taken(self, root: int) -> int:
        """Take an entry out of its bucket; return a new one if there is none."""
        bucket = self._bucket(root)
        return 0 if bucket is None else bucket.pop(root)


def renew(ackers: Sequence[Acker], held: Iterable[tuple[int | dict[int, int], int]]) -> tuple[set[int], set[int]]:
    """Renew the roots that wait only for deliveries held by windows.

    Args:
        ackers: All ackers.
        held: Root and edge of each of these deliveries, as in LocalTuple.

    Returns:
        The roots that were renewed, and the roots of held deliveries that wait for something else, too.
    """
    edges: dict[int, int] = {}
    for root, edge in held:
        several = root if isinstance(root, dict) else {root: 0} if root else {}
        for each, own in several.items():
            edges[each] = edges.get(each, 0) ^ own ^ edge
    renewed: set[int] = set()
    for root, edge in edges.items():
        acker = ackers[root % len(ackers)]
        bucket = acker._bucket(root)
        if bucket is not None and bucket[root] & (_VALUE | _FAILED) == edge:
            renewed.add(root)
            acker.newest[root] = bucket.pop(root)
    return renewed, edges.keys() - renewed


def acker_counters(ackers: Sequence[Acker]) -> Counters:
    """Return the ackers' counters as Storm counts them: messages are acked inputs, answers to spouts are emits."""
    received, answered = sum(each.received for each in ackers), sum(each.answered for each in ackers)
    return Counters(
        ACKER, "bolt", len(ackers), emitted=answered, transferred=answered, executed=received, acked=received
    )
