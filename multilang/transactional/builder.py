"""The builder of transactional topologies (Storm's TransactionalTopologyBuilder)."""

from __future__ import annotations

import sys

from multilang.component.bolt import BasicBolt
from multilang.coordination import ALL, COORD_STREAM, BatchBolt
from multilang.coordination.delegate import delegate_of
from multilang.coordination.expiry import TICK_SECS, TICKS
from multilang.coordination.unfit import check_fit
from multilang.topology import TopologyBuilder, TopologyError
from multilang.topology.builder import BoltDeclarer
from multilang.topology.model import Topology
from multilang.transactional.api import AnySpout, Committer
from multilang.transactional.bolts import EmitterBolt, TransactionalBolt, TransactionalSpoutBatchExecutor
from multilang.transactional.executors import is_committer
from multilang.transactional.names import BATCH_STREAM, COMMIT_STREAM, ID, coordinator, is_id
from multilang.transactional.spout import OPAQUE, TransactionalSpoutCoordinator, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from multilang.topology.model import ComponentSpec

    UserBolt: TypeAlias = type[BasicBolt | BatchBolt] | BasicBolt | BatchBolt

_INSTEAD = "write a BatchBolt that updates a TransactionalMap"


class TransactionalTopologyBuilder:
    """A builder of topologies whose batches are committed in order.

    >>> builder = TransactionalTopologyBuilder("global-count", "spout", Words, parallelism=3)
    >>> builder.set_bolt("partial-count", BatchCount, parallelism=5).shuffle_grouping("spout")
    >>> builder.set_committer_bolt("sum", UpdateGlobalCount).global_grouping("partial-count")
    >>> topology = builder.build()

    The first field of every stream is the TransactionAttempt. All methods raise TopologyError, whose message has the fix.

    Args:
        id: The name under which the state of the transactions is stored. Only one running topology may use it.
        spout_id: The id that bolts subscribe to. The spout's coordinator is added as ``<spout_id>/coordinator``.
        spout: A transactional spout, or its class.
        parallelism: The number of the spout's executors.
        tasks: The number of the spout's tasks; None: as many as executors.
        conf: The spout's own conf.
    """

    def __init__(
        self,
        id: str,
        spout_id: str,
        spout: AnySpout | type[AnySpout],
        parallelism: int = 1,
        tasks: int | None = None,
        conf: dict[str, Any] | None = None,
    ) -> None:
        given: object = id
        if not is_id(given):
            raise TopologyError(
                f"a transactional topology's id is printable text without '/', such as 'global-count', not {id!r}"
            )
        self.id = id
        self.spout_id = spout_id
        self._spout = made = _made(spout_id, spout)
        self._bolts: dict[str, tuple[Any, Any]] = {}  # the bolt inside the coordination, and its class
        self._builder = TopologyBuilder()
        own = {**made.component_conf, **(conf or {}), ID: id}
        self._builder.set_spout(coordinator(spout_id), TransactionalSpoutCoordinator(made), tasks=1, conf=own)
        emitter = EmitterBolt(TransactionalSpoutBatchExecutor(made), ticks=False)
        self._emitter = self._builder.set_bolt(spout_id, emitter, parallelism, tasks, {**(conf or {}), ID: id})
        self._emitter.all_grouping(coordinator(spout_id), stream=BATCH_STREAM)
        if is_committer(made):
            self._emitter.all_grouping(coordinator(spout_id), stream=COMMIT_STREAM)

    def set_bolt(
        self,
        id: str,
        bolt: UserBolt,
        parallelism: int = 1,
        tasks: int | None = None,
        conf: dict[str, Any] | None = None,
    ) -> BoltDeclarer:
        """Add a BasicBolt or a BatchBolt. A BatchBolt that is marked Committer commits.

        Args:
            id: The bolt's id.
            bolt: The bolt, or its class.
            parallelism: The number of executors.
            tasks: The number of tasks; None: as many as executors.
            conf: The bolt's own conf.

        Returns:
            The declarer, for the bolt's groupings.
        """
        kind = bolt if isinstance(bolt, type) else type(bolt)
        check_fit(bolt, f"bolt {id!r}", "transaction", _INSTEAD)
        if not issubclass(kind, BasicBolt | BatchBolt):
            raise TopologyError(
                f"bolt {id!r}: a bolt of a transactional topology is a BasicBolt or a BatchBolt, whose tuples are acked for "
                f"it, not {bolt!r}"
            )
        if issubclass(kind, Committer) and not issubclass(kind, BatchBolt):
            raise TopologyError(f"bolt {id!r}: a committer is a BatchBolt, which commits in finish_batch, not {bolt!r}")
        return self._add(id, bolt, issubclass(kind, Committer), parallelism, tasks, conf)

    def set_committer_bolt(
        self,
        id: str,
        bolt: type[BatchBolt] | BatchBolt,
        parallelism: int = 1,
        tasks: int | None = None,
        conf: dict[str, Any] | None = None,
    ) -> BoltDeclarer:
        """Add a BatchBolt whose ``finish_batch`` is part of the commit phase.

        Args:
            id: The bolt's id.
            bolt: The bolt, or its class.
            parallelism: The number of executors.
            tasks: The number of tasks; None: as many as executors.
            conf: The bolt's own conf.

        Returns:
            The declarer, for the bolt's groupings.
        """
        check_fit(bolt, f"bolt {id!r}", "transaction", _INSTEAD)
        if not issubclass(bolt if isinstance(bolt, type) else type(bolt), BatchBolt):
            raise TopologyError(f"bolt {id!r}: a committer is a BatchBolt, which commits in finish_batch, not {bolt!r}")
        return self._add(id, bolt, True, parallelism, tasks, conf)

    def build(self, name: str | None = None, conf: dict[str, Any] | None = None) -> Topology:
        """Return the topology, checked as a whole.

        Args:
            name: The topology's name; None: the transactional id.
            conf: The topology's conf.
        """
        specs = self._builder.specs
        whole = TopologyBuilder()
        whole.specs = {id: spec.copy() for id, spec in specs.items()}
        bolts = {id: spec for id, spec in whole.specs.items() if isinstance(spec.component, TransactionalBolt)}
        for id, spec in bolts.items():
            self._coordinate(id, spec, whole.specs)
        late = {id for id in bolts if any(_commits(specs.get(each)) for each in (id, *_upstream(id, specs)))}
        for id in late:
            bolt: Any = bolts[id].component
            bolt.early = frozenset(bolt.sources) - late
        for spec in whole.specs.values():
            if spec.kind == "bolt" and TICKS not in (conf or {}):
                spec.conf.setdefault(TICKS, TICK_SECS)
            spec.conf[ID] = self.id
        topology = whole.build(self.id if name is None else name, conf)
        topology.module = sys._getframe(1).f_globals.get("__name__")
        topology.declared = self._declared(topology)
        return topology

    def _declared(self, topology: Topology) -> Topology:
        """Return the topology without coordination, for an engine that knows by itself when a batch is complete.

        Its spout is the transactional spout. Its bolts are those inside the coordination: a BasicBolt, or a
        BatchBoltExecutor whose ``finished_id`` is to be called when all of a batch has come. The first value of every
        tuple is the attempt.
        """
        specs = {}
        for id, spec in self._builder.specs.items():
            if id == coordinator(self.spout_id):
                continue
            twin = topology.components[id].copy()
            twin.inputs = list(spec.inputs)
            twin.component, twin.factory = self._bolts.get(id, (self._spout, None))
            if id == self.spout_id:
                twin.kind, twin.inputs = "spout", []
            twin.streams = twin.component.declared_streams()
            specs[id] = twin
        return Topology(topology.name, topology.conf, specs, module=topology.module)

    def _add(
        self, id: str, bolt: Any, commits: bool, parallelism: int, tasks: int | None, conf: dict[str, Any] | None
    ) -> BoltDeclarer:
        delegate, factory = self._bolts[id] = delegate_of(bolt, f"bolt {id!r}")
        id_stream = (coordinator(self.spout_id), COMMIT_STREAM) if commits else None
        made = TransactionalBolt(delegate, {}, id_stream, factory, ticks=False)
        return self._builder.set_bolt(id, made, parallelism, tasks, conf)

    def _coordinate(self, id: str, spec: ComponentSpec, specs: dict[str, ComponentSpec]) -> None:
        bolt: Any = spec.component
        sources = dict.fromkeys((input_.component for input_ in spec.inputs), ALL)
        if not sources:
            raise TopologyError(
                f"bolt {id!r} subscribes to nothing, so that no transaction comes to it; give it a grouping"
            )
        if coordinator(self.spout_id) in sources:
            raise TopologyError(
                f"bolt {id!r} subscribes to the coordinator, whose tuples are for the spout; subscribe to {self.spout_id!r}"
            )
        bolt.sources = sources
        bolt.opaque = kind_of(self._spout) == OPAQUE
        declarer = BoltDeclarer(spec)
        for source in sources:
            if source in specs:  # otherwise build() reports the unknown source
                declarer.direct_grouping(source, stream=COORD_STREAM)
        if bolt.id_stream is not None:
            declarer.all_grouping(coordinator(self.spout_id), stream=COMMIT_STREAM)


def _made(id: str, spout: AnySpout | type[AnySpout]) -> AnySpout:
    if not issubclass(spout if isinstance(spout, type) else type(spout), AnySpout):
        raise TopologyError(
            f"spout {id!r}: give a TransactionalSpout, PartitionedTransactionalSpout or OpaquePartitionedTransactionalSpout, "
            f"not {spout!r}"
        )
    try:
        return spout() if isinstance(spout, type) else spout
    except TypeError as problem:
        raise TopologyError(f"spout {id!r}: {spout.__name__}() failed: {problem}; give an instance") from problem  # type: ignore[union-attr]


def _commits(spec: ComponentSpec | None) -> bool:
    return spec is not None and getattr(spec.component, "id_stream", None) is not None


def _upstream(id: str, specs: dict[str, ComponentSpec]) -> set[str]:
    """Return all components before this one, directly or not. Raise TopologyError if the bolt is among them."""
    found: set[str] = set()
    left = [id]
    while left:
        spec = specs.get(left.pop())
        for input_ in spec.inputs if spec is not None else ():
            if input_.component == id:
                raise TopologyError(
                    f"bolt {id!r} gets tuples that came of its own, and would wait for itself at the end of each transaction: "
                    "a transactional topology can't have a cycle"
                )
            if input_.component not in found:
                found.add(input_.component)
                left.append(input_.component)
    return found
