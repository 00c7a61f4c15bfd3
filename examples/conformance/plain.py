"""The conformance component without any library: `python3 plain.py bolt`, `python3 plain.py spout`.

It follows the contract in docs/conformance.md, and shows what the multi-lang protocol requires of a program: a few dozen
lines of reading, writing and matching task ids to emits.

    multilang conformance bolt -- python3 examples/conformance/plain.py bolt
"""

import json
import os
import signal
import sys
import time
from collections import deque

OFFSET = 2**32  # added to a direct emit's task: Storm 2.6.0 to 2.8.8 halts on a small number, and narrows this one


class Component:
    """The common part of spouts and bolts."""

    knows = ["emit", "ids", "direct", "log", "error", "metric", "conf", "context", "print", "throw", "sleep"]

    def __init__(self):
        self.waiting = deque()  # commands and tuples that came during a wait for task ids
        self.ids_due = deque()  # for each emit that waits for its task ids: the list that gets them

    # ---- the wire ----

    def read_message(self):
        lines = []
        while True:
            line = sys.stdin.buffer.readline()
            if not line:
                sys.exit(0)
            if line == b"end\n":
                return json.loads(b"".join(lines))
            lines.append(line)

    def write(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def send(self, message):
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
        text = text.replace("\x7f", "\\u007f")  # Storm drops a raw one from a text that also has an escape
        self.write(text.encode("utf-8", "replace") + b"\nend\n")

    def read_command(self):
        while True:
            message = self.waiting.popleft() if self.waiting else self.read_message()
            if not isinstance(message, list):
                return message
            self.take_ids(message)

    def take_ids(self, ids):
        self.ids_due.popleft().append(ids)

    def wait_for_ids(self, wanted):
        while not wanted:
            message = self.read_message()
            if isinstance(message, list):
                self.take_ids(message)
            else:
                self.came_meanwhile(message)
        return wanted[0]

    def came_meanwhile(self, message):
        self.waiting.append(message)

    def shake_hands(self):
        setup = self.read_message()
        self.conf, self.context = setup["conf"], setup["context"]
        open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
        self.send({"pid": os.getpid()})

    # ---- the steps ----

    def emit(self, values, options, message):
        if "stream" in options:
            message["stream"] = options["stream"]
        if "task" in options:
            message["task"] = options["task"] + OFFSET
        wanted = []
        if not options.get("ids") and "task" not in options:
            message["need_task_ids"] = False
        self.send({"command": "emit", "tuple": values, **message})
        if options.get("ids"):
            self.ids_due.append(wanted)  # behind the send, which refuses what JSON has no word for
            self.do(["emit", [["ids", self.wait_for_ids(wanted)]]])

    def do(self, step):
        name, *arguments = step
        getattr(self, f"do_{name}")(*arguments)

    def do_contract(self):
        self.do(["emit", [["conformance", 1, self.knows]]])

    def do_conf(self, key):
        self.do(["emit", [self.conf.get(key)]])

    def do_context(self, key):
        self.do(["emit", [self.context.get(key)]])

    def do_log(self, text, level=2):
        self.send({"command": "log", "msg": text, "level": level})

    def do_error(self, text):
        self.send({"command": "error", "msg": text})

    def do_metric(self, name, params):
        self.send({"command": "metrics", "name": name, "params": params})

    def do_print(self, text):
        print(text, file=sys.stderr)  # standard output is only for the protocol

    def do_throw(self, text):
        raise RuntimeError(text)

    def do_sleep(self, seconds):
        time.sleep(seconds)


class Bolt(Component):
    """A bolt that does the steps in a tuple's first value."""

    knows = [*Component.knows, "ack", "fail", "keep", "tuple"]

    def run(self):
        self.kept = {}
        self.shake_hands()
        while True:
            self.handle(self.read_command())

    def handle(self, message):
        if message.get("task") == -1 and message["stream"] == "__heartbeat":
            self.send({"command": "sync"})
        elif "tuple" in message:
            self.process(message)

    def process(self, tup):
        self.this, self.is_open = tup, True
        values = tup["tuple"]
        try:
            for step in values[0] if values and isinstance(values[0], list) else []:
                self.do(step)
        except Exception as error:  # noqa: BLE001 - any exception of a step fails its tuple
            self.send({"command": "error", "msg": repr(error)})
            if self.is_open:
                self.do_fail()
        if self.is_open:
            self.do_ack()

    def came_meanwhile(self, message):
        if message.get("stream") == "__heartbeat":
            self.send({"command": "sync"})
        else:
            self.waiting.append(message)

    def do_emit(self, values, options=None):
        options = options or {}
        names = options.get("anchors", ["this"])
        anchors = [(self.this if name == "this" else self.kept[name])["id"] for name in names]
        self.emit(values, options, {"anchors": anchors})

    def do_ack(self, name="this"):
        self.finish("ack", name)

    def do_fail(self, name="this"):
        self.finish("fail", name)

    def finish(self, command, name):
        if name == "this":
            self.is_open = False
        tup = self.this if name == "this" else self.kept.pop(name)
        self.send({"command": command, "id": tup["id"]})

    def do_keep(self, name):
        self.kept[name] = self.this
        self.is_open = False

    def do_tuple(self):
        tup = self.this
        self.do(["emit", [[tup["id"], tup["comp"], tup["stream"], tup["task"], tup["tuple"][1:]]]])


class Spout(Component):
    """A spout that does the steps in the conf on each next, and on the other commands."""

    knows = [*Component.knows, "heard"]

    def run(self):
        self.shake_hands()
        self.script = deque(self.conf.get("conformance.script", []))
        self.on = self.conf.get("conformance.on", {})
        while True:
            self.obey(self.read_command())

    def obey(self, message):
        command = message["command"]
        if command == "next":
            steps = self.script.popleft() if self.script else [["sleep", 0.002]]
        else:
            steps = self.on.get(command, [])
        self.heard = [command, message.get("id")]
        for step in steps:
            self.do(step)
        self.send({"command": "sync"})

    def came_meanwhile(self, message):
        self.obey(message)  # with no ackers Storm acks before it sends the task ids, and waits for the answer

    def do_emit(self, values, options=None):
        options = options or {}
        self.emit(values, options, {"id": options["id"]} if "id" in options else {})

    def do_heard(self):
        self.do(["emit", [self.heard]])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    {"bolt": Bolt, "spout": Spout}[sys.argv[1]]().run()
