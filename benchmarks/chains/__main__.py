"""Runs three shuffled bolts apart, as a chain and by hand in turn, and prints medians and their ratios."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.exchange.__main__ import RealStorm, embedded, measure, show

OFF, ON = {"multilang.chaining": "off"}, {"multilang.chaining": "shuffle"}
BLOCK = {"multilang.exchange": "block"}
WAYS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "tuple by tuple": {"apart": ("three", OFF), "chain": ("three", ON), "by hand": ("by_hand", OFF)},
    "by the block": {
        "apart": ("three", {**OFF, **BLOCK}),
        "chain": ("three", {**ON, **BLOCK}),
        "by hand": ("by_hand", {**OFF, **BLOCK}),
    },
}
SENTENCES = {"tuple by tuple": 20_000, "by the block": 150_000}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chains", description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=5, help="runs of each way")
    parser.add_argument("--storm", action="store_true", help="on a real Storm instead of the embedded cluster")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        run: Any = embedded
        if chosen.storm:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="multilang-bench-storm-"))
            run = stack.enter_context(RealStorm(Path(folder))).run
        where = "real Storm" if chosen.storm else "embedded, processes"
        for exchange, ways in WAYS.items():
            sentences = dict.fromkeys(ways, SENTENCES[exchange])
            show(f"three shuffled bolts, {where}, {exchange}", measure(run, chosen.rounds, 0, sentences, ways))


if __name__ == "__main__":
    main()
