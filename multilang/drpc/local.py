"""An embedded cluster and a DRPC server in one object, for tests (Storm's LocalDRPC)."""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from secrets import token_hex
from typing import TYPE_CHECKING

from multilang.drpc import thrift
from multilang.drpc.addresses import UNIX
from multilang.drpc.errors import SERVER_TIMEOUT, DRPCExecutionException
from multilang.drpc.requests import SERVICES
from multilang.drpc.server import DRPCServer
from multilang.drpc.spout import DRPCSpout
from multilang.local import LocalCluster, NotDrainedError
from multilang.settings import DRPC_SERVICE
from multilang.topology.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any

    from multilang.local.topology import Capture, LocalTopology
    from multilang.topology import Topology

_TURN_SECS = 0.05
_LONGEST_FOLDER = 70  # characters


class LocalDRPC:
    """An embedded cluster with a DRPC server. As a context manager it ends both.

        with LocalDRPC(mode="inprocess") as drpc:
            drpc.submit(topology)
            assert drpc.execute("exclamation", "hello") == "hello!"

    A request of a function that no topology here answers fails at once.

    Args:
        mode: The mode of the LocalCluster.
        timeout_secs: Seconds that a request may take; virtual seconds are not counted.
        max_waiting: The largest number of requests of a function that wait to be fetched; more are refused.
        serve: Whether to listen as well, on Unix sockets that this user alone can reach (``server.conf`` has their
            folder), for other clients. Child processes need it, so the default is True with ``mode="process"``.
        cluster: Further arguments of the LocalCluster.

    Attributes:
        cluster: The LocalCluster.
        server: The DRPCServer.
    """

    def __init__(
        self,
        mode: Any = "process",
        *,
        timeout_secs: float = 60.0,
        max_waiting: int = 100_000,
        serve: bool | None = None,
        **cluster: Any,
    ) -> None:
        self.cluster = LocalCluster(mode, **cluster)
        self._served = mode == "process" if serve is None else serve
        self._folder = _socket_folder() if self._served else None
        host = "127.0.0.1" if self._folder is None else f"{UNIX}{self._folder}"
        self.server = DRPCServer(host, timeout_secs=timeout_secs, max_waiting=max_waiting)
        self.requests = self.server.requests
        self.topologies: dict[str, LocalTopology] = {}
        self.requests.refusal = self._refusal
        self._ended: set[str] = set()  # topologies whose requests have been failed
        self._service = f"local-{token_hex(8)}"
        if self._served:
            self.server.start()
        SERVICES[self._service] = self.requests

    @property
    def conf(self) -> dict[str, Any]:
        """The conf that a topology needs to answer here."""
        return {**self.server.conf, DRPC_SERVICE: self._service}

    def submit(
        self,
        topology: Topology,
        name: str | None = None,
        conf: Mapping[str, Any] | None = None,
        capture: Capture = (),
        *,
        inactive: bool = False,
    ) -> LocalTopology:
        """Start a topology that answers here.

        Args:
            topology: The topology.
            name: Its name; None: the topology's own.
            conf: Settings that override the topology's conf.
            capture: The components whose tuples are stored; see LocalCluster.submit.
            inactive: Whether its spouts are deactivated at first.

        Returns:
            The running topology.
        """
        run = self.cluster.submit(topology, name, {**self.conf, **(conf or {})}, capture, inactive=inactive)
        self.topologies[run.name] = run
        return run

    def start(self, function: str, arguments: str) -> Future[str]:
        """Start a request.

        Args:
            function: The function's name.
            arguments: Its arguments, as text.

        Returns:
            A future of the result. It is done when ``wait``, or the topologies' own processes, have brought the result.
            A request whose future is cancelled is forgotten.

        Raises:
            DRPCExecutionException: The request can't be taken, as when no topology here answers the function.
            TypeError: The function or the arguments are no text.
            ValueError: A text has no UTF-8 form.
        """
        thrift.request(function, arguments)  # it refuses what a client could not send
        future: Future[str] = Future()

        def done(text: str | None, problem: DRPCExecutionException | None) -> None:
            if not future.set_running_or_notify_cancel():
                return
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(text or "")

        id = self.requests.add(function, arguments, done)
        future.add_done_callback(lambda _: self.requests.forget(id))
        return future

    def wait(self, futures: Iterable[Future[str]], timeout: float | None = None) -> None:
        """Wait until all of these requests are done.

        Args:
            futures: The futures that ``start`` returned.
            timeout: Seconds to wait; None: ``timeout_secs``.

        Raises:
            DRPCExecutionException: They are not done in time (SERVER_TIMEOUT).
            Exception: A topology ended by this exception.
        """
        left = list(futures)
        deadline = time.monotonic() + (self.requests.timeout_secs if timeout is None else timeout)

        def over() -> bool:
            while left and left[-1].done():
                left.pop()
            if left and not self._served:
                self.requests.expire()
            return not left or time.monotonic() > deadline

        runs = [run for run in self.topologies.values() if not run.killed]
        while not over():
            self._fail_those_of_ended()
            if self.cluster.mode == "process" or not runs:
                wait_for(left[-1:], _TURN_SECS)
            for run in runs:
                self._let_run(run, over, alone=len(runs) == 1)
        if left:
            raise DRPCExecutionException(f"{len(left)} requests have no result in time", SERVER_TIMEOUT)

    def _let_run(self, run: LocalTopology, over: Callable[[], bool], alone: bool) -> None:
        """Let a topology without processes run. Several topologies take turns. Raise the exception that ends it."""
        if self.cluster.mode == "process":
            run.run_for(0)
            return
        try:
            run.wait(lambda _: over(), None if alone else _TURN_SECS)
        except NotDrainedError:
            pass  # the topology's turn is over

    def execute(self, function: str, arguments: str, timeout: float | None = None) -> str:
        """Call a function.

        Args:
            function: The function's name.
            arguments: Its arguments, as text.
            timeout: Seconds to wait; None: ``timeout_secs``.

        Returns:
            The function's result.

        Raises:
            DRPCExecutionException: The request failed.
            TypeError: The function or the arguments are no text.
            ValueError: A text has no UTF-8 form.
        """
        future = self.start(function, arguments)
        try:
            self.wait([future], timeout)
            return future.result()
        finally:
            future.cancel()

    def _refusal(self, function: str) -> str | None:
        """Return the reason why no topology can answer a function; None if one may."""
        runs = {**self.topologies, **self.cluster.topologies}
        served: set[str] = set()
        ended: set[str] = set()
        for run in runs.values():
            for spec in run.plan.topology.spouts.values():
                if isinstance(spec.component, DRPCSpout):
                    (ended if run.killed else served).add(spec.component.function)
                elif not run.killed:
                    return None  # a user's spout may fetch requests of any function
        served |= self.requests.fetched_for - ended  # a topology elsewhere may answer these
        if function in served:
            return None
        if not served:
            return f"nothing serves {function!r} here: submit a topology that answers it to this LocalDRPC, and keep it alive"
        return f"nothing serves {function!r} here; {did_you_mean(function, served)}"

    def _fail_those_of_ended(self) -> None:
        ended = {name for name, run in self.topologies.items() if run.killed}
        if ended != self._ended:
            self._ended = ended
            self.requests.fail_all(self._refusal)

    def close(self) -> None:
        """End the topologies and the server."""
        self.requests.close()
        try:
            self.cluster.close()
        finally:
            self.server.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            SERVICES.pop(self._service, None)

    def __enter__(self) -> LocalDRPC:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _socket_folder() -> str:
    """Make a folder for sockets, whose paths must be short."""
    folder = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="multilang-drpc-", dir=folder if len(folder) < _LONGEST_FOLDER else "/tmp")
