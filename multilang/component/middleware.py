"""What runs around ``process`` and ``next_tuple``: timing, retries, tracing, with no change of the loop.

A component's class lists them (``middleware = [Timing(), Retry(3)]``, the first outermost), and a topology's conf adds
more by dotted name (``multilang.middleware: ["shop.tracing.Tracer"]``), outside of those.
"""

from __future__ import annotations

from time import perf_counter, sleep

from multilang.component.errors import ConfigError, FailedException
from multilang.component.settings import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from multilang.component.bolt import Bolt
    from multilang.component.spout import Spout
    from multilang.protocol.messages import Tuple


class Middleware:
    """Override either method: it is called once at the start and returns the function to call in ``call``'s place."""

    def process(self, bolt: Bolt, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """Around a bolt's ``process``."""
        return call

    def next_tuple(self, spout: Spout, call: Callable[[], None]) -> Callable[[], None]:
        """Around a spout's ``next_tuple``."""
        return call


class Timing(Middleware):
    """Measures each call with the component's timer ``name`` (seconds)."""

    def __init__(self, name: str = "process") -> None:
        self.name = name

    def process(self, bolt: Bolt, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        record = bolt.metrics.timer(self.name).record

        def timed(tup: Tuple) -> None:
            start = perf_counter()
            try:
                call(tup)
            finally:
                record(perf_counter() - start)

        return timed

    def next_tuple(self, spout: Spout, call: Callable[[], None]) -> Callable[[], None]:
        record = spout.metrics.timer(self.name).record

        def timed() -> None:
            start = perf_counter()
            try:
                call()
            finally:
                record(perf_counter() - start)

        return timed


class Retry(Middleware):
    """Calls ``process`` again when it raises, up to ``times`` times, ``delay_secs`` apart, before the tuple fails.

    FailedException is not retried: it says that the tuple is to fail. What ``process`` emitted before it raised stays
    emitted, so it suits work that emits last.
    """

    def __init__(self, times: int = 3, delay_secs: float = 0.0, on: type[Exception] = Exception) -> None:
        if times < 1:
            raise ConfigError(f"Retry(times={times!r}): use a number from 1")
        self.times = times
        self.delay_secs = delay_secs
        self.on = on

    def process(self, bolt: Bolt, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        def retried(tup: Tuple) -> None:
            for _ in range(self.times):
                try:
                    call(tup)
                    return
                except FailedException:
                    raise
                except self.on as error:
                    bolt.log(f"tuple {tup.id} is tried again after {type(error).__name__}: {error}", "warn")
                    if self.delay_secs:
                        sleep(self.delay_secs)
            call(tup)

        return retried


def all_middleware(declared: Sequence[Middleware], conf: dict[str, Any]) -> list[Middleware]:
    """The conf's middleware and the class's, the outermost first."""
    for middleware in declared:
        if not isinstance(middleware, Middleware):
            raise ConfigError(f"middleware is a list of Middleware objects; {middleware!r} is none")
    return [*(_load(name) for name in names(conf, "multilang.middleware", "dotted names")), *declared]


def named(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the conf names, as (setting, dotted name): for whoever ships it."""
    return [("multilang.middleware", name) for name in names(conf, "multilang.middleware", "dotted names")]


def check_named(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError for what the conf names and is not there, or is no Middleware; makes none."""
    for _, name in named(conf):
        found = _found(name)
        kind = found if isinstance(found, type) else type(found)
        if not issubclass(kind, Middleware):
            raise ConfigError(f"multilang.middleware names {name!r}, which is no Middleware but {kind.__name__}")


def _found(name: str) -> Any:
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"multilang.middleware names {name!r}, which can't be imported: {error}") from error


def _load(name: str) -> Middleware:
    found = _found(name)
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Middleware):
        raise ConfigError(f"multilang.middleware names {name!r}, which is no Middleware but {type(made).__name__}")
    return made
