"""Signals for a task's process at a named step; ``multilang.trace`` of a conf names ``at_step``.

$AT_STEPS: ``who|step|occurrence|signal|marker``, several with ``;`` between them, each of which waits for the markers of
those before it. A marker is a file that tells that the step was reached, and by which process.
"""

from __future__ import annotations

import os
import signal

_seen: dict[int, int] = {}


def at_step(who: str, step: str, txid: int) -> None:
    """Note the step in $STEPS, and do to this process what $AT_STEPS says."""
    steps = os.environ.get("STEPS")
    if steps:
        with open(steps, "a") as file:
            file.write(f"{who}|{step}\n")
    for number, each in enumerate(filter(None, os.environ.get("AT_STEPS", "").split(";"))):
        where, which, occurrence, name, marker = each.split("|")
        if os.path.exists(marker):
            continue
        if (who, step) == (where, which):
            _seen[number] = _seen.get(number, 0) + 1
            if _seen[number] == int(occurrence):
                with open(f"{marker}.part", "w") as file:
                    file.write(f"{os.getpid()}")
                os.rename(f"{marker}.part", marker)
                os.kill(os.getpid(), getattr(signal, name))
        return
