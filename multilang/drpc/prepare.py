"""The first bolt of a DRPC topology: gives each request an id (Storm's PrepareRequest)."""

from __future__ import annotations

from random import getrandbits

from multilang.component.bolt import BasicBolt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.protocol.messages import Tuple

RETURN_STREAM, ID_STREAM = "ret", "id"
_HALF = 1 << 63


class PrepareRequest(BasicBolt):
    """From (args, return-info) to (request, args), on ``ret`` (request, return), and on ``id`` (request)."""

    output_fields = ["request", "args"]
    output_streams = {RETURN_STREAM: ["request", "return"], ID_STREAM: ["request"]}

    def process(self, tup: Tuple) -> None:
        args, return_info = tup.values
        request = getrandbits(64) - _HALF
        self.emit([request, args])
        self.emit([request, return_info], RETURN_STREAM)
        self.emit([request], ID_STREAM)
