"""Ordinary components of this library around components of storm.py."""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import Sequence

from multilang.compat.adapters import Adapter, around, own
from multilang.compat.storm import components
from multilang.compat.storm.calls import enter
from multilang.compat.values import as_simplejson_sends, unsubscribed
from multilang.component import bolt as own_bolt
from multilang.component import spout as own_spout
from multilang.component.errors import ConfigError
from multilang.component.report import report_exception
from multilang.protocol.errors import LocalProtocolError, UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream


class TaskIds(Sequence):  # type: ignore[type-arg]
    """A list of task ids, which is waited for only on its first use.

    Args:
        wait: Waits until ``tasks`` is set.

    Attributes:
        tasks: The ids; None until they arrive.
    """

    __slots__ = ("_wait", "tasks")

    def __init__(self, wait: Callable[[TaskIds], object]) -> None:
        self._wait = wait
        self.tasks: list[int] | None = None

    def __call__(self, tasks: list[int]) -> None:
        """Set the ids, when they arrive."""
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


class BoltTask:
    """The calls of a running bolt: what storm.py's functions do for it.

    Attributes:
        collector: The engine's collector.
    """

    def __init__(self, collector: Any, context: Any, is_basic: bool) -> None:
        self.collector = collector
        self._is_unsubscribed = unsubscribed(context)
        self.held: dict[str, Any] = {}  # the tuples that are neither acked nor failed, by id
        self._is_basic = is_basic
        self._anchor: Any = []  # a basic bolt's tuple in process, as the engine delivered it
        self._asking = _asking(collector)

    def emit(self, tup: Any, stream: Any = None, anchors: Any = (), directTask: Any = None) -> Any:  # noqa: N803
        """See storm.emit."""
        held = self.held
        if self._is_basic and self._anchor:
            anchors = self._anchor
        elif anchors:
            anchors = [held.get(anchor.id, anchor.id) for anchor in anchors]
        try:
            return self._asking(tup, stream, anchors, directTask)
        except UnserializableValue:
            return self._asking(as_simplejson_sends(tup), stream, anchors, directTask)
        except LocalProtocolError:
            if not self._is_unsubscribed(tup, stream):
                raise
            return []

    def ack(self, tup: Any) -> None:
        """Ack a tuple."""
        self.collector.ack(self.held.pop(tup.id, tup.id))

    def fail(self, tup: Any) -> None:
        """Fail a tuple."""
        self.collector.fail(self.held.pop(tup.id, tup.id))

    def executor(self, bolt: Any, adapter: Any) -> Callable[[Any], None]:
        """Return the function that runs one tuple."""
        held, basic, process, kind = self.held, self._is_basic, bolt.process, components.Tuple
        anchor: list[Any] = [None]

        def execute(received: Any) -> None:
            enter(self)
            id = received.id
            held[id] = received
            tup = kind(id, received.component, received.stream, received.task, received.values)
            if not basic:
                process(tup)
                return
            anchor[0] = received
            self._anchor = anchor
            try:
                process(tup)
                if received.unfinished:
                    self.ack(tup)
            except Exception as error:  # noqa: BLE001 - any fault of the program fails its tuple
                report_exception(adapter, error, received)
                if received.unfinished:
                    self.fail(tup)

        return execute


class SpoutTask:
    """The calls of a running spout; see BoltTask.

    Storm listens to a spout only while it answers a command. A tuple emitted at another time is queued for the next
    command.
    """

    def __init__(self, collector: Any) -> None:
        self.collector = collector
        self.listening = False
        self._thread = get_ident()
        self._queued: deque[tuple[Any, ...]] = deque()
        self._asking = _asking(collector)

    def emit(self, tup: Any, stream: Any = None, id: Any = None, directTask: Any = None) -> Any:  # noqa: N803
        """See storm.emit."""
        if not (self.listening and get_ident() == self._thread):
            ids = TaskIds(_too_early)
            self._queued.append((list(tup) if isinstance(tup, list) else tup, stream, id, directTask))
            return ids
        return self._send(tup, stream, id, directTask)

    def command(self, call: Callable[..., None], *args: Any) -> None:
        """Call one of the spout's methods, as the answer to a command."""
        enter(self)
        self._thread = get_ident()
        self.listening = True
        try:
            while self._queued:
                self._send(*self._queued.popleft())
            call(*args)
        finally:
            self.listening = False

    def _send(self, tup: Any, stream: Any, id: Any, task: Any) -> Any:
        try:
            return self._asking(tup, id, stream, task)
        except UnserializableValue:
            return self._asking(as_simplejson_sends(tup), as_simplejson_sends(id), stream, task)


class BoltAdapter(Adapter, own_bolt.Bolt):
    """A bolt of storm.py's as a component of this library; ``adapted`` makes it."""

    acks_ticks = False

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        bolt = self.made()
        task = BoltTask(self._collector, context, isinstance(bolt, components.BasicBolt))
        enter(task)
        bolt.initialize(conf, context)
        execute = task.executor(bolt, self)  # after initialize, which may have replaced process
        for name in ("process", "process_tick"):
            setattr(self, name, execute)


class SpoutAdapter(Adapter, own_spout.Spout):
    """A spout of storm.py's as a component of this library; ``adapted`` makes it."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._spout = spout = self.made()
        self._task = SpoutTask(self._collector)
        enter(self._task)
        spout.initialize(conf, context)

    def next_tuple(self) -> None:
        self._task.command(self._spout.nextTuple)

    def ack(self, tup_id: Any) -> None:
        if self._task.listening:  # within an emit, when there are no ackers
            self._spout.ack(tup_id)
        else:
            self._task.command(self._spout.ack, tup_id)

    def fail(self, tup_id: Any) -> None:
        self._task.command(self._spout.fail, tup_id)

    def activate(self) -> None:
        self._task.command(self._spout.activate)

    def deactivate(self) -> None:
        self._task.command(self._spout.deactivate)


def adapted(
    given: Any,
    output_fields: Sequence[str] | None = None,
    output_streams: Mapping[str, Sequence[str] | Stream] | None = None,
) -> Any:
    """Return a component of this library that runs one of storm.py's.

    Args:
        given: The class, of which each task makes its own instance, or an instance. One of this library's own is returned as it
            is, with the fields and streams given here.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.

    Raises:
        ConfigError: It is neither a bolt nor a spout of storm.py's.
    """
    component = own(given, output_fields, output_streams)
    if component is not None:
        return component
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, components.Bolt | components.BasicBolt):
        return around(BoltAdapter, given, output_fields, output_streams)
    if issubclass(kind, components.Spout):
        return around(SpoutAdapter, given, output_fields, output_streams)
    raise ConfigError(
        f"{kind.__name__} is neither a Bolt, a BasicBolt nor a Spout of storm.py's, so that there is nothing to run"
    )


def _asking(collector: Any) -> Callable[..., Any]:
    """Return an emit that returns the task ids: at once if the engine knows them, else on their first use."""
    emit = collector.emit
    wait = getattr(collector, "await_task_ids", None)
    if getattr(collector, "knows_tasks", False) or wait is None:

        def ask(tup: Any, second: Any, third: Any, task: Any) -> Any:
            return emit(tup, second, third, task, True)

        return ask

    def ask_later(tup: Any, second: Any, third: Any, task: Any) -> Any:
        ids = TaskIds(wait)
        emit(tup, second, third, task, False, ids)
        return ids

    return ask_later


def _too_early(_: TaskIds) -> None:
    raise ConfigError("the task ids of a spout's emit in initialize() or in another thread are not known there")
