"""The table of databases: the classes that keep states, transactions and maps in each.

To add a database, write these classes over its primitives, and add a row. What a conf may name, what messages advise, and
what is shipped to workers follow from the table.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Database:
    """A row of the table: dotted names of classes; "" where the database does not keep such things.

    Args:
        states: The StateProvider.
        java: Storm's own name of that provider, which a conf may have instead.
        transactions: The TransactionalState.
        maps: The Backing of a map.
    """

    __slots__ = ("java", "maps", "states", "transactions")

    def __init__(self, *, states: str = "", java: str = "", transactions: str = "", maps: str = "") -> None:
        self.states = states
        self.java = java
        self.transactions = transactions
        self.maps = maps


DATABASES: Mapping[str, Database] = {
    "memory": Database(
        states="multilang.state.memory.MemoryStateProvider",
        java="org.apache.storm.state.InMemoryKeyValueStateProvider",
        maps="multilang.transactional.maps.memory.MemoryBacking",
    ),
    "sqlite": Database(
        states="multilang.state.sqlite.SqliteStateProvider",
        transactions="multilang.transactional.stores.sqlite.SqliteTransactionalState",
        maps="multilang.transactional.maps.sqlite.SqliteBacking",
    ),
    "redis": Database(
        states="multilang.state.redis.RedisStateProvider",
        java="org.apache.storm.redis.state.RedisKeyValueStateProvider",
        maps="multilang.transactional.maps.redis.RedisBacking",
    ),
    "zookeeper": Database(transactions="multilang.transactional.stores.zookeeper.ZooKeeperTransactionalState"),
}
