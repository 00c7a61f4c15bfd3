"""The ids of the tasks that a tuple went to, fetched when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class TaskIds(Sequence):  # type: ignore[type-arg]
    """A list of task ids, which is waited for only when it is looked at.

    Args:
        wait: Waits until ``tasks`` is set.

    Attributes:
        tasks: The ids; None until they have come.
    """

    __slots__ = ("_wait", "tasks")

    def __init__(self, wait: Callable[[TaskIds], object]) -> None:
        self._wait = wait
        self.tasks: list[int] | None = None

    def __call__(self, tasks: list[int]) -> None:
        """Take the ids, when they come."""
        self.tasks = tasks

    def fetched(self) -> list[int]:
        """Return the ids, and wait for them if necessary."""
        if self.tasks is None:
            self._wait(self)
        assert self.tasks is not None
        return self.tasks

    def __getitem__(self, index: Any) -> Any:
        return self.fetched()[index]

    def __len__(self) -> int:
        return len(self.fetched())

    def __eq__(self, other: object) -> bool:
        return self.fetched() == (other.fetched() if isinstance(other, TaskIds) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.fetched())
