"""Which transaction a tuple belongs to, and which attempt at it (Storm's TransactionAttempt)."""

from __future__ import annotations

from multilang.protocol.codec import send_as_text

_EACH = 1 << 32  # attempts of one epoch, so that those of the next are greater


@send_as_text
class TransactionAttempt(str):
    """The first value of every tuple: ``txid``, from 1 on, and ``attempt``, a number that grows with each replay.

    On the wire it is the string ``"txid:attempt"``, and that string it is in Python too: it can be emitted, grouped by
    and compared as such. Two attempts are equal when both numbers are.
    """

    __slots__ = ("attempt", "txid")

    txid: int
    attempt: int

    def __new__(cls, txid: int, attempt: int) -> TransactionAttempt:  # noqa: PYI034 - typing has Self from 3.11 on
        self = super().__new__(cls, f"{txid}:{attempt}")
        self.txid = txid
        self.attempt = attempt
        return self

    @property
    def epoch(self) -> int:
        """The epoch of the coordinator that made it: it grows each time that a coordinator takes the transactions over."""
        return self.attempt // _EACH

    @staticmethod
    def first_of(epoch: int) -> int:
        """Return where the attempts of an epoch are counted from: each is greater than all of the epochs before."""
        return epoch * _EACH

    @classmethod
    def parse(cls, text: str) -> TransactionAttempt:
        """From its form on the wire; ValueError for what is none."""
        txid, _, attempt = text.partition(":")
        return cls(int(txid), int(attempt))

    def __getnewargs__(self) -> tuple[int, int]:  # type: ignore[override]
        return self.txid, self.attempt

    def __repr__(self) -> str:
        return f"TransactionAttempt({self.txid}, {self.attempt})"
