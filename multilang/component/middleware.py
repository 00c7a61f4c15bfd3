"""Middleware: code that runs around ``process`` and ``next_tuple``, for timing, retries or tracing.

A component's class lists its middleware (``middleware = [Timing(), Retry(3)]``, the outermost first). A topology's conf
adds more by dotted name (``multilang.middleware: ["shop.tracing.Tracer"]``); these run outside of the class's.
"""

from __future__ import annotations

from time import perf_counter, sleep

from multilang.component.errors import ConfigError, FailedException
from multilang.settings import MIDDLEWARE, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple


class Middleware:
    """Base of middleware: each method is called once at the start and returns a replacement for ``call``."""

    def process(self, bolt: Any, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """Return the function to call instead of a bolt's ``process``.

        Args:
            bolt: The bolt, a Bolt.
            call: Its ``process``, or that of the next middleware.
        """
        return call

    def next_tuple(self, spout: Any, call: Callable[[], None]) -> Callable[[], None]:
        """Return the function to call instead of a spout's ``next_tuple``.

        Args:
            spout: The spout, a Spout.
            call: Its ``next_tuple``, or that of the next middleware.
        """
        return call


class Timing(Middleware):
    """Measures each call with the component's timer ``name``, in seconds."""

    def __init__(self, name: str = "process") -> None:
        self.name = name

    def process(self, bolt: Any, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        record = bolt.metrics.timer(self.name).record

        def timed(tup: Tuple) -> None:
            start = perf_counter()
            try:
                call(tup)
            finally:
                record(perf_counter() - start)

        return timed

    def next_tuple(self, spout: Any, call: Callable[[], None]) -> Callable[[], None]:
        record = spout.metrics.timer(self.name).record

        def timed() -> None:
            start = perf_counter()
            try:
                call()
            finally:
                record(perf_counter() - start)

        return timed


class Retry(Middleware):
    """Calls ``process`` again when it raises, before the tuple fails.

    FailedException is not retried, since it means that the tuple should fail. Tuples that ``process`` emitted before it
    raised stay emitted, so use this for work that emits at the end.

    Args:
        times: How often ``process`` is called again at most.
        delay_secs: The seconds between two calls.
        on: The exceptions that are retried.
    """

    def __init__(self, times: int = 3, delay_secs: float = 0.0, on: type[Exception] = Exception) -> None:
        if times < 1:
            raise ConfigError(f"Retry(times={times!r}): use a number from 1")
        self.times = times
        self.delay_secs = delay_secs
        self.on = on

    def process(self, bolt: Any, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
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
    """Return the conf's middleware and the class's, the outermost first."""
    for middleware in declared:
        if not isinstance(middleware, Middleware):
            raise ConfigError(f"middleware is a list of Middleware objects; {middleware!r} is none")
    return [*map(_load, value(conf, MIDDLEWARE)), *declared]


def named(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the names in the conf as (setting, dotted name), for packages that ship them."""
    return [(MIDDLEWARE, name) for name in value(conf, MIDDLEWARE)]


def check_named(conf: Mapping[str, Any]) -> None:
    """Check the names in the conf, without creating anything.

    Raises:
        ConfigError: A name does not exist, or is no Middleware.
    """
    for _, name in named(conf):
        found = _found(name)
        kind = found if isinstance(found, type) else type(found)
        if not issubclass(kind, Middleware):
            raise ConfigError(f"{MIDDLEWARE} names {name!r}, which is not a Middleware but {kind.__name__}")


def _found(name: str) -> Any:
    from multilang.helpers.dotted import by_dotted_name

    try:
        return by_dotted_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{MIDDLEWARE} names {name!r}, which can't be imported: {error}") from error


def _load(name: str) -> Middleware:
    found = _found(name)
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Middleware):
        raise ConfigError(f"{MIDDLEWARE} names {name!r}, which is not a Middleware but {type(made).__name__}")
    return made
