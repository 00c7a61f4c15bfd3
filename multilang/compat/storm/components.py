"""The classes of storm.py."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_alone(component: Any) -> None:
    """Run a component as the process of one task: the package puts the function here, since that needs these classes."""
    raise NotImplementedError


class Tuple:
    """A tuple that a bolt received, with its values as a list."""

    def __init__(self, id: Any, component: Any, stream: Any, task: Any, values: Any) -> None:
        self.id = id
        self.component = component
        self.stream = stream
        self.task = task
        self.values = values

    def __repr__(self) -> str:
        shown = "".join(f" {name}={value!r}" for name, value in sorted(vars(self).items()))
        return f"<{type(self).__name__}{shown}>"

    def is_heartbeat_tuple(self) -> bool:
        """Return whether it is a heartbeat; the engine answers those itself."""
        return bool(self.task == -1 and self.stream == "__heartbeat")


class _Runnable:
    def run(self) -> None:
        """Run the component as the process of one task, until its input ends."""
        run_alone(self)


class Bolt(_Runnable):
    """A bolt that anchors, acks and fails by itself; ``process`` gets ticks, too."""

    def initialize(self, stormconf: Any, context: Any) -> None:
        """Prepare for tuples: called once, before anything else."""

    def process(self, tuple: Any) -> None:
        """Work on one tuple."""


class BasicBolt(_Runnable):
    """A bolt whose emits are anchored to the tuple in process, which is acked when ``process`` returns."""

    def initialize(self, stormconf: Any, context: Any) -> None:
        """Prepare for tuples: called once, before anything else."""

    def process(self, tuple: Any) -> None:
        """Work on one tuple; an exception is reported and fails it."""


class Spout(_Runnable):
    """A source of tuples."""

    def initialize(self, conf: Any, context: Any) -> None:
        """Prepare for commands: called once, before anything else."""

    def activate(self) -> None:
        """Note that the topology was activated."""

    def deactivate(self) -> None:
        """Note that the topology was deactivated."""

    def ack(self, id: Any) -> None:
        """Note that the tuple of this id was fully processed."""

    def fail(self, id: Any) -> None:
        """Note that the tuple of this id failed or timed out."""

    def nextTuple(self) -> None:  # noqa: N802 - storm.py's name
        """Emit the next tuple or tuples, or return without an emit when there is none now."""
