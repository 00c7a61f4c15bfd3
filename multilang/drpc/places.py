"""Where requests come from and results go to: a DRPC server, or a LocalDRPC in this process."""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError
from multilang.drpc.connection import INVOCATIONS_PORT
from multilang.drpc.invocations import DRPCInvocationsClient
from multilang.protocol.codec import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, Protocol

    from multilang.drpc.errors import DRPCExecutionException

    class Place(Protocol):
        """What a DRPC spout, its steps and ReturnResults use. Methods raise OSError."""

        host: str
        port: int

        def fetch(self, function: str) -> tuple[str, str] | None:
            """The next request, as (id, arguments)."""

        def result(self, id: str, result: str) -> None:
            """The result of a request."""

        def fail(self, id: str, cause: str | DRPCExecutionException) -> None:
            """A request failed."""

        def close(self) -> None:
            """No more will be asked."""


LOCAL = "multilang.drpc.service"
PORT = "drpc.invocations.port"
_PAUSE_SECS = 5.0  # after a server could not be told of a failure


class Local:
    """A LocalDRPC of this process. ``owner``: who fetches, for whom another has died that fetched under this name."""

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
        """The next request, as (id, arguments)."""
        return self._requests.fetch(function, self._owner)

    def fail(self, id: str, cause: str | DRPCExecutionException) -> None:
        """A request failed."""
        self._requests.fail(id, cause)

    def close(self) -> None:
        """It stays open, for others."""


def place_of(conf: dict[str, Any], host: str, owner: Hashable = None) -> Place:
    """The LocalDRPC that the conf names, if it is in this very process, or else the server on ``host``."""
    service = conf.get(LOCAL)
    if service is not None:
        from multilang.drpc.requests import SERVICES

        if service in SERVICES:
            return Local(service, owner)
    port = conf.get(PORT) or INVOCATIONS_PORT
    if type(port) is not int or not 0 < port < 65536:
        raise ConfigError(f"{PORT} is {port!r}; use the number of the DRPC server's port for topologies, as 3773")
    return DRPCInvocationsClient(host, port)


def target_of(info: Any) -> tuple[str, str, int]:
    """Id, host and port of a request's return-info. Raises KeyError, TypeError or ValueError for what is none."""
    found = loads(info)
    return found["id"], found["host"], int(found["port"])


class Places:
    """The places that return-infos name, each connected to when it is needed first."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], Place] = {}
        self._not_before: dict[tuple[str, int], float] = {}

    def at(self, host: str, port: int) -> Place:
        """The place there. Raises KeyError for a LocalDRPC that is no more."""
        place = self._places.get((host, port))
        if place is None:
            place = self._places[host, port] = Local(host) if port == 0 else DRPCInvocationsClient(host, port)
        return place

    def fail(
        self,
        host: str,
        port: int,
        id: str,
        cause: str | DRPCExecutionException,
        log: Callable[[str, str], None],
    ) -> None:
        """Tell a request's server why it failed; where it can't be reached, its own timeout ends the request."""
        if monotonic() < self._not_before.get((host, port), 0.0):
            return
        try:
            self.at(host, port).fail(id, cause)
        except (OSError, KeyError) as error:
            self._not_before[host, port] = monotonic() + _PAUSE_SECS
            log(f"the failure of request {id} can't be told to its DRPC server: {error}", "warn")

    def close(self) -> None:
        """Close all connections."""
        for place in self._places.values():
            place.close()
