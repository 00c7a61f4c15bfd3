"""The connection between a component of pystorm's and the collector of the engine that runs it."""

from __future__ import annotations

from _thread import get_ident
from collections import deque

from multilang.compat.pystorm.bolt import BatchingBolt, Bolt, value_types
from multilang.compat.pystorm.component import Component, Tuple, attach, handle_exception
from multilang.compat.pystorm.spout import Spout
from multilang.compat.values import as_simplejson_sends, unsubscribed
from multilang.component.errors import ConfigError
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.settings import MILD, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from typing import Any

    from multilang.component.collector import BoltCollector, Collector, SpoutCollector

_LAYER = "multilang.compat."
_LOOPS = ("_run", "read_command", "read_handshake", "read_message", "read_task_ids", "read_tuple")


class State:
    """The tuples that a bolt works on.

    Attributes:
        current: The tuples that emits are anchored to, as the bolt sees them: one, or a batch.
        single: The list that ``current`` is while one tuple is in process.
        received: The same tuple, as the engine delivered it.
    """

    __slots__ = ("current", "received", "single")

    def __init__(self) -> None:
        self.current: Any = []
        self.single: Any = None
        self.received: Any = [None]


class Link:
    """The calls that bolts and spouts share.

    Attributes:
        sends_itself: Whether calls go to the collector at once; no when the user's class overrides ``send_message``.
        dying: Whether an exception that ends the task is handled.
        is_unsubscribed: Whether an emit was refused only for its number of values; see unsubscribed.
        task_ids: The task ids of the last emit that was sent by ``perform``.
    """

    def __init__(self, component: Component, collector: Collector, conf: dict[str, Any], context: Any) -> None:
        _check(component)
        self._component = component
        self._shared = collector
        self.sends_itself = type(component).send_message is Component.send_message
        self.dying = False
        self.is_unsubscribed = unsubscribed(context)
        self.task_ids: Any = None
        if value(conf, MILD):
            component.exit_on_exception = False
        attach(component, self, conf, context)

    def perform(self, message: dict[str, Any]) -> None:
        """Carry out a message of the multi-lang protocol.

        Raises:
            ValueError: There is no such command.
        """
        command = message.get("command")
        if command == "log":
            self._shared.log(str(message["msg"]), message.get("level", 2))
        elif command == "error":
            self._shared.report_error(str(message["msg"]))
        elif command == "metrics":
            self._shared.report_metric(message["name"], as_simplejson_sends(message["params"]))
        elif command != "sync" and "pid" not in message:  # the engine answers the parent
            raise ValueError(
                f"send_message({message!r}): Storm has no such command for {type(self._component).__name__}"
            )

    def failed(self, error: Exception) -> None:
        """Let the component handle an exception, and raise it again if it ends the task."""
        component = self._component
        self.dying = component.exit_on_exception
        if not self.dying:
            component.logger.error("Exception in %s.run()", type(component).__name__, exc_info=error)
        handle_exception(component, error)
        if self.dying:
            raise error

    def set_up_logging(self, logger: logging.Logger, handler: Any, level: int, form: str | None) -> None:
        """Send the component's records to the log of the conf.

        Args:
            logger: The component's logger.
            handler: The handler of ``pystorm.log.path``; None: Storm's log.
            level: The lowest level.
            form: The format that the conf gives, if any.
        """
        import logging

        from multilang.component.logs import StormHandler

        if not self._shared.to_parent:  # a process with many tasks, whose owner sets up its logging
            if handler is not None:
                logger.addHandler(handler)
            return
        root = logging.getLogger()
        for each in root.handlers[:]:
            if isinstance(each, StormHandler):
                if handler is not None:
                    root.removeHandler(each)
                    continue
                each.setLevel(level)
                if form:
                    each.setFormatter(logging.Formatter(form))
        if handler is not None:
            root.addHandler(handler)


class BoltLink(Link):
    """The connection of a bolt; see Link.

    Attributes:
        state: The tuples in process.
        emit: Bolt.emit.
        ack: Bolt.ack.
        fail: Bolt.fail.
    """

    def __init__(self, bolt: Bolt, collector: BoltCollector, conf: dict[str, Any], context: Any) -> None:
        self.state = State()
        self._held: dict[str, Any] = {}  # the tuples that are neither acked nor failed after their process(), by id
        super().__init__(bolt, collector, conf, context)
        self.emit = self._made_emit(bolt, collector)
        self.ack = self._settling(collector.ack)
        self.fail = self._settling(collector.fail)
        if self.sends_itself:
            own = {"emit": self.emit, "ack": self.ack, "fail": self.fail}
            for name, call in own.items():
                if getattr(type(bolt), name) is getattr(Bolt, name):
                    setattr(bolt, name, call)
        self._types: dict[tuple[str, str], Any] = {
            (source, stream): kind._make
            for source, streams in value_types(context).items()
            for stream, kind in streams.items()
        }

    def executors(self, bolt: Bolt) -> dict[str, Callable[[Any], None]]:
        """Return the functions that run one tuple and one tick, by the names of the methods that they call.

        Args:
            bolt: The bolt, after its ``initialize``, which may have replaced its methods.
        """
        acks = not isinstance(bolt, BatchingBolt)
        return {name: self._executor(bolt, getattr(bolt, name), acks) for name in ("process", "process_tick")}

    def perform(self, message: dict[str, Any]) -> None:
        command = message.get("command")
        if command == "emit":
            self.task_ids = self.emit(
                message["tuple"],
                message.get("stream"),
                message.get("anchors", ()),
                message.get("task"),
                message.get("need_task_ids", True),
            )
        elif command == "ack":
            self.ack(message["id"])
        elif command == "fail":
            self.fail(message["id"])
        else:
            super().perform(message)

    def is_open(self, id: Any) -> bool:
        """Return whether the tuple of this id may still be acked or failed."""
        return self._received(id) is not None

    def _received(self, id: Any) -> Any:
        """Return the unfinished tuple of an id, as the engine delivered it; None if there is none."""
        found = self._held.get(id)
        if found is None:
            single = self.state.single
            if single and single[0].id == id:
                found = self.state.received[0]
        return found if found is not None and found.unfinished else None

    def _settling(self, settle: Callable[[Any], None]) -> Callable[[Any], None]:
        held, state = self._held, self.state

        def call(tup: Any) -> None:
            single = state.single
            if single and tup is single[0] and state.received[0].unfinished:
                if held:
                    held.pop(tup.id, None)
                settle(state.received[0])
                return
            id = tup.id if isinstance(tup, Tuple) else tup
            found = self._received(id)
            held.pop(id, None)
            settle(id if found is None else found)

        return call

    def _made_emit(self, bolt: Bolt, collector: BoltCollector) -> Callable[..., Any]:
        state, emit, received, is_unsubscribed = self.state, collector.emit, self._received, self.is_unsubscribed

        def send(
            tup: Any, stream: Any = None, anchors: Any = None, direct_task: Any = None, need_task_ids: bool = False
        ) -> Any:
            if anchors is None:
                if bolt.auto_anchor:
                    anchors = state.current
                    if anchors is state.single:
                        anchors = state.received
                    elif anchors:
                        anchors = [received(each.id) or each.id for each in anchors]
            elif anchors:
                ids = [each.id if isinstance(each, Tuple) else each for each in anchors]
                anchors = [received(id) or id for id in ids]
            try:
                return emit(tup, stream, anchors, direct_task, need_task_ids)
            except UnserializableValue:
                return emit(_converted(tup), stream, anchors, direct_task, need_task_ids)
            except LocalProtocolError:
                if not is_unsubscribed(tup, stream):
                    raise
                return [] if need_task_ids else None

        return send

    def _executor(self, bolt: Bolt, call: Callable[[Any], None], acks: bool) -> Callable[[Any], None]:
        """Return the function that runs one tuple through ``call``, and acks it if ``acks`` and ``auto_ack`` are set."""
        state, held, types, failed = self.state, self._held, self._types, self.failed
        lib_ack = self._shared.ack  # type: ignore[attr-defined]
        own_ack = None if self.sends_itself and type(bolt).ack is Bolt.ack else bolt.ack
        new, kind = tuple.__new__, Tuple

        def execute(received: Any) -> None:
            id = received.id
            component, stream = received.component, received.stream
            make = types.get((component, stream), tuple)
            try:
                tup = new(kind, (id, component, stream, received.task, make(received.values)))
                state.current = state.single = [tup]
                state.received = [received]
                call(tup)
                if acks and bolt.auto_ack and received.unfinished:
                    if own_ack is None:
                        lib_ack(received)
                    else:
                        own_ack(tup)
            except Exception as error:  # noqa: BLE001 - user code: handled as pystorm does
                failed(error)
            state.current = []
            if received.unfinished:
                held[id] = received

        return execute


class SpoutLink(Link):
    """The connection of a spout; see Link.

    Storm listens to a spout only while it answers a command. A tuple emitted at another time, in ``initialize`` or in
    another thread, is queued for the next command.

    Attributes:
        emit: Spout.emit.
        listening: Whether a command is being answered.
    """

    def __init__(self, spout: Spout, collector: SpoutCollector, conf: dict[str, Any], context: Any) -> None:
        super().__init__(spout, collector, conf, context)
        self.listening = False
        self._queued: deque[tuple[Any, ...]] = deque()
        self._thread = get_ident()
        self._emit = collector.emit
        if self.sends_itself and type(spout).emit is Spout.emit:
            setattr(spout, "emit", self.emit)  # noqa: B010 - the instance's own, in place of the method

    def emit(
        self, tup: Any, tup_id: Any = None, stream: Any = None, direct_task: Any = None, need_task_ids: bool = False
    ) -> Any:
        """Send a tuple, or queue it until Storm listens."""
        if not (self.listening and get_ident() == self._thread):
            if need_task_ids:
                raise LocalProtocolError(
                    f"{type(self._component).__name__} waits for task ids while Storm does not listen to it; emit with "
                    "need_task_ids in next_tuple, ack, fail, activate or deactivate"
                )
            values = list(tup) if isinstance(tup, list) else tup
            self._queued.append((values, tup_id, stream, direct_task))
            return None
        return self._send(tup, tup_id, stream, direct_task, need_task_ids)

    def perform(self, message: dict[str, Any]) -> None:
        if message.get("command") == "emit":
            self.task_ids = self.emit(
                message["tuple"],
                message.get("id"),
                message.get("stream"),
                message.get("task"),
                message.get("need_task_ids", True),
            )
        else:
            super().perform(message)

    def command(self, call: Callable[..., None], *args: Any) -> None:
        """Call one of the spout's methods, as the answer to a command."""
        self._thread = get_ident()
        self.listening = True
        try:
            while self._queued:
                self._send(*self._queued.popleft())
            call(*args)
        except Exception as error:  # noqa: BLE001 - user code: handled as pystorm does
            self.failed(error)
        finally:
            self.listening = False

    def _send(self, tup: Any, tup_id: Any, stream: Any, direct_task: Any, need_task_ids: bool = False) -> Any:
        try:
            return self._emit(tup, tup_id, stream, direct_task, need_task_ids)
        except UnserializableValue:
            return self._emit(_converted(tup), as_simplejson_sends(tup_id), stream, direct_task, need_task_ids)
        except LocalProtocolError:
            if tup_id is not None or not self.is_unsubscribed(tup, stream):
                raise  # the spout would never get an ack of its tuple
            return [] if need_task_ids else None


def _converted(tup: Any) -> list[Any]:
    """Return values that were refused in the form in which pystorm sends them."""
    if not isinstance(tup, list | tuple):
        raise TypeError(f"a tuple to emit is a list or a tuple, not {type(tup)!r}")
    converted: list[Any] = as_simplejson_sends(tup)
    return converted


def _check(component: Component) -> None:
    """Raise ConfigError for a component that overrides a part of pystorm's own loop, which does not run here."""
    for base in type(component).__mro__:
        if not base.__module__.startswith(_LAYER):
            for name in _LOOPS:
                if name in vars(base):
                    raise ConfigError(
                        f"{base.__name__} defines {name}, a part of pystorm's own loop, which does not run here; move what it "
                        "does to process, process_tick, next_tuple or initialize, or into a middleware"
                    )
