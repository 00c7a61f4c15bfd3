"""A bolt that knows nothing of this project, and emits in one way of tests.local.routing's CASES: each task in another."""

import json
import os
import sys
from itertools import product

CASES = list(
    product(["default", "routed", "nowhere"], [1, 2], [None, "shuffled", "directed", "unsubscribed", "nobody"])
)


def read():
    text = ""
    for line in sys.stdin:
        if line == "end\n":
            return json.loads(text)
        text += line
    sys.exit(0)


def say(message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


setup = read()
context = setup["context"]
tasks = {name: int(id) for id, name in context["task->component"].items()}
n = sorted(int(id) for id, name in context["task->component"].items() if name == "speaks").index(context["taskid"])
stream, width, target = CASES[n]
emit = {"command": "emit", "tuple": [n] * width, "stream": stream, "need_task_ids": False}
if target:
    emit["task"] = {**tasks, "nobody": 999}[target]
with open(os.path.join(setup["pidDir"], str(os.getpid())), "w"):
    pass
say({"pid": os.getpid()})
while True:
    tup = read()
    if tup["stream"] == "__heartbeat":
        say({"command": "sync"})
    else:
        say(emit)
        say({"command": "emit", "tuple": [n, "sent"], "stream": "said", "need_task_ids": False})
        say({"command": "ack", "id": tup["id"]})
