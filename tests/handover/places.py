"""The places that are handed over, with states or transactions in a store, and what must be counted there."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any

from multilang.state.providers import provider_of
from multilang.transactional import OpaqueMap, SqliteBacking, TransactionalMap
from tests.cli.command import COMMAND
from tests.handover.lives import Life
from tests.state.topologies import stored, words_of
from tests.transactional.topologies import counts_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.handover.lives import Signal

PLACES = [
    "exact sqlite",
    "exact redis",
    "at-least-once sqlite",
    "at-least-once redis",
    "transactional sqlite",
    "transactional zookeeper",
    "opaque sqlite",
    "opaque zookeeper",
]
BROKEN_OFF = (3, 4)  # exit statuses


class Place(ABC):
    """A topology with its conf, in one store. ``files``: of SQLite, in which it keeps something; the first is the store's."""

    topology: str
    claimant: str
    """The component that claims the place for the run, as steps name it."""
    repeats = False
    """True if a run that begins may count again what is counted already."""
    worker: tuple[str, str]
    """A component that does not claim it, and one of its steps that is repeated."""

    def __init__(self, what: str, folder: Path, conf: dict[str, Any]) -> None:
        self.what = what
        self.folder = folder
        self.conf = conf
        self.files: list[str] = []
        self.lives: list[Life] = []
        self._numbers = count()

    def begin(self, *signals: Signal, env: dict[str, str] | None = None, **conf: Any) -> Life:
        """Another life, with more of a conf; what its tasks do to themselves is said to Life."""
        folder = self.folder / f"life-{next(self._numbers)}"
        words = [word for key, value in {**self.conf, **conf}.items() for word in ("-c", f"{key}={json.dumps(value)}")]
        life = Life([COMMAND, "run", self.topology, *words], folder, signals, env)
        self.lives.append(life)
        return life

    @abstractmethod
    def counts(self) -> Counter[str]:
        """Return what is counted there now."""

    @abstractmethod
    def check(self, counts: Counter[str]) -> None:
        """Check that these counts are those of the input."""

    def stop(self, life: Life) -> None:
        """Stop a life; not in the midst of a write to SQLite's file, which is locked then until that process is gone or wakes."""
        life.stop()
        while any(_is_locked(path) for path in self.files):
            life.wake()
            life.stop()

    def is_told(self, life: Life) -> None:
        """A life that ended early says why: another one has the place."""
        assert life.process.returncode in BROKEN_OFF, life.said
        assert "is in use by" in life.said or "was taken over" in life.said, life.said

    def refuses(self, life: Life, owner: Life) -> None:
        """The life ends, as it must: another one has the place, which is named to it."""
        assert life.end() in BROKEN_OFF, life.said
        found = re.search(
            r"in use by topology '(.+?)' \(process (\d+) on (.+?), since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)", life.said
        )
        assert found, life.said
        assert int(found[2]) in owner.known
        assert found[3] == socket.gethostname()

    def fences(self, life: Life) -> None:
        """The life ends, as it must: another one has taken over. It says so once."""
        assert life.end() in BROKEN_OFF, life.said
        life.is_gone()
        told = [line for line in life.said.splitlines() if "was taken over" in line]
        assert told, life.said
        assert len(told) == len({*told}), life.said  # each task once, and the topology

    def close(self) -> None:
        for life in self.lives:
            life.clean_up()


class States(Place):
    """Words counted in states, by tests.state.topologies, and how many there are of each length."""

    claimant = "$checkpointspout-0"
    worker = ("count-1", "PREPARE received")

    def __init__(
        self, what: str, folder: Path, store: dict[str, Any], size: int = 1, module: str = "tests.state.topologies"
    ) -> None:
        self.exact = what.startswith("exact")
        self.repeats = not self.exact
        self.topology = f"{module}:" + ("exact" if self.exact else "topology")
        self.sentences = 300 * size
        conf = {
            **store,
            "multilang.trace": "tests.handover.steps.at_step",
            "topology.message.timeout.secs": 2,
            "topology.max.spout.pending": 30,
            "test.sentences": self.sentences,
            "test.burst": 4,
        }
        super().__init__(what, folder, conf)
        self._provider = provider_of(conf)
        self.files = [path for path in [getattr(self._provider.store, "path", None)] if path]

    def counts(self) -> Counter[str]:
        found = Counter(stored(self._provider, "count", 2))
        return found + Counter({f"length {n}": times for n, times in stored(self._provider, "lengths", 1).items()})

    def check(self, counts: Counter[str]) -> None:
        due = words_of(self.sentences)
        for word, times in words_of(self.sentences).items():
            due[f"length {len(word)}"] += times
        wrong = counts != due if self.exact else due - counts
        assert not wrong, _shown(counts, due)

    def close(self) -> None:
        super().close()
        self._provider.close()


class Transactions(Place):
    """Words counted in a map, by transactions; ``kind``: a topology of tests.handover.transactions."""

    claimant = "coordinator"
    worker = ("update-0", "COMMIT finish")

    def __init__(self, what: str, folder: Path, store: dict[str, Any], size: int = 1) -> None:
        kind = what.split()[0]
        self.topology = f"tests.handover.transactions:{kind}"
        self.words = 300 * size  # in each of three partitions
        conf = {
            **store,
            "multilang.trace": "tests.handover.steps.at_step",
            "test.words": self.words,
            "test.take": 10,
            "topology.max.spout.pending": 3,
            "topology.message.timeout.secs": 2,
        }
        super().__init__(what, folder, conf)
        maps = str(folder / "maps.sqlite")
        scheme, _, path = conf.get("multilang.transactional.store", "").partition("://")
        self.files = [path, maps] if scheme == "sqlite" else [maps]
        self._env = {"HANDOVER_MAPS": maps}
        self._map = {"transactional": TransactionalMap, "opaque": OpaqueMap}[kind](SqliteBacking(maps))

    def begin(self, *signals: Signal, env: dict[str, str] | None = None, **conf: Any) -> Life:
        return super().begin(*signals, env={**self._env, **(env or {})}, **conf)

    def counts(self) -> Counter[str]:
        return Counter(self._map.multi_get(counts_of(self.words)))

    def check(self, counts: Counter[str]) -> None:
        due = counts_of(self.words)
        assert counts == due, _shown(counts, due)

    def close(self) -> None:
        super().close()
        self._map.close()


def _is_locked(path: str) -> bool:
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
    return False


def _shown(counts: Counter[str], due: Counter[str]) -> str:
    wrong = {word: (counts[word], due[word]) for word in {*counts, *due} if counts[word] != due[word]}
    return f"{counts.total()} counted of {due.total()}; wrong (counted, due): {wrong}"
