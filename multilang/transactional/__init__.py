"""Transactional topologies: batches that are committed in order, each exactly once.

The names below are imported at their first use.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.transactional.api import (
        Committer,
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
    from multilang.transactional.spouts.files import OpaqueTransactionalFileSpout, TransactionalFileSpout
    from multilang.transactional.spouts.kafka import OpaqueTransactionalKafkaSpout, TransactionalKafkaSpout
    from multilang.transactional.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
    from multilang.transactional.spouts.redis import OpaqueTransactionalRedisSpout, TransactionalRedisSpout
    from multilang.transactional.spouts.sqlite import OpaqueTransactionalSqliteSpout, TransactionalSqliteSpout
    from multilang.transactional.state import TransactionalState

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

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".api": (
            "Committer",
            "Coordinator",
            "Emitter",
            "OpaqueCoordinator",
            "OpaqueEmitter",
            "OpaquePartitionedTransactionalSpout",
            "PartitionedCoordinator",
            "PartitionedEmitter",
            "PartitionedTransactionalSpout",
            "TransactionalSpout",
        ),
        ".attempt": ("TransactionAttempt",),
        ".builder": ("TransactionalTopologyBuilder",),
        ".maps": ("Backing", "MemoryBacking", "OpaqueMap", "RedisBacking", "SqliteBacking", "TransactionalMap"),
        ".spouts.files": ("OpaqueTransactionalFileSpout", "TransactionalFileSpout"),
        ".spouts.kafka": ("OpaqueTransactionalKafkaSpout", "TransactionalKafkaSpout"),
        ".spouts.memory": ("MemoryTransactionalSpout", "OpaqueMemoryTransactionalSpout"),
        ".spouts.redis": ("OpaqueTransactionalRedisSpout", "TransactionalRedisSpout"),
        ".spouts.sqlite": ("OpaqueTransactionalSqliteSpout", "TransactionalSqliteSpout"),
        ".state": ("TransactionalState",),
    },
)
