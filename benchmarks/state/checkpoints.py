"""The time of a checkpoint of 1000 changed keys, by the number of stored keys.

`python checkpoints.py STORE ROUNDS SIZE... [--redis PORT]` prints a line of JSON for each size and round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from counting import provider

from multilang.state.providers import provider_of

CHANGED = 1000
TIMES = 9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("rounds", type=int)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--redis", default="0")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="multilang-bench-state-") as folder:
        states = {}
        made = provider_of({**provider(chosen.store, folder, chosen.redis), "topology.name": "x"})
        txid = 0
        for size in chosen.sizes:
            state = states[size] = made.new_state(f"count-{size}")
            state.claim(1)
            for n in range(size):
                state.put(f"key {n}", n)
            state.prepare_commit(txid)
            state.commit(txid)
        for round in range(chosen.rounds):
            chance = random.Random(round)
            for size in chosen.sizes:
                took = []
                for _ in range(TIMES):
                    txid += 1
                    state = states[size]
                    for n in chance.sample(range(size), CHANGED):
                        state.put(f"key {n}", txid)
                    begin = time.perf_counter()
                    state.prepare_commit(txid)
                    state.commit(txid)
                    took.append(time.perf_counter() - begin)
                print(json.dumps({"size": size, "ms": statistics.median(took) * 1000}), flush=True)


if __name__ == "__main__":
    main()
