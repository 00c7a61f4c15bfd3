"""Transactional topologies: batches that are committed in order, each exactly once.

The names below are imported when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.transactional.api import (
        Coordinator,
        Emitter,
        OpaqueCoordinator,
        OpaqueEmitter,
        OpaquePartitionedTransactionalSpout,
        PartitionedCoordinator,
        PartitionedEmitter,
        PartitionedTransactionalSpout,
        TransactionalSpout,
    )
    from multilang.transactional.attempt import TransactionAttempt
    from multilang.transactional.state import TransactionalState

_HOME_OF = {
    "Coordinator": "api",
    "Emitter": "api",
    "OpaqueCoordinator": "api",
    "OpaqueEmitter": "api",
    "OpaquePartitionedTransactionalSpout": "api",
    "PartitionedCoordinator": "api",
    "PartitionedEmitter": "api",
    "PartitionedTransactionalSpout": "api",
    "TransactionAttempt": "attempt",
    "TransactionalSpout": "api",
    "TransactionalState": "state",
}

__all__ = [
    "Coordinator",
    "Emitter",
    "OpaqueCoordinator",
    "OpaqueEmitter",
    "OpaquePartitionedTransactionalSpout",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "PartitionedTransactionalSpout",
    "TransactionAttempt",
    "TransactionalSpout",
    "TransactionalState",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'multilang.transactional' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"multilang.transactional.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
