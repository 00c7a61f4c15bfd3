"""An event loop in a thread of its own, for servers beside whatever else their process does."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    Result = TypeVar("Result")


class LoopThread:
    """A daemon thread that runs an event loop until ``close``.

    Args:
        name: The thread's name.

    Raises:
        OSError: No descriptor is left for the loop.
        RuntimeError: No thread can be started.
    """

    def __init__(self, name: str) -> None:
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._ending = asyncio.Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._loop = self._started.result()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop, from another thread, and return its result or raise its error."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a last coroutine function, cancel what else runs, and end the thread. The second time, do nothing."""
        if self._thread.is_alive():
            try:
                self.run(last())
            finally:
                self._loop.call_soon_threadsafe(self._ending.set)
                self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _main(self) -> None:
        self._started.set_result(asyncio.get_running_loop())
        await self._ending.wait()
