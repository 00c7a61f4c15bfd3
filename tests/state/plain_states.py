"""A provider whose states are no StoredState: they are mappings of somebody's own, over those in a store."""

from __future__ import annotations

from multilang.state import KeyValueState, StateProvider
from multilang.state.databases import StoreProvider
from multilang.state.settings import PROVIDER


class PlainState(KeyValueState):
    """Does all by another one."""

    def __init__(self, inner):
        self.inner = inner

    def claim(self, epoch):
        self.inner.claim(epoch)

    def get(self, key, default=None):
        return self.inner.get(key, default)

    def put(self, key, value):
        self.inner.put(key, value)

    def delete(self, key):
        return self.inner.delete(key)

    def items(self):
        return self.inner.items()

    def prepare_commit(self, txid):
        self.inner.prepare_commit(txid)

    def commit(self, txid=None):
        self.inner.commit(txid)

    def rollback(self):
        self.inner.rollback()

    def close(self):
        self.inner.close()


class PlainProvider(StoreProvider):
    """Makes them in the store that ``multilang.store`` names."""

    def new_state(self, namespace):
        return PlainState(super().new_state(namespace))

    def portable(self):
        return {**super().portable(), PROVIDER: self.conf[PROVIDER]}


class LeastProvider(PlainProvider):
    """Makes states and has an owner; nothing else."""

    namespaces = StateProvider.namespaces
    txids = StateProvider.txids
    replace = StateProvider.replace
