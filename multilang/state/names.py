"""The names of Storm's checkpoints: the stream, the spout, the actions and the spout's states."""

from __future__ import annotations

from multilang.component.streams import Stream

STREAM = "$checkpoint"
SPOUT = "$checkpointspout"
FIELDS = ("txid", "action", "epoch")  # the epoch of the checkpoint spout that emits it
STREAMS = {STREAM: Stream(FIELDS)}

PREPARE = "PREPARE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
INITSTATE = "INITSTATE"

PREPARING = "PREPARING"
COMMITTING = "COMMITTING"
COMMITTED = "COMMITTED"

# Exact alignment: the turns that the checkpoint spout gives the sources.
TURN = "$turn"
MORE = "$more"  # the question whether a source has more; a source that has more fails it
TURNS = {TURN: Stream(["turn", "most"]), MORE: Stream(["turn"])}

# Keys in the checkpoint spout's own state.
STATE_KEY = "__state"  # the last transaction and its phase
WHOLE_KEY = "__whole"  # the components of which all tasks have committed a transaction
EVERY_KEY = "__every"  # the last transaction that all tasks of these have committed
TASKS_KEY = "__tasks"  # the number of tasks of each stateful component when it was stored
TOKEN_KEY = "__token"  # drawn at random by the first run with positions; see multilang.state.witness
SHAPE_KEY = "__shape"  # what else the topology was when it was stored; see multilang.state.shape


def namespace(component: str, task_index: int) -> str:
    """Return the namespace of a task's state. Storm uses the task's id, which changes with the topology's shape."""
    return f"{component}-{task_index}"


def split_namespace(name: str) -> tuple[str, int] | None:
    """Return the component and task index of a namespace; None if the name has another form."""
    component, _, index = name.rpartition("-")
    return (component, int(index)) if component and index.isdecimal() else None
