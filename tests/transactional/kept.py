"""A store in memory, for tests of when something is stored, and not where."""

from __future__ import annotations

from typing import ClassVar

from multilang.store.memory import MemoryStore
from multilang.transactional import TransactionalState
from multilang.transactional.names import INCARNATION

TABLES = ("coordinator", "user", "spark")


class KeptStore(MemoryStore):
    """Rows that stay in this process, so that a restarted task finds them. ``test.database`` tells stores apart."""

    durable = True  # all tasks of these tests are in this process
    rows: ClassVar[dict] = {}

    def __init__(self, url, conf, setting):
        super().__init__(url, conf, setting)
        self._places, self._lock = self.rows.setdefault(conf["test.database"], (self._places, self._lock))


class Kept(TransactionalState):
    """Transactions in such a store."""

    def __init__(self, conf, id):
        super().__init__(KeptStore("kept:", conf, "kept"), id, conf)
        self.conf = conf

    @property
    def stored(self):
        """All that transactions left, without who may write it."""
        found = {f"{table}/{name}": value for table in TABLES for name, value in self.below(table).items()}
        return {path: value for path, value in found.items() if path != INCARNATION}


def kept_conf(database, **more):
    """A conf with an empty store of its own."""
    KeptStore.rows.pop(database, None)
    return {
        "topology.transactional.id": "kept",
        "multilang.transactional.store": f"{__name__}.KeptStore",
        "test.database": database,
        **more,
    }
