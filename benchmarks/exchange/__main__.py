"""Runs the word count tuple by tuple, in blocks of one root, as the library chooses, in blocks of many, and with process_many in turn, and prints medians and their ratios."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from multilang.loading.topologies import load_topology
from multilang.local import LocalCluster
from multilang.shipping.cluster import Cluster, missing_programs

WORD_COUNT = Path(__file__).with_name("word_count.py")
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "tuple": ("topology", {"multilang.exchange": "tuple"}),
    "root": ("topology", {"multilang.exchange": "root"}),
    "auto": ("topology", {}),
    "block": ("topology", {"multilang.exchange": "block"}),
    "many": ("many", {"multilang.exchange": "block"}),
    "three": ("three", {"multilang.exchange": "block"}),
    "one": ("one", {"multilang.exchange": "block"}),
}
"""The topology and the conf of each; "many" has bolts with process_many, "one" does the work of "three" bolts in one."""
WORD_COUNTS = ("tuple", "root", "auto", "block", "many")
SENTENCES = {
    "tuple": 20_000,
    "root": 50_000,
    "auto": 120_000,
    "block": 120_000,
    "many": 160_000,
    "three": 150_000,
    "one": 150_000,
}
"""At saturation: some seconds of each."""
LIMIT = 600.0  # seconds for a run
FIGURES = ("rate", "cpu_us", "parent_us", "p50_ms", "p99_ms")


def embedded(topology: str, conf: dict[str, Any], result: Path) -> None:
    """Run it on the embedded cluster with processes."""
    with LocalCluster("process") as cluster:
        running = cluster.submit(load_topology(f"{WORD_COUNT}:{topology}"), conf=conf)
        running.wait(lambda _: result.exists(), timeout=LIMIT)


class RealStorm:
    """A real Storm on this machine, for all runs."""

    def __init__(self, folder: Path) -> None:
        missing = missing_programs()
        if missing:
            raise SystemExit(f"no {' and no '.join(missing)} here, which a real Storm needs")
        self._cluster = Cluster(folder, supervisors=1, slots=2)

    def __enter__(self) -> RealStorm:  # noqa: PYI034 - Self is not in Python 3.10
        self._cluster.up()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.down()

    def run(self, topology: str, conf: dict[str, Any], result: Path) -> None:
        """Run it, and wait until it is gone."""
        entries = [word for key, value in conf.items() for word in ("-c", f"{key}={json.dumps(value)}")]
        command = [str(Path(sys.executable).with_name("multilang")), "submit", f"{WORD_COUNT}:{topology}"]
        where = ["--nimbus", str(self._cluster.address), "--wait", "0"]
        subprocess.run([*command, *where, *entries], check=True, stdout=subprocess.DEVNULL)
        _wait(result.exists)
        with self._cluster.client() as nimbus:
            nimbus.kill("word-count", 0)
            _wait(lambda: not nimbus.summary().topologies)


def _wait(condition: Any) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {LIMIT:g} s")
        time.sleep(0.2)


def measure(
    run: Any, rounds: int, rate: int, sentences: dict[str, int], ways: dict[str, tuple[str, dict[str, Any]]]
) -> dict[str, list[dict[str, float]]]:
    """Return what each way's runs said, taken in rounds whose order alternates."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in list(ways)[:: 1 if number % 2 == 0 else -1]:
            topology, more = ways[way]
            with tempfile.TemporaryDirectory(prefix="multilang-bench-") as folder:
                result = Path(folder, "result")
                conf = {**more, "bench.sentences": sentences[way], "bench.rate": rate}
                run(topology, {**conf, "bench.result": str(result)}, result)
                said = json.loads(result.read_text())
            if said["failed"]:
                raise SystemExit(f"{way}: {said['failed']} sentences failed")
            found[way].append(said)
            print(f"  {way}: " + ", ".join(f"{name} {said[name]:,.1f}" for name in FIGURES), flush=True)
    return found


def show(title: str, found: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians, and the ratios to the first way within a round: median, least, greatest."""
    first = next(iter(found))
    print(f"{title}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in FIGURES:
        for way, runs in found.items():
            ratios = [each[name] / one[name] for one, each in zip(found[first], runs, strict=True)]
            median = statistics.median(each[name] for each in runs)
            more = "" if way == first else f"{statistics.median(ratios):8.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"  {name:9} {way:7} {median:12,.1f} {more}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exchange", description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=5, help="runs of each way")
    parser.add_argument("--storm", action="store_true", help="on a real Storm instead of the embedded cluster")
    parser.add_argument("--rate", type=int, default=200, help="sentences a second for the latency at a low rate")
    parser.add_argument(
        "--ways", nargs="+", choices=list(WAYS), default=WORD_COUNTS, help="which; the first is compared with"
    )
    parser.add_argument("--only", choices=("low", "full"), help="only the low rate, or only as fast as it goes")
    chosen = parser.parse_args()
    ways = {way: WAYS[way] for way in chosen.ways}
    with ExitStack() as stack:
        run: Any = embedded
        if chosen.storm:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="multilang-bench-storm-"))
            run = stack.enter_context(RealStorm(Path(folder))).run
        where = "real Storm" if chosen.storm else "embedded, processes"
        if chosen.only != "low":
            show(f"{where}, as fast as it goes", measure(run, chosen.rounds, 0, SENTENCES, ways))
        if chosen.only != "full":
            low = dict.fromkeys(WAYS, 10 * chosen.rate)
            show(f"{where}, {chosen.rate} sentences/s", measure(run, chosen.rounds, chosen.rate, low, ways))


if __name__ == "__main__":
    main()
