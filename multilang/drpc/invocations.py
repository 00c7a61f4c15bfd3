"""The topology's side of the DRPC protocol: fetches requests, gives back results and failures."""

from __future__ import annotations

from multilang.drpc import thrift
from multilang.drpc.connection import INVOCATIONS_PORT, Connection
from multilang.drpc.errors import DRPCExecutionException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_ANSWER_SECS = 10.0  # a spout that waits for longer, for a connection and an answer, is taken for dead by Storm


class DRPCInvocationsClient:
    """Stands where a topology stands: answers requests of a function in a program of your own (Storm's class of this name).

    ``port``: the server's for topologies. ``timeout``: seconds that an answer of the server may take. It connects at the
    first call, and again at the next one after the connection broke; one thread uses it at a time. The server fails what was
    fetched over a connection that ended, unless the result comes soon after. All methods raise DRPCConnectionError.

        with DRPCInvocationsClient("localhost") as server:
            while True:
                request = server.fetch("double")
                if request is None:
                    time.sleep(0.01)
                    continue
                id, arguments = request
                server.result(id, arguments * 2)
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = INVOCATIONS_PORT, timeout: float | None = _ANSWER_SECS
    ) -> None:
        self.host = host
        self.port = port
        self._connection = Connection(host, port, timeout)
        self._takes_causes = True

    def fetch(self, function: str) -> tuple[str, str] | None:
        """Take the next request of a function, as (id, arguments); None when none waits."""
        found = self._connection.call("fetchRequest", {1: function}) or {}
        return (found[2], found.get(1, "")) if found.get(2) else None

    def result(self, id: str, result: str) -> None:
        """Give back the result of a request; of one that is over nothing happens."""
        self._connection.call("result", {1: id, 2: result})

    def fail(self, id: str, cause: str | DRPCExecutionException | None = None) -> None:
        """Fail a request. The client gets a DRPCExecutionException: ``cause``, or one of kind FAILED_REQUEST that says it."""
        if cause is not None and self._takes_causes:
            problem = DRPCExecutionException(cause) if isinstance(cause, str) else cause
            try:
                self._connection.call("failRequestV2", {1: id, 2: thrift.fields_of(problem)})
            except thrift.ThriftError:
                self._takes_causes = False  # a server of Storm 1 has no such method
            else:
                return
        self._connection.call("failRequest", {1: id})

    def close(self) -> None:
        """Close the connection; another call opens it again."""
        self._connection.close()

    def __enter__(self) -> DRPCInvocationsClient:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
