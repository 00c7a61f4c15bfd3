"""When a checkpoint has arrived on all inputs of a task."""

from __future__ import annotations

from multilang.state.names import STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


class Barrier:
    """What came last from each task that sends checkpoints to this one.

    "Each bolt waits for the checkpoint to arrive on all its input streams before it saves its state." Storm counts
    arrivals and acks each at once. Here it is known of which task each is, so that a checkpoint that is repeated after a
    failure is not taken for complete one tuple too early; and none is acked before all are there: else a task that dies
    between two arrivals would have answered for both, and the checkpoint would be taken for saved.

    What has arrived of a checkpoint that failed counts for its repetition, whose own tuple then comes too late. That is why
    a task acks at once what repeats a checkpoint that it has passed on: held, each repetition would wait for the next one.
    """

    def __init__(self, context: Context) -> None:
        sources = [component for component, streams in context.sources.items() if STREAM in streams]
        self.inputs = sum(len(context.tasks(component)) for component in sources)
        self._arrived: dict[int, Tuple] = {}

    def arrive(self, tup: Tuple) -> tuple[Tuple | None, list[Tuple]]:
        """Note a checkpoint tuple: the one that it makes obsolete, and all of the checkpoint when it is complete."""
        arrived = self._arrived
        obsolete = arrived.pop(tup.task, None)
        arrived[tup.task] = tup
        mark = tup.values
        if len(arrived) < self.inputs or any(each.values != mark for each in arrived.values()):
            return obsolete, []
        whole = list(arrived.values())
        arrived.clear()
        return obsolete, whole
