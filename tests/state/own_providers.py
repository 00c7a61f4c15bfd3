"""Providers of somebody's own, in a module that a task's process imports without pytest."""

from __future__ import annotations

import ujson

from multilang.state import KeyValueState, StateProvider

FOLDERS: dict[str, dict[str, str]] = {}  # what JsonState stores, by the provider's config


class JsonState(KeyValueState):
    """A state that is no StoredState, in a dict of JSON texts that outlives it."""

    def __init__(self, stored: dict[str, str], namespace: str) -> None:
        self.stored, self.namespace = stored, namespace
        self.rollback()

    def get(self, key, default=None):
        return self.live.get(key, default)

    def put(self, key, value):
        if value is None:
            raise ValueError("None is no value")
        self.live[key] = value

    def delete(self, key):
        return self.live.pop(key, None)

    def items(self):
        return iter(list(self.live.items()))

    def prepare_commit(self, txid):
        self.stored[f"{self.namespace} prepared"] = ujson.dumps([txid, *self.live.items()])

    def commit(self, txid=None):
        prepared = self.stored.get(f"{self.namespace} prepared")
        if txid is None:
            self.stored[self.namespace] = ujson.dumps([*self.live.items()])
        elif prepared is not None and ujson.loads(prepared)[0] == txid:
            self.stored[self.namespace] = ujson.dumps(ujson.loads(prepared)[1:])

    def rollback(self):
        self.live = dict(ujson.loads(self.stored.get(self.namespace, "[]")))


class Json(StateProvider):
    """The least that there can be: it only makes states."""

    def new_state(self, namespace):
        return JsonState(FOLDERS.setdefault(self.config["name"], {}), namespace)


class ReturnsADict(Json):
    def new_state(self, namespace):
        return {}


class ReturnsNothing(Json):
    def new_state(self, namespace):
        JsonState({}, namespace)


class WithoutTransaction(Json):
    class _State(JsonState):
        def commit(self, txid):
            super().commit(txid)

    def new_state(self, namespace):
        return self._State({}, namespace)


class WithoutDefault(Json):
    class _State(JsonState):
        def get(self, key):
            return super().get(key)

    def new_state(self, namespace):
        return self._State({}, namespace)


class Asynchronous(Json):
    class _State(JsonState):
        async def prepare_commit(self, txid):
            pass

    def new_state(self, namespace):
        return self._State({}, namespace)


class NoMethod(Json):
    claim = 5


class WithoutNamespace(Json):
    def new_state(self):
        return JsonState({}, "all")


class ClaimsNothing(Json):
    def claim(self):
        pass


class Forgetful(Json):
    def new_state(self, namespace):
        return JsonState({}, namespace)


class GetsNothing(Json):
    class _State(JsonState):
        def get(self, key, default=None):
            self.live.get(key, default)

    def new_state(self, namespace):
        return self._State({}, namespace)


class Texts(Json):
    """Gives back everything as text."""

    class _State(JsonState):
        def get(self, key, default=None):
            return ujson.dumps(self.live[key]) if key in self.live else default

    def new_state(self, namespace):
        return self._State(FOLDERS.setdefault(self.config["name"], {}), namespace)


class Unfinished(StateProvider):
    pass


class Needs(StateProvider):
    def __init__(self, config, conf):
        super().__init__(config, conf)
        self.folder = config["folder"]

    new_state = Json.new_state


class OnlyItsOwn(StateProvider):
    def __init__(self, config, conf):
        self.name = config["name"]

    new_state = Json.new_state
