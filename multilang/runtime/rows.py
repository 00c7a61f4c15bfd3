"""Tuples that go in rows: what a basic bolt emits, delivered together and made into tuples one by one.

What comes of one root and goes to one task has one edge, as if it were one tuple, and is acked with one message when all of it
is done. Nothing is tied together that was not before: a root fails when any tuple that came of it does. Without ackers nothing goes in
rows, nor does what is anchored to no root, or to several.

A bolt that gets rows makes one tuple after the other, and gives the same object again with the next values if its ``process`` kept
no reference to it: to make a tuple costs more than most bolts do with it.
"""

from __future__ import annotations

import sys
from math import nan
from typing import TYPE_CHECKING

from multilang.protocol import UnserializableValue
from multilang.protocol.codec import FREE, MAX_INT, MIN_INT, normalize
from multilang.protocol.messages import DEFAULT_STREAM
from multilang.runtime.tuples import LocalTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    from multilang.component.collector import Emit, EmitMany
    from multilang.component.timers import Scope
    from multilang.protocol.messages import Tuple
    from multilang.runtime.emitter import TupleEmitter
    from multilang.runtime.plan import Route
    from multilang.runtime.tuples import Origin

    Group: TypeAlias = tuple[int, int, list[list[Any]]]
    """A root, which is never 0, the edge of all rows together, and the values of each."""

_ROWS = 64  # of a group; those of a larger one are divided
_ENOUGH = 512  # rows that a task emits before those are processed that it emitted
_FANS = 3  # rows that a tuple must lead to on the average to go together: one by one, few go faster
_LOOKED_AT = 20  # tuples after which it is looked at whether a tuple leads to so many
_WIDEST = 8  # the most values of a row whose emit is made for their number


def _uncounted(_: object) -> float:
    return nan  # equals no number, so that no tuple is given again


# From Python 3.14 on, and without its lock, a call may hold a reference that is not counted.
_references: Callable[[object], float] = _uncounted
if hasattr(sys, "getrefcount") and sys.version_info < (3, 14) and getattr(sys, "_is_gil_enabled", lambda: True)():
    _references = sys.getrefcount


def _alone(scope: Scope, anchors: list[Any]) -> float:
    """Return the number of references to a tuple that no bolt has kept; ``RowCollector.execute`` has it in the same places."""
    tup = LocalTuple.__new__(LocalTuple)
    scope.current = anchors[0] = tup
    found = _references(tup)
    scope.current = anchors[0] = None
    return found


class Rows:
    """Groups of rows on their way to a task.

    Attributes:
        origin: What their tuples have in common.
        groups: The groups; one in which the task died has the rows that are left.
        at: The number of the groups that are done.
        executed: The number of the rows that were executed.
        died_of: The tuple in process when the task died.
    """

    __slots__ = ("at", "died_of", "executed", "groups", "origin")

    def __init__(self, origin: Origin, groups: list[Group]) -> None:
        self.origin = origin
        self.groups = groups
        self.at = 0
        self.executed = 0
        self.died_of: Any = None


def tuples(origin: Origin, groups: Iterable[Group], getrandbits: Callable[[int], int]) -> Iterator[LocalTuple]:
    """Yield the tuples of groups, each with an edge of its own."""
    for root, edge, rows in groups:
        last = rows[-1]
        for row in rows:
            own = edge
            if row is not last:
                own = getrandbits(64)
                edge ^= own
            yield LocalTuple(row, origin.stream, origin, root, own)


class RowCollector:
    """The calls of a basic bolt that emits rows and gets them.

    Rows are gathered while a tuple with a root is processed, and go when the task has emitted enough, or at any call that
    might overtake them.

    Args:
        emitter: The task's emitter.
        scope: The task's scope.
        emit: The emit of all that is no row.
        emit_many: The same of many tuples.

    Attributes:
        emit: The bolt's emit.
        emit_many: The bolt's emit of many tuples.
        rows: What was emitted and has not gone.
        execute: Runs groups of rows until enough was emitted, and tells by their ``at`` how far it came.
        execute_one: Runs one tuple.
    """

    def __init__(self, emitter: TupleEmitter, scope: Scope, emit: Emit, emit_many: EmitMany) -> None:
        self._emitter = emitter
        self._scope = scope
        self._route: Any = emitter.routes.get(DEFAULT_STREAM)
        self._groups: list[Group] = []
        self.rows = emitter.rows
        emitter.row_collector = self
        self._anchors: list[Any] = [None]  # one list for all tuples, each of which is put into it in turn
        self.emit, self.emit_many = _made(emitter, self._route, emit, emit_many)
        self.execute: Callable[[Rows], None]
        self.execute_one: Callable[[Any], None]
        self._by_fans: tuple[Callable[[Any], None], Callable[[Any], None]]  # for few tuples from one, and for many
        self._emitted = emitter.stats.emitted
        self._executed = 0

    def send(self) -> None:
        """Send what was emitted so far, anchored to the tuple in process."""
        (anchor,) = self._scope.anchors
        anchor.edge ^= self._close(anchor.root)  # type: ignore[attr-defined]
        self._deliver()

    def end(self) -> None:
        """Send what was emitted so far, and gather nothing more of the tuple in process, since it is acked or failed."""
        if self.rows:
            self.send()
        self._emitter.gathers = False

    def runs(
        self,
        execute: Callable[[Any], None],
        process: Callable[[Tuple], None],
        failed: Callable[[Tuple, Exception], None],
    ) -> Callable[[Any], None]:
        """Take what runs the bolt, and return what runs one tuple through it; see BoltCollector."""
        self.execute = self._many(process, failed)
        self._by_fans = execute, execute if self._route is None else self._one(execute)
        self.execute_one = self._by_fans[True]
        return self.execute_one

    def look(self, executed: int) -> None:
        """Choose ``execute_one`` by whether the last tuples fanned out; ``executed`` is the number of tuples so far."""
        tuples = executed - self._executed
        if tuples < _LOOKED_AT:
            return
        emitted = self._emitter.stats.emitted
        self.execute_one = self._by_fans[emitted - self._emitted >= _FANS * tuples]
        self._emitted, self._executed = emitted, executed

    def _close(self, root: int) -> int:
        """End a group, and return the edge of its rows, or the xor of several."""
        rows, stats = self.rows, self._emitter.stats
        stats.emitted += len(rows)
        total = 0
        if rows and self._route.choose is not None:
            add, getrandbits = self._groups.append, self._emitter.links.getrandbits
            if len(rows) <= _ROWS:
                total = getrandbits(64)
                add((root, total, rows[:]))
            else:
                for start in range(0, len(rows), _ROWS):
                    edge = getrandbits(64)
                    total ^= edge
                    add((root, edge, rows[start : start + _ROWS]))
        rows.clear()
        return total

    def _deliver(self) -> None:
        """Give the groups to the tasks that their route chooses."""
        groups = self._groups[:]
        self._groups.clear()
        if self._route.only is None:
            for task, its in self._divided(groups).items():
                self._give(task, its)
        elif groups:
            self._give(self._route.only, groups)

    def _give(self, task: int, groups: list[Group]) -> None:
        links, origin = self._emitter.links, self._route.origin
        self._emitter.stats.transferred += sum([len(rows) for _, _, rows in groups])
        receiver = links.row_receivers.get(task)  # type: ignore[union-attr]
        if receiver is not None:
            links.out.append((receiver, Rows(origin, groups)))
            return
        receiver = links.receivers[task]
        links.out.extend([(receiver, tup) for tup in tuples(origin, groups, links.getrandbits)])

    def _divided(self, groups: list[Group]) -> dict[int, list[Group]]:
        """Return the groups of each task."""
        choose, links = self._route.choose, self._emitter.links
        found: dict[int, list[Group]] = {}
        for root, edge, rows in groups:
            parts: dict[int, list[list[Any]]] = {}
            for row in rows:
                mine = row
                for task in choose(row):
                    part = parts.get(task)
                    if part is None:
                        part = parts[task] = []
                    part.append(mine)
                    mine = normalize(row)  # a change by one task is not seen by another
            left = edge
            for count, (task, part) in enumerate(parts.items(), 1):
                own = left
                if count < len(parts):
                    own = links.getrandbits(64)
                    left ^= own
                found.setdefault(task, []).append((root, own, part))
            if not parts:
                links.ack(root, edge, 0)
        return found

    def _one(self, execute: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return ``execute`` with the tuple's emits in rows."""
        emitter, rows = self._emitter, self.rows

        def execute_one(tup: Any) -> None:
            root = tup.root
            if not root or type(root) is not int:  # a tick, what came of one, or of several roots
                execute(tup)
                return
            emitter.gathers = True
            try:
                execute(tup)
            finally:
                emitter.gathers = False
                if rows:  # of a tuple that was not acked, since its task died
                    self.send()

        return execute_one

    def _died(self, batch: Rows, tup: Any, edge: int, rest: list[list[Any]], settled_by_bolt: int) -> None:
        """Leave the rest of a group to the next task. The root is not done if its tuple was not acked before the task died of it.

        Args:
            batch: The groups.
            tup: The tuple of which the task died; None if another one died of what its ack led to.
            edge: The group's edge, with all that was emitted for it but rows.
            rest: The rows that are left.
            settled_by_bolt: The number of those before that the bolt acked or failed, or that failed.
        """
        root, _, given = batch.groups[batch.at]
        done = len(given) - len(rest)
        self._emitter.stats.acked += done - 1 - settled_by_bolt
        batch.executed += done
        batch.died_of = tup
        links = self._emitter.links
        is_acked = tup is not None and not tup.unfinished
        more = self._close(root)
        edge = edge ^ more if is_acked else links.getrandbits(64)
        if rest:
            batch.groups[batch.at] = (root, edge, rest)
            return
        batch.at += 1
        if is_acked:
            links.ack(root, edge, 0)

    def _many(  # noqa: C901  # one body, since each call from here costs a share of the rate
        self, process: Callable[[Tuple], None], failed: Callable[[Tuple, Exception], None]
    ) -> Callable[[Rows], None]:
        """Return ``execute``."""
        scope, anchors, out_rows, close, deliver = self._scope, self._anchors, self.rows, self._close, self._deliver
        emitter, stats, links = self._emitter, self._emitter.stats, self._emitter.links
        named, ack, references, new = links.named, links.ack, _references, LocalTuple.__new__
        groups_out = self._groups
        alone = _alone(scope, anchors)
        is_heard = self._route is not None and self._route.choose is not None

        def execute(batch: Rows) -> None:  # noqa: C901
            origin, groups = batch.origin, batch.groups
            stream = origin.stream
            scope.anchors = anchors
            before = stats.emitted
            acked = executed = 0
            tup: Any = (
                None  # the last one, which stays unfinished until there is another, since nobody can look meanwhile
            )
            emitter.gathers = True
            try:
                for root, edge, given in groups if not batch.at else groups[batch.at :]:
                    if tup is not None:
                        tup.root = root
                    settled_by_bolt = 0
                    left = iter(given)
                    try:
                        for values in left:
                            if references(tup) == alone:
                                tup.values = values
                            else:
                                if tup is not None:
                                    tup.unfinished = False
                                tup = new(LocalTuple)
                                tup.values = values
                                tup.stream = stream
                                tup.origin = origin
                                tup.root = root
                                tup.edge = 0
                                tup.unfinished = True
                                scope.current = anchors[0] = tup
                            try:
                                process(tup)
                            except Exception as error:  # noqa: BLE001  # user code
                                failed(tup, error)
                            if not tup.unfinished:
                                emitter.gathers = True  # which its ack or fail has ended
                                settled_by_bolt += 1
                                tup = None
                                continue
                            if tup.edge:  # something was emitted that is no row
                                edge ^= tup.edge
                                tup.edge = 0
                            if named:
                                named.pop(getattr(tup, "_id", ""), None)
                                tup.unfinished = False
                                tup = None
                    except BaseException:
                        self._died(batch, tup, edge, list(left), settled_by_bolt)
                        raise
                    batch.at += 1
                    executed += len(given)
                    here = len(given) - settled_by_bolt
                    acked += here
                    if out_rows and is_heard:
                        edge ^= close(root)
                    ack(root, edge, here)
                    if stats.emitted - before > _ENOUGH:
                        break
                if tup is not None:
                    tup.unfinished = False
                scope.current = None
            finally:
                emitter.gathers = False
                stats.acked += acked
                batch.executed += executed
                if out_rows:  # of a stream without a subscriber
                    close(0)
                if groups_out:
                    deliver()

        return execute


def takes_rows(emitter: TupleEmitter) -> bool:
    """Return whether what a basic bolt emits may go in rows: no other stream but the default has subscribers."""
    if emitter.links.row_receivers is None:
        return False
    routes = emitter.routes
    if routes and DEFAULT_STREAM not in routes:
        return False
    return all(
        route.direct is None
        and route.captured is None
        and (route.choose is None or (name == DEFAULT_STREAM and route.is_trusted))
        for name, route in routes.items()
    )


_EMIT = """
def made(emitter, append, row_of, otherwise, otherwise_many, free):
    def emit(values, stream=None, anchors=None, direct_task=None, need_task_ids=False, on_task_ids=None):
        if stream is None and anchors is None and direct_task is None and on_task_ids is None and not need_task_ids:
            if {is_narrow} and type(values) is list:
                try:
                    [{names}] = values  # which looks at their number faster than ``len`` does
                except ValueError:
                    pass
                else:
                    if {checks}:
                        if emitter.gathers:
                            append({row})
                            return
                        return otherwise([{names}], None, None, None, False, None, True)
            if emitter.gathers:
                append(row_of(values))
                return
        return otherwise(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def emit_many(rows, stream=None, anchors=None):
        if emitter.gathers and stream is None and anchors is None:
            for values in rows:
                emit(values)
        else:
            otherwise_many(rows, stream, anchors)

    return emit, emit_many
"""


def _check(name: str) -> str:
    """Return the condition that a value needs no further look."""
    return (
        f"({name}.isascii() if (kind := type({name})) is str else {MIN_INT} <= {name} <= {MAX_INT} if kind is int"
        f" else {name} - {name} == 0.0 if kind is float else kind in free)"
    )


def _made(emitter: TupleEmitter, route: Route | None, emit: Emit, emit_many: EmitMany) -> tuple[Any, Any]:
    """Make a basic bolt's emits for the width of its stream.

    They look at each value by its name, since a loop over one or two values costs as much as all the rest. What looks wrong
    or rare goes to ``row_of``.
    """
    is_narrow = route is not None and 0 <= route.width <= _WIDEST
    names = [f"value_{number}" for number in range(route.width if route is not None and is_narrow else 0)]
    text = _EMIT.format(
        is_narrow=is_narrow,
        names=", ".join(names),
        checks=" and ".join(map(_check, names)) or "True",
        row=f"[{', '.join(names)}]" if route is not None and route.choose is not None else "None",
    )
    namespace: dict[str, Any] = {}
    exec(compile(text, "<emit of rows>", "exec"), namespace)  # noqa: S102  # the text is made here, of numbers alone

    def row_of(values: Any) -> list[Any]:
        try:
            if route is not None and len(values) == route.width:
                return normalize(values)
        except (TypeError, UnserializableValue):
            pass  # the wire's end says what is wrong
        return emitter.checked(values, None, None)[0]

    return namespace["made"](emitter, emitter.rows.append, row_of, emit, emit_many, FREE)  # type: ignore[no-any-return]
