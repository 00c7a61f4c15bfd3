"""The tuples inside of a chain, and the inputs from outside that they come of."""

from __future__ import annotations

from multilang.component.many import LazyTuples
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.many import Tuples
    from multilang.protocol.messages import Schema


class Tree:
    """A tuple from outside, or the tuples of a block, until all that came of it inside of the chain is done.

    Attributes:
        outer: The tuple, as the collector around the chain knows it; of a block, its first one.
        left: The number of tuples inside that are neither acked nor failed.
        failed: Whether one was failed.
    """

    __slots__ = ("_block", "failed", "left", "outer")

    def __init__(self, outer: Tuple, block: Tuples | None = None) -> None:
        self.outer = outer
        self.left = 1 if block is None else len(block)
        self.failed = False
        self._block = block

    def settle(self, collector: BoltCollector, ok: bool) -> None:
        """Ack or fail what it stands for with the collector around the chain."""
        if self._block is not None:
            collector.settle_many(self._block, ok)
        elif ok:
            collector.ack(self.outer)
        else:
            collector.fail(self.outer)


class Origin:
    """The properties shared by all tuples of a member's stream.

    Attributes:
        component: The member that emits them.
        stream: The stream.
        task: Its task.
        positions: The positions of the fields.
        schema: The same for a Tuple.
    """

    __slots__ = ("component", "positions", "schema", "stream", "task")

    def __init__(self, component: str, stream: str, task: int, fields: list[str]) -> None:
        self.component = component
        self.stream = stream
        self.task = task
        self.positions = {field: place for place, field in enumerate(fields)}
        self.schema: Schema = {(component, stream): self.positions}


class ChainTuple(Tuple):
    """A tuple that a member of a chain gets.

    Attributes:
        origin: Where it comes from.
        trees: The tuples from outside that it came of.
        owner: The member that gets it.
    """

    __slots__ = ("_id", "origin", "owner", "trees")

    origin: Any
    trees: tuple[Tree, ...]
    owner: Any

    @property
    def id(self) -> str:  # type: ignore[override]
        """The id, made when it is asked for; the tuple can be acked and anchored to by it."""
        try:
            return self._id
        except AttributeError:
            self._id: str = str(self.owner.name_tuple(self))
            return self._id

    @property
    def component(self) -> str:  # type: ignore[override]
        """The component that emitted it."""
        return self.origin.component  # type: ignore[no-any-return]

    @property
    def task(self) -> int:  # type: ignore[override]
        """The task that emitted it."""
        return self.origin.task  # type: ignore[no-any-return]

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The positions of the fields."""
        return self.origin.schema  # type: ignore[no-any-return]

    def __getitem__(self, key: int | str) -> Any:
        if type(key) is str:
            try:
                return self.values[self.origin.positions[key]]
            except (KeyError, IndexError):
                return super().__getitem__(key)  # raises the error of other tuples
        return self.values[key]  # type: ignore[index]


class OuterTuple(ChainTuple):
    """A tuple from outside, for the first member; or a tick. Its origin is the tuple as it came."""

    __slots__ = ()

    @property
    def id(self) -> str:  # type: ignore[override]
        """The id that it came with; it can be acked and anchored to by it."""
        try:
            return self._id
        except AttributeError:
            self._id = id = str(self.owner.name_tuple(self, self.origin.id))
            return id

    def __getitem__(self, key: int | str) -> Any:
        return self.origin[key]


class ChainTuples(LazyTuples):
    """The tuples that a member of a chain gets together: of one stream, and all of the same tuples from outside.

    So none of them fails with another that would not fail with it in any case.

    Args:
        owner: The member that gets them.
        origin: Where they come from.
        trees: The tuples from outside that they came of.
        rows: The values of each.
    """

    __slots__ = ("origin", "owner", "trees")

    def __init__(self, owner: Any, origin: Any, trees: tuple[Tree, ...], rows: list[list[Any]]) -> None:
        super().__init__(rows)
        self.owner = owner
        self.origin = origin
        self.trees = trees

    def make(self, index: int) -> ChainTuple:
        return self._new(ChainTuple, self.origin, index)

    def _new(self, kind: type[ChainTuple], origin: Any, index: int) -> ChainTuple:
        tup = kind.__new__(kind)
        tup.values = self.rows[index]
        tup.stream = origin.stream
        tup.origin = origin
        tup.trees = self.trees
        tup.owner = self.owner
        tup.unfinished = True
        return tup

    @property
    def component(self) -> str:
        return self.origin.component  # type: ignore[no-any-return]

    @property
    def stream(self) -> str:
        return self.origin.stream  # type: ignore[no-any-return]

    @property
    def task(self) -> int:
        return self.origin.task  # type: ignore[no-any-return]

    @property
    def positions(self) -> dict[str, int]:
        return self.origin.positions  # type: ignore[no-any-return]


class OuterTuples(ChainTuples):
    """The tuples of a block from outside, for the first member. Their origin is the tuples as they came."""

    __slots__ = ()

    def make(self, index: int) -> ChainTuple:
        return self._new(OuterTuple, self.origin.at(index), index)
