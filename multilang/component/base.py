"""The base of spouts and bolts."""

from __future__ import annotations

from multilang.component.clock import SYSTEM_CLOCK, MovableClock, TaskClock
from multilang.component.errors import ConfigError
from multilang.component.streams import Stream, declared_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, ClassVar, TypeVar

    from multilang.component.collector import Collector
    from multilang.component.context import Context
    from multilang.component.metrics import MetricsRegistry
    from multilang.component.middleware import Middleware
    from multilang.component.timers import TaskTimers, TimerHandle

    Method = TypeVar("Method", bound=Callable[..., Any])

    from typing import overload as overload  # noqa: PLC0414  # isort: skip  # "as": type checkers see an export
else:

    def overload(function: object) -> object:
        """Return the function, as ``typing.overload`` does: a component's process need not import ``typing``."""
        return function


def typed_as(_: Method) -> Callable[[Any], Method]:
    """Return a decorator that gives a method the type of the one that it overrides, so that overloads are written once."""
    return _itself


def _itself(function: Any) -> Any:
    return function


_MADE: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {}  # see made_with

if TYPE_CHECKING:
    _Noted = type
else:
    from _weakref import ref
    from abc import ABCMeta  # so that a component may be an ABC, too

    class _Noted(ABCMeta):
        """The class of component classes, which notes what each component is made with."""

        def __call__(cls, *arguments, **named):
            made = super().__call__(*arguments, **named)
            if isinstance(made, Component):
                key = id(made)  # beside it, where no copy, pickle or comparison sees it
                finalizer = ref(made, lambda _: _MADE.pop(key, None))
                _MADE[key] = finalizer, arguments, named, made.__dict__.copy()
            return made


LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}


class Component(metaclass=_Noted):
    """A spout or a bolt. Subclass Spout, ReliableSpout, Bolt, BasicBolt or BatchingBolt instead.

    Attributes:
        conf: The topology's conf, merged with the component's own; set before ``initialize``.
        context: The task's place in the topology; set before ``initialize``.
    """

    output_fields: ClassVar[Sequence[str] | Mapping[str, Any] | None] = None
    """The fields of the default stream, ``["word", "count"]``; None when the component emits nothing there.

    With their types, ``{"word": str, "count": int}``, they are columns of these types on Spark; see Stream."""

    output_streams: ClassVar[Mapping[str, Sequence[str] | Mapping[str, Any] | Stream] | None] = None
    """Further streams by name, ``{"errors": ["message"], "counts": Stream(["id", "count"], direct=True)}``."""

    component_conf: ClassVar[Mapping[str, Any]] = {}
    """The conf that the class asks for (Storm's getComponentConfiguration); the builder's values override it."""

    middleware: ClassVar[Sequence[Middleware]] = ()
    """The middleware that runs around ``process`` and ``next_tuple``, the outermost first."""

    transformations: ClassVar[Sequence[str]] = ()
    """Functions, by name, that transform a topology with this component before it runs; see topology.transform."""

    requires: Mapping[str, str] = {}
    """Packages that its tasks need: each imported module, with the line for pip that installs it.

    For example ``{"psycopg": "psycopg>=3"}``. They are put into a topology's jar automatically."""

    wrapped: Component | None = None
    """The component that a wrapper wraps; None for all others."""

    clock: TaskClock = SYSTEM_CLOCK
    """The task's clock: ``clock()`` and ``clock.monotonic()`` measure time, ``clock.time()`` is the time of day."""

    conf: dict[str, Any]
    context: Context
    _collector: Collector
    _metrics: MetricsRegistry | None = None

    def declared_streams(self) -> dict[str, Stream]:
        """Return all output streams by name.

        Raises:
            ConfigError: A declaration is wrong.
        """
        return declared_streams(self.output_fields, self.output_streams)

    def check_conf(self, conf: dict[str, Any]) -> None:
        """Check the conf that the topology will run with, before it is submitted, packed or started.

        It is called once, not in each task, and opens or contacts nothing. On the way to a cluster the conf lacks what
        the cluster's own settings will add, so a missing key is no fault. An exception from it is reported, and the
        topology is not sent.
        """

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check the conf before the embedded cluster starts the topology.

        It is called once, not in each task. An exception from it is reported, and the topology does not start.
        """

    def after_end(self) -> None:
        """Clean up after the embedded cluster has ended the topology: called once, not in each task; see ``close``."""

    if TYPE_CHECKING:  # spouts and bolts take two arguments, batch bolts four

        def initialize(self, *args: Any, **kwargs: Any) -> None: ...

    else:

        def initialize(self, conf: dict[str, Any], context: Context) -> None:
            """Open what the component needs: called once, before anything else.

            Args:
                conf: The topology's conf, merged with the component's own.
                context: The task's place in the topology.
            """

    def close(self) -> None:
        """Release what the component holds: called once at the end if there is time (end of input, SIGTERM, kill)."""

    def set_timer(
        self, delay_secs: float, callback: Callable[[], object], *, every: float | None = None
    ) -> TimerHandle:
        """Have ``callback`` called later, in the component's own thread, between two calls of its other methods.

        The callback may emit, ack and fail. Its emits are anchored to nothing, unless ``anchors`` is given. An
        exception in it is handled like one in ``process``. Timers end with the task, and before ``close`` is called; a
        spout's timers rest while the topology is deactivated.

        Args:
            delay_secs: The seconds from now to the first call, 0 or more; fractions are taken as they are.
            callback: A function without arguments, such as ``self.flush``.
            every: The seconds from one call to the next; None for a single call. If calls are late, those that would
                come at once are left out.

        Returns:
            The timer, to cancel it.

        Raises:
            ConfigError: A number is none of seconds, there is nothing to call, or the task is not started.
            LocalProtocolError: It is called in a thread that the component started itself.
        """
        timers = _timers_of(getattr(self, "_collector", None))
        if timers is None:
            raise ConfigError(f"{type(self).__name__}.set_timer is there from initialize() on, not in __init__")
        return timers.set(self, self._run_timer, delay_secs, callback, every)

    def log(self, message: object, level: str | int = "info") -> None:
        """Write a line to Storm's log.

        Args:
            message: The line; it is turned into a string.
            level: trace, debug, info, warn or error, or Storm's number from 0 to 4.

        Raises:
            ValueError: There is no such level.
        """
        number = LEVELS.get(level.lower()) if isinstance(level, str) else level
        if number is None or not 0 <= number <= 4:
            raise ValueError(f"log level {level!r}: use one of {', '.join(LEVELS)} or 0 to 4")
        self._collector.log(str(message), number)

    def report_error(self, message: object) -> None:
        """Show an error in Storm's log and UI; the process continues."""
        self._collector.report_error(str(message))

    def report_metric(self, name: str, params: Any) -> None:
        """Send a value for a metric.

        Args:
            name: The name under which the Java side registered the metric; Storm halts the worker if it is unknown.
            params: The value, anything that JSON has.
        """
        self._collector.report_metric(name, params)

    @property
    def logger(self) -> logging.Logger:
        """A logger named after the component's id; its records go to Storm's log."""
        import logging

        own: logging.Logger | None = self.__dict__.get("_logger")
        if own is not None:
            return own
        context = getattr(self, "context", None)
        return logging.getLogger(type(self).__name__ if context is None else context.component)

    @logger.setter
    def logger(self, logger: logging.Logger) -> None:
        """Replace the logger by the component's own; its records go to Storm's log, too."""
        self.__dict__["_logger"] = logger

    @property
    def metrics(self) -> MetricsRegistry:
        """Counters, gauges and timers, summed up in the process and reported at an interval."""
        registry = self._metrics
        if registry is None:
            from multilang.component.metrics import MetricsRegistry

            if not hasattr(self, "_collector"):
                raise ConfigError(f"{type(self).__name__}.metrics is there from initialize() on, not in __init__")
            registry = self._metrics = MetricsRegistry.for_component(self._collector, self.conf, self.context)
        return registry

    def run(self) -> None:
        """Run this component as the process of one task until its input ends: ``SplitSentence().run()`` in a script."""
        from multilang.alone import run_alone

        run_alone(self)

    def _attach(self, collector: Collector, conf: dict[str, Any], context: Context) -> None:
        """Connect the component to its collector; the runner calls this before ``initialize``."""
        self._collector = collector
        self.conf = conf
        self.context = context
        timers = _timers_of(collector)
        if timers is not None and timers.clock is not SYSTEM_CLOCK:
            # Only virtual time replaces a ``clock`` method of the user's class.
            has_own = type(self).clock is not SYSTEM_CLOCK
            if not (has_own and isinstance(timers.clock, MovableClock)):
                self.clock = timers.clock

    def _run_timer(self, callback: Callable[[], object]) -> None:
        """Call a timer's callback; an exception from it ends the task."""
        callback()

    def _runner_ended(self) -> None:
        """End the component; the runner calls this."""
        self.close()

    def _runner_gave_up(self) -> None:
        """Release what others wait for; the runner calls this when the component died and its process did not.

        It does nothing unless it is overridden: the end of a process would release all.
        """

    def _shadow(self, base: type, methods: Mapping[str, Any]) -> None:
        """Replace ``base``'s methods by the collector's, unless the user's class overrides them."""
        for name, method in methods.items():
            if getattr(type(self), name) is getattr(base, name):
                setattr(self, name, method)


def _timers_of(collector: Any) -> TaskTimers | None:
    """Return the timers of a collector's task, if its engine has given it any."""
    return getattr(getattr(collector, "scope", None), "timers", None)


# ---- for what runs components; users' classes have these names for themselves ----


def attach(component: Component, collector: Any, conf: dict[str, Any], context: Context) -> None:
    """Connect a component to its collector, before ``initialize``."""
    component._attach(collector, conf, context)


def end(component: Component) -> None:
    """End a component: its ``close``, and what its base classes do around it."""
    component._runner_ended()


def give_up(component: Component) -> None:
    """Let a component that died, though its process did not, release what others wait for; ``close`` is not called."""
    component._runner_gave_up()


def collector_of(component: Component) -> Any:
    """Return the collector that a component is connected to."""
    return component._collector


def made_with(component: Component) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """Return the positional and named arguments that a component was made with, and its attributes right after that.

    Of a copy nothing is known: it has no arguments, and the attributes that it has now.
    """
    found = _MADE.get(id(component))
    return ((), {}, vars(component)) if found is None else found[1:]


def used_metrics(component: Component) -> MetricsRegistry | None:
    """Return a component's metrics; None if it has none so far."""
    return component._metrics


def close_metrics(component: Component) -> None:
    """Report the rest of a component's metrics, once it has ended; a wrapper has none beside those of what it wraps."""
    if component._metrics is not None and component.wrapped is None:
        component._metrics.close()
