"""Tuples inside this process, made in as few steps as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.protocol import Tuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.protocol.messages import Schema


# The edge of a tuple without a root that came of ticks alone. It is not waited for: with a bolt that emits at each tick,
# a topology would otherwise never be drained. But while a bolt holds other tuples, its emits at a tick, or for an IDLE
# tuple, may come of those, and are waited for.
IDLE = 1


class Origin:
    """The properties shared by all tuples of a task's stream. For ``is_question`` see ``questions`` of Spout."""

    __slots__ = ("component", "index", "is_question", "name_tuple", "schema", "stream", "task")

    def __init__(
        self,
        component: str,
        stream: str,
        task: int,
        fields: tuple[str, ...],
        name_tuple: Callable[[LocalTuple], str] | None = None,
        is_question: bool = False,
    ) -> None:
        self.component = component
        self.stream = stream
        self.task = task
        self.index = {field: position for position, field in enumerate(fields)}
        self.schema: Schema = {(component, stream): self.index}
        self.name_tuple = name_tuple
        self.is_question = is_question


class LocalTuple(Tuple):
    """A tuple that was delivered without a wire.

    Attributes:
        root: The root id of the spout tuple behind it, 0 for none, or ``{root id: edge}`` for several.
        edge: Its own edge (with one root), xored with all edges that were made with it as an anchor. This is sent to the
            acker. Without a root it is 0 or IDLE.
    """

    __slots__ = ("_id", "edge", "origin", "root")

    def __init__(
        self,
        values: list[Any],
        stream: str,
        origin: Origin,
        root: int | dict[int, int] = 0,
        edge: int = 0,
    ) -> None:
        # Tuple.__init__ is not called, since this is the most frequent call of all. Component, task and schema are the
        # origin's, and an id is made only when it is asked for.
        self.values = values
        self.stream = stream
        self.origin = origin
        self.root = root
        self.edge = edge
        self.unfinished = True

    def __getitem__(self, key: int | str) -> Any:
        if type(key) is str:
            try:
                return self.values[self.origin.index[key]]
            except (KeyError, IndexError):
                return super().__getitem__(key)  # raises the same error as the wire's tuple
        return self.values[key]  # type: ignore[index]

    @property
    def id(self) -> str:  # type: ignore[override]
        """The id of this delivery."""
        try:
            return self._id
        except AttributeError:
            name_tuple = self.origin.name_tuple
            self._id: str = "" if name_tuple is None else name_tuple(self)
            return self._id

    @property
    def component(self) -> str:  # type: ignore[override]
        """The component that emitted it."""
        return self.origin.component

    @property
    def task(self) -> int:  # type: ignore[override]
        """The task that emitted it."""
        return self.origin.task

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The fields of its stream."""
        return self.origin.schema
