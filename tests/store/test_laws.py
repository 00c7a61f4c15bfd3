"""Every database keeps the laws of ``multilang.store.interface``, one of a user's own, too."""

from __future__ import annotations

import pytest

from multilang.store import open_store
from multilang.store.memory import MemoryStore
from multilang.testing.stores import DurableStoreLaws, LocalStoreLaws, StoreLaws
from tests.soak import SOAK

ROUNDS = 40 if SOAK else 2


class TestMemory(StoreLaws):
    @pytest.fixture
    def open_store(self):
        store = MemoryStore()
        return lambda: store


class TestSqlite(LocalStoreLaws):
    rounds = ROUNDS

    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: open_store(f"sqlite://{tmp_path}/store.sqlite")


class TestFilesOfOnesOwn(LocalStoreLaws):
    rounds = ROUNDS

    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: open_store(f"tests.store.file_store.FileStore:{tmp_path}")


class TestBehindANetwork(DurableStoreLaws):
    rounds = ROUNDS

    @pytest.fixture
    def open_store(self, network):
        port, url_of = network
        return lambda: open_store(url_of(port))
