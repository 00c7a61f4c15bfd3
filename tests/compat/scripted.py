"""Components that do what their tuples say, for pystorm or for whatever has its names: ``python scripted.py Worker``."""

import sys
from collections import namedtuple
from decimal import Decimal

from pystorm import BatchingBolt, Bolt, ReliableSpout, Spout

Point = namedtuple("Point", "x y")  # noqa: PYI024
ODD = [b"bytes \xc3\xa9", Decimal("2.50"), {1: "one", None: 2, False: 3.5}, Point(1, (2, 3)), "\u2028", 1e300, -(2**53)]


def act(component, action, tup):
    what, *rest = action
    if what == "emit":
        values, stream, anchors, ids = rest
        given = {"none": [], "self": [tup], "id": [tup.id]} if tup is not None else {}
        options = {} if anchors is None else {"anchors": given[anchors]}
        found = component.emit(values, stream=stream, need_task_ids=ids, **options)
        component.log(f"§ids {found}")
    elif what == "direct":
        component.emit(rest[0], stream="direct", direct_task=7)
    elif what == "odd":
        component.emit([ODD[rest[0]]])
    elif what == "values":
        component.emit([[type(tup.values).__name__, list(tup.values._fields), list(tup[:4])[1:]]])
    elif what == "about":
        component.emit([[component.topology_name, component.task_id, component.component_name, component.debug]])
    elif what == "log":
        component.log("§" + rest[0], rest[1])
    elif what == "logger":
        getattr(component.logger, rest[1])("§%s", rest[0])
    elif what == "metric":
        component.report_metric(rest[0], rest[1])
    elif what in ("ack", "fail"):
        getattr(component, what)(tup if rest[0] else tup.id)
    elif what == "raise":
        raise {"KeyError": KeyError, "ValueError": ValueError}[rest[0]](rest[1])


def set_up(component, conf):
    for name, value in conf["flags"].items():
        setattr(component, name, value)


class Worker(Bolt):
    def initialize(self, conf, context):
        set_up(self, conf)

    def process(self, tup):
        for action in tup.values[0]:
            act(self, action, tup)

    def process_tick(self, tup):
        self.emit(["tick"])


class Batch(BatchingBolt):
    def initialize(self, conf, context):
        set_up(self, conf)

    def group_key(self, tup):
        return tup.values[1]

    def process_batch(self, key, tups):
        for tup in tups:
            for action in tup.values[0]:
                if action[0] in ("emit", "log", "logger", "metric", "raise"):
                    act(self, ["emit", action[1], None, None, False] if action[0] == "emit" else action, tup)
        self.emit([[key, len(tups)]])


class Sayings:
    def initialize(self, conf, context):
        set_up(self, conf)
        self.script = conf["script"]

    def next_tuple(self):
        if self.script:
            for action in self.script.pop(0):
                if action[0] == "emit":
                    found = self.emit(action[1], tup_id=action[2], need_task_ids=action[3])
                    self.log(f"§ids {found}")
                else:
                    act(self, action, None)


class Plain(Sayings, Spout):
    def ack(self, tup_id):
        self.log(f"§acked {tup_id}")

    def fail(self, tup_id):
        self.log(f"§failed {tup_id}")


class Reliable(Sayings, ReliableSpout):
    def ack(self, tup_id):
        super().ack(tup_id)
        self.log(f"§left {sorted(self.unacked_tuples)}")

    def fail(self, tup_id):
        super().fail(tup_id)
        self.log(f"§failed {sorted(self.failed_tuples.items())}")


if __name__ == "__main__":
    {"Worker": Worker, "Batch": Batch, "Plain": Plain, "Reliable": Reliable}[sys.argv[1]]().run()
