"""The common part of the components on pystorm and on streamparse, which has pystorm's classes."""

from steps import BoltSteps, SpoutSteps

LEVELS = ["trace", "debug", "info", "warn", "error"]


class Common:
    def do_log(self, text, level=2):
        self.log(text, LEVELS[level])

    def do_metric(self, name, params):
        self.report_metric(name, params)

    def send(self, values, options, **more):
        if "ids" in options:
            more["need_task_ids"] = True
        ids = self.emit(values, stream=options.get("stream"), direct_task=options.get("task"), **more)
        if "ids" in options:
            self.do_emit([["ids", ids]])


def components(library):
    class Bolt(Common, BoltSteps, library.Bolt):
        auto_anchor = auto_ack = auto_fail = False

        def process_tick(self, tup):
            self.ack(tup)

        def do_ack(self, name="this"):
            self.finish(self.ack, name)

        def do_fail(self, name="this"):
            self.finish(self.fail, name)

    class Spout(Common, SpoutSteps, library.Spout):
        id_word = "tup_id"

        def next_tuple(self):
            self.obey_next()

    return {"bolt": Bolt, "spout": Spout}
