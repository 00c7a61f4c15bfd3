"""The transaction number of a run, kept in the topology's own store as Storm and the embedded cluster keep it.

So a transaction that was committed on Spark is followed by the next one elsewhere, and back. A run's number is stored
before it begins, so that a batch that is repeated after a crash is the same transaction again. A map that has this
transaction already is not updated twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.errors import SparkJobError
from multilang.runtime.plan import storm_id
from multilang.store.errors import StateError
from multilang.transactional.attempt import TransactionAttempt
from multilang.transactional.names import CURRENT, METADATA, RUNS
from multilang.transactional.parts import coordinator_in
from multilang.transactional.runs import check_runs
from multilang.transactional.stores import open_state
from spark_bridge.job.errors import check_next, check_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.topology.model import Topology

JOB = "job"


class Transactions:
    """The transactions of ``topology``, claimed until ``close``.

    Raises InUseError while another run has them, and StateError for a store that can't be used. Every write raises
    FencedError when another run has taken them over.
    """

    def __init__(self, topology: Topology) -> None:
        spec = coordinator_in(topology)
        if spec is None:
            raise ConfigError(f"topology {topology.name!r} is not transactional")
        own = {"multilang.parent": "spark", "storm.id": storm_id(topology.name), "topology.name": topology.name}
        self._state = open_state({**topology.conf, **spec.conf, **own})
        try:
            self._last_attempt = TransactionAttempt.first_of(self._state.claim())
            self._owner = self._state.owner_name()
        except BaseException:
            self._state.close()
            raise

    @property
    def current(self) -> int:
        """The transaction that is to be committed next."""
        return self._state.get_data(CURRENT) or 1

    def begin(self, run: str = JOB, batch: int = 0, rows: Mapping[str, Any] | str | None = None) -> int | None:
        """Return the txid of a batch of this run, the same one if the batch was begun before.

        None: it is committed already.

        ``rows``: what identifies the rows of a job, or of a query's batch if that is known.

        Raises SparkJobError when this is neither the run's last batch nor the one after it, and when the batch, or a job that
        broke off, had other rows; StateError when the next txid belongs to something that was begun elsewhere.
        """
        current = self.current
        path = f"{RUNS}/{run}"
        last, txid, *before = self._state.get_data(path) or (None, 0)
        where = f"the store of the transactions of {self._state.id!r}"
        if run != JOB and last == batch:
            check_rows(batch, rows, before[0] if before else None, where)
            if txid < current:
                return None
        if last == batch and txid == current:
            if run == JOB and before and rows != before[0]:
                raise SparkJobError(
                    f"transaction {current} of {self._state.id!r} was begun by a job that broke off, and that had other rows "
                    f"({_counted(before[0])}; now {_counted(rows or {})}), some of which may be in the maps already. Under the same number, "
                    "these would be left out there: run that job again with its rows first"
                )
            self._state.set_data(path, [batch, current, *([rows] if rows else [])])
            return current
        if run != JOB:
            check_next(batch, last, where)
        check_runs(self._state, current, run)
        begun = self._state.list(METADATA)
        if str(current) in begun:
            raise StateError(
                f"transaction {current} of {self._state.id!r} was begun by the topology's own spout and is not committed yet, "
                "so that its number can't be given to other rows: run the topology where it ran until it is committed"
            )
        self._state.set_data(path, [batch, current, *([rows] if rows else [])])
        return current

    def free_rows(self) -> None:
        """Let the next job have other rows: this one is given up, and has updated no map."""
        path = f"{RUNS}/{JOB}"
        batch, txid, *_ = self._state.get_data(path) or (0, 0)
        if txid == self.current:
            self._state.set_data(path, [batch, txid])

    def attempt(self) -> TransactionAttempt:
        """Return one more attempt at the transaction that was begun, with a number that no earlier attempt had."""
        self._last_attempt += 1
        return TransactionAttempt(self.current, self._last_attempt, self._owner)

    def commit(self) -> None:
        """Store that the transaction is committed."""
        self._state.set_data(CURRENT, self.current + 1)

    def close(self) -> None:
        """Release the transactions, so that another run may claim them."""
        self._state.close()


def _counted(rows: Any) -> str:
    return ", ".join(f"{count:,} of {source}" for source, (count, _) in sorted(rows.items())) or "unknown"
