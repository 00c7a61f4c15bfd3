"""``python manual.py PAGE``: runs the page on streaming queries from top to bottom, in an empty folder with the examples in it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from multilang import LocalCluster, StatefulBasicBolt
from multilang.component.wrapper import innermost
from multilang.transactional.maps.base import maps_of
from spark_bridge import publish
from spark_bridge.job.state import conf_of
from tests.spark.stream.conftest import state_of

LINES = ["the cow", "the moon", "", "a cow"]
ORDERS = [(customer, amount) for amount in range(10) for customer in ("ann", "bob")]


class Totals(StatefulBasicBolt):
    """The bolt that the page leaves to its reader."""

    def init_state(self, state: Any) -> None:
        self.totals = state

    def process(self, tup: Any) -> None:
        self.totals.put(tup["customer"], self.totals.get(tup["customer"], 0) + tup["amount"])


def main() -> None:
    page = Path(sys.argv[1]).read_text(encoding="utf-8")
    first, spout, transactions, job, history, cut = re.findall(r"^```py\n(.*?)^```", page, re.S | re.M)
    namespace: dict[str, Any] = {"__name__": "page", "Totals": Totals}

    def run(block: str) -> None:
        exec(compile(block, "docs/spark-streaming.md", "exec"), namespace)

    for folder in ("incoming", "archive"):
        Path(folder).mkdir()
        Path(folder, "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    counted = Counter(" ".join(LINES).split())

    run(first)
    tasks = namespace["topology"]["count"].tasks
    assert state_of("counts.sqlite", tasks=tasks) == counted
    spark = namespace["spark"]

    run(spout)

    run(transactions)
    namespace["query"].query.processAllAvailable()
    namespace["query"].stop()
    run(job)
    (total,) = maps_of(innermost(namespace["topology"]["sum"].component))
    assert total.get("words") == len(LINES) + len(["cat", "dog", "cat"])

    run(history)
    assert state_of("history.sqlite", tasks=tasks) == counted

    publish(spark.createDataFrame(ORDERS, "customer string, amount long").repartition(2), "published-orders")
    run(cut)
    before = state_of("totals.sqlite", "totals")
    with LocalCluster(mode="inprocess", conf=conf_of("totals.sqlite")) as cluster:
        cluster.submit(namespace["topology"]).wait(until="drained")
    assert state_of("totals.sqlite", "totals") == {"ann": 45, "bob": 45} != before
    spark.stop()


if __name__ == "__main__":
    main()
