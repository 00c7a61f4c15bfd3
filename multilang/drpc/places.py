"""Where requests come from and results go to: a DRPC server, or a LocalDRPC in this process."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.drpc.connection import INVOCATIONS_PORT, Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Place(Protocol):
        """What a DRPC spout and ReturnResults use. Methods raise OSError."""

        host: str
        port: int

        def fetch(self, function: str) -> tuple[str, str] | None:
            """The next request, as (id, arguments)."""

        def result(self, id: str, result: str) -> None:
            """The result of a request."""

        def fail(self, id: str) -> None:
            """A request failed."""

        def close(self) -> None:
            """No more will be asked."""


LOCAL = "multilang.drpc.service"
PORT = "drpc.invocations.port"
_ANSWER_SECS = 10.0  # a spout that waits for longer, for a connection and an answer, is taken for dead by Storm


class Remote:
    """A server's port for topologies."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._connection = Connection(host, port, _ANSWER_SECS)

    def fetch(self, function: str) -> tuple[str, str] | None:
        """The next request, as (id, arguments)."""
        found = self._connection.call("fetchRequest", {1: function}) or {}
        return (found[2], found.get(1, "")) if found.get(2) else None

    def result(self, id: str, result: str) -> None:
        """The result of a request."""
        self._connection.call("result", {1: id, 2: result})

    def fail(self, id: str) -> None:
        """A request failed."""
        self._connection.call("failRequest", {1: id})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Local:
    """A LocalDRPC of this process."""

    port = 0

    def __init__(self, service: str) -> None:
        from multilang.drpc.requests import SERVICES

        self.host = service
        self._requests = SERVICES[service]
        self.fetch = self._requests.fetch
        self.result = self._requests.result

    def fail(self, id: str) -> None:
        """A request failed."""
        self._requests.fail(id)

    def close(self) -> None:
        """It stays open, for others."""


def place_of(conf: dict[str, Any], host: str) -> Place:
    """The LocalDRPC that the conf names, if it is in this very process, or else the server on ``host``."""
    service = conf.get(LOCAL)
    if service is not None:
        from multilang.drpc.requests import SERVICES

        if service in SERVICES:
            return Local(service)
    port = conf.get(PORT) or INVOCATIONS_PORT
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"{PORT} is {port!r}; use the number of the DRPC server's port for topologies, as 3773")
    return Remote(host, port)


def place_at(host: str, port: int) -> Place:
    """The place that a request's return-info names."""
    return Local(host) if port == 0 else Remote(host, port)
