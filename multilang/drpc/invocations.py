"""The topology's side of the DRPC protocol: it fetches requests, and gives back results and failures."""

from __future__ import annotations

from multilang import transport
from multilang.drpc import thrift
from multilang.drpc.connection import INVOCATIONS_PORT, Connection
from multilang.drpc.errors import DRPCConnectionError, DRPCExecutionException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any

_ANSWER_SECS = 10.0  # Storm takes a spout for dead that waits longer for a connection and an answer


class DRPCInvocationsClient:
    """A client that answers requests in a program of your own, in place of a topology (Storm's class of this name).

        with DRPCInvocationsClient("localhost") as server:
            while True:
                request = server.fetch("double")
                if request is None:
                    time.sleep(0.01)
                    continue
                id, arguments = request
                server.result(id, arguments * 2)

    It connects at the first call, and again after the connection broke. One thread may use it at a time. When a
    connection ends, the server fails the requests that were fetched over it, unless their results come soon after. All
    methods raise DRPCConnectionError.

    Args:
        host: The server's host, or "unix:" and the folder of its sockets.
        port: The server's port for topologies.
        timeout: Seconds that an answer of the server may take; None: for ever.
        conf: Entries of a storm.yaml for the login (``storm.thrift.transport``, ``drpc.invocations.thrift.transport``,
            ``java.security.auth.login.config``); None: no login.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = INVOCATIONS_PORT,
        timeout: float | None = _ANSWER_SECS,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._connection = Connection(host, port, timeout, transport.drpc_invocations(conf or {}))
        self._takes_causes = True

    def fetch(self, function: str) -> tuple[str, str] | None:
        """Take the next request of a function.

        Args:
            function: The function's name.

        Returns:
            The request's id and its arguments; None if no request waits.
        """
        id, arguments = thrift.request_of(self._connection.call("fetchRequest", {1: function}))
        return (id, arguments) if id else None

    def result(self, id: str, result: str) -> None:
        """Give back the result of a request. Nothing happens if the request is over.

        Args:
            id: The request's id.
            result: The result, as text.
        """
        self._connection.call("result", {1: id, 2: result})

    def fail(self, id: str, cause: str | DRPCExecutionException | None = None) -> None:
        """Fail a request. Its client gets a DRPCExecutionException.

        Args:
            id: The request's id.
            cause: The exception that the client gets, or the message of one of kind FAILED_REQUEST.
        """
        if cause is not None and self._takes_causes:
            problem = DRPCExecutionException(cause) if isinstance(cause, str) else cause
            try:
                self._connection.call("failRequestV2", {1: id, 2: thrift.fields_of(problem)})
            except DRPCConnectionError as error:
                if not error.is_refusal:
                    raise
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
