"""State that survives crashes: stateful bolts, saved by Storm's three-phase checkpoints.

The names below are imported at their first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.state.api import KeyValueState, State
    from multilang.state.bolt import StatefulBasicBolt, StatefulBolt
    from multilang.state.errors import (
        FencedError,
        InUseError,
        StateError,
        StoreGoneError,
        UnanchoredEmitError,
        WrongProviderError,
    )
    from multilang.state.memory import MemoryStateProvider
    from multilang.state.owner import OwnedPlace, Owner
    from multilang.state.position_spout import PositionSpout
    from multilang.state.provider import StateProvider
    from multilang.state.redis import RedisStateProvider
    from multilang.state.replayable import ReplayableSpout
    from multilang.state.serializers import Serializer
    from multilang.state.settings import state_file
    from multilang.state.sqlite import SqliteStateProvider
    from multilang.state.stored import Store, StoredState, check_commit, check_prepare, fenced

_HOME_OF = {
    "FencedError": "errors",
    "InUseError": "errors",
    "KeyValueState": "api",
    "MemoryStateProvider": "memory",
    "PositionSpout": "position_spout",
    "RedisStateProvider": "redis",
    "OwnedPlace": "owner",
    "Owner": "owner",
    "ReplayableSpout": "replayable",
    "Serializer": "serializers",
    "SqliteStateProvider": "sqlite",
    "State": "api",
    "StateError": "errors",
    "StateProvider": "provider",
    "StatefulBasicBolt": "bolt",
    "StatefulBolt": "bolt",
    "Store": "stored",
    "StoreGoneError": "errors",
    "StoredState": "stored",
    "UnanchoredEmitError": "errors",
    "WrongProviderError": "errors",
    "check_commit": "stored",
    "check_prepare": "stored",
    "fenced": "stored",
    "state_file": "settings",
}

__all__ = [
    "FencedError",
    "InUseError",
    "KeyValueState",
    "MemoryStateProvider",
    "OwnedPlace",
    "Owner",
    "PositionSpout",
    "RedisStateProvider",
    "ReplayableSpout",
    "Serializer",
    "SqliteStateProvider",
    "State",
    "StateError",
    "StateProvider",
    "StatefulBasicBolt",
    "StatefulBolt",
    "Store",
    "StoreGoneError",
    "StoredState",
    "UnanchoredEmitError",
    "WrongProviderError",
    "check_commit",
    "check_prepare",
    "fenced",
    "state_file",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'multilang.state' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"multilang.state.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
