"""The names of streams and settings of the exchange by the block."""

from __future__ import annotations

EXCHANGE = "multilang.exchange"
"""``auto``, ``tuple``, ``root`` or ``block``, of a topology or a component."""
TUPLES = "multilang.exchange.tuples"
"""The largest number of tuples in a block."""
EDGES = "multilang.exchange.edges"
"""The subscriptions of a component that travel in blocks, set by ``by_blocks`` in the component's own conf."""
MAX_PENDING = "topology.max.spout.pending"
"""The largest number of a spout's tuples in flight; ``by_blocks`` sets that of its messages in the component's own conf."""

STREAM = "$blocks"
"""The direct stream on which a component sends its blocks."""
FIELDS = ("tuples", "block")
"""The number of tuples, and their text."""
BLOCK_ID = "$block:"
"""The beginning of the message id of a spout's block."""

BY_TUPLE = "tuple"
BY_BLOCK = "block"
BY_ROOT = "root"
BY_AUTO = "auto"
WAYS = (BY_AUTO, BY_TUPLE, BY_ROOT, BY_BLOCK)
DEFAULT = BY_AUTO
MAX_TUPLES = 1000
