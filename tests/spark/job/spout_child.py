"""A spout that knows nothing of this project: numbers up to the first argument, by hand and in Storm's protocol.

Each task has its share. What failed is emitted again. More arguments: "tells" whether it is exhausted, "asks" for task ids,
"dies" in the middle, with "once" in its first life alone; "babbles" when it is activated, and goes on reading; conf test.folder: where it notes what it was told.
"""

import json
import os
import sys

end, how = int(sys.argv[1]), sys.argv[2:]


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
mine = sorted(int(id) for id, name in context["task->component"].items() if name == "numbers")
step, at = len(mine), mine.index(context["taskid"])
with open(os.path.join(setup["pidDir"], str(os.getpid())), "w"):
    pass
say({"pid": os.getpid()})
again = []
died = os.path.join(setup["conf"]["test.folder"], f"died-{context['taskid']}")
told = open(os.path.join(setup["conf"]["test.folder"], f"told-{context['taskid']}"), "a")  # noqa: SIM115
while True:
    message = read()
    command = message["command"]
    if "babbles" in how:
        open(os.path.join(setup["conf"]["test.folder"], f"alive-{os.getpid()}"), "w").close()
        say(["what is this"])
        sys.stdin.read()
        sys.exit(0)
    if command == "next" and (again or at < end):
        if again:
            n = again.pop()
        else:
            n, at = at, at + step
        if n >= end // 2 and "dies" in how and not ("once" in how and os.path.exists(died)):
            open(died, "w").close()
            sys.stderr.write("no more of this\n")
            sys.exit(7)
        say({"command": "emit", "id": {"n": n}, "tuple": [f"k{n % 3}", n], "need_task_ids": "asks" in how})
        if "asks" in how:
            assert read() == []
    elif command == "fail":
        again.append(message["id"]["n"])
    if "id" in message:
        told.write(f"{command} {message['id']['n']}\n")
        told.flush()
    say({"command": "sync", "exhausted": at >= end and not again} if "tells" in how else {"command": "sync"})
