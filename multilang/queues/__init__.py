"""Queues as sources of plain topologies: an entry is acknowledged to its queue when its tuple tree is done.

The names below are imported at their first use.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.queues.kafka import KafkaSpout
    from multilang.queues.redis import RedisStreamSpout

__all__ = ["KafkaSpout", "RedisStreamSpout"]

__getattr__, __dir__ = lazily(__name__, {".kafka": ("KafkaSpout",), ".redis": ("RedisStreamSpout",)})
