"""The places that requests come from and results go to: a DRPC server, or a LocalDRPC in this process."""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError
from multilang.drpc.connection import INVOCATIONS_PORT
from multilang.drpc.invocations import DRPCInvocationsClient
from multilang.protocol.codec import loads
from multilang.settings import DRPC_SERVICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, Protocol

    from multilang.drpc.errors import DRPCExecutionException

    class Place(Protocol):
        """The interface that a DRPC spout, its steps and ReturnResults use. Methods raise OSError."""

        host: str
        port: int

        def fetch(self, function: str) -> tuple[str, str] | None:
            """Return the next request of a function, as (id, arguments); None if no request waits."""

        def result(self, id: str, result: str) -> None:
            """Give back the result of a request."""

        def fail(self, id: str, cause: str | DRPCExecutionException) -> None:
            """Fail a request."""

        def close(self) -> None:
            """Close the connection."""


PORT = "drpc.invocations.port"
_PAUSE_SECS = 5.0  # after a failure could not be sent to a server


class Local:
    """A LocalDRPC in this process.

    ``owner`` names the task that fetches. Requests that an earlier instance of the task fetched under this name fail.
    """

    port = 0

    def __init__(self, service: str, owner: Hashable = None) -> None:
        from multilang.drpc.requests import SERVICES

        self.host = service
        self._requests = SERVICES[service]
        self._owner = owner
        if owner is not None:
            self._requests.lost(owner)
        self.result = self._requests.result

    def fetch(self, function: str) -> tuple[str, str] | None:
        """Return the next request of a function, as (id, arguments); None if no request waits."""
        return self._requests.fetch(function, self._owner)

    def fail(self, id: str, cause: str | DRPCExecutionException) -> None:
        """Fail a request."""
        self._requests.fail(id, cause)

    def close(self) -> None:
        """Do nothing: others use the LocalDRPC, too."""


def place_of(conf: dict[str, Any], host: str, owner: Hashable = None) -> Place:
    """Return the LocalDRPC that the conf names if this process has it, otherwise a client of the server on ``host``."""
    service = conf.get(DRPC_SERVICE)
    if service is not None:
        from multilang.drpc.requests import SERVICES

        if service in SERVICES:
            return Local(service, owner)
    port = conf.get(PORT) or INVOCATIONS_PORT
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"{PORT} is {port!r}; use the number of the DRPC server's port for topologies, as 3773")
    return DRPCInvocationsClient(host, port, conf=conf)


def target_of(info: Any) -> tuple[str, str, int]:
    """Return the id, host and port in a request's return-info.

    Raises:
        KeyError: Something is missing.
        TypeError: It is no return-info.
        ValueError: It is no return-info.
    """
    found = loads(info)
    return found["id"], found["host"], int(found["port"])


class ReturnPlaces:
    """The places that return-infos name. Each is connected to at its first use.

    Args:
        conf: The topology's conf, with the login.
    """

    def __init__(self, conf: dict[str, Any]) -> None:
        self._conf = conf
        self._places: dict[tuple[str, int], Place] = {}
        self._not_before: dict[tuple[str, int], float] = {}

    def at(self, host: str, port: int) -> Place:
        """Return the place at an address.

        Raises:
            KeyError: It is a LocalDRPC that was closed.
        """
        place = self._places.get((host, port))
        if place is None:
            place = Local(host) if port == 0 else DRPCInvocationsClient(host, port, conf=self._conf)
            self._places[host, port] = place
        return place

    def fail(
        self,
        host: str,
        port: int,
        id: str,
        cause: str | DRPCExecutionException,
        log: Callable[[str, str], None],
    ) -> None:
        """Report to a request's server why the request failed.

        If the server can't be reached, its own timeout ends the request.
        """
        if monotonic() < self._not_before.get((host, port), 0.0):
            return
        try:
            self.at(host, port).fail(id, cause)
        except (OSError, KeyError) as error:
            self._not_before[host, port] = monotonic() + _PAUSE_SECS
            log(f"the failure of request {id} can't be reported to its DRPC server: {error}", "warn")

    def close(self) -> None:
        """Close all connections."""
        for place in self._places.values():
            place.close()
