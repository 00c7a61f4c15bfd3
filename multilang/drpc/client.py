"""Asking a DRPC server, ours or Storm's (Storm's DRPCClient)."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from multilang.drpc import thrift
from multilang.drpc.connection import CLIENT_PORT, Connection

if TYPE_CHECKING:
    from types import TracebackType


class DRPCClient:
    """Calls functions that topologies answer, one call at a time; threads have one each, or take turns.

    ``timeout``: seconds that an answer may take; None: as long as the server lets it.

        with DRPCClient("localhost") as client:
            print(client.execute("reach", "foo.com/blog/1"))
    """

    def __init__(self, host: str = "127.0.0.1", port: int = CLIENT_PORT, timeout: float | None = None) -> None:
        self._connection = Connection(host, port, timeout)
        self._lock = Lock()

    def execute(self, function: str, arguments: str) -> str:
        """The result. Raises DRPCExecutionException when there is none, DRPCConnectionError when the server is not there."""
        with self._lock:
            return str(self._connection.call("execute", thrift.request(function, arguments)))

    def close(self) -> None:
        """Close the connection; another call opens it again."""
        self._connection.close()

    def __enter__(self) -> DRPCClient:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
