"""What can't be coordinated: bolts that keep tuples until something else than their id ends.

An id (a request, a transaction) is finished when all of its tuples are acked. A checkpoint or the end of a window comes
when it comes, and ids whose tuples wait for it would time out. A BatchingBolt is fit: it hands over all tuples at a tick.
"""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.spec import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# By the transformations that the classes name: this package knows nothing of windows and states.
_KEEPS = {
    "multilang.windowing.transform:windowed": "a windowed bolt keeps its tuples until their windows end",
    "multilang.state.transform:stateful": "a stateful bolt keeps its acks until a checkpoint",
}


def check_fit(bolt: Any, where: str, unit: str, instead: str) -> None:
    """Raise TopologyError for a bolt that keeps tuples for longer than an id can wait.

    Args:
        bolt: A bolt, its class, or a wrapper around it.
        where: Its name in the error.
        unit: What an id stands for, such as "request".
        instead: What to write in its place.
    """
    for name in getattr(bolt, "transformations", None) or ():
        if name in _KEEPS:
            raise TopologyError(f"{where} ({describe(bolt)}): {_KEEPS[name]}, for which no {unit} can wait; {instead}")
