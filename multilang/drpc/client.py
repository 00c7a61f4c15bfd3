"""A client of a DRPC server, ours or Storm's (Storm's DRPCClient)."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from multilang import transport
from multilang.drpc import thrift
from multilang.drpc.connection import CLIENT_PORT, Connection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any


class DRPCClient:
    """A client that calls functions, one at a time. Threads may share it and take turns.

        with DRPCClient("localhost") as client:
            print(client.execute("reach", "foo.com/blog/1"))

    Args:
        host: The server's host, or "unix:" and the folder of its sockets.
        port: The server's port for clients.
        timeout: Seconds that an answer may take; None: as long as the server allows.
        conf: Entries of a storm.yaml for the login (``storm.thrift.transport``, ``drpc.thrift.transport``,
            ``java.security.auth.login.config``); None: no login.

    Raises:
        ConfigError: The conf's login is not supported.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = CLIENT_PORT,
        timeout: float | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = Connection(host, port, timeout, transport.drpc(conf or {}))
        self._lock = Lock()

    def execute(self, function: str, arguments: str) -> str:
        """Call a function.

        Args:
            function: The function's name.
            arguments: Its arguments, as text.

        Returns:
            The function's result.

        Raises:
            DRPCExecutionException: The request failed.
            DRPCConnectionError: The server can't be reached, or broke off.
            DRPCTimeoutError: There was no answer within the client's timeout.
            TypeError: The function or the arguments are no text.
            ValueError: A text has no UTF-8 form.
        """
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
