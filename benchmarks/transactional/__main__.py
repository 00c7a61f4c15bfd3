"""Tuples a second with transactions and without: `python -m benchmarks.transactional [WORDS] [ROUNDS]`.

The plain word count and all transactional ones run in turn, in every round, on the embedded cluster with processes and
in process; ratios are taken within a round. The exit status is 0 when, at 1000 words a batch, every number of pending
batches reaches 0.6 of the plain count's rate, by wall clock and by CPU. `python -m benchmarks transactional` measures
that alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

COUNTING = Path(__file__).with_name("counting.py")
BATCHES = (100, 1000, 10_000)
PENDING = (1, 2, 4, 8)
WANTED = 0.6


def run(mode: str, words: int, *more: int) -> dict[str, float]:
    shown = subprocess.run(
        [sys.executable, str(COUNTING), mode, str(words), *map(str, more)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said: dict[str, float] = json.loads(shown.stdout)
    assert said["right"], (mode, more)
    return said


def main() -> int:
    words = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    reached = True
    for mode in ("process", "inprocess"):
        wall: dict[tuple[int, int], list[float]] = {}
        cpu: dict[tuple[int, int], list[float]] = {}
        rates = []
        for _ in range(rounds):
            plain = run(mode, words)
            rates.append(words / plain["wall"])
            for batch in BATCHES:
                for pending in PENDING:
                    said = run(mode, words, batch, pending)
                    wall.setdefault((batch, pending), []).append(plain["wall"] / said["wall"])
                    cpu.setdefault((batch, pending), []).append(plain["cpu"] / said["cpu"])
        print(
            f"{mode}: {median(rates):,.0f} words/s without transactions; with them, as a part of that (by CPU seconds):"
        )
        print("words a batch", *(f"{pending:>7} pending" for pending in PENDING))
        for batch in BATCHES:
            cells = (f"{median(wall[batch, each]):6.2f} ({median(cpu[batch, each]):5.2f})" for each in PENDING)
            print(f"{batch:>13,}", *cells)
        for ratios in (wall, cpu):
            reached = reached and min(median(ratios[1000, each]) for each in PENDING) >= WANTED
    print(f"at 1,000 words a batch {'at least' if reached else 'LESS THAN'} {WANTED}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
