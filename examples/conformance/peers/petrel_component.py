"""The conformance component on petrel: `python petrel_component.py bolt`."""

import sys

from petrel import storm
from steps import BoltSteps, SpoutSteps


class Common:
    def do_log(self, text, level=2):
        storm.log(text)

    def do_error(self, text):
        storm.reportError(text)

    def send(self, values, options, **more):
        if "stream" in options:
            more["stream"] = options["stream"]
        if "task" in options:
            storm.emitDirect(options["task"], values, **more)
            return
        ids = storm.emit(values, need_task_ids=bool(options.get("ids")), **more)
        if options.get("ids"):
            self.do_emit([["ids", ids]])


class Bolt(Common, BoltSteps, storm.Bolt):
    knows = [*(step for step in BoltSteps.knows if step != "metric"), "error"]

    def do_ack(self, name="this"):
        self.finish(storm.ack, name)

    def do_fail(self, name="this"):
        self.finish(storm.fail, name)


class Spout(Common, SpoutSteps, storm.Spout):
    knows = [*(step for step in SpoutSteps.knows if step != "metric"), "error"]

    def nextTuple(self):  # noqa: N802 - petrel's spelling
        self.obey_next()


if __name__ == "__main__":
    {"bolt": Bolt, "spout": Spout}[sys.argv[1]]().run()
