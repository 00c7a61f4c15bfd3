"""All that a run of a topology on Spark is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_bridge.job.states import NoStates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pyspark.sql import SparkSession

    from multilang.topology.model import Topology
    from spark_bridge.job.states import States
    from spark_bridge.job.transactions import Transactions
    from spark_bridge.job.watch import JobProgress


@dataclass(frozen=True)
class RunSpec:
    """One call of run_topology, or one batch of a streaming query, as it is asked for.

    Attributes:
        topology: The topology.
        sources: The rows of spouts, by component id or (id, stream).
        spark: The session.
        conf: Configuration that overrides the topology's.
        outputs: The streams to keep, by component id or (id, stream); None: those that nobody subscribes to.
        max_replays: How often a row is replayed at most.
        limits: Spout id -> how many tuples a spout without a source may emit at most.
        batch: How many tuples each task of a spout without a source emits for one round.
        seed: The seed of all random choices.
        progress: Called several times a second with the progress, in the caller's thread.
        states: The states with which stateful bolts begin.
        known: The knowledge of bolts from an earlier run, by task; with it, ``known_now`` returns what they know at the
            end.
        ends: Whether no other input follows, so that all windows end.
        label: The name of its jobs in Spark's UI; by default the topology's.
        transactions: Those of a transactional topology; the rows are the transaction that was begun.
    """

    topology: Topology
    sources: Mapping[Any, Any]
    spark: SparkSession
    conf: Mapping[str, Any] = field(default_factory=dict)
    outputs: Iterable[str | tuple[str, str]] | None = None
    max_replays: int = 3
    limits: Mapping[str, int] = field(default_factory=dict)
    batch: int = 1
    seed: int = 0
    progress: Callable[[JobProgress], None] | None = None
    states: States | NoStates = field(default_factory=NoStates)
    known: Mapping[int, bytes] | None = None
    ends: bool = False
    transactions: Transactions | None = None
    label: str = ""
