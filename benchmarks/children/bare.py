"""A bare loop over ujson: `python bare.py split`. No classes, no checks, only values encoded, the rest from a template."""

# ruff: noqa: ARG001
import os
import sys

import ujson

work = sys.argv[1]
counts: dict[str, int] = {}
serial = 0
dumps, loads, read = ujson.dumps, ujson.loads, os.read


def write(text):
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


def split(tup, out):
    head = '{"command":"emit","need_task_ids":false,"anchors":["%s"],"tuple":' % tup["id"]  # noqa: UP031
    for word in tup["tuple"][0].split(" "):
        out.append(head + dumps([word], ensure_ascii=False, escape_forward_slashes=False) + "}\nend\n")


def count(tup, out):
    word = tup["tuple"][0]
    n = counts[word] = counts.get(word, 0) + 1
    head = '{"command":"emit","need_task_ids":false,"anchors":["%s"],"tuple":' % tup["id"]  # noqa: UP031
    out.append(head + dumps([word, n], ensure_ascii=False, escape_forward_slashes=False) + "}\nend\n")


def echo(tup, out):
    head = '{"command":"emit","need_task_ids":false,"anchors":["%s"],"tuple":' % tup["id"]  # noqa: UP031
    out.append(head + dumps([tup["tuple"][0]], ensure_ascii=False, escape_forward_slashes=False) + "}\nend\n")


def drop(tup, out):
    pass


def spout(message, out):
    global serial
    for _ in range(per_next):
        out.append(
            f'{{"command":"emit","need_task_ids":false,"id":"{serial}","tuple":{dumps(["word", serial])}}}\nend\n'
        )
        serial += 1


per_next = 100 if work == "spout100" else 1
is_spout = work.startswith("spout")
handle = {"split": split, "count": count, "filter": drop, "echo": echo}.get(work, spout)

rest = b""
greeted = False
while data := read(0, 65536):
    *messages, rest = (rest + data).split(b"\nend\n")
    if rest and not messages:  # a long message: its pieces are joined once, not at each read
        pieces = [rest]
        while data := read(0, 65536):
            ended = b"\nend\n" in pieces[-1][-4:] + data
            pieces.append(data)
            if ended:
                break
        *messages, rest = b"".join(pieces).split(b"\nend\n")
    out: list[str] = []
    for text in messages:
        message = loads(text)
        if not greeted:
            open(os.path.join(message["pidDir"], str(os.getpid())), "w").close()
            out.append('{"pid":%d}\nend\n' % os.getpid())  # noqa: UP031
            greeted = True
        elif is_spout:
            handle(message, out)
            out.append('{"command":"sync"}\nend\n')
        elif message["stream"] == "__heartbeat":
            out.append('{"command":"sync"}\nend\n')
        else:
            handle(message, out)
            out.append('{"command":"ack","id":"%s"}\nend\n' % message["id"])  # noqa: UP031
    write("".join(out))
