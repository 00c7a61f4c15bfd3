"""The source of a URL."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spark_bridge.sources.source import PartitionSource


def open_source(where: str) -> PartitionSource:
    """Return the source of a URL.

    Args:
        where: ``served://HOST:PORT``, or the folder that ``publish`` wrote (``file:///...``, ``s3://...``).
    """
    if where.startswith("served://"):
        from spark_bridge.sources.served import ServedSource

        return ServedSource(where)
    from spark_bridge.sources.published import PublishedSource

    return PublishedSource(where)
