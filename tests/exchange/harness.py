"""A bolt's end of the exchange on a real connection, and a strict parent that reads what it sends."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Bolt, Spout, Stream, TopologyBuilder
from multilang.child.exchange import Exchange
from multilang.child.output import Output
from multilang.child.wire import Wire
from multilang.child.wire_collectors import WireBoltCollector
from multilang.child.work import Work
from multilang.component.context import Context
from multilang.component.timers import TaskTimers
from multilang.exchange.block import read_block
from multilang.exchange.bolt import BlockBoltCollector
from multilang.exchange.names import STREAM
from multilang.exchange.transform import by_blocks
from multilang.protocol import ChildConnection, ParentConnection
from multilang.protocol.messages import Ack, Emit, Fail, Tuple
from multilang.settings import EDGES, EXCHANGE, EXCHANGE_TUPLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilang.topology import Topology


class Source(Spout):
    output_fields = ("n",)
    output_streams = {"alone": ["n"], "direct": Stream(["n"], direct=True)}


class Part(Bolt):
    output_fields = ("n",)
    output_streams = {"keyed": ["n", "key"], "named": Stream(["n"], direct=True), "unread": ["n"]}


class Next(BasicBolt):
    pass


def topology(most: int = 1000, how: str = "block") -> Topology:
    """``part`` gets blocks of ``source``, and tuples one by one on ``direct``; ``next`` gets both from ``part``."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source)
    part = builder.set_bolt("part", Part).shuffle_grouping("source").shuffle_grouping("source", stream="alone")
    part.direct_grouping("source", stream="direct")
    following = builder.set_bolt("next", Next, parallelism=2).shuffle_grouping("part")
    following.fields_grouping("part", "key", stream="keyed").direct_grouping("part", stream="named")
    return by_blocks(builder.build("t", conf={EXCHANGE: how, EXCHANGE_TUPLES: most}))


class Driven:
    """The collector of ``part``, with what it sent as a parent read it."""

    def __init__(self, most: int = 1000, how: str = "block", careful: bool = False) -> None:
        found = topology(most, how)
        if careful:  # as where the library chooses
            found["part"].conf[EDGES]["careful"] = True
        self.tasks = found.task_ids(1)
        self.task = next(task for task, component in self.tasks.items() if component == "part")
        self.source = next(task for task, component in self.tasks.items() if component == "source")
        self.targets = [task for task, component in self.tasks.items() if component == "next"]
        conf = {**found.conf, **found["part"].conf, "multilang.parent": "local"}
        context = found.context_for(self.task, self.tasks)
        wire = self.connect(conf, context)
        inner = WireBoltCollector(wire)
        TaskTimers(inner.scope)
        self.exchange = Exchange(wire, conf, Context(context))
        self.collector: BlockBoltCollector = self.exchange.bolt(inner)
        self.got: list[Tuple] = []
        self.receive = self.collector.receiver(self.got.append, lambda: None)
        self.sent: list[Any] = []
        self.ids = iter(range(100, 10**9))

    def connect(self, conf: dict[str, Any], context: dict[str, Any]) -> Wire:
        """Return a task's wire on a connection with a strict parent."""
        self.parent = ParentConnection("bolt")
        self.parent.setup(conf, "", context)
        self.connection = ChildConnection()
        self.connection.receive_data(self.parent.data_to_send())
        self.connection.send_pid(1)
        self.null = os.open(os.devnull, os.O_RDWR)
        self.written, output = os.pipe()  # what a bolt that worked for long sent by itself
        os.set_blocking(self.written, False)
        self.output = Output(self.connection, output)
        return Wire(self.connection, self.null, self.output, Work())

    def close(self) -> None:
        for fd in (self.null, self.written, self.output.fd):
            os.close(fd)

    def give(self, stream: str, values: list[Any]) -> str:
        """Give it a tuple of ``source`` and return its id."""
        id = str(next(self.ids))
        self.parent.tuple(id, "source", stream, self.source, values)
        for event in self.connection.iter_data(self.parent.data_to_send()):
            assert isinstance(event, Tuple)
            self.receive(event)
        return id

    def give_block(self, runs: Sequence[tuple[str, list[list[Any]]]], swapped: bool = True) -> str:
        text = json.dumps(runs)
        text = "'" + text.replace('"', "'") if swapped and "'" not in text else text
        return self.give(STREAM, [sum(len(rows) for _, rows in runs), text])

    def flush(self) -> None:
        """Send what waits, and have the parent read it, which raises for all that would halt a worker."""
        self.collector.close_blocks()
        self.read()

    def read(self) -> None:
        done = False
        while not done:
            done = self.output.flush_some()
            try:
                data = os.read(self.written, 1 << 20)
            except BlockingIOError:
                continue  # it is empty
            self.sent += self.parent.receive_data(data)
            done = False

    @property
    def emits(self) -> list[Emit]:
        return [each for each in self.sent if isinstance(each, Emit)]

    @property
    def settled(self) -> list[tuple[str, bool]]:
        return [(each.id, isinstance(each, Ack)) for each in self.sent if isinstance(each, Ack | Fail)]


def tuples_of(emit: Emit) -> list[tuple[str, list[Any]]]:
    """The tuples of a message, each with its stream."""
    if emit.stream != STREAM:
        return [(emit.stream, emit.values)]
    return [(stream, values) for stream, rows in read_block(emit.values) for values in rows]


__all__ = ["EDGES", "Driven", "topology", "tuples_of"]
