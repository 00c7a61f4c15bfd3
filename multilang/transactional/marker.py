"""What marks a committer."""

from __future__ import annotations


class Committer:
    """Mark a BatchBolt with it, ``class Update(BatchBolt, Committer)``, and its ``finish_batch`` is part of the commit phase.

    It is called transaction by transaction, in their order (Storm's ICommitter). A TransactionalSpout that is marked has
    emitters with a method ``commit(attempt)``, called in the same phase (Storm's ICommitterTransactionalSpout).
    """
