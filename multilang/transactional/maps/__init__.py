"""Maps whose values each transaction changes once, whatever is replayed, and the backings that store them."""

from __future__ import annotations

from multilang.transactional.maps.backing import Backing
from multilang.transactional.maps.memory import MemoryBacking
from multilang.transactional.maps.opaque import OpaqueMap
from multilang.transactional.maps.redis import RedisBacking
from multilang.transactional.maps.sqlite import SqliteBacking
from multilang.transactional.maps.transactional import TransactionalMap

__all__ = ["Backing", "MemoryBacking", "OpaqueMap", "RedisBacking", "SqliteBacking", "TransactionalMap"]
