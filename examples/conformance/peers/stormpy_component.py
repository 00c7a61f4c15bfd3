"""The conformance component on Storm's own storm.py: `python stormpy_component.py bolt`, with storm.py on the path."""

import sys

import storm
from steps import BoltSteps, SpoutSteps


class Common:
    def do_log(self, text, level=2):
        storm.log(text, level)

    def do_error(self, text):
        storm.reportError(text)

    def do_metric(self, name, params):
        storm.rpcMetrics(name, params)

    def send(self, values, options, **more):
        if "stream" in options:
            more["stream"] = options["stream"]
        if "task" in options:
            storm.emitDirect(options["task"], values, **more)
            return
        ids = storm.emit(values, **more)
        if options.get("ids"):
            self.do_emit([["ids", ids]])


class Bolt(Common, BoltSteps, storm.Bolt):
    knows = [*BoltSteps.knows, "error"]

    def do_ack(self, name="this"):
        self.finish(storm.ack, name)

    def do_fail(self, name="this"):
        self.finish(storm.fail, name)


class Spout(Common, SpoutSteps, storm.Spout):
    knows = [*SpoutSteps.knows, "error"]

    def nextTuple(self):  # noqa: N802 - storm.py's spelling
        self.obey_next()


if __name__ == "__main__":
    {"bolt": Bolt, "spout": Spout}[sys.argv[1]]().run()
