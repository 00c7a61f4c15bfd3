"""Maps whose values each transaction changes once, whatever is replayed, and where they are stored.

The names below are imported at their first use.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.transactional.maps.backing import Backing, MemoryBacking, SqliteBacking
    from multilang.transactional.maps.redis import RedisBacking
    from multilang.transactional.maps.updated import OpaqueMap, TransactionalMap

__all__ = ["Backing", "MemoryBacking", "OpaqueMap", "RedisBacking", "SqliteBacking", "TransactionalMap"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".backing": ("Backing", "MemoryBacking", "SqliteBacking"),
        ".redis": ("RedisBacking",),
        ".updated": ("OpaqueMap", "TransactionalMap"),
    },
)
