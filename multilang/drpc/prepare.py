"""The first bolt of a DRPC topology: gives each request an id (Storm's PrepareRequest)."""

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
    """From (args, return-info) to (request, args), on ``ret`` (request, return), and on ``id`` (request).

    Unlike Storm's, which is a random number, a request's id names its server too, so that any step can tell it of a failure.
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
    """A new id, never used before: a server that was started anew may use its own ids again."""
    own = f"{getrandbits(64):x}"
    try:
        id, host, port = target_of(return_info)
    except (KeyError, TypeError, ValueError):
        return own  # of a spout that is none of ours: ReturnResults says what is wrong
    return f"{own}@{host}:{port}/{id}"


def server_of(request: Any) -> tuple[str, str, int] | None:
    """The id by which a request's server knows it, and the server's host and port; None when the id does not say."""
    if not isinstance(request, str):
        return None
    _, _, there = request.partition("@")
    address, _, id = there.partition("/")
    host, _, port = address.rpartition(":")
    return (id, host, int(port)) if id and port.isdecimal() else None
