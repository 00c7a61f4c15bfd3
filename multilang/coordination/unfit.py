"""The bolts that can't be coordinated: those that keep tuples until something else than their id ends.

An id (a request, a transaction) is finished when all of its tuples are acked. A checkpoint never comes to a bolt inside
of a coordinated one, and a request or a transaction can't wait for the end of a window. An id of one's own can, with a
window that is short enough; a BatchingBolt hands over all tuples at a tick.
"""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.spec import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

# The transformations that the classes name: this package knows nothing of windows and states.
WINDOWED = "multilang.windowing.transform:windowed"
STATEFUL = "multilang.state.transform:stateful"
_KEEPS = {
    WINDOWED: "a windowed bolt keeps its tuples until their windows end",
    STATEFUL: "a stateful bolt keeps its acks until a checkpoint",
}


def check_fit(bolt: Any, where: str, unit: str, instead: str, unfit: Collection[str] = (WINDOWED, STATEFUL)) -> None:
    """Raise TopologyError for a bolt that keeps tuples for longer than an id can wait.

    Args:
        bolt: A bolt, its class, or a wrapper around it.
        where: Its name in the error.
        unit: What an id stands for, such as "request".
        instead: What to write in its place.
        unfit: The transformations of bolts that don't fit.
    """
    for name in getattr(bolt, "transformations", None) or ():
        if name in unfit:
            raise TopologyError(f"{where} ({describe(bolt)}): {_KEEPS[name]}, for which no {unit} can wait; {instead}")
