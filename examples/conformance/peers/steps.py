"""The steps of the conformance contract, for the Python libraries beside this file."""

import time


class Steps:
    knows = ["emit", "ids", "direct", "log", "metric", "conf", "context", "print", "throw", "sleep"]

    def do(self, steps):
        for name, *arguments in steps:
            getattr(self, f"do_{name}")(*arguments)

    def do_contract(self):
        self.do_emit([["conformance", 1, self.knows]])

    def do_conf(self, key):
        self.do_emit([self.conf.get(key)])

    def do_context(self, key):
        self.do_emit([self.context.get(key)])

    def do_print(self, text):
        print(text)

    def do_throw(self, text):
        raise RuntimeError(text)

    def do_sleep(self, seconds):
        time.sleep(seconds)


class BoltSteps(Steps):
    """The steps of a bolt. ``this`` is the present tuple; ``open`` is True while it needs an ack at the end."""

    knows = [*Steps.knows, "ack", "fail", "keep", "tuple"]

    def initialize(self, conf, context):
        self.conf, self.context, self.kept = conf, context, {}

    def process(self, tup):
        self.work_on(tup)

    def work_on(self, tup):
        self.this, self.open = tup, True
        values = list(tup.values)
        self.do(values[0] if values and isinstance(values[0], list) else [])
        if self.open:
            self.do_ack()

    def named(self, name):
        return self.this if name == "this" else self.kept[name]

    def do_emit(self, values, options=None):
        options = options or {}
        self.send(values, options, anchors=[self.named(name) for name in options.get("anchors", ["this"])])

    def finish(self, how, name):
        if name == "this":
            self.open = False
        how(self.this if name == "this" else self.kept.pop(name))

    def do_keep(self, name):
        self.kept[name] = self.this
        self.open = False

    def do_tuple(self):
        tup = self.this
        self.do_emit([[tup.id, tup.component, tup.stream, tup.task, list(tup.values)[1:]]])


class SpoutSteps(Steps):
    """The steps of a spout, whose ``ack`` and so on the library calls.

    ``id_word``: the library's name for an emit's message id.
    """

    knows = [*Steps.knows, "heard"]
    id_word = "id"

    def initialize(self, conf, context):
        self.conf, self.context = conf, context
        self.script = iter(conf.get("conformance.script", []))
        self.on = conf.get("conformance.on", {})

    def obey(self, steps, *heard):
        self.heard = list(heard)
        self.do(steps)

    def obey_next(self):
        self.obey(next(self.script, [["sleep", 0.002]]), "next", "")

    def ack(self, id):
        self.obey(self.on.get("ack", []), "ack", id)

    def fail(self, id):
        self.obey(self.on.get("fail", []), "fail", id)

    def activate(self):
        self.obey(self.on.get("activate", []), "activate", "")

    def deactivate(self):
        self.obey(self.on.get("deactivate", []), "deactivate", "")

    def do_emit(self, values, options=None):
        options = options or {}
        self.send(values, options, **({self.id_word: options["id"]} if "id" in options else {}))

    def do_heard(self):
        self.do_emit([self.heard])
