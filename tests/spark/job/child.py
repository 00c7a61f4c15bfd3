"""A bolt that knows nothing of this project: splits sentences, speaking the protocol by hand."""

import json
import os
import sys

arguments = sys.argv[1:]
options = dict(zip(arguments[::2], arguments[1::2], strict=False))
asks_task_ids = "task-ids" in arguments
late = [] if "late" in arguments else None


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
with open(os.path.join(setup["pidDir"], str(os.getpid())), "w"):
    pass
say({"pid": os.getpid()})
waiting = []
while True:
    tup = waiting.pop(0) if waiting else read()
    if tup["stream"] == "__heartbeat":
        for id in late or ():
            say({"command": "ack", "id": id})
        if late:
            late.clear()
        say({"command": "sync"})
        continue
    words = tup["tuple"][0].split()
    if options.get("fail") == words[0]:
        say({"command": "fail", "id": tup["id"]})
        continue
    if words[0] == "a30" and "die" in options and not os.path.exists(options["die"]):
        with open(options["die"], "w"):
            pass
        sys.exit(9)
    for word in words:
        say({"command": "emit", "anchors": [tup["id"]], "tuple": [word], "need_task_ids": asks_task_ids})
        if asks_task_ids:
            while not isinstance(answer := read(), list):
                waiting.append(answer)
            assert len(answer) == 1
    if options.get("forget") == words[0]:
        continue
    if late is not None:
        late.append(tup["id"])
    else:
        say({"command": "ack", "id": tup["id"]})
