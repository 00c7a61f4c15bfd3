"""The marker of committers."""

from __future__ import annotations


class Committer:
    """A mark on a class whose work is part of the commit phase.

    Mark a BatchBolt, ``class Update(BatchBolt, Committer)``, and its ``finish_batch`` is called in the commit phase, in
    the order of transactions (Storm's ICommitter). The emitters of a TransactionalSpout that is marked need a method
    ``commit(attempt)``, which is called in the same phase (Storm's ICommitterTransactionalSpout).
    """
