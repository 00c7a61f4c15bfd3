"""A user's own grouping: the class that it extends, and its context."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random
    from typing import Any


class GroupingContext:
    """The context of a grouping: one for each source task and subscription.

    Attributes:
        component: The component whose tuples are divided.
        stream: Its stream.
        fields: The fields of that stream.
        source_task: The emitting task.
        local_tasks: The tasks in its worker.
        random: The run's source of random numbers; with it, a run with a seed can be repeated.
    """

    __slots__ = ("component", "fields", "local_tasks", "random", "source_task", "stream")

    def __init__(
        self,
        component: str,
        stream: str,
        fields: tuple[str, ...],
        source_task: int,
        local_tasks: frozenset[int],
        random: Random,
    ) -> None:
        self.component = component
        self.stream = stream
        self.fields = fields
        self.source_task = source_task
        self.local_tasks = local_tasks
        self.random = random


class CustomGrouping(ABC):
    """A grouping of your own (Storm's ``CustomStreamGrouping``).

    Each source task gets its own copy of the instance that was given to the builder.
    """

    def prepare(self, context: GroupingContext, stream: str, target_tasks: tuple[int, ...]) -> None:  # noqa: B027
        """Prepare the grouping: called once, before the first tuple.

        Args:
            context: The source task and its worker.
            stream: The stream.
            target_tasks: The subscriber's task ids in ascending order.
        """

    @abstractmethod
    def choose_tasks(self, source_task: int, values: Sequence[Any]) -> Sequence[int]:
        """Return the tasks that get a tuple.

        Args:
            source_task: The emitting task.
            values: The tuple's values.

        Returns:
            Some of ``target_tasks``; an empty list drops the tuple for this subscriber.
        """
