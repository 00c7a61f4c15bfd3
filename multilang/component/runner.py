"""The component loop: what happens around each call of user code, the same for every collector."""

from __future__ import annotations

from multilang.component.base import attach, close_metrics, collector_of, end
from multilang.component.bolt import END, FAIL, FAIL_AND_END, BasicBolt, Bolt
from multilang.component.errors import ConfigError, FailedException, ReportedFailedException
from multilang.component.report import report_exception
from multilang.protocol.messages import SYSTEM_COMPONENT, TICK_STREAM
from multilang.settings import MIDDLEWARE, PROMETHEUS_PORT, RECORD, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.component.base import Component
    from multilang.component.collector import BoltCollector, SpoutCollector
    from multilang.component.context import Context
    from multilang.component.many import Tuples
    from multilang.component.recorder import Recorder
    from multilang.component.spout import Spout
    from multilang.protocol.messages import Tuple


def start_bolt(bolt: Bolt, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Callable[[Tuple], None]:
    """Initialize ``bolt`` with ``collector`` and return the function that runs one tuple through it.

    An exception from that function ends the task: its runner reports it and restarts the task.
    """
    if bolt.wrapped is not None:
        wrapper: Any = bolt
        return wrapper.start(collector, conf, context)  # type: ignore[no-any-return]
    if bolt.on_exception not in (END, FAIL, FAIL_AND_END):
        raise ConfigError(
            f"{type(bolt).__name__}.on_exception is {bolt.on_exception!r}; write {END!r}, {FAIL!r} or {FAIL_AND_END!r}"
        )
    _connect(bolt, collector, conf, context)
    bolt.initialize(conf, context)
    process: Callable[[Tuple], None] = bolt.process
    many = None if type(bolt).process_many is Bolt.process_many else bolt.process_many
    if many is not None and type(bolt).process is Bolt.process:
        process = _one_by_one(many)
    if bolt.middleware or conf.get(MIDDLEWARE):
        from multilang.component.middleware import all_middleware

        for middleware in reversed(all_middleware(bolt.middleware, conf)):
            process = middleware.process(bolt, process)
    elif many is not None:
        collector.execute_many = _many(bolt, collector, many)
    return _basic(bolt, collector, process) if isinstance(bolt, BasicBolt) else _plain(bolt, collector, process)


def close(component: Component) -> None:
    """Close ``component``, and report its metrics.

    Its timers end, and no tuple is in process any more, so that its emits have no anchors.
    """
    scope = collector_of(component).scope
    scope.leave_tuple()
    scope.timers.cancel_all()
    try:
        end(component)
    finally:
        scope.timers.cancel_all()  # those that it set in close
        close_metrics(component)


def _connect(component: Any, collector: Any, conf: dict[str, Any], context: Context) -> None:
    check(conf)
    attach(component, collector, conf, context)
    if conf.get(PROMETHEUS_PORT) is not None:
        component.metrics.items()  # served from the start, not only once there is a metric


def _one_by_one(many: Callable[[Tuples], None]) -> Callable[[Tuple], None]:
    from multilang.component.many import TupleList

    return lambda tup: many(TupleList((tup,)))


def _many(bolt: Bolt, collector: BoltCollector, process_many: Callable[[Tuples], None]) -> Callable[[Tuples], None]:
    scope, settle, basic = collector.scope, collector.settle_many, isinstance(bolt, BasicBolt)

    def execute(tups: Tuples) -> None:
        scope.current = tups[0]
        if basic:
            scope.anchors = tups
        try:
            process_many(tups)
            if basic:
                settle(tups, True)
        except Exception as error:
            is_failure = isinstance(error, FailedException)
            ends = not is_failure and bolt.on_exception != FAIL
            if not ends and (not is_failure or isinstance(error, ReportedFailedException)):
                report_exception(bolt, error, tups[0], f"in {len(tups)} tuples, the first of them")
            if is_failure or bolt.on_exception != END:
                settle(tups, False)
            if ends:
                raise
        scope.current = None

    return execute


def _plain(bolt: Bolt, collector: BoltCollector, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
    scope = collector.scope

    def execute(tup: Tuple) -> None:
        scope.current = tup
        try:
            if tup.stream == TICK_STREAM and tup.component == SYSTEM_COMPONENT:
                bolt.process_tick(tup)
                if tup.unfinished and bolt.acks_ticks:
                    collector.ack(tup)
            else:
                process(tup)
        except FailedException as error:
            _fail(bolt, collector, tup, error)
        except Exception as error:
            if _ends(bolt, collector, tup, error):
                raise
        scope.current = None

    return execute


def _basic(bolt: Bolt, collector: BoltCollector, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
    ack, scope = collector.ack, collector.scope
    anchors: list[Any] = [None]  # one list for all tuples, each of which is put into it in turn

    def execute(tup: Tuple) -> None:
        scope.current = anchors[0] = tup
        scope.anchors = anchors
        try:
            if tup.stream == TICK_STREAM and tup.component == SYSTEM_COMPONENT:
                bolt.process_tick(tup)
            else:
                process(tup)
            if tup.unfinished:
                ack(tup)
        except FailedException as error:
            _fail(bolt, collector, tup, error)
        except Exception as error:
            if _ends(bolt, collector, tup, error):
                raise
        scope.current = None

    return execute


def _ends(bolt: Bolt, collector: BoltCollector, tup: Tuple, error: Exception) -> bool:
    """Handle an exception by the bolt's ``on_exception``; return whether it ends the task, whose runner reports it."""
    ends = bolt.on_exception != FAIL
    if not ends:
        report_exception(bolt, error, tup)
    if bolt.on_exception != END:
        _settle_failed(collector, tup)
    return ends


def _fail(bolt: Bolt, collector: BoltCollector, tup: Tuple, error: FailedException) -> None:
    if isinstance(error, ReportedFailedException):
        report_exception(bolt, error, tup)
    _settle_failed(collector, tup)


def _settle_failed(collector: BoltCollector, tup: Tuple) -> None:
    if tup.unfinished:
        collector.fail(tup)
    else:
        collector.fail_acked(tup)


class SpoutRunner:
    """A started spout; an exception from one of its methods ends the task."""

    full = False
    """True if it emits nothing before something is acked."""

    def __init__(self, spout: Spout, next_tuple: Callable[[], None], recorder: Recorder | None = None) -> None:
        from multilang.component.spout import Spout

        self._spout = spout
        self._next_tuple = next_tuple
        self._replay = None if type(spout).replay is Spout.replay else spout.replay
        self.timers = collector_of(spout).scope.timers
        self.timers.hold()  # until it is activated
        self._pending_timers = self.timers.heap
        self.ack: Callable[[Any], None] = spout.ack
        self.fail: Callable[[Any], None] = spout.fail
        if recorder is not None:
            self.ack, self.fail = recorder.wrap(spout.ack, "ack"), recorder.wrap(spout.fail, "fail")
            self._next_tuple = recorder.flushed(next_tuple)
            if self._replay is not None:
                self._replay = recorder.flushed(self._replay)

    def fail_together(self, id: Any) -> None:
        """Call the spout's ``fail`` for a tuple that failed together with others, any of which may be the cause."""
        spout = self._spout
        spout.failing_together = True
        try:
            self.fail(id)
        finally:
            spout.failing_together = False

    def activate(self) -> None:
        """Let the timers run, and activate the spout."""
        self.timers.release()
        self._spout.activate()

    def deactivate(self) -> None:
        """Stop the timers, and deactivate the spout."""
        self.timers.hold()
        self._spout.deactivate()

    def next(self) -> None:
        """Run the timers that are due; then replay a tuple that is due, or ask for the next one."""
        if self._pending_timers:
            if self.timers.held:
                self.timers.release()  # Storm before 1.0 asks for tuples without an activation before
            self.timers.run_due()
        if self._replay is None or not self._replay():
            self._next_tuple()

    def exhausted(self) -> bool | None:
        """Return True when no more tuples will come, not even replays; None when the spout can't tell."""
        if getattr(self._spout, "waiting_for_replay", 0) or getattr(self._spout, "held_back", 0):
            return False
        return self._spout.exhausted()


def start_spout(spout: Spout, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> SpoutRunner:
    """Initialize ``spout`` with ``collector`` and return its runner."""
    from multilang.component.spout import after_initialize

    recorder = None
    if conf.get(RECORD) is not None:
        from multilang.component.recorder import recorder_of

        recorder = recorder_of(spout, conf, context)
        if recorder is not None:
            collector = recorder.around(collector)
    _connect(spout, collector, conf, context)
    spout.initialize(conf, context)
    next_tuple = after_initialize(spout, conf, context)
    if spout.middleware or conf.get(MIDDLEWARE):
        from multilang.component.middleware import all_middleware

        for middleware in reversed(all_middleware(spout.middleware, conf)):
            next_tuple = middleware.next_tuple(spout, next_tuple)
    return SpoutRunner(spout, next_tuple, recorder)
