"""A component's view of its topology as it was declared, in a process of a topology with chains."""

from __future__ import annotations

from multilang.chains.names import TICKS, VIEW, chain_stream
from multilang.chains.numbers import declared_tasks, member_tasks
from multilang.component.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.protocol.messages import Schema


class View:
    """The topology as it was declared.

    Args:
        conf: The task's conf.
        context: The task's context, in which chains are components.

    Attributes:
        chain: The chain that this process runs; None if it runs one component.
        components: The components of this process, in order.
        joined: The subscribers inside of the chain, by component and stream.
    """

    def __init__(self, conf: dict[str, Any], context: Context) -> None:
        view = conf[VIEW]
        self._conf = conf
        self._real = context
        self._parts: dict[str, dict[str, Any]] = view["components"]
        self._chains: dict[str, list[str]] = view["chains"]
        self.joined: dict[str, dict[str, list[str]]] = view["joined"]
        self.chain = context.component if context.component in self._chains else None
        # Storm keeps a conf in maps without an order; that of the members stands in a list.
        self.components = list(self._parts) if self.chain is None else self._chains[self.chain]
        assignment = context.task_component
        self._tasks = member_tasks(self._chains, assignment)
        self._assignment = {
            str(task): component for task, component in declared_tasks(self._chains, assignment).items()
        }
        self._index = context.task_index
        self._sources = self._renamed()

    def _renamed(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Return the member and its stream for each stream of a chain that this process may get."""
        chain_of = {member: chain for chain, members in self._chains.items() for member in members}
        return {
            (chain_of[source], chain_stream(source, stream)): (source, stream)
            for part in self._parts.values()
            for source, streams in part["context"]["source->stream->fields"].items()
            if source in chain_of
            for stream in streams
        }

    @property
    def renames(self) -> bool:
        """True if tuples come from chains."""
        return bool(self._sources)

    def task(self, component: str) -> int:
        """Return the task of a component of this process."""
        return self._real.task if self.chain is None else self._tasks[component][self._index]

    def context(self, component: str) -> Context:
        """Return the context of a component of this process."""
        own = self._parts[component]["context"]
        system = [name for name in self._real.streams if name.startswith("__")]
        fields = self._real.output_fields
        return Context(
            {
                **self._real,
                **own,
                "streams": [*own["streams"], *system],
                "stream->outputfields": {
                    **own["stream->outputfields"],
                    **{name: fields[name] for name in system if name in fields},
                },
                "taskid": self.task(component),
                "componentid": component,
                "task->component": self._assignment,
            }
        )

    def conf(self, component: str) -> dict[str, Any]:
        """Return the conf of a component of this process."""
        part = self._parts[component]
        conf = {key: value for key, value in self._conf.items() if key != VIEW}
        if not part["ticks"]:
            conf.pop(TICKS, None)  # another member's
        return {**conf, **part["conf"]}

    def has_ticks(self, component: str) -> bool:
        """Return whether a component of this process gets ticks."""
        return bool(self._parts[component]["ticks"])

    def source(self, component: str, stream: str, task: int) -> tuple[str, str, int]:
        """Return the component, the stream and the task that a tuple from outside comes from, as they were declared."""
        found = self._sources.get((component, stream))
        if found is None:
            return component, stream, task
        own = self._tasks[self._chains[component][0]]
        return *found, self._tasks[found[0]][own.index(task)]

    def schema(self) -> Schema:
        """Return the positions of the fields of all streams that the components of this process get."""
        return {
            (source, stream): {field: place for place, field in enumerate(fields)}
            for part in self._parts.values()
            for source, streams in part["context"]["source->stream->fields"].items()
            for stream, fields in streams.items()
        }
