"""The providers of states in a store: that of ``multilang.store``, and those of Storm's key."""

from __future__ import annotations

import logging
import os

from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads
from multilang.settings import CACHED_KEYS, STORE, STORED_NAME, value
from multilang.state.names import SPOUT, namespace
from multilang.state.provider import StateProvider
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, PROVIDER, check_members
from multilang.state.stored import Namespace, StoredState
from multilang.store.claims import check_free_for, claim_for
from multilang.store.errors import StateError
from multilang.store.opening import open_store
from multilang.store.settings import name_in, place_of, state_file, store_url, stored_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.store.claims import Claim
    from multilang.store.interface import Store

_ALL = 2**62  # keys in memory, of what is in memory in any case
_COORDINATOR = namespace(SPOUT, 0)
_REPLACING = "replacing", b"names"  # the row of a replacement that is to be completed

log = logging.getLogger(__name__)


class StoreProvider(StateProvider):
    """A provider of states in the store that ``multilang.store`` names.

    The states of a topology are owned together, at a place of the topology's. Each namespace has a place of its own below it.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, conf: Mapping[str, Any] | None = None) -> None:
        super().__init__(config or {}, conf or {})
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)
        self._check_config()
        self._place = place_of("state", stored_name(self.conf))
        self._what = f"the state of topology {stored_name(self.conf)!r}"
        self._claim: Claim | None = None
        self.store = self._open()
        self.durable = self.store.durable
        self.local = self.store.local
        self.requires = self.store.requires

    def _check_config(self) -> None:
        check_members(self.config, f"state in {STORE}", ())

    def _open(self) -> Store:
        """Return a store. Each namespace has one of its own, with its own connection."""
        url, setting = store_url(self.conf) or ("memory:", STORE)
        return open_store(url, self.conf, setting)

    def portable(self) -> dict[str, Any]:
        return {PROVIDER: None, CONFIG: self.config, STORE: self.store.url}

    def new_state(self, namespace: str) -> StoredState:
        store = self._open() if self.durable else self.store
        cached = value(self.conf, CACHED_KEYS) if self.durable else _ALL
        return StoredState(namespace, self._namespace(namespace, store), self._keys, self._values, cached)

    def namespaces(self) -> list[str]:
        start = place_of("state", stored_name(self.conf), "")
        names = [name_in(place.removeprefix(start)) for place in self.store.places(start)]
        return sorted(name for name in names if not self._namespace(name).is_empty())

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        return self._namespace(namespace).txids()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """Replace the contents of these namespaces: all of them or, after a crash, none.

        The new rows are written beside the old ones. When all are there, the list of namespaces is stored, and from then on
        each claim of the states completes the replacement.
        """
        claim = self._claimed()
        for name, content in states.items():
            found = self._namespace(name)
            found.claim(claim.epoch)
            found.stage((self._keys.encode(key), self._values.encode(value)) for key, value in content.items())
        table, key = _REPLACING
        claim.write({table: {key: dumps([os.urandom(8).hex(), *states]).encode()}})
        self._complete(claim)

    def claim(self) -> int:
        if not self.durable:
            return 0
        if self._claim is None:
            above = self._namespace(_COORDINATOR).epoch()
            self._claim = claim_for(self.conf, self.store, self._place, self._what, above)
            try:
                self._complete(self._claim)
            except BaseException:
                self.close()
                raise
        return self._claim.epoch

    def renew(self) -> int:
        return 0 if self._claim is None else self._claim.renew()

    def check_owner(self) -> None:
        if self._claim is not None:
            self._claim.check()

    def check_free(self) -> None:
        if self.durable:
            check_free_for(self.conf, self.store, self._place, self._what)

    def check(self) -> None:
        self.store.check()

    def describe(self) -> str:
        return self.store.describe().removeprefix("the ")

    def close(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.release()
        self.store.close()

    def _namespace(self, name: str, store: Store | None = None) -> Namespace:
        return Namespace(store or self.store, place_of("state", stored_name(self.conf), name), name)

    def _claimed(self) -> Claim:
        if self._claim is None:
            raise StateError(f"{self._what} is replaced before it was claimed: call claim() first")
        return self._claim

    def _complete(self, claim: Claim) -> None:
        """Complete a replacement, if one is stored."""
        table, key = _REPLACING
        (text,) = self.store.get(self._place, table, [key])
        if text is None:
            return
        try:
            listed = loads(text)
        except ValueError:
            listed = None
        if not isinstance(listed, list) or {*map(type, listed)} != {str}:
            raise StateError(
                f"{self._what} in {self.store.describe()}: the list of a replacement that is to be completed is {text!r}: it was changed "
                "by hand, or damaged. Restore it, or remove all that is stored there, to begin with nothing"
            )
        replacement, *names = listed
        for name in names:
            found = self._namespace(name)
            found.claim(claim.epoch)
            found.swap(replacement)
        claim.write({table: {key: None}})


class MemoryStateProvider(StoreProvider):
    """A provider that holds states in this object (Storm's InMemoryKeyValueStateProvider). Nothing survives the task."""

    def _check_config(self) -> None:
        check_members(self.config, "the in-memory state", ())
        self._states: dict[str, StoredState] = {}

    def _open(self) -> Store:
        return open_store("memory:")

    def new_state(self, namespace: str) -> StoredState:
        """Return the state of a namespace, the same at each call. Nobody else can claim it."""
        if namespace not in self._states:
            self._states[namespace] = state = super().new_state(namespace)
            state.claim(0)
        return self._states[namespace]

    def portable(self) -> dict[str, Any]:
        return {PROVIDER: "memory", CONFIG: self.config}

    def describe(self) -> str:
        return "memory: each task has its own state, which ends with it"


class SqliteStateProvider(StoreProvider):
    """A provider of states in an SQLite file.

    ``topology.state.provider.config`` is ``{"path": "/var/lib/shop/state.sqlite"}``. Without a path it is the
    topology's own file in ``$MULTILANG_STATE_HOME`` or, without that, in the user's folder for state.
    """

    def _check_config(self) -> None:
        check_members(self.config, "state in SQLite", ("path",))
        path = self.config.get("path")
        if path is not None and (not isinstance(path, str) or not path or "\0" in path):
            raise ConfigError(f"{CONFIG}: path is {path!r}; name a file")

    def _open(self) -> Store:
        path = self.config.get("path") or state_file(stored_name(self.conf))
        return open_store(f"sqlite://{path}", self.conf, CONFIG)

    def claim(self) -> int:
        epoch = super().claim()
        if epoch == 1 and self.config.get("path"):
            self._tell_others()
        return epoch

    def portable(self) -> dict[str, Any]:
        path = self.store.url.removeprefix("sqlite://")
        return {PROVIDER: "sqlite", CONFIG: {**self.config, "path": path}}

    def _tell_others(self) -> None:
        """Warn of the states of other topologies, one of which may be this one under its former name."""
        start = place_of("state", "")
        others = {place.removeprefix(start).partition("/")[0] for place in self.store.places(start)}
        others.discard(self._place.removeprefix(start))
        if others:
            log.warning(
                "%s begins with nothing, and there are states of %s in %s. If one of them is this topology's, under its former name, "
                "set %s to that name",
                self._what,
                ", ".join(repr(name_in(each)) for each in sorted(others)[:5]),
                self.store.describe(),
                STORED_NAME,
            )
