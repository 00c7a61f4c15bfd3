"""The names in transactional topologies, which are Storm's."""

from __future__ import annotations

from multilang.component.streams import Stream
from multilang.settings import is_printable

BATCH_STREAM = "org.apache.storm.transactional.TransactionalSpoutCoordinator/batch"
COMMIT_STREAM = "org.apache.storm.transactional.TransactionalSpoutCoordinator/commit"
STREAMS = {BATCH_STREAM: Stream(["tx", "tx-meta", "committed-txid"]), COMMIT_STREAM: Stream(["tx", "owner"])}

ID = "topology.transactional.id"
"""Conf: the name under which the topology's transactions are stored. The builder sets it."""


def is_id(value: object) -> bool:
    """Return whether a value can be a transactional id: it becomes part of paths."""
    return isinstance(value, str) and is_printable(value) and "/" not in value and value not in (".", "..")


def coordinator(spout: str) -> str:
    """Return the id of the coordinator of the spout ``spout``. The spout's own id is that of its emitters."""
    return f"{spout}/coordinator"


# Paths of the store.
CURRENT = "coordinator/currtx"
METADATA = "coordinator/meta"
INCARNATION = "coordinator/incarnation"
"""A name drawn at random when the transactions began, and the last epoch. Transactions that were removed and begin anew
under the same id have another one."""
KIND = "coordinator/kind"
"""The kind of spout that began the transactions; see ``spout.check_kind``. Storm has no such node."""
USER = "user"
WRITERS = "writers"
"""Below it, by the index of a spout's task: the epoch, and the number of the instance that may write for the task."""
RUNS = "spark"
"""Below it, by the name of a run on Spark: the number of the last batch it began, and that batch's txid."""
