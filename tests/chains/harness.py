"""A chain's end of the wire on a real connection, with a strict parent that reads what it sends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Spout, TopologyBuilder
from multilang.blocks.names import EDGES, EXCHANGE, TUPLES
from multilang.blocks.transform import by_blocks
from multilang.chains.child import Chaining
from multilang.chains.transform import by_chains
from multilang.child.exchange import Exchange
from multilang.child.wire_collectors import WireBoltCollector
from multilang.component.context import Context
from multilang.component.runner import start_bolt
from multilang.component.timers import TaskTimers
from tests.exchange.harness import Driven

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilang import Bolt

FIELDS = ("value",)


class Source(Spout):
    output_fields = FIELDS
    output_streams = {"alone": list(FIELDS)}


class Sink(BasicBolt):
    pass


class DrivenChain(Driven):
    """The collector of a chain of bolts.

    Args:
        bolts: The members, sources before subscribers, as instances.
        sources: The members that each subscribes to, by their places; of the first, none.
        how: ``multilang.exchange``.
        most: ``multilang.exchange.tuples``.
    """

    def __init__(self, bolts: Sequence[Bolt], sources: Sequence[Sequence[int]], how: str, most: int = 1000) -> None:
        members = {f"m{place}": bolt for place, bolt in enumerate(bolts)}
        builder = TopologyBuilder()
        builder.set_spout("source", Source)
        sink = builder.set_bolt("sink", Sink, conf={"multilang.chaining": "off"})
        for place, (id, bolt) in enumerate(members.items()):
            declarer = builder.set_bolt(id, type(bolt))
            for each in sources[place]:
                declarer.local_or_shuffle_grouping(f"m{each}")
            if not place:
                declarer.shuffle_grouping("source").shuffle_grouping("source", stream="alone")
            sink.shuffle_grouping(id)
        conf = {EXCHANGE: how, TUPLES: most, "multilang.chaining": "local"}
        found = by_blocks(by_chains(builder.build("t", conf=conf)))
        tasks = found.task_ids(1)
        self.source = next(task for task, component in tasks.items() if component == "source")
        task, chain = next((task, component) for task, component in tasks.items() if component.startswith("m0+"))
        conf = {**found.conf, **found[chain].conf, "multilang.parent": "local"}
        context = found.context_for(task, tasks)
        self.wire = wire = self.connect(conf, context)
        collector: Any = WireBoltCollector(wire)
        wire.timers = TaskTimers(collector.scope)
        known = Context(context)
        exchange = None
        if EDGES in conf:
            exchange = Exchange(wire, conf, known)
            conf, known = exchange.conf, exchange.context
            collector = exchange.bolt(collector)
        chaining = Chaining(wire, conf, known)
        component = chaining.component(lambda context: members[context.component])
        chaining.start(component, collector)
        if exchange is not None:
            collector.name_sources(chaining.view.source)
        execute = chaining.receiver(start_bolt(component, collector, chaining.conf, chaining.context))  # type: ignore[arg-type]
        self.receive = execute if exchange is None else collector.receiver(execute, lambda: None)
        self.running: Any = component.running  # type: ignore[attr-defined]
        self.sent: list[Any] = []
        self.ids = iter(range(100, 10**9))

    def close(self) -> None:
        super().close()
        os.close(self.running._wakes)
        os.close(self.running._waker)

    def flush(self) -> None:
        self.wire.blocks.close_blocks()
        self.read()
