"""The errors of the embedded cluster itself, as opposed to those of components."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LocalClusterError(Exception):
    """The embedded cluster can't go on; the text names the component and task, and says what to do."""


class TaskStartError(LocalClusterError):
    """A task died each time that it was started, before it did anything."""


class NotDrainedError(LocalClusterError, TimeoutError):
    """``wait`` ran out of time.

    Attributes:
        waiting_for: One line for each thing that is still to come, and where it is.
    """

    def __init__(self, message: str, waiting_for: Sequence[str]) -> None:
        self.waiting_for = list(waiting_for)
        lines = "".join(f"\n  - {line}" for line in self.waiting_for)
        super().__init__(f"{message}{lines}")
