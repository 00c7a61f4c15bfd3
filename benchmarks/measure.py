"""The measurements. Each round runs every child once, so that other load on the machine affects all of them alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from . import environment, real_storm, shell_bolt, spark_job, state_job
from .driver import Child, Driver, WrongAnswer
from .targets import PENDING

#: The children that run each workload; those that are not available are left out.
RATES = {
    "split": (
        "ours",
        "ours-many",
        "ours-bolt",
        "pystorm",
        "streamparse",
        "storm.py",
        "pystorm-layer",
        "storm.py-layer",
        "bare",
        "native",
    ),
    "count": ("ours", "pystorm", "streamparse", "storm.py", "pystorm-layer", "storm.py-layer", "bare", "native"),
    "filter": ("ours", "pystorm", "streamparse", "storm.py", "bare", "native"),
    "spout1": ("ours", "pystorm", "streamparse", "storm.py", "bare", "native"),
    "spout100": ("ours", "ours-many", "pystorm", "streamparse", "storm.py", "bare", "native"),
    "echo-ascii": ("ours", "pystorm", "storm.py", "bare"),
    "echo-unicode": ("ours", "pystorm", "storm.py", "bare"),
}
HEARTBEATS = ("ours", "pystorm", "storm.py", "bare", "native")
STARTS = ("ours", "import ujson", "pystorm", "streamparse", "storm.py", "bare", "native")
PLAIN = ("ujson", "import ujson")
SHELL_BOLT = ("ours", "pystorm", "storm.py", "native")
MEMORY = ("ours", "ujson", "pystorm", "streamparse", "storm.py", "bare", "native")


@dataclass
class Results:
    """The figures of every round, by (section, work, child), and the problems."""

    figures: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, section: str, work: str, child: str, value: float) -> None:
        self.figures.setdefault((section, work, child), []).append(value)

    def of(self, section: str, work: str, child: str) -> list[float]:
        return self.figures.get((section, work, child), [])


@dataclass(frozen=True)
class Effort:
    """The length of the measurements: rounds, CPU-seconds of a run, turns of a conversation, tuples of the flat
    test.
    """

    rounds: int
    seconds: float
    turns: int
    starts: int
    flat: tuple[int, ...]
    flat_rounds: int
    sentences: dict[str, int]
    cluster_rounds: int
    storm_seconds: float
    shell_bolt: tuple[int, float, float]  # rounds, seconds to warm up, seconds to measure
    spark: tuple[int, int]  # rounds, sentences
    spark_growth: tuple[int, ...]  # rounds, and sentences of each run
    state_rounds: int
    state: dict[str, int]
    state_sizes: tuple[int, ...]  # rounds, and keys stored
    transactional_rounds: int
    transactional: dict[str, int]  # words


FULL = Effort(
    7,
    0.6,
    4000,
    21,
    (100_000, 1_000_000, 10_000_000),
    3,
    {"process": 30_000, "inprocess": 150_000},
    3,
    10.0,
    (3, 4.0, 6.0),
    (5, 1_000_000),
    (2, 100_000, 1_000_000, 3_000_000),
    3,
    {"process": 30_000, "inprocess": 150_000},
    (3, 1000, 10_000, 100_000, 1_000_000),
    5,
    {"process": 200_000, "inprocess": 1_000_000},
)
QUICK = Effort(
    3,
    0.2,
    1000,
    7,
    (100_000, 1_000_000),
    1,
    {"process": 5_000, "inprocess": 30_000},
    1,
    4.0,
    (1, 4.0, 4.0),
    (1, 100_000),
    (1, 30_000, 100_000, 200_000),
    1,
    {"process": 10_000, "inprocess": 60_000},
    (1, 1000, 10_000, 100_000),
    1,
    {"process": 50_000, "inprocess": 200_000},
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Suite:
    """One run of all measurements over the available children."""

    def __init__(self, driver: Driver, children: dict[str, Child], effort: Effort, only: Callable[[str], bool]) -> None:
        self.driver, self.children, self.effort, self.only = driver, children, effort, only
        self.results = Results()

    def problem(self, error: WrongAnswer) -> None:
        self.results.problems.append(str(error))
        say(f"  {error}")

    def right(self, work: str, names: tuple[str, ...]) -> list[Child]:
        """Return the children of these names whose answers are right."""
        found = []
        for name in names:
            if name not in self.children or not self.only(name):
                continue
            try:
                self.driver.verify(self.children[name], work)
            except WrongAnswer as error:
                self.problem(error)
            else:
                found.append(self.children[name])
        return found

    def interleaved(self, children: list[Child], rounds: int, once: Callable[[Child, int], None]) -> None:
        """Run the children in turn. A child that fails is left out of the rounds that follow."""
        for n in range(rounds):
            for child in list(children if n % 2 == 0 else children[::-1]):
                try:
                    once(child, n)
                except WrongAnswer as error:
                    self.problem(error)
                    children.remove(child)

    def rates(self) -> None:
        """Measure tuples per CPU-second of the child."""
        for work, names in RATES.items():
            say(f"rate: {work}")
            children = self.right(work, names)
            amounts: dict[str, int] = {}

            def probe(child: Child, _: int, work: str = work, amounts: dict[str, int] = amounts) -> None:
                amounts[child.name] = self.enough(child, work)

            self.interleaved(children, 1, probe)

            def once(child: Child, _: int, work: str = work, amounts: dict[str, int] = amounts) -> None:
                figures = self.conversation(child, work, amounts[child.name])
                self.results.add("rate", work, child.name, figures["units"] / figures["cpu"] * 1e9)
                if work.startswith("spout"):
                    self.results.add("latency", work, child.name, figures["p50"] / 1e3)

            self.interleaved(children, self.effort.rounds, once)

    def conversation(self, child: Child, work: str, amount: int) -> dict[str, float]:
        spout = work.startswith("spout")
        return (self.driver.turns if spout else self.driver.stream)(child, work, amount)

    def enough(self, child: Child, work: str) -> int:
        """Return how many chunks or turns take the wanted CPU time."""
        probe = 100 if work.startswith("spout") else 2
        cpu = self.conversation(child, work, probe)["cpu"] / 1e9
        return min(20_000, max(probe, round(probe * self.effort.seconds / cpu)))

    def heartbeats(self) -> None:
        """Measure the time between a heartbeat and its sync, in microseconds."""
        say("heartbeat")

        def once(child: Child, _: int) -> None:
            figures = self.driver.turns(child, "heartbeat", self.effort.turns)
            self.results.add("p50", "heartbeat", child.name, figures["p50"] / 1e3)
            self.results.add("p99", "heartbeat", child.name, figures["p99"] / 1e3)
            figures = self.driver.turns(child, "heartbeat", self.effort.turns, pin=False)
            self.results.add("p50 unpinned", "heartbeat", child.name, figures["p50"] / 1e3)

        self.interleaved(self.right("heartbeat", HEARTBEATS), self.effort.rounds, once)

    def starts(self) -> None:
        """Measure wall and CPU milliseconds from exec to the pid message (or to the exit of `import ujson`)."""
        say("start")

        def once(child: Child, n: int) -> None:
            if child.name == "import ujson":
                figures = self.driver.run("whole", child, "filter")
                wall, cpu = figures["whole_wall"], figures["utime"] + figures["stime"]
            else:
                figures = self.driver.run("start", child, "filter", idle_ms=0)
                wall, cpu = figures["pid_wall"], figures["pid_cpu"]
            if n:  # the first run only fills the page cache
                self.results.add("start", "start", child.name, wall / 1e6)
                self.results.add("start cpu", "start", child.name, cpu / 1e6)

        self.interleaved(self.right_or_plain(STARTS), self.effort.starts + 1, once)

    def memory(self) -> None:
        """Measure the resident memory of a child that has handled a thousand tuples and waits, in MiB."""
        say("memory")

        def once(child: Child, _: int) -> None:
            options = {} if child.name == "ujson" else self.driver.chunk(child, "filter")
            figures = self.driver.run("start", child, "filter", **options)
            self.results.add("memory", "idle", child.name, figures["rss"] / 1024)
            self.results.add("memory pss", "idle", child.name, figures["pss"] / 1024)

        self.interleaved(self.right_or_plain(MEMORY), min(3, self.effort.rounds), once)

    def right_or_plain(self, names: tuple[str, ...]) -> list[Child]:
        """Return the children whose answers are right, and the plain Pythons, which answer nothing."""
        plain = [self.children[name] for name in names if name in PLAIN and self.only(name)]
        return plain + self.right("filter", tuple(name for name in names if name not in PLAIN))

    def flat(self) -> None:
        """Measure CPU time per tuple, and memory, after 10^5, 10^6 (and 10^7) tuples: the greatest over the least."""
        if not self.only("ours"):
            return
        child = self.children["ours"]
        chunk = self.driver.chunk(child, "count")
        for _ in range(self.effort.flat_rounds):
            costs, memory = [], []
            for tuples in self.effort.flat:
                say(f"flat: {tuples}")
                try:
                    figures = self.driver.run("stream", child, "count", **chunk, repeats=tuples // 1000, timeout=900)
                except WrongAnswer as error:
                    self.problem(error)
                    return
                costs.append(figures["cpu"] / tuples)
                memory.append(figures["rss"])
                self.results.add("flat ns", f"{tuples} tuples", "ours", costs[-1])
                self.results.add("flat MiB", f"{tuples} tuples", "ours", figures["rss"] / 1024)
            self.results.add("flat", "cost", "ours", max(costs) / min(costs))
            self.results.add("flat", "memory", "ours", max(memory) / min(memory))

    def cluster(self) -> None:
        """Measure word count on the embedded cluster: sentences per second, from the submission to the last ack."""
        if not self.only("ours"):
            return
        for _ in range(self.effort.cluster_rounds):
            for mode, sentences in self.effort.sentences.items():
                self.counted("cluster", "cluster/embedded.py", "ours", mode, sentences)

    def counted(self, section: str, script: str, name: str, mode: str, amount: int, *more: int) -> None:
        """Run a word count on the embedded cluster, in a process of its own, and add the rates by wall and CPU time."""
        say(f"{section}: {mode} {name}")
        ours = self.children["ours"]
        command = [ours.command[0], str(environment.HERE / script), mode, *map(str, (amount, *more))]
        done = subprocess.run(
            command,
            env=ours.environment(),
            cwd=ours.python_path,  # `python -m` looks there first, and another checkout may be measured
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        said = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"right": False}
        if not said["right"]:
            self.problem(WrongAnswer(f"{section}, {mode} {name}: {said} {done.stderr.strip()[-1500:]}"))
            return
        self.results.add(section, mode, name, amount / said["wall"])
        self.results.add(f"{section} cpu", mode, name, amount / said["cpu"])

    def transactional(self) -> None:
        """Measure word count with transactions of 1000 words, and without."""
        if not self.only("ours"):
            return
        for _ in range(self.effort.transactional_rounds):
            for mode, words in self.effort.transactional.items():
                self.counted("transactional", "transactional/counting.py", "plain", mode, words)
                for pending in PENDING:
                    more = (1000, pending)
                    self.counted("transactional", "transactional/counting.py", f"{pending} pending", mode, words, *more)

    def state(self) -> None:
        """Measure word count with state and without, then the time of a checkpoint by the number of stored keys."""
        if not self.only("ours"):
            return
        ours = self.children["ours"]
        python = str(environment.state_python())
        rounds, *sizes = self.effort.state_sizes
        with state_job.redis_server() as redis:
            stores = [store for store in state_job.STORES if store != "redis" or redis]
            if redis is None:
                self.problem(WrongAnswer("state: there is no redis-server here"))
            for n in range(self.effort.state_rounds):
                for mode, sentences in self.effort.state.items():
                    for store in stores if n % 2 == 0 else stores[::-1]:
                        say(f"state: {mode}, {store}")
                        said = state_job.word_count(ours, python, mode, store, sentences, redis or 0)
                        if not said["right"]:
                            self.problem(WrongAnswer(f"stateful word count, {mode}, {store}: {said}"))
                        self.results.add("state", mode, store, sentences / said["wall"])
                        self.results.add("state cpu", mode, store, sentences / said["cpu"])
                        if store == "redis":
                            state_job.flush(redis or 0)
            for _ in range(rounds):
                for store in stores[1:]:
                    say(f"state: checkpoints, {store}")
                    found = state_job.checkpoints(ours, python, store, tuple(sizes), redis or 0)
                    for size, ms in found.items():
                        self.results.add("checkpoint", f"{size} keys", store, ms)
                    self.results.add(
                        "checkpoint growth", f"{sizes[0]} to {sizes[-1]}", store, found[sizes[-1]] / found[sizes[0]]
                    )
                    if store == "redis":
                        state_job.flush(redis or 0)

    def storm(self) -> None:
        """Measure the peers' word count under a real Storm's LocalCluster, once it is warm."""
        for _ in range(self.effort.cluster_rounds):
            for peer in real_storm.SCRIPTS:
                say(f"storm: {peer}")
                rate = real_storm.sentences_per_second(peer, self.effort.storm_seconds)
                self.results.add("cluster", "process", peer, rate)

    def spark(self) -> None:
        """Measure word count on Spark, local[2], by run_topology and by hand; then the growth of time and memory."""
        if not self.only("ours"):
            return
        rounds, sentences = self.effort.spark
        say("spark: word count")
        for said in spark_job.runs(self.children["ours"], "rates", rounds, sentences):
            if not said["right"]:
                self.problem(WrongAnswer(f"word count on Spark: {said}"))
            work, name = str(said["work"]), spark_job.BY_HAND.get(str(said["work"]), "ours")
            for each in spark_job.OURS if name != "ours" else (work,):
                self.results.add("spark", each, name, sentences / float(said["wall"]))
                self.results.add("spark cpu", each, name, sentences / float(said["cpu"]))
        say("spark: growth")
        rounds, *sizes = self.effort.spark_growth
        found = spark_job.runs(self.children["ours"], "growth", rounds, *sizes)
        for start in range(0, len(found), len(sizes)):
            of_round = found[start : start + len(sizes)]
            for each in of_round:
                self.results.add("spark seconds", f"{each['sentences']} sentences", "ours", float(each["wall"]))
                memory = float(each["driver_mib"]) + float(each["heap_mib"])
                self.results.add("spark MiB", f"{each['sentences']} sentences", "ours", memory)
            time, memory = spark_job.growth(of_round)  # type: ignore[arg-type]
            self.results.add("spark growth", "time", "ours", time)
            self.results.add("spark growth", "memory", "ours", memory)

    def shellbolt(self) -> None:
        """Measure the split bolt under Storm's own ShellBolt in a LocalCluster, where everything else is Java."""
        children = self.right("split", SHELL_BOLT)
        for name, rate in shell_bolt.sentences_per_second(children, *self.effort.shell_bolt):
            say(f"shellbolt: {name} {rate:,.0f}")
            self.results.add("shellbolt", "split", name, rate)
