"""When a checkpoint has arrived on all inputs of a task."""

from __future__ import annotations

from multilang.state.names import STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from multilang.component.context import Context

    Mark: TypeAlias = tuple[int, str]


class Barrier:
    """What came last from each task that sends checkpoints to this one.

    "Each bolt waits for the checkpoint to arrive on all its input streams before it saves its state." Storm counts
    arrivals; here it is known of which task each is, so that a checkpoint that is repeated after a failure is not taken
    for complete one tuple too early.
    """

    def __init__(self, context: Context) -> None:
        sources = [component for component, streams in context.sources.items() if STREAM in streams]
        self.inputs = sum(len(context.tasks(component)) for component in sources)
        self.arrived: dict[int, Mark] = {}

    def complete(self, task: int, mark: Mark) -> bool:
        """Note that ``mark`` came from ``task``; true when it has come from all."""
        arrived = self.arrived
        arrived[task] = mark
        if sum(each == mark for each in arrived.values()) < self.inputs:
            return False
        arrived.clear()
        return True
