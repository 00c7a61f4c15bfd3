"""The attempt at a transaction, to which each tuple belongs (Storm's TransactionAttempt)."""

from __future__ import annotations

from multilang.protocol.codec import send_as_text

_EACH = 1 << 32  # attempts in one epoch; those of the next epoch are greater


@send_as_text
class TransactionAttempt(str):
    """The first value of every tuple in a transactional topology.

    On the wire it is the string ``"txid:attempt"``, and in Python it is that string, too. It can be emitted, grouped by
    and compared as a string. Two attempts are equal when both numbers are.

    Attributes:
        txid: The transaction, from 1 on.
        attempt: The number of the attempt, which grows with each replay.
        owner: The owner of the transaction, ``ID/INCARNATION`` (``TransactionalState.owner_name``): a map belongs to one. It
            is not on the wire. A committer knows it when the commit's tuple has come; before, the incarnation is empty.
        opaque: Whether the spout may repeat the transaction with another batch.
        updated: Whether a map was perhaps updated for the attempt by this object's task.
    """

    __slots__ = ("attempt", "opaque", "owner", "txid", "updated")

    txid: int
    attempt: int
    owner: str
    opaque: bool
    updated: bool

    def __new__(cls, txid: int, attempt: int, owner: str = "") -> TransactionAttempt:  # noqa: PYI034 - typing has Self from 3.11 on
        self = super().__new__(cls, f"{txid}:{attempt}")
        self.txid = txid
        self.attempt = attempt
        self.owner = owner
        self.opaque = False
        self.updated = False
        return self

    @property
    def epoch(self) -> int:
        """The epoch of the coordinator that made it. A coordinator that takes the transactions over raises it."""
        return self.attempt // _EACH

    @staticmethod
    def first_of(epoch: int) -> int:
        """Return the number from which an epoch's attempts are counted, greater than all of earlier epochs."""
        return epoch * _EACH

    @classmethod
    def parse(cls, text: str) -> TransactionAttempt:
        """Return the attempt that has this form on the wire.

        Args:
            text: ``"txid:attempt"``.

        Raises:
            ValueError: The text has another form.
        """
        txid, _, attempt = text.partition(":")
        return cls(int(txid), int(attempt))

    def __getnewargs__(self) -> tuple[int, int, str]:  # type: ignore[override]
        return self.txid, self.attempt, self.owner

    def __repr__(self) -> str:
        return f"TransactionAttempt({self.txid}, {self.attempt})"
