"""Linear DRPC in its smallest form: a call, one step, a result.

multilang drpc serve examples/exclamation.py
multilang drpc call exclamation hello
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang import BasicBolt
from multilang.drpc import LinearDRPCTopologyBuilder

if TYPE_CHECKING:
    from multilang import Tuple


class Exclaim(BasicBolt):
    """Answers a request.

    The first value of every tuple is the request's id, which the last step emits with the result.
    """

    output_fields = ["id", "result"]

    def process(self, tup: Tuple) -> None:
        request, text = tup.values
        self.emit([request, f"{text}!"])


builder = LinearDRPCTopologyBuilder("exclamation")
builder.add_bolt(Exclaim, parallelism=3)
topology = builder.build()
