"""A spout that knows nothing of this library: emits ten numbers, waits for task ids, replays what fails."""

import json
import os
import sys


def read():
    lines = []
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        if line == "end\n":
            return json.loads("".join(lines))
        lines.append(line)


def send(message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
left = list(range(10))
while True:
    message = read()
    if message["command"] == "next" and left:
        n = left.pop(0)
        send({"command": "emit", "id": n, "tuple": [n, 0]})
        assert isinstance(read(), list)
    elif message["command"] == "fail":
        left.append(message["id"])
    send({"command": "sync"})
