"""A program that acks each tuple before it emits for it: ack_first.py WRITES ANCHORS HEARTBEATS.

WRITES: ``one`` write of all, ``two``, or ``slow``, two with a while between them. ANCHORS: ``anchored`` or not. HEARTBEATS: it
``answers`` them, ``acks`` them as a tuple, or ``ignores`` them.
"""

import json
import sys
import time

writes, anchors, heartbeats = sys.argv[1:]


def read():
    lines = iter(sys.stdin.readline, "end\n")
    text = "".join(line or sys.exit(0) for line in lines)
    return json.loads(text)


def say(*messages):
    sys.stdout.write("".join(f"{json.dumps(each)}\nend\n" for each in messages))
    sys.stdout.flush()


read()
say({"pid": 1})
while True:
    tup = read()
    ack = {"command": "ack", "id": tup["id"]}
    if tup["stream"] == "__heartbeat":
        say(*{"answers": [{"command": "sync"}], "acks": [ack], "ignores": []}[heartbeats])
        continue
    request, text = tup["tuple"]
    emits = [{"command": "emit", "tuple": [request, word], "need_task_ids": False} for word in text.split()]
    if anchors == "anchored":
        emits = [{**each, "anchors": [tup["id"]]} for each in emits]
    if writes == "one":
        say(ack, *emits)
    else:
        say(ack)
        if writes == "slow":
            time.sleep(0.05)
        say(*emits)
