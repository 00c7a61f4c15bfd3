"""Flux's bolt that logs what it gets."""

from __future__ import annotations

from multilang.component import BasicBolt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component import Tuple


class LogInfo(BasicBolt):
    """Logs each tuple, as Flux's ``LogInfoBolt`` in Java does."""

    def process(self, tup: Tuple) -> None:
        values = ", ".join(map(str, tup.values))
        self.log(f"source: {tup.component}:{tup.task}, stream: {tup.stream}, id: {tup.id}, [{values}]")
