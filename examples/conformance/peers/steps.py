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
    """``this`` is the tuple in work, ``open`` whether it wants an ack at the end."""

    knows = [*Steps.knows, "ack", "fail", "keep", "tuple"]

    def work_on(self, tup):
        self.this, self.open = tup, True
        values = list(tup.values)
        self.do(values[0] if values and isinstance(values[0], list) else [])
        if self.open:
            self.do_ack()

    def named(self, name):
        return self.this if name == "this" else self.kept[name]

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
    knows = [*Steps.knows, "heard"]

    def prepare(self, conf):
        self.script = iter(conf.get("conformance.script", []))
        self.on = conf.get("conformance.on", {})

    def obey(self, steps, *heard):
        self.heard = list(heard)
        self.do(steps)

    def obey_next(self):
        self.obey(next(self.script, [["sleep", 0.002]]), "next", "")

    def do_heard(self):
        self.do_emit([self.heard])
