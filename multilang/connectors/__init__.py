"""Connectors: sources and sinks that are there, as spouts and bolts of any topology and for streams.

Each one's module says what it guarantees. The names below are imported at their first use, and what a connector needs when
it is used.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.errors import ConnectorError
    from multilang.connectors.files import FileSink, FileSpout
    from multilang.connectors.formats import Csv, Format, JsonLines, Lines, Parquet
    from multilang.connectors.iterables import CollectingSink, FromIterable
    from multilang.connectors.kafka import KafkaSink
    from multilang.connectors.redis import RedisStreamSink
    from multilang.connectors.sql import SqlSink, SqlSpout
    from multilang.connectors.tail import TailSpout
    from multilang.connectors.timer import TimerSpout
    from multilang.connectors.webhooks import WebhookSink, WebhookSpout
    from multilang.queues.kafka import KafkaSpout
    from multilang.queues.redis import RedisStreamSpout

__all__ = [
    "CollectingSink",
    "ConnectorError",
    "Csv",
    "FileSink",
    "FileSpout",
    "Format",
    "FromIterable",
    "JsonLines",
    "KafkaSink",
    "KafkaSpout",
    "Lines",
    "Parquet",
    "RedisStreamSink",
    "RedisStreamSpout",
    "SqlSink",
    "SqlSpout",
    "TailSpout",
    "TimerSpout",
    "WebhookSink",
    "WebhookSpout",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".files": ("FileSink", "FileSpout"),
        ".formats": ("Csv", "Format", "JsonLines", "Lines", "Parquet"),
        ".iterables": ("CollectingSink", "FromIterable"),
        ".kafka": ("KafkaSink",),
        ".redis": ("RedisStreamSink",),
        ".sql": ("SqlSink", "SqlSpout"),
        ".tail": ("TailSpout",),
        ".timer": ("TimerSpout",),
        ".webhooks": ("WebhookSink", "WebhookSpout"),
        "multilang.component.errors": ("ConnectorError",),
        "multilang.queues.kafka": ("KafkaSpout",),
        "multilang.queues.redis": ("RedisStreamSpout",),
    },
)
