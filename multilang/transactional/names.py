"""What transactional topologies call things, as Storm's do."""

from __future__ import annotations

from multilang.component.streams import Stream

BATCH_STREAM = "org.apache.storm.transactional.TransactionalSpoutCoordinator/batch"
COMMIT_STREAM = "org.apache.storm.transactional.TransactionalSpoutCoordinator/commit"
STREAMS = {BATCH_STREAM: Stream(["tx", "tx-meta", "committed-txid"]), COMMIT_STREAM: Stream(["tx"])}

ID = "topology.transactional.id"
"""Conf: under which name the topology's state is stored; the builder sets it."""

STORE = "multilang.transactional.store"
"""Conf: where that state is: sqlite, zookeeper, or a subclass of TransactionalState by its dotted name."""


TRACE = "multilang.transactional.trace"
"""Conf: a function by its dotted name that is told each step; see ``multilang.transactional.steps``."""


def coordinator(spout: str) -> str:
    """The id of the coordinator of the spout ``spout``, whose own id is that of its emitters."""
    return f"{spout}/coordinator"


# Paths of the store.
CURRENT = "coordinator/currtx"
METADATA = "coordinator/meta"
EPOCH = "coordinator/starts"
"""Raised by each claim, and what attempts are counted from; Storm's has no such node."""
USER = "user"
WRITERS = "writers"
"""Below it, by the index of a spout's task, the epoch and the number of the instance that may write for it."""
RUNS = "spark"
"""Below it, by name, what runs on Spark have begun: the number of the batch, and its txid."""
