"""Look-ups over the network: an async function for each element, many at once, and the bolt that waits for them.

Tuples are worked on in batches of at most ``limit``, so that never more calls are running. A batch is over when each call
has a result, an exception or no more time. So between two calls of the bolt nothing is running: for ticks, checkpoints and
windows downstream it is a bolt like any other.
"""

from __future__ import annotations

from multilang.component.errors import FailedException, ReportedFailedException
from multilang.component.many import TupleList
from multilang.component.report import report_exception
from multilang.streams.bolts import TogetherBolt
from multilang.streams.errors import stage_error
from multilang.streams.operations import Operation, called
from multilang.topology.errors import TopologyError
from multilang.topology.spec import is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from threading import Thread
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple
    from multilang.streams.program import Program

_CLOSING_SECS = 5.0  # for the loop's thread


class _FaultError(Exception):
    """A call has no result, although its function raised no exception; the argument is the error."""


class MapAsync(Operation):
    """Each element becomes the result of an async function.

    Args:
        function: The function.
        limit: The most calls at once in a task.
        ordered: Whether results are in the order of their elements; if not, in the order in which calls end.
        timeout: Seconds after which a call fails; None: never.

    Raises:
        TopologyError: An argument is wrong.
    """

    name = "map_async"
    is_head = True

    def __init__(self, function: Callable[[Any], Any], limit: int, ordered: bool, timeout: float | None) -> None:
        self.function = called(self.name, function)
        if not is_count(limit):
            raise TopologyError(f"map_async(limit={limit!r}): give the most calls at once, from 1 on")
        given: Any = timeout
        if given is not None and (isinstance(given, bool) or not isinstance(given, int | float) or given <= 0):
            raise TopologyError(f"map_async(timeout={timeout!r}): give seconds above 0, or None")
        self.limit = limit
        self.ordered = bool(ordered)
        self.timeout = timeout

    def apply(self, elements: list[Any]) -> list[Any]:
        """Return the elements, which are results already: the bolt has called the function."""
        return elements


class AsyncProgram(TogetherBolt):
    """Calls an async function for the element of each tuple, and runs a program with the results.

    A call that fails fails its tuple alone. The event loop runs in a thread of its own until the task ends, so that
    connections may stay open from call to call.

    Args:
        name: The stage.
        operation: Its operation.
        program: The program, in which the stage is a step.
        explained: See Programmed.
    """

    def __init__(self, name: str, operation: MapAsync, program: Program, explained: Sequence[str]) -> None:
        super().__init__(program, [*explained, f"calls at most {operation.limit} at once in each task"])
        self.batch_size = operation.limit
        self._stage = name
        self._operation = operation
        self._reads = {(entry.component, entry.stream): entry.read for entry in program.entries}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        from asyncio import new_event_loop
        from threading import Thread

        self._loop: AbstractEventLoop = new_event_loop()
        self._thread: Thread = Thread(target=self._run, name=f"calls of {self._stage}", daemon=True)
        self._thread.start()

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        from asyncio import run_coroutine_threadsafe
        from concurrent.futures import FIRST_COMPLETED, wait

        calls: dict[Future[Any], Tuple] = {}
        for tup in tups:
            (element,) = self._reads[tup.component, tup.stream](TupleList((tup,)))
            calls[run_coroutine_threadsafe(self._called(element), self._loop)] = tup
        left = set(calls)
        while left:
            done, left = wait(left, None, "ALL_COMPLETED" if self._operation.ordered else FIRST_COMPLETED)
            self._finish([(tup, call) for call, tup in calls.items() if call in done])

    def close(self) -> None:
        if hasattr(self, "_loop"):
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join(_CLOSING_SECS)
            if not self._thread.is_alive():
                self._loop.close()
        super().close()

    # ---- inside ----

    def _run(self) -> None:
        """Run the loop until it is stopped: sys.exit() in a call ends it, and then no other call would end."""
        while True:
            try:
                return self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue  # it is the call's result, too

    async def _called(self, element: Any) -> Any:
        from asyncio import ensure_future, wait
        from inspect import isawaitable

        operation = self._operation
        awaitable = operation.function(element)
        if not isawaitable(awaitable):
            text = f"the function returned {awaitable!r:.80}, which can't be awaited; map_async takes an async function, map a plain one"
            raise _FaultError(TypeError(text))
        if operation.timeout is None:
            return await awaitable
        called = ensure_future(awaitable)
        try:
            await wait({called}, timeout=operation.timeout)
            if called.done():
                return called.result()  # or its own error, which may be a TimeoutError, too
        finally:
            called.cancel()
        text = f"no result for {element!r:.80} within {operation.timeout:g} seconds"
        raise _FaultError(TimeoutError(text))

    def _finish(self, finished: list[tuple[Tuple, Future[Any]]]) -> None:
        """Send the results of some calls, together if nothing fails."""
        from concurrent.futures import CancelledError

        good: list[tuple[Tuple, Any]] = []
        for tup, call in finished:
            # A call ends as cancelled also if its function, or what it awaits, cancels itself.
            error = CancelledError("it was cancelled") if call.cancelled() else call.exception()
            if error is None:
                good.append((tup, call.result()))
            elif isinstance(error, _FaultError):
                # Its traceback has nothing of the user's function.
                self._fail(tup, stage_error(self._stage, error.args[0]))
            elif isinstance(error, FailedException):
                self._fail(tup, error)
            else:
                failure = stage_error(self._stage, error)
                failure.__cause__ = error
                self._fail(tup, failure)
        self.half_sent = False
        try:
            self._continue(good)
        except Exception:
            if self.half_sent:
                raise
        else:
            return
        for pair in good:  # outside of the except block, so that their errors are shown without that exception
            try:
                self._continue([pair])
            except Exception as error:  # noqa: BLE001 - user code: its failure is the tuple's
                self._fail(pair[0], error)

    def _continue(self, results: Iterable[tuple[Tuple, Any]]) -> None:
        tups = [tup for tup, _ in results]
        if tups:
            self.send_apart([(tup, self._machine.start(self._stage, [result], tup)) for tup, result in results], tups)
            self.ack_many(tups)

    def _fail(self, tup: Tuple, error: BaseException) -> None:
        if not isinstance(error, FailedException) or isinstance(error, ReportedFailedException):
            report_exception(self, error, tup)
        self.fail(tup)

    def _stop(self) -> None:
        """End all calls, then the loop; in the loop's thread."""
        from asyncio import all_tasks, gather

        tasks = all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        ended = gather(*tasks, return_exceptions=True)
        ended.add_done_callback(lambda _: self._loop.stop())
        if not tasks:
            self._loop.stop()
