"""The spout that brings requests into a topology (Storm's DRPCSpout)."""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.drpc.places import place_of
from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context
    from multilang.drpc.places import Place

SERVERS = "drpc.servers"
_RETRY_SECS = 1.0  # after a server could not be reached


class DRPCSpout(Spout):
    """A spout that fetches requests of a function from the servers in the conf.

    The servers are ``drpc.servers``, at the port ``drpc.invocations.port``. It emits (args, return-info). The
    return-info is JSON text with the request's id and the server's host and port. A request that fails in the topology
    is failed at its server; it is not replayed.

    Args:
        function: The function's name.
    """

    output_fields = ["args", "return-info"]
    fails_alone = True

    def __init__(self, function: str) -> None:
        self.function = function

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        servers = conf.get(SERVERS)
        if not isinstance(servers, list) or not servers or not all(isinstance(each, str) for each in servers):
            raise ConfigError(
                f"the conf names no DRPC servers for the function {self.function!r}: set {SERVERS} to a list of hosts, "
                f'["localhost"] (it is {servers!r}), or run the topology by `multilang drpc serve`, which is one'
            )
        tasks = len(context.tasks(context.component))
        if tasks >= len(servers):  # otherwise each task asks all of them
            servers = [servers[context.task_index % len(servers)]]
        owner = (conf.get("storm.id"), context.component, context.task)
        self._places: list[Place] = [place_of(conf, host, owner) for host in servers]
        self._timeout = conf.get("topology.message.timeout.secs") or 30
        self._not_before = [0.0] * len(self._places)

    def next_tuple(self) -> None:
        for index, place in enumerate(self._places):
            if self._not_before[index] and monotonic() < self._not_before[index]:
                continue
            try:
                found = place.fetch(self.function)
                self._not_before[index] = 0.0
            except OSError as error:
                if not self._not_before[index]:
                    self.log(f"no requests from a DRPC server for the time being: {error}", "warn")
                self._not_before[index] = monotonic() + _RETRY_SECS
                continue
            if found is not None:
                id, arguments = found
                info = dumps({"id": id, "host": place.host, "port": place.port})
                self.emit([arguments, info], tup_id=f"{index}:{id}")

    def fail(self, tup_id: Any) -> None:
        index, _, id = str(tup_id).partition(":")
        why = (
            f"{self.function!r} failed: a tuple of the request failed, a task that had one died, or it was not done within "
            f"{self._timeout:g} s (topology.message.timeout.secs) by a step that is slow or emitted no result"
        )
        try:
            self._places[int(index)].fail(id, why)
        except OSError as error:
            self.log(f"the failure of request {id} can't be reported; it will time out: {error}", "warn")

    def close(self) -> None:
        for place in getattr(self, "_places", ()):
            place.close()
