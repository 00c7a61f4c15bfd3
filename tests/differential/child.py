"""A bolt, or with the argument "spout" a spout, that knows nothing of this project: Storm's protocol by hand.

It does what ShellSteps and Replays of components.py do, and writes the same record.
"""

import json
import os
import sys


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
context, conf = setup["context"], setup["conf"]
spec = json.loads(conf["test.spec"])
me = context["componentid"]
mine = sorted(int(id) for id, name in context["task->component"].items() if name == me)
index = mine.index(context["taskid"])
record = os.open(conf["test.record"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
with open(os.path.join(setup["pidDir"], str(os.getpid())), "w"):
    pass
say({"pid": os.getpid()})


def write_down(*what):
    os.write(record, (json.dumps([me, index, *what]) + "\n").encode())


def ways(n):
    out = spec.get("out", "default")
    if out == "parity":
        return [("side" if n % 2 else "default", None)]
    if out == "both":
        return [("default", None), ("side", None)]
    if out == "direct":
        found = []
        for target in sorted(context["stream->target->grouping"].get("direct", {})):
            tasks = sorted(int(id) for id, name in context["task->component"].items() if name == target)
            found.append(("direct", tasks[n % len(tasks)]))
        return found
    return [("default", None)]


def emit(values, stream, task, **more):
    message = {"command": "emit", "tuple": values, "stream": stream, "need_task_ids": False, **more}
    if task is not None:
        # Storm from 2.6 on takes a small integer for an Integer where it wants a Long.
        message["task"] = task if conf.get("multilang.parent") else task + 2**32
    say(message)


def bolt():
    while True:
        tup = read()
        if not isinstance(tup, dict):
            continue
        if tup["stream"] == "__heartbeat":
            say({"command": "sync"})
            continue
        id, key, n = tup["tuple"]
        write_down(tup["comp"], tup["stream"], id, key, n)
        attempt = id.rpartition("/")[2]
        if attempt.isdigit() and int(attempt) <= spec.get("fails", 0) and n % spec.get("every", 1) == 0:
            say({"command": "fail", "id": tup["id"]})
            continue
        fan = spec.get("fan", 1)
        for each in [key] if fan == 1 else [key + "abc"[i] for i in range(fan)]:
            for stream, task in ways(n):
                emit([id, each, n], stream, task, anchors=[tup["id"]] if spec["how"] == "each" else [])
        say({"command": "ack", "id": tup["id"]})


def spout():
    first = 100 * (spec["number"] + 1) + 20 * index
    left = [(n, 1, None) for n in range(first, first + spec["values"])]
    again = []
    while True:
        message = read()
        command = message["command"]
        if command == "next" and (again or left):
            n, attempt, only = (again or left).pop(0)
            for way, (stream, task) in enumerate(ways(n)):
                if only in (None, way):
                    emit([f"{n}/{attempt}", f"k{n % 3}", n], stream, task, id=f"{n}/{attempt}/{way}")
        elif command in ("ack", "fail"):
            write_down(command + "ed", message["id"])
            if command == "fail":
                n, attempt, way = map(int, message["id"].split("/"))
                again.append((n, attempt + 1, way))
        say({"command": "sync", "exhausted": not (left or again)} if spec.get("tells", True) else {"command": "sync"})


spout() if sys.argv[1:] == ["spout"] else bolt()
