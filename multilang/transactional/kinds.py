"""The check that transactions go on with a spout of the kind that began them.

A spout with partitions keeps what it has read by partition, and any other one in the metadata of its transactions. So a
spout of the one kind finds nothing of what the other has read: it would begin at the beginning, and nothing would tell.
"""

from __future__ import annotations

from multilang.store.errors import UnusableStateError
from multilang.transactional.api import OpaquePartitionedTransactionalSpout, PartitionedTransactionalSpout
from multilang.transactional.names import KIND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.transactional.api import AnySpout
    from multilang.transactional.state import TransactionalState

WHOLE = "TransactionalSpout"
PARTITIONED = "PartitionedTransactionalSpout"
OPAQUE = "OpaquePartitionedTransactionalSpout"


def kind_of(spout: AnySpout) -> str:
    """Return the kind of a spout, as it is stored."""
    if isinstance(spout, PartitionedTransactionalSpout):
        return PARTITIONED
    return OPAQUE if isinstance(spout, OpaquePartitionedTransactionalSpout) else WHOLE


def check_kind(state: TransactionalState, spout: AnySpout) -> str | None:
    """Check that a spout may go on with stored transactions.

    Args:
        state: The transactions.
        spout: The topology's spout.

    Returns:
        The kind of the spout that had them; None: none had.

    Raises:
        UnusableStateError: That spout had partitions and this one has none, or the reverse.
    """
    before: str | None = state.get_data(KIND)
    now = kind_of(spout)
    if before is not None and (before == WHOLE) != (now == WHOLE):
        raise UnusableStateError(
            f"{state.describe()}: these transactions were begun by a {before}, and {type(spout).__name__} is a {now}, which does not find "
            "what the other has read: it would begin at the beginning, and all would be counted again. Give the topology the kind of "
            "spout that it had; or begin anew: give TransactionalTopologyBuilder another id, and its maps other names"
        )
    return before
