"""The streams of a builder, with the types of their elements."""

from __future__ import annotations

from multilang.component.base import overload
from multilang.streams import operations
from multilang.streams.asynchronous import MapAsync
from multilang.streams.folds import Aggregate, Fold, Query, Reduction, Update, collecting, counting
from multilang.streams.graph import PAIRS, PLAIN, TRIPLES, Stage
from multilang.streams.operations import Repartition, Source, UserBolt
from multilang.streams.windows import (
    Late,
    Results,
    WindowFold,
    WindowJoin,
    WindowSettings,
    WithEnd,
    WithWindow,
    full_outer,
    grouped,
    inner,
    left_outer,
    right_outer,
)
from multilang.topology.errors import TopologyError
from multilang.windowing.specs import Tumbling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from datetime import timedelta
    from typing import Any, Generic, NoReturn, TypeVar

    from multilang.component.bolt import Bolt
    from multilang.protocol.messages import Tuple
    from multilang.streams.graph import Declared
    from multilang.streams.keys import Key
    from multilang.streams.operations import Operation
    from multilang.streams.windows import Windowed
    from multilang.topology.shell import ShellBolt
    from multilang.windowing.specs import Session, Sliding

    T = TypeVar("T")
    U = TypeVar("U")
    K = TypeVar("K", bound=Key)
    V = TypeVar("V")
    W = TypeVar("W")
    A = TypeVar("A")
    R = TypeVar("R")

    class _OfElements(Generic[T]):
        pass

    class _OfPairs(Generic[K, V]):
        pass

else:

    class _Typed:
        """A stand-in for ``typing.Generic``, so that a component's process need not import ``typing``."""

        def __class_getitem__(cls, item: Any) -> type:
            return cls

    _OfElements = _OfPairs = _Typed


class _AnyStream:
    """The common part of streams.

    Attributes:
        stage: The stage whose elements it has.
    """

    def __init__(self, declared: Declared, stage: Stage) -> None:
        self._declared = declared
        self.stage = stage

    @property
    def name(self) -> str:
        """The name of its stage."""
        return self.stage.name

    def to(
        self,
        bolt: Bolt | type[Bolt] | ShellBolt,
        *,
        fields: Sequence[str] | None = None,
        parallelism: int | None = None,
        name: str | None = None,
    ) -> None:
        """Send the elements to a bolt of your own.

        It gets tuples with the field ``value``; of a keyed stream, with ``key`` and ``value``, all of a key in one task. A
        spout's tuples are sent as they are.

        Args:
            bolt: The bolt: an instance, a class that needs no arguments, or a ShellBolt.
            fields: Names of fields instead. If they are several, each element has as many items.
            parallelism: Its number of tasks; that of the stream if it is None.
            name: Its component's id; its class's name if it is None.

        Raises:
            TopologyError: An argument is wrong.
        """
        self._to(bolt, fields, parallelism, name)

    def through(
        self,
        bolt: Bolt | type[Bolt] | ShellBolt,
        *,
        fields: Sequence[str] | None = None,
        parallelism: int | None = None,
        name: str | None = None,
    ) -> Stream[Tuple]:
        """Send the elements to a bolt of your own, as ``to`` does, and return the stream of the tuples that it emits."""
        stage = self._to(bolt, fields, parallelism, name)
        stage.fields = self._declared.fields_of(stage.name)
        return Stream(self._declared, stage)

    def _to(self, bolt: Any, fields: Sequence[str] | None, parallelism: int | None, name: str | None) -> Stage:
        if isinstance(fields, str) or (fields is not None and not fields):
            raise TopologyError(f"to(fields={fields!r}): give a list of names, such as fields=['word', 'count']")
        if name is None:
            name = self.stage.graph.free(self._declared.name_for(bolt))
        before = self.stage
        if fields is not None and before.shape == PLAIN:
            if before.fields is not None:
                raise TopologyError(
                    f"to(fields={fields!r}): {before.name!r} has tuples of a spout or bolt, which are sent with their own fields, "
                    f"{', '.join(before.fields)}; leave fields= out, or make other elements with map"
                )
            if isinstance(before.operation, Source | UserBolt):
                before = self._next(operations.Named(), PLAIN, None)
        stage = before.graph.add(UserBolt(name, fields), [before], PLAIN, name=name, parallelism=parallelism)
        self._declared.add_bolt(stage, bolt)
        return stage

    def _next(
        self,
        operation: Operation,
        shape: str,
        name: str | None,
        parallelism: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> Stage:
        return self.stage.graph.add(operation, [self.stage], shape, name=name, parallelism=parallelism, fields=fields)

    def _same(self, operation: Operation, name: str | None, parallelism: int | None = None) -> Stage:
        return self._next(operation, self.stage.shape, name, parallelism, self.stage.fields)

    def _branches(self, predicates: Sequence[Callable[[Any], object]], name: str | None) -> list[Stage]:
        if not predicates:
            raise TopologyError("branch takes at least one predicate: branch(lambda element: ...)")
        branch = self._same(operations.Branch(predicates), name)
        graph, shape, fields = branch.graph, branch.shape, branch.fields
        arms = [*(f"{branch.name}.{number}" for number in range(1, len(predicates) + 1)), f"{branch.name}.rest"]
        return [
            graph.add(operations.Arm(number, arm), [branch], shape, name=None, fields=fields)
            for number, arm in enumerate(arms)
        ]

    def _merged(self, others: Sequence[_AnyStream], name: str | None) -> Stage:
        stages = [self.stage, *(other.stage for other in others)]
        shown = {None if stage.fields is None else tuple(stage.fields) for stage in stages}
        if len(shown) > 1:
            names = ", ".join(f"{stage.name!r} ({_kind(stage)})" for stage in stages)
            raise TopologyError(
                f"merge of {names}: they have elements of different kinds; convert them to one with map, such as "
                ".map(lambda t: t['field'])"
            )
        return self.stage.graph.add(operations.Merge(), stages, self.stage.shape, name=name, fields=self.stage.fields)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.stage.name!r}>"


class Stream(_AnyStream, _OfElements["T"]):
    """A stream of elements. Each method declares a stage and returns the stream of its results.

    ``name=`` names the stage: in ``explain``, in messages, and for the component if it begins one. A stage without a name
    has that of its operation, with a number from the second one on.

    Elements are sent between components as JSON: a tuple arrives as a list.
    """

    def map(self, function: Callable[[T], U], *, name: str | None = None) -> Stream[U]:
        """Replace each element by the function's result."""
        return Stream(self._declared, self._next(operations.Map(function), PLAIN, name))

    def map_async(
        self,
        function: Callable[[T], Awaitable[U]],
        *,
        limit: int = 100,
        ordered: bool = True,
        timeout: float | None = 10.0,
        name: str | None = None,
    ) -> Stream[U]:
        """Replace each element by the result of an async function, such as a look-up over the network.

        A call that fails fails its tuple alone. Elements that arrive while calls are running wait for these, so that a
        batch takes as long as its slowest call. A task has one event loop until it ends.

        Args:
            function: The function, ``async def``.
            limit: The most calls at once in a task.
            ordered: Whether the results of a task are sent in the order of their elements. If not, each is sent when its call ends.
            timeout: Seconds after which a call fails; None: never.
            name: The stage's name.
        """
        operation = MapAsync(function, limit, ordered, timeout)
        return Stream(self._declared, self._next(operation, PLAIN, name))

    def filter(self, predicate: Callable[[T], object], *, name: str | None = None) -> Stream[T]:
        """Select the elements for which the predicate is true."""
        return Stream(self._declared, self._same(operations.Filter(predicate), name))

    def flat_map(self, function: Callable[[T], Iterable[U]], *, name: str | None = None) -> Stream[U]:
        """Replace each element by all items of the function's result."""
        return Stream(self._declared, self._next(operations.FlatMap(function), PLAIN, name))

    def key_by(self, function: Callable[[T], K], *, name: str | None = None) -> KeyedStream[K, T]:
        """Make pairs of each element's key, the function's result, and the element.

        A key is a string, an integer, or a tuple of these.
        """
        stage = self._next(operations.KeyBy(function), PAIRS, name, fields=self.stage.fields)
        return KeyedStream(self._declared, stage)

    def peek(self, function: Callable[[T], object], *, name: str | None = None) -> Stream[T]:
        """Call the function with each element, and change nothing."""
        return Stream(self._declared, self._same(operations.Peek(function), name))

    def for_each(self, function: Callable[[T], object], *, name: str | None = None) -> None:
        """Call the function with each element, at the end of a stream."""
        self._next(operations.ForEach(function), PLAIN, name)

    def branch(self, *predicates: Callable[[T], object], name: str | None = None) -> list[Stream[T]]:
        """Divide the stream: each element goes to the stream of the first predicate that is true for it.

        Returns:
            A stream for each predicate, in their order, and a last one with the elements for which none is true.
        """
        return [Stream(self._declared, stage) for stage in self._branches(predicates, name)]

    def merge(self, *others: Stream[T], name: str | None = None) -> Stream[T]:
        """Join the elements of other streams to this one's, in no particular order."""
        for other in others:
            if not isinstance(other, Stream):
                raise TopologyError(f"merge of a stream takes streams, not {other!r:.80}")
        return Stream(self._declared, self._merged(others, name))

    def repartition(self, parallelism: int, *, name: str | None = None) -> Stream[T]:
        """Spread the elements evenly over so many tasks, in which the next stages run."""
        return Stream(self._declared, self._same(Repartition(), name, parallelism))


class KeyedStream(_AnyStream, _OfPairs["K", "V"]):
    """A stream of pairs, each of a key and a value. Results of a key are computed in one task.

    ``map``, ``filter``, ``peek`` and ``for_each`` get pairs; ``map_values`` and ``flat_map_values`` get values.
    """

    def map(self, function: Callable[[tuple[K, V]], U], *, name: str | None = None) -> Stream[U]:
        """Replace each pair by the function's result; the stream has no keys any more."""
        return Stream(self._declared, self._next(operations.Map(function), PLAIN, name))

    def map_async(
        self,
        function: Callable[[tuple[K, V]], Awaitable[U]],
        *,
        limit: int = 100,
        ordered: bool = True,
        timeout: float | None = 10.0,
        name: str | None = None,
    ) -> Stream[U]:
        """Replace each pair by the result of an async function, see Stream.map_async; the stream has no keys any more."""
        operation = MapAsync(function, limit, ordered, timeout)
        return Stream(self._declared, self._next(operation, PLAIN, name))

    def flat_map(self, function: Callable[[tuple[K, V]], Iterable[U]], *, name: str | None = None) -> Stream[U]:
        """Replace each pair by all items of the function's result; the stream has no keys any more."""
        return Stream(self._declared, self._next(operations.FlatMap(function), PLAIN, name))

    def map_values(self, function: Callable[[V], W], *, name: str | None = None) -> KeyedStream[K, W]:
        """Replace each value by the function's result."""
        return KeyedStream(self._declared, self._next(operations.MapValues(function), PAIRS, name))

    def flat_map_values(self, function: Callable[[V], Iterable[W]], *, name: str | None = None) -> KeyedStream[K, W]:
        """Replace each pair by one for every item of the function's result for its value."""
        return KeyedStream(self._declared, self._next(operations.FlatMapValues(function), PAIRS, name))

    def filter(self, predicate: Callable[[tuple[K, V]], object], *, name: str | None = None) -> KeyedStream[K, V]:
        """Select the pairs for which the predicate is true."""
        return KeyedStream(self._declared, self._same(operations.Filter(predicate), name))

    def peek(self, function: Callable[[tuple[K, V]], object], *, name: str | None = None) -> KeyedStream[K, V]:
        """Call the function with each pair, and change nothing."""
        return KeyedStream(self._declared, self._same(operations.Peek(function), name))

    def for_each(self, function: Callable[[tuple[K, V]], object], *, name: str | None = None) -> None:
        """Call the function with each pair, at the end of a stream."""
        self._next(operations.ForEach(function), PLAIN, name)

    def branch(self, *predicates: Callable[[tuple[K, V]], object], name: str | None = None) -> list[KeyedStream[K, V]]:
        """Divide the stream as Stream.branch does."""
        return [KeyedStream(self._declared, stage) for stage in self._branches(predicates, name)]

    def merge(self, *others: KeyedStream[K, V], name: str | None = None) -> KeyedStream[K, V]:
        """Join the pairs of other streams to this one's, in no particular order."""
        for other in others:
            if not isinstance(other, KeyedStream):
                raise TopologyError(
                    f"merge of a keyed stream takes keyed streams, not {other!r:.80}; call key_by first"
                )
        return KeyedStream(self._declared, self._merged(others, name))

    def repartition(self, parallelism: int, *, name: str | None = None) -> KeyedStream[K, V]:
        """Divide the keys among so many tasks from here on: ``key_by(...).repartition(4).count()``."""
        return KeyedStream(self._declared, self._same(operations.Keys(), name, parallelism))

    # ---- running results ----

    def count(self, *, name: str | None = None) -> KeyedStream[K, int]:
        """Count each key's values so far.

        A new count is sent whenever values of the key arrive. It is one count for several values if these were combined
        before.
        """
        return KeyedStream(self._declared, self._fold("count", counting(), name))

    def reduce(self, function: Callable[[V, V], V], *, name: str | None = None) -> KeyedStream[K, V]:
        """Reduce each key's values so far to one.

        Args:
            function: Makes one value of two. Values arrive in any order, and are combined before, so that its result must
                not depend on the order.
            name: The stage's name.
        """
        return KeyedStream(self._declared, self._fold("reduce", Reduction(operations.called("reduce", function)), name))

    @overload
    def aggregate(
        self,
        init: Callable[[], A],
        add: Callable[[A, V], A],
        merge: Callable[[A, A], A] | None = None,
        result: None = None,
        *,
        name: str | None = None,
    ) -> KeyedStream[K, A]: ...

    @overload
    def aggregate(
        self,
        init: Callable[[], A],
        add: Callable[[A, V], A],
        merge: Callable[[A, A], A] | None,
        result: Callable[[A], R],
        *,
        name: str | None = None,
    ) -> KeyedStream[K, R]: ...

    def aggregate(
        self, init: Any, add: Any, merge: Any = None, result: Any = None, *, name: str | None = None
    ) -> KeyedStream[K, Any]:
        """Fold each key's values so far into an accumulator.

        Args:
            init: Returns a new accumulator, a value that JSON has.
            add: Returns the accumulator with one value more; it may be the same one, changed.
            merge: Returns the accumulator of two, so that values are combined before they are sent; None: they are not.
            result: Returns the result for an accumulator; the accumulator itself if it is None.
            name: The stage's name.

        Raises:
            TopologyError: ``init()`` counts by itself, so that several accumulators would count it several times.
        """
        return KeyedStream(self._declared, self._fold("aggregate", _fold_of(init, add, merge, result), name))

    def update_state(
        self, init: Callable[[], A], update: Callable[[A, V], A], *, name: str | None = None
    ) -> StateTable[K, A]:
        """Store a state for each key, which survives crashes, and send it at each change.

        Args:
            init: Returns a new state, a value that JSON has.
            update: Returns the state after one value more.
            name: The stage's name.
        """
        operations.called("update_state", init)
        operations.called("update_state", update)
        return StateTable(self._declared, self._keyed(Update(init, update), name))

    def state_query(self, table: StateTable[K, A], *, name: str | None = None) -> KeyedStream[K, tuple[V, A | None]]:
        """Make each value a pair of itself and the state of its key in ``table``; None if the key has none yet."""
        if not isinstance(table, StateTable):
            raise TopologyError(f"state_query takes the stream that update_state returned, not {table!r:.80}")
        _check_values(self.stage, "state_query")
        if table.stage.graph is not self.stage.graph:
            raise TopologyError("state_query: the table is of another StreamBuilder; declare both with one builder")
        stage = self._next(Query(table.stage.name), PAIRS, name, table.stage.parallelism)
        return KeyedStream(self._declared, stage)

    # ---- windows ----

    def window(
        self,
        window: Sliding | Session,
        timestamp: Callable[[V], int] | None = None,
        *,
        lag: timedelta | None = None,
        allowed_lateness: timedelta | None = None,
        idle_after: timedelta | None = None,
        watermark_interval: timedelta | None = None,
        name: str | None = None,
    ) -> WindowedStream[K, V]:
        """Divide each key's values into windows, see multilang.windowing.

        Args:
            window: ``Tumbling(length)``, ``Sliding(length, slide)`` or ``Session(gap)``.
            timestamp: Returns a value's time, in milliseconds since the epoch; None: the time of its arrival.
            lag: The duration by which values may be out of order.
            allowed_lateness: The duration for which a window's result may still change.
            idle_after: The duration after which a silent source no longer holds up the watermark.
            watermark_interval: The duration between two watermarks.
            name: The stage's name.
        """
        settings = WindowSettings(window, timestamp is not None, lag, allowed_lateness, idle_after, watermark_interval)
        operation = operations.Untimed() if timestamp is None else operations.Stamp(timestamp)
        shape = PAIRS if timestamp is None else TRIPLES
        stage = self._next(operation, shape, name, fields=self.stage.fields)
        return WindowedStream(self._declared, stage, settings)

    def group(self, *, name: str | None = None) -> NoReturn:
        """Refuse: lists of all values so far would grow forever. Use ``window(...).group()``."""
        raise TopologyError(
            "group on a keyed stream without windows would send lists that grow for ever; write window(...).group(), or fold the values "
            "with aggregate(init, add, merge)"
        )

    def join(self, other: KeyedStream[K, W], *, name: str | None = None) -> NoReturn:
        """Refuse: both streams would be stored forever. Use ``window(...).join(other.window(...))``."""
        _refuse_unbounded("join")

    def left_join(self, other: KeyedStream[K, W], *, name: str | None = None) -> NoReturn:
        """Refuse, as ``join``."""
        _refuse_unbounded("left_join")

    def right_join(self, other: KeyedStream[K, W], *, name: str | None = None) -> NoReturn:
        """Refuse, as ``join``."""
        _refuse_unbounded("right_join")

    def full_join(self, other: KeyedStream[K, W], *, name: str | None = None) -> NoReturn:
        """Refuse, as ``join``."""
        _refuse_unbounded("full_join")

    def co_group(self, other: KeyedStream[K, W], *, name: str | None = None) -> NoReturn:
        """Refuse, as ``join``."""
        _refuse_unbounded("co_group")

    def _fold(self, kind: str, fold: Fold, name: str | None) -> Stage:
        return self._keyed(Aggregate(kind, fold), name, fold.needs_values)

    def _keyed(self, operation: Operation, name: str | None, needs_values: bool = True) -> Stage:
        if needs_values:
            _check_values(self.stage, operation.name)
        return self._next(operation, PAIRS, name)


class StateTable(KeyedStream["K", "V"]):
    """The stream of a state's changes, which other streams can query for the state of a key."""


class WindowedStream(_OfPairs["K", "V"]):
    """A keyed stream divided into windows. Its operations send results for each key and window, when the window ends."""

    def __init__(self, declared: Declared, stage: Stage, settings: WindowSettings) -> None:
        self._declared = declared
        self._stage = stage
        self._settings = settings

    def count(self, *, name: str | None = None) -> WindowResults[K, int]:
        """Count the values in each window."""
        return self._fold("count", counting(), name)

    def reduce(self, function: Callable[[V, V], V], *, name: str | None = None) -> WindowResults[K, V]:
        """Reduce the values in each window to one; values arrive in any order."""
        return self._fold("reduce", Reduction(operations.called("reduce", function)), name)

    @overload
    def aggregate(
        self,
        init: Callable[[], A],
        add: Callable[[A, V], A],
        merge: Callable[[A, A], A] | None = None,
        result: None = None,
        *,
        name: str | None = None,
    ) -> WindowResults[K, A]: ...

    @overload
    def aggregate(
        self,
        init: Callable[[], A],
        add: Callable[[A, V], A],
        merge: Callable[[A, A], A] | None,
        result: Callable[[A], R],
        *,
        name: str | None = None,
    ) -> WindowResults[K, R]: ...

    def aggregate(
        self, init: Any, add: Any, merge: Any = None, result: Any = None, *, name: str | None = None
    ) -> WindowResults[K, Any]:
        """Fold the values in each window into an accumulator, see KeyedStream.aggregate.

        Sliding windows and sessions need ``merge``.
        """
        if merge is None and not isinstance(self._settings.window, Tumbling):
            raise TopologyError(
                f"aggregate in {self._settings.window!r}: sliding windows and sessions are merged from parts; give aggregate a merge="
            )
        return self._fold("aggregate", _fold_of(init, add, merge, result), name)

    def group(self, *, name: str | None = None) -> WindowResults[K, list[V]]:
        """Return the list of the values in each window."""
        return self._fold("group", collecting(), name)

    def join(self, other: WindowedStream[K, W], *, name: str | None = None) -> WindowResults[K, tuple[V, W]]:
        """Return each value of a window with each of the other stream's in the same window of the same key."""
        return self._join("join", other, inner, name)

    def left_join(
        self, other: WindowedStream[K, W], *, name: str | None = None
    ) -> WindowResults[K, tuple[V, W | None]]:
        """Return the join, and with None the values for which the other stream has none in the window."""
        return self._join("left_join", other, left_outer, name)

    def right_join(
        self, other: WindowedStream[K, W], *, name: str | None = None
    ) -> WindowResults[K, tuple[V | None, W]]:
        """Return the join, and with None the other stream's values for which this one has none in the window."""
        return self._join("right_join", other, right_outer, name)

    def full_join(
        self, other: WindowedStream[K, W], *, name: str | None = None
    ) -> WindowResults[K, tuple[V | None, W | None]]:
        """Return the join, and with None the values of either stream for which the other has none in the window."""
        return self._join("full_join", other, full_outer, name)

    def co_group(
        self, other: WindowedStream[K, W], *, name: str | None = None
    ) -> WindowResults[K, tuple[list[V], list[W]]]:
        """Return the pair of lists of both streams' values in each window."""
        return self._join("co_group", other, grouped, name)

    def to(self, bolt: object, *, name: str | None = None) -> NoReturn:
        """Refuse: a window has no elements of its own. Use ``group().to(bolt)``, or another operation's results."""
        raise TopologyError(
            "to of a windowed stream: a window's results come from an operation; write window(...).group().to(bolt) for its values, or "
            "count(), reduce(...), aggregate(...), join(...)"
        )

    def _fold(self, kind: str, fold: Fold, name: str | None) -> WindowResults[K, Any]:
        if fold.needs_values:
            _check_values(self._stage, kind)
        return self._results(WindowFold(kind, self._settings, fold), [self._stage], name)

    def _join(
        self,
        kind: str,
        other: WindowedStream[K, Any],
        combine: Callable[[list[Any], list[Any]], list[Any]],
        name: str | None,
    ) -> WindowResults[K, Any]:
        if not isinstance(other, WindowedStream):
            raise TopologyError(f"{kind} takes a windowed stream, such as other.window(...), not {other!r:.80}")
        if other._settings != self._settings:
            raise TopologyError(
                f"{kind} of windows that differ: {self._settings!r} and {other._settings!r}; give both the same, with the same lag and "
                "lateness"
            )
        left, right = self._stage, other._stage
        _check_values(left, kind)
        _check_values(right, kind)
        if left is right:  # each side has a stream of its own
            right = right.graph.add(operations.Merge(), [right], right.shape, name=None)
        return self._results(WindowJoin(kind, self._settings, combine), [left, right], name)

    def _results(self, operation: Windowed, parents: Sequence[Stage], name: str | None) -> WindowResults[K, Any]:
        head = self._stage.graph.add(operation, parents, TRIPLES, name=name)
        stage = head.graph.add(Results(), [head], PAIRS, name=head.graph.free(f"{head.name}.result"))
        return WindowResults(self._declared, stage)


class WindowResults(KeyedStream["K", "V"]):
    """The results of windows, each sent when its window ends."""

    def with_end(self, *, name: str | None = None) -> KeyedStream[K, tuple[int, V]]:
        """Return the results as pairs with the end of their window, in milliseconds."""
        (head,) = self.stage.parents
        return KeyedStream(self._declared, head.graph.add(WithEnd(), [head], PAIRS, name=name))

    def with_window(self, *, name: str | None = None) -> KeyedStream[K, tuple[dict[str, Any], V]]:
        """Return the results as pairs with a dict of their window, for a sink that replaces results by later ones.

        It has ``id``, ``number``, ``timing``, ``start`` and ``end``, as a Window has them, and ``row``, the number of the result among
        those of this evaluation, of which a join has several. Only this stream has retracted results.
        """
        (head,) = self.stage.parents
        return KeyedStream(self._declared, head.graph.add(WithWindow(), [head], PAIRS, name=name))

    def late(self, *, name: str | None = None) -> KeyedStream[K, Any]:
        """Return the stream of the values that were too late for their windows."""
        (head,) = self.stage.parents
        if not head.operation.settings.timed:
            raise TopologyError(f"late of {head.name!r}: values are late by event time alone; give window a timestamp=")
        if len(head.parents) > 1:
            raise TopologyError(
                f"late of {head.name!r}: a join does not know whose value was late; use allowed_lateness="
            )
        _check_values(head.parents[0], "late")
        return KeyedStream(self._declared, head.graph.add(Late(), [head], PAIRS, name=name))


def _fold_of(init: Any, add: Any, merge: Any, result: Any) -> Fold:
    for function in (init, add, *(each for each in (merge, result) if each is not None)):
        operations.called("aggregate", function)
    if merge is not None and (both := merge(init(), init())) != init():
        raise TopologyError(
            f"aggregate: merge(init(), init()) is {both!r:.80} and init() is {init()!r:.80}, so that each partial result would count "
            "init() again; let init return what changes nothing, and add the rest in result"
        )
    return Fold(init, add, merge, result)


def _check_values(stage: Stage, what: str) -> None:
    """Raise TopologyError if the values of a stage's pairs can't be sent."""
    if stage.fields is not None:
        raise TopologyError(
            f"{what} after {stage.name!r}: its values are tuples of a spout or bolt, which can't be sent as they are; take "
            f"out what you need before, such as .map_values(lambda t: t[{stage.fields[0]!r}])"
        )


def _refuse_unbounded(kind: str) -> NoReturn:
    raise TopologyError(
        f"{kind} of keyed streams without windows would store all of both forever; write a.window(...).{kind}(b.window(...)), or store "
        "one of them with update_state and query it by state_query"
    )


def _kind(stage: Stage) -> str:
    return "values" if stage.fields is None else f"tuples of {', '.join(stage.fields)}"
