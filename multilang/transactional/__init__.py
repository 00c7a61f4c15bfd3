"""Transactional topologies: batches that are committed in order, each exactly once.

The names below are imported at their first use.
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
    from multilang.transactional.builder import TransactionalTopologyBuilder
    from multilang.transactional.maps import (
        Backing,
        MemoryBacking,
        OpaqueMap,
        RedisBacking,
        SqliteBacking,
        TransactionalMap,
    )
    from multilang.transactional.marker import Committer
    from multilang.transactional.spouts.files import OpaqueTransactionalFileSpout, TransactionalFileSpout
    from multilang.transactional.spouts.kafka import OpaqueTransactionalKafkaSpout, TransactionalKafkaSpout
    from multilang.transactional.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
    from multilang.transactional.spouts.redis import OpaqueTransactionalRedisSpout, TransactionalRedisSpout
    from multilang.transactional.spouts.sqlite import OpaqueTransactionalSqliteSpout, TransactionalSqliteSpout
    from multilang.transactional.state import TransactionalState

_HOME_OF = {
    "Backing": "maps",
    "Committer": "marker",
    "Coordinator": "api",
    "Emitter": "api",
    "MemoryBacking": "maps",
    "MemoryTransactionalSpout": "spouts.memory",
    "OpaqueCoordinator": "api",
    "OpaqueEmitter": "api",
    "OpaqueMap": "maps",
    "OpaqueMemoryTransactionalSpout": "spouts.memory",
    "OpaquePartitionedTransactionalSpout": "api",
    "OpaqueTransactionalFileSpout": "spouts.files",
    "OpaqueTransactionalKafkaSpout": "spouts.kafka",
    "OpaqueTransactionalRedisSpout": "spouts.redis",
    "OpaqueTransactionalSqliteSpout": "spouts.sqlite",
    "PartitionedCoordinator": "api",
    "PartitionedEmitter": "api",
    "PartitionedTransactionalSpout": "api",
    "RedisBacking": "maps",
    "SqliteBacking": "maps",
    "TransactionAttempt": "attempt",
    "TransactionalFileSpout": "spouts.files",
    "TransactionalKafkaSpout": "spouts.kafka",
    "TransactionalMap": "maps",
    "TransactionalRedisSpout": "spouts.redis",
    "TransactionalSpout": "api",
    "TransactionalSqliteSpout": "spouts.sqlite",
    "TransactionalState": "state",
    "TransactionalTopologyBuilder": "builder",
}

__all__ = [
    "Backing",
    "Committer",
    "Coordinator",
    "Emitter",
    "MemoryBacking",
    "MemoryTransactionalSpout",
    "OpaqueCoordinator",
    "OpaqueEmitter",
    "OpaqueMap",
    "OpaqueMemoryTransactionalSpout",
    "OpaquePartitionedTransactionalSpout",
    "OpaqueTransactionalFileSpout",
    "OpaqueTransactionalKafkaSpout",
    "OpaqueTransactionalRedisSpout",
    "OpaqueTransactionalSqliteSpout",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "PartitionedTransactionalSpout",
    "RedisBacking",
    "SqliteBacking",
    "TransactionAttempt",
    "TransactionalFileSpout",
    "TransactionalKafkaSpout",
    "TransactionalMap",
    "TransactionalRedisSpout",
    "TransactionalSpout",
    "TransactionalSqliteSpout",
    "TransactionalState",
    "TransactionalTopologyBuilder",
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
