"""The first bolt of a DRPC topology, which gives each request an id (Storm's PrepareRequest)."""

from __future__ import annotations

from random import getrandbits

from multilang.component.bolt import BasicBolt
from multilang.drpc.places import target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.protocol.messages import Tuple

RETURN_STREAM, ID_STREAM = "ret", "id"


class PrepareRequest(BasicBolt):
    """A bolt that turns (args, return-info) into (request, args).

    It also emits (request, return) on ``ret``, and (request) on ``id``. Storm's ids are random numbers. Here an id also
    names the request's server, so that any step can report a failure to it.
    """

    output_fields = ["request", "args"]
    output_streams = {RETURN_STREAM: ["request", "return"], ID_STREAM: ["request"]}

    def process(self, tup: Tuple) -> None:
        args, return_info = tup.values
        request = request_id(return_info)
        self.emit([request, args])
        self.emit([request, return_info], RETURN_STREAM)
        self.emit([request], ID_STREAM)


def request_id(return_info: Any) -> str:
    """Return a new id that was never used before. A restarted server may use its own ids again."""
    own = f"{getrandbits(64):x}"
    try:
        id, host, port = target_of(return_info)
    except (KeyError, TypeError, ValueError):
        return own  # it comes from a user's spout; ReturnResults reports the fault
    return f"{own}@{host}:{port}/{id}"


def server_of(request: Any) -> tuple[str, str, int] | None:
    """Return the server's own id of a request, and the server's host and port; None if the id has none."""
    if not isinstance(request, str):
        return None
    _, _, there = request.partition("@")
    address, _, id = there.rpartition("/")  # a folder of Unix sockets has more of them
    host, _, port = address.rpartition(":")
    return (id, host, int(port)) if id and port.isdecimal() else None
