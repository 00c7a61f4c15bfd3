"""A store in memory, for tests of when something is stored, and not where."""

from __future__ import annotations

from typing import ClassVar

from multilang.transactional import TransactionalState
from multilang.transactional.names import EPOCH, INCARNATION, WRITERS


class Kept(TransactionalState):
    """A state that stays in this process, so that a restarted task finds it. ``test.database`` tells trees apart."""

    trees: ClassVar[dict] = {}

    def __init__(self, conf, id):
        super().__init__(conf, id)
        self.tree = self.trees.setdefault(conf["test.database"], {})

    @property
    def stored(self):
        """All that transactions left, without who may write it."""
        return {path: value for path, value in self.tree.items() if not path.startswith((EPOCH, INCARNATION, WRITERS))}

    def get_data(self, path):
        return self.tree.get(path)

    def compare_and_write(self, expected, values, deleted=()):
        if any(self.tree.get(path) != value for path, value in expected.items()):
            return False
        self.tree.update(values)
        for path in deleted:
            self.tree.pop(path, None)
        return True

    def list(self, path):
        below = f"{path}/"
        return list({key[len(below) :].partition("/")[0] for key in self.tree if key.startswith(below)})

    def close(self):
        pass


def kept_conf(database, **more):
    """A conf with an empty store of its own."""
    Kept.trees.pop(database, None)
    return {
        "topology.transactional.id": "kept",
        "multilang.transactional.store": f"{__name__}.Kept",
        "test.database": database,
        **more,
    }
