"""Kills this process, or a Redis, at a named step of the protocol; ``multilang.trace`` names ``at_step``.

$CRASHES: ``namespace|step|occurrence|marker`` or, with a pid behind it, of what is killed instead; several with ``;``
between them, each of which waits for the markers of those before it. A marker is a file that tells that it happened.
"""

from __future__ import annotations

import os
import signal

_seen: dict[int, int] = {}


def at_step(namespace: str, step: str, txid: int) -> None:
    steps = os.environ.get("STEPS")
    if steps:
        with open(steps, "a") as file:
            file.write(f"{namespace}|{step}\n")
    for number, crash in enumerate(filter(None, os.environ.get("CRASHES", "").split(";"))):
        where, which, occurrence, marker, *victim = crash.split("|")
        if os.path.exists(marker):
            continue
        if (namespace, step) == (where, which):
            _seen[number] = _seen.get(number, 0) + 1
            if _seen[number] == int(occurrence):
                with open(marker, "x"):
                    pass
                os.kill(int(victim[0]) if victim else os.getpid(), signal.SIGKILL)
        return
