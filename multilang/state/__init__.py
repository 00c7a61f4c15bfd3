"""State that survives crashes: stateful bolts, saved by Storm's three-phase checkpoints.

The names below are imported at their first use.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.state.api import KeyValueState, State
    from multilang.state.bolt import StatefulBasicBolt, StatefulBolt
    from multilang.state.databases import MemoryStateProvider, SqliteStateProvider
    from multilang.state.position_spout import PositionSpout
    from multilang.state.provider import StateProvider
    from multilang.state.redis import RedisStateProvider
    from multilang.state.replayable import ReplayableSpout
    from multilang.state.serializers import Serializer
    from multilang.store.errors import (
        FencedError,
        InUseError,
        StateError,
        StoreGoneError,
        UnusableStateError,
        WrongProviderError,
    )
    from multilang.store.settings import state_file

__all__ = [
    "FencedError",
    "InUseError",
    "KeyValueState",
    "MemoryStateProvider",
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
    "StoreGoneError",
    "UnusableStateError",
    "WrongProviderError",
    "state_file",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".api": ("KeyValueState", "State"),
        ".databases": ("MemoryStateProvider", "SqliteStateProvider"),
        ".bolt": ("StatefulBasicBolt", "StatefulBolt"),
        "multilang.store.errors": (
            "FencedError",
            "InUseError",
            "UnusableStateError",
            "StateError",
            "StoreGoneError",
            "WrongProviderError",
        ),
        ".position_spout": ("PositionSpout",),
        ".provider": ("StateProvider",),
        ".redis": ("RedisStateProvider",),
        ".replayable": ("ReplayableSpout",),
        ".serializers": ("Serializer",),
        "multilang.store.settings": ("state_file",),
    },
)
