"""The check that a transaction which a run on Spark began is committed by that run alone.

Runs on Spark share their transactions with the same topology on other engines.
"""

from __future__ import annotations

from multilang.store.errors import StateError
from multilang.transactional.names import RUNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.transactional.state import TransactionalState


def check_runs(state: TransactionalState, current: int, mine: str | None = None) -> None:
    """Raise StateError if a run on Spark other than ``mine`` began transaction ``current``.

    Some of its results may be in the maps already.
    """
    for run in state.list(RUNS):
        if run != mine and (state.get_data(f"{RUNS}/{run}") or (0, 0))[1] >= current:
            raise StateError(
                f"transaction {current} of {state.id!r} was begun on Spark ({run}) and is not committed yet, so that its "
                "number can't be given to other rows: run that again, the query with its checkpoint, the job with its rows"
            )
