"""Runs of a description on the embedded cluster."""

from __future__ import annotations

import json
import os
import tempfile
from itertools import count
from typing import Any

from multilang.local import LocalCluster, NotDrainedError
from tests.differential import components
from tests.differential.outcomes import Outcome, counted
from tests.differential.shapes import Shape

TICK_SECS = {"simulated": 0.05, "inprocess": 0.004, "process": 0.05}
LIMIT = {"simulated": 600.0, "inprocess": 20.0, "process": 60.0}  # seconds to drain, where it does
STUCK = {"simulated": 30.0, "inprocess": 0.3, "process": 10.0}  # seconds to find that it does not
_numbers = count()


def run(shape: Shape, mode: Any, seed: int, more: dict[str, Any] | None = None) -> Outcome:
    """Run, with ``more`` in the conf (see also ``exchange_of``), until it is drained, then on for some ticks, after which it must be drained again and have done nothing more."""
    conf: dict[str, Any] = {"topology.message.timeout.secs": 30, **exchange_of(shape), **(more or {})}
    if shape["forget"] == "stuck":
        conf["topology.enable.message.timeouts"] = False
    elif shape["forget"]:
        conf["topology.message.timeout.secs"] = 2 if mode == "simulated" else 1
    with tempfile.TemporaryDirectory() as folder:
        where = f"{components.IN_MEMORY}{next(_numbers)}" if mode != "process" else os.path.join(folder, "record")
        topology = components.built(shape, where, TICK_SECS[mode], components.SHELL if mode == "process" else None)
        try:
            with LocalCluster(mode, conf, seed) as cluster:
                running = cluster.submit(topology)
                end = "drained"
                try:
                    running.wait(timeout=(STUCK if shape["forget"] == "stuck" else LIMIT)[mode])
                except NotDrainedError as error:
                    end = "\n".join(sorted(error.waiting_for))
                first = counted(shape, _lines(where))
                if end == "drained" and any(part.get("ticks") for part in shape["components"]):
                    running.run_for(3 * TICK_SECS[mode])
                    running.wait(timeout=LIMIT[mode])
                last = counted(shape, _lines(where))
                figures = {
                    part["id"]: (each.acked, each.failed, each.pending)
                    for part in shape["components"]
                    if part["kind"] in components.SPOUTS
                    for each in [running.counters[part["id"]]]
                }
                errors = [str(error) for error in running.errors]
        finally:
            components.records.pop(where, None)
    rest = "".join(f"\nand after its end: {line}" for line in (last - first)) if end == "drained" else ""
    return Outcome(mode, last, "\n".join([end + rest, *errors]), figures)


def exchange_of(*shapes: Shape) -> dict[str, Any]:
    """Return the conf with which even the repeats are the same everywhere: what fails takes no other with it."""
    fails = any(part.get("fails") for shape in shapes for part in shape["components"])
    return {"multilang.exchange": "root"} if fails else {}


def _lines(where: str) -> list[list[Any]]:
    if where.startswith(components.IN_MEMORY):
        return list(components.records[where])
    if not os.path.exists(where):
        return []
    with open(where) as file:
        return [json.loads(line) for line in file]
