"""The targets of the project's figures, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A bound on the median of ours divided by a peer's in the same round, or on the figure itself (`peer` None)."""

    section: str
    work: str
    peer: str | None
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None
    ours: str = "ours"

    @property
    def wanted(self) -> str:
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        return bound + (f" (aim {self.aim:g})" if self.aim else "")

    def met(self, value: float) -> bool:
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0)


PENDING = (1, 2, 4, 8)  # transactions at once

TARGETS = (
    Target("rate", "split", "pystorm", at_least=6, aim=10),
    Target("rate", "count", "pystorm", at_least=6, aim=10),
    Target("rate", "filter", "pystorm", at_least=5, aim=10),
    Target("rate", "split", "pystorm", at_least=6, ours="pystorm-layer"),
    Target("rate", "count", "pystorm", at_least=4, ours="pystorm-layer"),
    Target("rate", "split", "storm.py", at_least=3, ours="storm.py-layer"),
    Target("rate", "spout1", "pystorm", at_least=1.3),
    Target("rate", "spout100", "pystorm", at_least=2),
    Target("rate", "echo-ascii", "storm.py", at_least=1),
    Target("rate", "echo-unicode", "storm.py", at_least=1),
    Target("p50", "heartbeat", "bare", at_most=1.5),
    Target("memory", "idle", "ujson", at_most=1.3),
    Target("start", "start", "import ujson", at_most=1.8),
    Target("flat", "cost", None, at_most=1.1),
    Target("flat", "memory", None, at_most=1.1),
    Target("state cpu", "process", "none", at_least=0.67, ours="memory"),
    Target("state cpu", "process", "none", at_least=0.5, ours="sqlite"),
    Target("state cpu", "process", "none", at_least=0.5, ours="redis"),
    Target("checkpoint growth", "1000 to 1000000", None, at_most=10, ours="memory"),
    Target("checkpoint growth", "1000 to 1000000", None, at_most=10, ours="sqlite"),
    Target("checkpoint growth", "1000 to 1000000", None, at_most=10, ours="redis"),
    *(
        Target(section, mode, "plain", at_least=0.6, ours=f"{pending} pending")
        for section in ("transactional", "transactional cpu")
        for mode in ("process", "inprocess")
        for pending in PENDING
    ),
    Target("spark", "totals", "reduceByKey", at_least=0.3, aim=0.5),
    Target("spark", "running", "reduceByKey", at_least=0.3, aim=0.5),
    Target("spark growth", "time", None, at_most=1.2),
    Target("spark growth", "memory", None, at_most=1.2),
    Target("cluster", "process", "storm", at_least=3),
    Target("shellbolt", "split", "pystorm", at_least=3.5),
    Target("shellbolt", "split", "native", at_least=0.5, aim=0.62),
    Target("cluster", "inprocess", None, at_least=25_000),
)
