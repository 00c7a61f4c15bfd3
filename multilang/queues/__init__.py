"""Queues as sources of plain topologies: an entry is acknowledged to its queue when its tuple tree is done.

The names below are imported at their first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.queues.kafka import KafkaSpout
    from multilang.queues.redis import RedisStreamSpout

__all__ = ["KafkaSpout", "RedisStreamSpout"]


def __getattr__(name: str) -> object:
    if name == "KafkaSpout":
        from multilang.queues.kafka import KafkaSpout

        return KafkaSpout
    if name == "RedisStreamSpout":
        from multilang.queues.redis import RedisStreamSpout

        return RedisStreamSpout
    raise AttributeError(f"module 'multilang.queues' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
