"""A program that asks of each tuple where it went, and waits for the answer."""

import json
import sys


def read():
    lines = iter(sys.stdin.readline, "end\n")
    return json.loads("".join(line or sys.exit(0) for line in lines))


def say(message):
    sys.stdout.write(f"{json.dumps(message)}\nend\n")
    sys.stdout.flush()


read()
say({"pid": 1})
while True:
    tup = read()
    if tup["stream"] == "__heartbeat":
        say({"command": "sync"})
        continue
    request, text = tup["tuple"]
    for word in text.split():
        say({"command": "emit", "anchors": [tup["id"]], "tuple": [request, word]})
        tasks = read()
        if not isinstance(tasks, list) or len(tasks) != 1:
            sys.exit(f"went to {tasks!r}")
    say({"command": "ack", "id": tup["id"]})
