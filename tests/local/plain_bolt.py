"""A bolt that knows nothing of this library, as one in another language would: lines of JSON in and out.

Arguments: what to do wrong, and a file that says (by being there) that it was done before.
"""

import json
import os
import sys
import time


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


fault, mark = (*sys.argv[1:], "", "")[:2]
if fault == "never starts":
    sys.exit("no such luck")
setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
while True:
    message = read()
    if not isinstance(message, dict):
        continue
    if message["stream"] == "__heartbeat":
        if fault != "passes heartbeats over":
            send({"command": "sync"})
        continue
    if mark and not os.path.exists(mark):
        open(mark, "w").close()
        if fault == "hang":
            time.sleep(3600)
        elif fault == "stray text":
            print("hello")
        elif fault == "exit":
            sys.exit(3)
        elif fault == "undeclared stream":
            send({"command": "emit", "tuple": [1], "stream": "nowhere"})
        elif fault == "wrong number of values":
            send({"command": "emit", "tuple": [1, 2, 3, 4]})
        elif fault == "double ack":
            send({"command": "ack", "id": message["id"]})
            send({"command": "ack", "id": message["id"]})
        elif fault == "half a message":
            sys.stdout.write('{"command": "ack"')
            sys.stdout.flush()
            os._exit(0)
        elif fault == "stderr":
            sys.stderr.write("E" * 1_000_000 + "\n")
            sys.stderr.flush()
    send({"command": "log", "msg": "got " + json.dumps(message["tuple"]), "level": 2})
    send({"command": "emit", "tuple": [message["tuple"][0], setup["context"]["taskid"]], "anchors": [message["id"]]})
    send({"command": "ack", "id": message["id"]})
