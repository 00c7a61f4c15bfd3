from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multilang.local import LocalCluster, LocalClusterError, TaskStartError
from multilang.topology import ShellBolt, ShellSpout, TopologyBuilder, load_topology
from tests.local import dying, topologies
from tests.patience import patient
from tests.soak import SOAK

HERE = Path(__file__).parent
QUICK = {"topology.message.timeout.secs": 0.5}
NEVER = {"topology.message.timeout.secs": 3600}  # what waits for a timeout comes too late for these tests


def plain(*arguments: str) -> ShellBolt:
    return ShellBolt([sys.executable, str(HERE / "plain_bolt.py"), *arguments], output_fields=["n", "task"])


def with_bolt(bolt, spout=topologies.Numbers):
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    return builder.build("plain")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def eventually(condition, timeout=20.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


@pytest.mark.soak
@pytest.mark.parametrize("victims", [{"two", "pass"}, {"two", "pass", "endless"}], ids=["bolts", "all"])
def test_every_tuple_is_acked_in_the_end_however_often_children_are_killed(tmp_path, victims):
    kills = 50 if SOAK else 6
    stop, acked = tmp_path / "stop", tmp_path / "acked"
    rng = random.Random(4)
    conf = {**QUICK, "test.stop": str(stop), "test.acked": str(acked), "topology.max.spout.pending": 50}
    with LocalCluster("process", conf=conf) as cluster:
        run = cluster.submit(topologies.endless, capture=["pass"])
        run.wait(lambda run: run.counters["endless"].acked > 100, timeout=patient(60))
        for _ in range(kills):
            run.run_for(rng.random() * 0.4)
            pids = [task.pid for task in run.tasks if task.component in victims and task.alive and task.pid]
            if pids:
                os.kill(rng.choice(pids), signal.SIGKILL)
        acked_then = run.counters["endless"].acked
        run.wait(lambda run: run.counters["endless"].acked > acked_then + 100, timeout=patient(60))
        stop.touch()
        run.wait(timeout=patient(60))
        counters = run.counters
        passed = {tup["n"] for tup in run.captured("pass")}
    lives = [[int(line) for line in life.split()] for life in acked.read_text().split("started")]
    done = lives[-1]  # a spout that dies forgets what was under way: its source gives it again to the next
    assert counters["two"].restarts + counters["pass"].restarts + counters["endless"].restarts > kills / 2
    assert counters["endless"].pending == 0
    if "endless" not in victims:
        assert sorted(done) == list(range(counters["endless"].emitted - counters["endless"].failed))
    assert sorted(done) == list(range(max(done) + 1))
    assert passed >= {number for life in lives for number in life}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20) if SOAK else [1])
def test_what_a_child_had_when_it_ended_fails_at_once_and_once(seed):
    conf = {"test.seed": seed, "test.numbers": 1000 if SOAK else 150, "topology.max.spout.pending": 20}
    deaths = {"test.ways": dying.WAYS, "test.share": 0.05, "test.attempts": 3}
    with LocalCluster("process", conf={**conf, **deaths, **NEVER}) as cluster:
        run = cluster.submit(dying.dying, capture=["second"])
        run.wait(timeout=600 if SOAK else 100)
        counters = run.counters
        assert {tup["n"] for tup in run.captured("second")} == set(range(conf["test.numbers"]))
        assert not any("heartbeat" in error.message for error in run.errors)
    assert (counters["watched"].restarts, counters["watched"].timed_out) == (0, 0)
    assert counters["watched"].acked == conf["test.numbers"]
    assert counters["watched"].failed >= counters["first"].restarts + counters["second"].restarts > 5


@pytest.mark.parametrize("way", ["raise", "exit"])
def test_a_tuple_of_which_one_child_after_the_other_dies_ends_no_topology(way):
    conf = {"test.seed": 1, "test.ways": [way], "test.numbers": 1, "test.share": 1.0, "test.attempts": 7}
    with LocalCluster("process", conf={**conf, **NEVER}) as cluster:
        run = cluster.submit(dying.poisoned)
        run.wait(timeout=patient(100))
        assert run.counters["only"].restarts == 7


def test_a_component_in_another_language_takes_part(run_topology, caplog):
    with caplog.at_level(logging.INFO, "bolt"):
        run = run_topology(with_bolt(plain()), "process", capture=["bolt"], conf={"test.numbers": 20})
    assert [n for n, _ in (tup.values for tup in run.captured("bolt"))] == list(range(20))
    assert run.counters["numbers"].acked == 20
    assert "got [3, 3]" in caplog.text


def test_a_program_that_passes_heartbeats_over_takes_part(run_topology):
    run = run_topology(
        with_bolt(plain("passes heartbeats over")), "process", capture=["bolt"], conf={"test.numbers": 20}
    )
    assert len(run.captured("bolt")) == 20
    assert run.counters["bolt"].restarts == 0


@pytest.mark.parametrize("wrapper", [["setsid"], ["sh", "-c", 'exec 3<&0; "$@" <&3 &', "sh"]])
def test_a_wrapper_may_leave_before_the_program_that_it_started(run_topology, wrapper):
    command = ShellBolt([*wrapper, sys.executable, str(HERE / "plain_bolt.py")], output_fields=["n", "task"])
    conf = {"test.numbers": 20}
    with LocalCluster("process", conf=conf) as cluster:
        run = cluster.submit(with_bolt(command), capture=["bolt"])
        run.wait(timeout=patient(60))
        run.run_for(3)  # it is looked at each second, and nothing must come of that
        assert run.counters["bolt"].restarts == 0
        assert len(run.captured("bolt")) == 20


def test_a_spout_in_another_language_takes_part(run_topology):
    spout = ShellSpout([sys.executable, str(HERE / "plain_spout.py")], output_fields=["n", "from"])
    run = run_topology(with_bolt(topologies.FailsTwice, spout), "process", capture=["bolt"])
    assert sorted(tup["n"] for tup in run.captured("bolt")) == list(range(10))
    assert (run.counters["numbers"].acked, run.counters["numbers"].failed) == (10, 20)


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("stray text", "nothing but the protocol may be written to stdout: 'hello"),
        ("exit", "the process exited with status 3"),
        ("undeclared stream", "component 'bolt' emits on stream 'nowhere', which it does not declare"),
        ("wrong number of values", "component 'bolt' emits 4 values on stream 'default', which declares 2: n, task"),
        ("double ack", "acked or failed before"),
        ("half a message", "the stream ended inside a message"),
        ("hang", "heartbeat timeout"),
    ],
)
def test_a_child_that_breaks_the_protocol_is_reported_and_started_again(run_topology, tmp_path, fault, complaint):
    conf = {**QUICK, "test.numbers": 5}
    if fault == "hang":
        conf["topology.subprocess.timeout.secs"] = 2
    topology = with_bolt(plain(fault, str(tmp_path / "mark")))
    run = run_topology(topology, "process", capture=["bolt"], conf=conf)
    assert all(error.fatal and error.component == "bolt" for error in run.errors)
    assert complaint in run.errors[0].message
    assert run.counters["bolt"].restarts == len(run.errors)
    if fault != "hang":  # on a loaded machine its next process may be slower than this timeout, too
        assert len(run.errors) == 1
    assert {tup["n"] for tup in run.captured("bolt")} | {0} == set(range(5))
    assert run.counters["numbers"].acked == 5


def test_a_megabyte_of_stderr_holds_nobody_up(run_topology, tmp_path):
    run = run_topology(with_bolt(plain("stderr", str(tmp_path / "mark"))), "process")
    assert run.counters["numbers"].acked == 100
    assert run.errors == []


def test_a_child_that_never_starts_ends_the_wait_with_its_last_words():
    with LocalCluster("process") as cluster:
        run = cluster.submit(with_bolt(plain("never starts")))
        with pytest.raises(
            TaskStartError, match=r"bolt 'bolt' \(task 2\) died 5 times at its start(.|\n)*no such luck"
        ):
            run.wait(timeout=patient(60))
        with pytest.raises(TaskStartError):
            run.wait(timeout=patient(60))


def test_a_component_that_can_not_be_initialized_ends_the_wait():
    with LocalCluster("process") as cluster:
        run = cluster.submit(topologies.bad_start)
        with pytest.raises(TaskStartError, match="the database is not there"):
            run.wait(timeout=patient(60))
        assert any("the database is not there" in error.message for error in run.errors)


def test_a_command_that_does_not_exist_is_named():
    with LocalCluster("process") as cluster:
        run = cluster.submit(with_bolt(ShellBolt(["no-such-program", "-x"], output_fields=["n"])))
        with pytest.raises(TaskStartError, match=r"\['no-such-program', '-x'\] can't be started"):
            run.wait(timeout=patient(60))


def test_a_shell_component_needs_processes():
    with LocalCluster("inprocess") as cluster, pytest.raises(LocalClusterError, match='mode="process"'):
        cluster.submit(with_bolt(plain()))


def test_a_topology_that_no_process_can_import_says_so():
    class Local(topologies.Echo):
        pass

    with LocalCluster("process") as cluster, pytest.raises(LocalClusterError, match="Assign it to a name in a module"):
        cluster.submit(with_bolt(Local))


@pytest.mark.timeout(400)
def test_a_slow_bolt_holds_up_those_who_feed_it_and_memory_stays_bounded():
    conf = {"test.numbers": 10**9, "test.slow.secs": 0.01, "topology.message.timeout.secs": 600}
    with LocalCluster("process", conf=conf) as cluster:
        run = cluster.submit(topologies.slow)
        run.wait(lambda run: run.counters["slow"].executed > 20, timeout=patient(180))
        seen = [0, 0]

        def held_up(run):
            seen.append(run.counters["numbers"].emitted)
            return len(set(seen[-20:])) == 1

        run.wait(held_up, timeout=patient(180))
        counters = run.counters
        assert counters["numbers"].emitted - counters["slow"].executed < 20_000


def test_tuples_of_ten_megabytes_go_both_ways(run_topology):
    run = run_topology(topologies.big, "process", capture=["length"], timeout=patient(120))
    assert [tup["length"] for tup in run.captured("length")] == [10_000_000] * 3
    assert run.counters["big"].acked == 3


def test_ten_thousand_task_ids_that_nobody_reads_yet_block_nothing(run_topology):
    run = run_topology(topologies.flood, "process", conf={"test.numbers": 2}, timeout=patient(120))
    assert run.counters["pass"].executed == 20_000
    assert run.counters["numbers"].acked == 2


def test_nothing_is_left_when_the_cluster_ends():
    with LocalCluster("process") as cluster:
        run = cluster.submit(topologies.word_count)
        run.wait(timeout=patient(60))
        pids = [task.pid for task in run.tasks]
        pid_dir = Path(run.pid_dir)
        assert {int(file.name) for file in pid_dir.iterdir()} == set(pids)
    assert not any(alive(pid) for pid in pids)
    assert not pid_dir.parent.exists()


def test_a_child_that_ignores_sigterm_is_killed_after_a_grace(monkeypatch):
    from multilang.local.process import topology as process_topology

    monkeypatch.setattr(process_topology, "GRACE_SECS", 0.3)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    with LocalCluster("process") as cluster:
        run = cluster.submit(with_bolt(ShellBolt([sys.executable, "-c", stubborn], output_fields=["n"])))
        run.wait(lambda run: all(task.pid for task in run.tasks), timeout=patient(30))
        run.run_for(0.3)
        pids = [task.pid for task in run.tasks]
    assert not any(alive(pid) for pid in pids)


def test_nothing_is_left_when_the_cluster_s_process_is_killed(tmp_path):
    script = tmp_path / "runs.py"
    script.write_text(
        "from multilang.local import LocalCluster\n"
        "from tests.local import topologies\n"
        "cluster = LocalCluster('process', conf={'test.numbers': 10**9})\n"
        "run = cluster.submit(topologies.passing)\n"
        "run.wait(lambda run: run.counters['numbers'].acked > 10, timeout=60)\n"
        "print(*[task.pid for task in run.tasks], flush=True)\n"
        "run.wait()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 2
    eventually(lambda: not any(alive(pid) for pid in pids))


def test_a_topology_without_a_name_in_any_module_is_given_by_a_private_file(run_topology):
    run = run_topology(with_bolt(topologies.Pass), "process", capture=["bolt"])
    assert run.counters["numbers"].acked == 100
    folder = Path(run.pid_dir).parent
    assert (folder.stat().st_mode & 0o777, (folder / "topology.pickle").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_cycle_that_is_fed_more_than_its_pipes_take_does_not_come_to_a_stand(run_topology):
    run = run_topology(topologies.bursts, "process", conf={"test.numbers": 4})
    assert run.counters["bursts"].executed == 20_004
    assert run.counters["numbers"].acked == 4


def test_a_kill_in_the_middle_of_work_ends_quickly_and_is_final():
    with LocalCluster("process", conf={"test.numbers": 10**9, "test.slow.secs": 0.001}) as cluster:
        run = cluster.submit(topologies.slow, name="one")
        run.wait(lambda run: run.counters["slow"].executed > 10, timeout=patient(60))
        with pytest.raises(LocalClusterError, match="'one' runs already"):
            cluster.submit(topologies.slow, name="one")
        start = time.monotonic()
        cluster.kill("one")
        assert time.monotonic() - start < 5
        assert not any(task.alive for task in run.tasks)
        with pytest.raises(LocalClusterError, match="was killed"):
            run.wait()
        assert run.counters["slow"].executed > 10


def test_a_function_for_captured_tuples_that_raises_ends_the_wait():
    with LocalCluster("process") as cluster:
        run = cluster.submit(topologies.passing, capture={"pass": lambda tup: {}["nothing"]})
        with pytest.raises(LocalClusterError, match="can't continue: KeyError") as raised:
            run.wait(timeout=patient(60))
        assert isinstance(raised.value.__cause__, KeyError)


SCRIPT = """
from multilang import LocalCluster, Spout, TopologyBuilder

class Once(Spout):
    output_fields = ["n"]
    def next_tuple(self):
        if not self.done:
            self.done = True
            self.emit([7], tup_id=1)
    def initialize(self, conf, context):
        self.done = False
    def exhausted(self):
        return self.done

def build():
    builder = TopologyBuilder()
    builder.set_spout("once", Once)
    return builder.build("script")

def submit(topology):
    with LocalCluster() as cluster:
        run = cluster.submit(topology, capture=["once"])
        run.wait(timeout=30)
        print([tup.values for tup in run.captured("once")])
"""


def run_script(folder, text, *, piped=False):
    path = folder / "script.py"
    path.write_text(SCRIPT + text)
    with path.open() as file:
        command = [sys.executable, "-"] if piped else [sys.executable, str(path)]
        return subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=patient(60))


@pytest.mark.parametrize(
    "text",
    [
        'if __name__ == "__main__":\n    topology = build()\n    submit(topology)\n',
        'def main():\n    submit(build())\nif __name__ == "__main__":\n    main()\n',
        'topology = build()\nif __name__ == "__main__":\n    submit(topology)\n',
    ],
    ids=["guarded", "in a function", "at the top"],
)
def test_a_script_submits_what_it_declares_wherever_it_declares_it(tmp_path, text):
    done = run_script(tmp_path, text)
    assert (done.stdout, done.stderr, done.returncode) == ("[[7]]\n", "", 0)


def test_a_script_that_submits_when_it_is_imported_is_told_so_and_starts_no_clusters_within_its_tasks(tmp_path):
    done = run_script(tmp_path, "topology = build()\nsubmit(topology)\n")
    assert "put what submits it under if __name__" in done.stderr.rstrip().splitlines()[-1]
    assert "died at its start" in done.stderr


def test_components_that_were_piped_in_are_refused_when_they_are_submitted(tmp_path):
    done = run_script(tmp_path, "submit(build())\n", piped=True)
    assert 'write them in a file and import them from it, or run it with LocalCluster(mode="inprocess")' in done.stderr


def test_a_component_that_can_not_be_imported_is_not_started_again(tmp_path, caplog):
    module = tmp_path / "broken.py"
    module.write_text(SCRIPT + "topology = build()\n")
    topology = load_topology(f"{module}:topology")
    module.write_text("import there_is_no_such_module\n")
    with LocalCluster("process") as cluster:
        run = cluster.submit(topology)
        with pytest.raises(TaskStartError, match="No module named 'there_is_no_such_module'"):
            run.wait(timeout=patient(30))
    assert run.counters["once"].restarts == 0
    assert sum("ModuleNotFoundError in component" in record.message for record in caplog.records) == 1


def test_a_program_that_never_closes_its_cluster_leaves_no_folder(tmp_path):
    text = 'if __name__ == "__main__":\n    run = LocalCluster().submit(build())\n    run.wait(timeout=30)\n    print(run.pid_dir)\n'
    done = run_script(tmp_path, text)
    assert (done.stderr, done.returncode) == ("", 0)
    folder = Path(done.stdout.strip()).parent
    assert folder.name.startswith("multilang-")
    assert not folder.exists()


def test_each_component_s_pid_is_logged_as_storm_does_and_again_when_it_was_started_again(caplog):
    def logged():
        lines = [
            (record.name, record.task, record.getMessage()) for record in caplog.records if hasattr(record, "task")
        ]
        said = "Launched subprocess with pid "
        return [(name, task, int(text.removeprefix(said))) for name, task, text in lines if text.startswith(said)]

    def current(run):
        return sorted((task.component, task.id, task.pid) for task in run.tasks)

    with caplog.at_level(logging.INFO), LocalCluster("process") as cluster:
        run = cluster.submit(with_bolt(plain()))
        run.wait(timeout=patient(60))
        first = current(run)
        assert sorted(logged()) == first
        victim = next(task for task in run.tasks if task.component == "bolt")
        os.kill(victim.pid, signal.SIGKILL)
        eventually(lambda: len(logged()) == 3)
        assert logged()[-1] in current(run)
        assert logged()[-1] not in first
