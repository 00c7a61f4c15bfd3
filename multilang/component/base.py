"""What spouts and bolts have in common."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.streams import Stream, declared_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping, Sequence
    from typing import Any, ClassVar

    from multilang.component.collector import Collector
    from multilang.component.context import Context
    from multilang.component.metrics import MetricsRegistry
    from multilang.component.middleware import Middleware

LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}


class Component:
    """A spout or a bolt. Subclass Spout, ReliableSpout, Bolt, BasicBolt or BatchingBolt, not this."""

    output_fields: ClassVar[Sequence[str] | None] = None
    """The fields of the default stream, ``["word", "count"]``; None when it emits nothing there."""

    output_streams: ClassVar[Mapping[str, Sequence[str] | Stream] | None] = None
    """Further streams by name, ``{"errors": ["message"], "counts": Stream(["id", "count"], direct=True)}``."""

    component_conf: ClassVar[Mapping[str, Any]] = {}
    """Conf of this component that the class asks for (Storm's getComponentConfiguration); the builder's wins."""

    middleware: ClassVar[Sequence[Middleware]] = ()
    """What runs around ``process`` and ``next_tuple``, the first outermost."""

    transformations: ClassVar[Sequence[str]] = ()
    """What a topology with this component becomes before it runs: functions by name, see topology.transform."""

    requires: Mapping[str, str] = {}
    """Packages that its tasks need: a module that is imported, and the line of pip's that brings it,
    ``{"psycopg": "psycopg>=3"}``. They go into a topology's jar by themselves."""

    wrapped: Component | None = None
    """The component that this one stands around; None for all but wrappers."""

    conf: dict[str, Any]
    context: Context
    _collector: Collector
    _metrics: MetricsRegistry | None = None

    def declared_streams(self) -> dict[str, Stream]:
        """All output streams by name. Raises ConfigError for a declaration that is wrong."""
        return declared_streams(self.output_fields, self.output_streams)

    def check_start(self, conf: dict[str, Any]) -> None:
        """Called where the embedded cluster is about to start the topology, once and not in each task: what it raises is
        told in place of the start.
        """

    def after_end(self) -> None:
        """Called where the embedded cluster has ended the topology, once and not in each task; see ``close``."""

    if TYPE_CHECKING:  # spouts and bolts take two arguments, batch bolts four

        def initialize(self, *args: Any, **kwargs: Any) -> None: ...

    else:

        def initialize(self, conf: dict[str, Any], context: Context) -> None:
            """Called once, before anything else: the place to open what the component needs."""

    def close(self) -> None:
        """Called once at the end, where there is time for it: end of input, SIGTERM, the topology killed."""

    def log(self, message: object, level: str | int = "info") -> None:
        """A line for Storm's log; ``level`` is trace, debug, info, warn or error, or Storm's number 0 to 4."""
        number = LEVELS.get(level.lower()) if isinstance(level, str) else level
        if number is None or not 0 <= number <= 4:
            raise ValueError(f"log level {level!r}: use one of {', '.join(LEVELS)} or 0 to 4")
        self._collector.log(str(message), number)

    def report_error(self, message: object) -> None:
        """Show an error in Storm's log and UI; the process lives on."""
        self._collector.report_error(str(message))

    def report_metric(self, name: str, params: Any) -> None:
        """Give a value to the metric that the Java side registered as ``name``; Storm halts the worker on another name."""
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
        """A component may have a logger of its own; what it says goes to Storm's log, too."""
        self.__dict__["_logger"] = logger

    @property
    def metrics(self) -> MetricsRegistry:
        """Counters, gauges and timers, summed in the process and reported at an interval."""
        registry = self._metrics
        if registry is None:
            from multilang.component.metrics import MetricsRegistry

            if not hasattr(self, "_collector"):
                raise ConfigError(f"{type(self).__name__}.metrics is there from initialize() on, not in __init__")
            registry = self._metrics = MetricsRegistry.for_component(self._collector, self.conf, self.context)
        return registry

    def run(self) -> None:
        """Run this component as the process of one task, until its input ends: ``SplitSentence().run()`` in a script."""
        from multilang.component.process import run_component

        run_component(self)

    def _attach(self, collector: Collector, conf: dict[str, Any], context: Context) -> None:
        """Called by the runner before ``initialize``."""
        self._collector = collector
        self.conf = conf
        self.context = context

    def _runner_ended(self) -> None:
        """Called by the runner at the end."""
        self.close()

    def _shadow(self, base: type, methods: Mapping[str, Any]) -> None:
        """Put the collector's methods in the place of ``base``'s, unless the user's class has its own."""
        for name, method in methods.items():
            if getattr(type(self), name) is getattr(base, name):
                setattr(self, name, method)
