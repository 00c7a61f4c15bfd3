"""The arrival of a checkpoint on all inputs of a task."""

from __future__ import annotations

from multilang.state.names import STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


class Barrier:
    """The last checkpoint tuple from each task that sends checkpoints to this one.

    "Each bolt waits for the checkpoint to arrive on all its input streams before it saves its state." Storm counts the
    arrivals and acks each one at once. This class remembers which task each tuple came from, so that a repeated
    checkpoint is never taken for complete one tuple too early. And no tuple is acked before all have arrived. Otherwise
    a task that dies between two arrivals would have acked both, and the checkpoint would count as saved.

    Tuples that arrived from a failed checkpoint count for its repetition. The repetition's own tuple then comes too
    late, so a task acks at once a tuple that repeats a checkpoint it has already passed on. If it held that tuple, each
    repetition would wait for the next one.
    """

    def __init__(self, context: Context) -> None:
        sources = [component for component, streams in context.sources.items() if STREAM in streams]
        self.inputs = sum(len(context.tasks(component)) for component in sources)
        self._arrived: dict[int, Tuple] = {}

    def arrive(self, tup: Tuple) -> tuple[Tuple | None, list[Tuple]]:
        """Note a checkpoint tuple.

        Returns:
            The tuple that this one makes obsolete, and all tuples of the checkpoint if it is complete.
        """
        arrived = self._arrived
        obsolete = arrived.pop(tup.task, None)
        arrived[tup.task] = tup
        mark = tup.values
        if len(arrived) < self.inputs or any(each.values != mark for each in arrived.values()):
            return obsolete, []
        whole = list(arrived.values())
        arrived.clear()
        return obsolete, whole
