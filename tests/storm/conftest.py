"""One real Storm for all tests here: ZooKeeper, Nimbus and a supervisor of this machine's own, from Maven."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster import STORM_VERSION, Cluster, missing_programs
from multilang.shipping.cluster.artifacts import cache_folder
from multilang.shipping.errors import ShippingError
from tests.cli.command import ROOT, multilang
from tests.patience import LONGEST, PACE, SLOW, patient
from tests.storm import jvm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from multilang.shipping.nimbus import Nimbus

HERE = Path(__file__).parent
SHIPPED = HERE / "shipped"  # what goes to the cluster
# Storm's own limits, by the speed of this machine: a JVM that starts slowly must not be started again and again.
LIMITS = {
    "nimbus.task.launch.secs": patient(300),
    "supervisor.worker.start.timeout.secs": patient(300),
    "supervisor.worker.timeout.secs": patient(60),
    "nimbus.task.timeout.secs": patient(60),
    "nimbus.supervisor.timeout.secs": patient(60),
    "topology.message.timeout.secs": patient(30),
    # ms; the next Nimbus waits so long for one that was killed
    "storm.zookeeper.session.timeout": min(patient(10_000), 40_000),
    "storm.zookeeper.connection.timeout": patient(60_000),
}
# What has nothing to do asks again each millisecond by Storm's defaults: some topologies that idle take a whole processor.
PATIENT = {
    **LIMITS,
    "topology.spout.wait.progressive.level3.sleep.millis": 10,
    "topology.bolt.wait.progressive.level1.count": 0,
    "topology.bolt.wait.progressive.level2.count": 0,
    "topology.bolt.wait.progressive.level3.sleep.millis": 5,
}
LIMIT = patient(240)  # seconds for what takes some: this machine may be busy with other tests
START_LIMIT = min(patient(180), LONGEST / 2)  # seconds for the daemons to answer


# Two clusters of about as much to do each: with one, its tests would go on when all others have ended. On a slow machine, where
# a cluster takes minutes to start, there is one.
FIRST = ("test_deploy.py", "test_faults.py", "test_observed.py", "test_page.py", "test_state.py")


def group(item: pytest.Item) -> str:
    """Return the group of a test."""
    if "storm" not in getattr(item, "fixturenames", ()):
        return "storm clusters"  # it starts a cluster of its own
    return "storm" if item.path.name in FIRST or PACE >= SLOW else "storm topologies"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group(group(item)))  # in one process: one cluster
            item.add_marker(pytest.mark.timeout(600))  # the first fetches Storm


@pytest.fixture(scope="session")
def storm_programs() -> None:
    missing = missing_programs()
    if missing:
        reason = f"no {' and no '.join(missing)} here, which a real Storm needs"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def storm(storm_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    lists = tmp_path_factory.mktemp("classes")
    conf = {**PATIENT, **jvm.conf(lists)}
    cluster = Cluster(tmp_path_factory.mktemp("storm"), supervisors=1, slots=8, conf=conf, start_limit=START_LIMIT)
    try:
        cluster.up()
        jvm.make_archives(lists, lambda conf: train(cluster, conf))
        yield cluster
    finally:
        cluster.down()


def train(storm: Cluster, conf: dict[str, str]) -> None:
    """Run a topology until tuples were acked, and end it."""
    topology = ROOT / "examples" / "word_count.py"
    give(storm, topology, "trained", **conf)
    with storm.client() as client:
        wait_for(lambda: acked(client, "trained", "split")[0] > 0, "a worker runs")
        client.kill("trained", 0)
        wait_for(lambda: not client.summary().topologies, "it has ended")


@pytest.fixture(scope="session")
def lost() -> list[str]:
    """The reason why the cluster is of no more use, once there is one: no test waits for it a second time."""
    return []


@pytest.fixture
def nimbus(storm: Cluster, lost: list[str]) -> Iterator[Nimbus]:
    """A connection to Nimbus; the topologies that a test leaves are killed."""
    if lost:
        pytest.fail(f"not tried again: {lost[0]}")
    with losing(lost):
        storm.up()  # a test that failed may have left a daemon ended
    with storm.client() as client:
        yield client
    with losing(lost), storm.client() as client:  # Nimbus may be another one now
        for each in client.summary().topologies:
            if each.status != "KILLED":
                client.kill(each.name, 0)
        wait_for(lambda: not client.summary().topologies, "the topologies are killed")


@contextmanager
def losing(lost: list[str]) -> Iterator[None]:
    """Add the text of what goes wrong here to ``lost``."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        lost.append(f"{type(error).__name__}: {error}")
        raise


def wait_for(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """Until the condition holds; an answer that Nimbus can't give yet is none."""
    deadline = time.monotonic() + limit
    problem: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if condition():
                return
            problem = None
        except ShippingError as error:
            problem = error
        time.sleep(0.2)
    pytest.fail(f"not within {limit} seconds: {what}" + (f" ({problem})" if problem else ""))


def give(storm: Cluster, topology: Path, name: str, *options: object, **conf: object) -> None:
    """Submit a topology from its folder, and don't wait."""
    entries = [word for key, value in conf.items() for word in ("-c", f"{key}={json.dumps(value)}")]
    where = ("--nimbus", storm.address, "--name", name, "--wait", 0)
    shown = multilang("submit", topology.name, *where, *options, *entries, cwd=topology.parent)
    assert shown.returncode == 0, shown.stderr


def acked(nimbus: Nimbus, name: str, component: str) -> tuple[int, int]:
    """Return how many tuples were acked and how many failed, by Nimbus's figures."""
    components = nimbus.status(name).components
    return next(((each.acked or 0, each.failed or 0) for each in components if each.id == component), (0, 0))


def workers(storm: Cluster) -> list[int]:
    """The workers' JVMs."""
    found = []
    for pid in storm.processes():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if (
            b"org.apache.storm.daemon.worker.Worker" in command
            and b"java" in Path(os.fsdecode(command[0])).name.encode()
        ):
            found.append(pid)
    return found


def maven(group: str, artifact: str, version: str = STORM_VERSION, plugin: str = "3.6.1", classifier: str = "") -> Path:
    """A jar from Maven, kept in the cache."""
    folder = cache_folder() / "artifacts"
    end = f"-{classifier}" if classifier else ""
    jar = folder / f"{artifact}-{version}{end}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None and "CI" not in os.environ:
            pytest.skip(f"there is no mvn here, which would get {artifact}")
        goal = f"org.apache.maven.plugins:maven-dependency-plugin:{plugin}:copy"
        what = (f"-Dartifact={group}:{artifact}:{version}:jar{end.replace('-', ':')}", f"-DoutputDirectory={folder}")
        shown = subprocess.run(
            ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", goal, *what],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patient(500),
        )
        assert shown.returncode == 0, shown.stdout
    return jar
