"""The bolt that gives results back to the servers that wait for them (Storm's ReturnResults)."""

from __future__ import annotations

from multilang.component.bolt import Bolt
from multilang.drpc.errors import DRPCExecutionException
from multilang.drpc.places import ReturnPlaces, target_of
from multilang.drpc.thrift import check_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple

_TRIES = 3


class ReturnResults(Bolt):
    """A bolt that takes (result, return-info). It fails a request whose result can't be given back."""

    output_fields = None

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._places = ReturnPlaces(conf)

    def process(self, tup: Tuple) -> None:
        result, info = tup.values
        try:
            id, host, port = target_of(info)
        except (KeyError, TypeError, ValueError) as error:
            self.log(f"a result goes nowhere: its return-info is {info!r} ({error!r})", "error")
            self.fail(tup)
            return
        try:
            check_size("the result", result)
        except DRPCExecutionException as error:
            self._places.fail(host, port, id, error, self.log)
            self.fail(tup)
            return
        problem: Exception | None = None
        for _ in range(_TRIES):
            try:
                self._places.at(host, port).result(id, result)
            except (OSError, KeyError) as error:
                problem = error
            else:
                self.ack(tup)
                return
        self.log(f"the result of request {id} can't be given back: {problem}", "warn")
        self.fail(tup)

    def close(self) -> None:
        self._places.close()
