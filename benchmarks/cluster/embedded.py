"""Runs word_count.py on the embedded cluster: `python embedded.py MODE SENTENCES` prints its seconds as JSON."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter

from sentences import sentence

from multilang.loading.topologies import load_topology
from multilang.local import LocalCluster


def cpu_seconds() -> float:
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    mode, sentences = sys.argv[1], int(sys.argv[2])
    topology = load_topology(os.path.join(os.path.dirname(os.path.abspath(__file__)), "word_count.py") + ":topology")
    with tempfile.TemporaryDirectory(prefix="multilang-bench-cluster-") as folder:
        conf = {"benchmark.sentences": sentences, "benchmark.folder": folder}
        cpu = cpu_seconds()
        with LocalCluster(mode=mode) as cluster:
            begin = time.perf_counter()
            running = cluster.submit(topology, conf=conf)
            running.wait(until="drained", timeout=600)
            wall = time.perf_counter() - begin
            running.kill()
        cpu = cpu_seconds() - cpu
        counted: Counter[str] = Counter()
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                counted.update(json.load(file))
    due = Counter(word for n in range(sentences) for word in sentence(n).split(" "))
    print(
        json.dumps({"wall": wall, "cpu": cpu, "right": counted == due, "counted": counted.total(), "due": due.total()})
    )


if __name__ == "__main__":
    main()
