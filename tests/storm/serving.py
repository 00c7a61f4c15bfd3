"""A Spark driver that serves one RDD several times: ``python -m tests.storm.serving SECRET_FILE ROWS TIMES FOLDER``.

Prints the URLs as JSON, and how many rows are acked or committed at each when all are. Ends with its input.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from threading import Thread

from spark_bridge import Served, serve
from spark_bridge.session import session


def main() -> None:
    secret, rows, times, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    settings = {
        "spark.driver.memory": "512m",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    with session("local[2]", "serving", settings) as spark, ExitStack() as open_ones:
        rdd = spark.sparkContext.parallelize(range(rows), 4)
        served = [open_ones.enter_context(serve(rdd, fields=["n"], secret_file=secret)) for _ in range(times)]
        print(json.dumps([each.url for each in served]), flush=True)
        Thread(target=tell, args=[served], daemon=True).start()
        sys.stdin.read()


def tell(served: list[Served]) -> None:
    for each in served:
        each.wait()
    print(json.dumps([each.acked for each in served]), flush=True)


if __name__ == "__main__":
    main()
