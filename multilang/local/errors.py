"""The errors of the embedded cluster itself, as opposed to those of components."""

from __future__ import annotations

from multilang.errors import LocalClusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class NotDrainedError(LocalClusterError, TimeoutError):
    """``wait`` ran out of time.

    Attributes:
        waiting_for: One line for each thing that is still to come, and where it is.
    """

    def __init__(self, message: str, waiting_for: Sequence[str]) -> None:
        self.waiting_for = list(waiting_for)
        lines = "".join(f"\n  - {line}" for line in self.waiting_for)
        super().__init__(f"{message}{lines}")
