"""Requests a second, and latency, of reach on the embedded cluster.

python -m benchmarks.drpc.reach [REQUESTS] [AT_ONCE]
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from statistics import quantiles

from multilang.drpc import AsyncDRPCClient, LocalDRPC
from multilang.loading.modules import load_module
from multilang.topology import load_topology

REACH = Path(__file__).parents[2] / "examples" / "reach.py"


async def ask(server: tuple[str, int], urls: list[str], at_once: int) -> tuple[list[str], list[float], float]:
    seconds = []

    async def one(client: AsyncDRPCClient, url: str) -> str:
        async with places:
            began = time.perf_counter()
            result = await client.execute("reach", url)
            seconds.append(time.perf_counter() - began)
            return result

    places = asyncio.Semaphore(at_once)
    async with AsyncDRPCClient(*server, connections=at_once) as client:
        began = time.perf_counter()
        results = await asyncio.gather(*(one(client, url) for url in urls))
        return list(results), seconds, time.perf_counter() - began


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    reach = load_module(str(REACH)).reach
    urls = [f"foo.com/blog/{n}" for n in range(number)]
    with LocalDRPC("process", timeout_secs=600) as drpc:
        drpc.submit(load_topology(str(REACH)), conf={"topology.message.timeout.secs": 600})
        server = drpc.server.host, drpc.server.port
        asyncio.run(ask(server, urls[:20], 4))
        for at_once in [int(each) for each in sys.argv[2:]] or [1, 10, 100]:
            some = urls if at_once > 1 else urls[: max(20, number // 5)]
            results, seconds, wall = asyncio.run(ask(server, some, at_once))
            assert results == [str(reach(url)) for url in some]
            cuts = quantiles(seconds, n=100)
            figures = {"at once": at_once, "requests/s": round(len(some) / wall, 1)}
            print(json.dumps({**figures, "p50 ms": round(cuts[49] * 1000, 1), "p99 ms": round(cuts[98] * 1000, 1)}))


if __name__ == "__main__":
    main()
