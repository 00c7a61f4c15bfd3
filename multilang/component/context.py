"""The task's place in the topology: the handshake's context, with a typed name for each key."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Grouping: TypeAlias = dict[str, Any]  # {"type": "FIELDS", "fields": ["word"]}, as Storm sends it


class Context(dict):  # type: ignore[type-arg]
    """The context as Storm sends it (``context["task->component"]``), also as attributes.

    Source: the "Initial Handshake" section of the Multi-Lang Protocol page. Before Storm 0.10 the context has only
    ``taskid`` and ``task->component``; the attributes that need more are empty then.
    """

    @property
    def task(self) -> int:
        """This task's id."""
        return self["taskid"]  # type: ignore[no-any-return]

    @property
    def component(self) -> str:
        """This task's component id."""
        name: str | None = self.get("componentid")
        return name if name is not None else self.task_component.get(self.task, "?")

    @property
    def task_component(self) -> dict[int, str]:
        """The component of each task of the topology, Storm's own (``__acker``) included."""
        return {int(task): name for task, name in self["task->component"].items()}

    @property
    def task_index(self) -> int:
        """The position of this task among its component's tasks, from 0."""
        return self.tasks(self.component).index(self.task)

    def tasks(self, component: str) -> list[int]:
        """Return the task ids of a component in ascending order.

        Of Storm's own components, whose names begin with ``__``, there may be none.

        Raises:
            LookupError: The topology has no such component.
        """
        found = sorted(task for task, name in self.task_component.items() if name == component)
        if not found and not str(component).startswith("__"):
            known = sorted({name for name in self.task_component.values() if not name.startswith("__")})
            raise LookupError(
                f"component {self.component!r} asks for the tasks of {component!r}, which this topology does not have; "
                f"write one of {', '.join(map(repr, known))}"
            )
        return found

    @property
    def streams(self) -> list[str]:
        """The ids of this component's output streams."""
        return list(self.get("streams", self.output_fields))

    @property
    def output_fields(self) -> dict[str, list[str]]:
        """The fields of each output stream."""
        return dict(self.get("stream->outputfields", {}))

    @property
    def targets(self) -> dict[str, dict[str, Grouping]]:
        """For each output stream, the components that subscribe to it, with their groupings."""
        return dict(self.get("stream->target->grouping", {}))

    @property
    def sources(self) -> dict[str, dict[str, Grouping]]:
        """For each source component and stream, the grouping by which this component subscribes to it."""
        return dict(self.get("source->stream->grouping", {}))

    @property
    def source_fields(self) -> dict[str, dict[str, list[str]]]:
        """For each source component and stream, the fields of its tuples."""
        return dict(self.get("source->stream->fields", {}))
