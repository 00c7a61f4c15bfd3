"""The names of streams and ways of the exchange by the block."""

from __future__ import annotations

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
BY_AUTO = "auto"
