"""Maps whose values each transaction changes once, whatever is replayed, and where they are stored."""

from __future__ import annotations

from multilang.transactional.maps.backing import Backing, MemoryBacking, RedisBacking, SqliteBacking
from multilang.transactional.maps.opaque import OpaqueMap
from multilang.transactional.maps.transactional import TransactionalMap

__all__ = ["Backing", "MemoryBacking", "OpaqueMap", "RedisBacking", "SqliteBacking", "TransactionalMap"]
