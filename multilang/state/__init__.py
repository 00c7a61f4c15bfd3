"""State that survives crashes: stateful bolts, saved by Storm's three-phase checkpoints.

The names below are imported at their first use.
"""

from __future__ import annotations

from multilang.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.state.api import KeyValueState, State
    from multilang.state.bolt import StatefulBasicBolt, StatefulBolt
    from multilang.state.databases import MemoryStateProvider, SqliteStateProvider
    from multilang.state.errors import (
        FencedError,
        InUseError,
        ReshapedError,
        StateError,
        StoreGoneError,
        UnanchoredEmitError,
        WrongProviderError,
    )
    from multilang.state.position_spout import PositionSpout
    from multilang.state.provider import StateProvider
    from multilang.state.redis import RedisStateProvider
    from multilang.state.replayable import ReplayableSpout
    from multilang.state.serializers import Serializer
    from multilang.store.settings import state_file

__all__ = [
    "FencedError",
    "InUseError",
    "KeyValueState",
    "MemoryStateProvider",
    "PositionSpout",
    "RedisStateProvider",
    "ReplayableSpout",
    "ReshapedError",
    "Serializer",
    "SqliteStateProvider",
    "State",
    "StateError",
    "StateProvider",
    "StatefulBasicBolt",
    "StatefulBolt",
    "StoreGoneError",
    "UnanchoredEmitError",
    "WrongProviderError",
    "state_file",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".api": ("KeyValueState", "State"),
        ".databases": ("MemoryStateProvider", "SqliteStateProvider"),
        ".bolt": ("StatefulBasicBolt", "StatefulBolt"),
        ".errors": (
            "FencedError",
            "InUseError",
            "ReshapedError",
            "StateError",
            "StoreGoneError",
            "UnanchoredEmitError",
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
