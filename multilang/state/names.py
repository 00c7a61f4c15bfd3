"""The names that Storm's checkpoints have: the stream, the spout, the actions and the spout's states."""

from __future__ import annotations

from multilang.component.streams import Stream

STREAM = "$checkpoint"
SPOUT = "$checkpointspout"
FIELDS = ("txid", "action", "epoch")  # the epoch of the checkpoint spout that asks
STREAMS = {STREAM: Stream(FIELDS)}

PREPARE = "PREPARE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
INITSTATE = "INITSTATE"

PREPARING = "PREPARING"
COMMITTING = "COMMITTING"
COMMITTED = "COMMITTED"

# Exact alignment: the checkpoint spout's turns for the sources.
TURN = "$turn"
MORE = "$more"  # the question whether a source has more, which is failed by who has
TURNS = {TURN: Stream(["turn", "most"]), MORE: Stream(["turn"])}

STATE_KEY = "__state"  # of the checkpoint spout's own state
WHOLE_KEY = "__whole"  # beside it: the components all of whose tasks have committed a transaction
TASKS_KEY = "__tasks"  # beside it: how many tasks each stateful component had when that was stored


def namespace(component: str, task_index: int) -> str:
    """Where a task's state is kept. Storm has the task's id here, which changes with the topology's shape."""
    return f"{component}-{task_index}"


def split_namespace(name: str) -> tuple[str, int] | None:
    """Component and task index of a namespace; None for what is none of ours."""
    component, _, index = name.rpartition("-")
    return (component, int(index)) if component and index.isdecimal() else None
