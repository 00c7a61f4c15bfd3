"""Starting and stopping a cluster. The next ``up`` cleans up what a killed cluster has left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.shipping.cluster import binding, processes, settings
from multilang.shipping.cluster.artifacts import STORM_VERSION, check_owners, java, runs_sources, storm_jars
from multilang.shipping.cluster.state import (
    LOOPBACK,
    PORTS,
    ClusterState,
    default_home,
    new_state,
    read_state,
    write_state,
)
from multilang.shipping.errors import ShippingError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.storm_yaml import Address, read_conf

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping

SIGN = ".storm-multilang-cluster"  # a file in each cluster's folder; no folder without it is ever emptied
# Seconds for the daemons to answer. Three JVMs that start at once took more than 180 s of a busy laptop with slow memory. A
# daemon that ends is seen at once: who waits longer waits for one that is alive.
START_LIMIT = 600.0
_LOCK = ".lock"
_POLL = 0.1  # seconds


class Cluster:
    """ZooKeeper, Nimbus and supervisors on loopback, with all their files in one folder.

    As a context manager the cluster is up inside, and down afterwards. Every process on this machine may use it.

    Args:
        home: The cluster's folder, which is made if it is missing.
        supervisors: The number of supervisors, if the cluster is new.
        slots: The number of workers that each supervisor may have, if the cluster is new.
        conf: Entries of storm.yaml that override ours. Ports are free ones unless ``nimbus.thrift.port``,
            ``storm.zookeeper.port``, ``drpc.port`` or ``drpc.invocations.port`` names them.
        drpc: Whether Storm's DRPC server runs, too, which needs a JDK; None: if there is one.
        expose: Whether the daemons listen on every interface, so that whoever reaches them runs code as this user.
        start_limit: Seconds that the daemons may take to answer.

    Attributes:
        home: The cluster's folder.
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        supervisors: int = 1,
        slots: int = 4,
        conf: Mapping[str, Any] | None = None,
        drpc: bool | None = None,
        expose: bool = False,
        start_limit: float = START_LIMIT,
    ) -> None:
        # Links are resolved because the mark in the environment must be the same for every path to the folder.
        self.home = Path(os.path.realpath(home or default_home()))
        self._supervisors = supervisors
        self._slots = slots
        self._conf = dict(conf or {})
        self._drpc = drpc
        self._expose = expose
        self._start_limit = start_limit
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._again: set[str] = set()  # the daemons that ended while they started, and were started once more

    @property
    def logs(self) -> Path:
        """The folder of all logs. Those of workers are in ``workers-artifacts/TOPOLOGY-ID/PORT/worker.log``."""
        return self.home / "logs"

    @property
    def conf_folder(self) -> Path:
        """The value that ``STORM_CONF_DIR`` must have for Storm's own client."""
        return settings.conf_folder(self.home)

    @property
    def conf(self) -> dict[str, Any]:
        """The entries of the cluster's storm.yaml. Raises ShippingError when the cluster was never up."""
        return read_conf(self.conf_folder / "storm.yaml")

    @property
    def address(self) -> Address:
        """The address of Nimbus. Raises ShippingError when the cluster was never up."""
        return self._state().address

    @property
    def exposed(self) -> bool:
        """True if the daemons listen on every interface of this machine."""
        return self._state().exposed

    @property
    def drpc(self) -> tuple[Address, Address] | None:
        """The addresses of Storm's DRPC server for clients and for topologies, or None if there is no DRPC server."""
        state = self._state()
        if state.drpc is None or state.drpc_invocations is None:
            return None
        return Address(LOOPBACK, state.drpc), Address(LOOPBACK, state.drpc_invocations)

    def up(self, progress: Callable[[str], None] = lambda _: None) -> bool:
        """Start the daemons that are not running, and wait until they are ready.

        A cluster that lost some daemons gets them back with its data. One that is down, or was never ready, begins
        anew.

        Args:
            progress: Called with a text for each step.

        Returns:
            False if all daemons were running already.

        Raises:
            ShippingError: A daemon can't be started; the text has the reason.
        """
        jars = self._jars(progress)
        with self._locked():
            state = read_state(self.home)
            alive = processes.daemons(self.home)
            if state is None or not state.ready or not alive or state.version != STORM_VERSION:
                state = self._begin_anew(jars)
                alive = {}
            missing = [name for name in state.daemons if name not in alive]
            self._again.clear()
            for name in missing:
                progress(f"starting {name}")
                self._start(state, name)
            self._wait(state)
            if not state.ready:
                write_state(self.home, replace(state, ready=True))
            return bool(missing)

    def down(self) -> int:
        """End every process of the cluster, workers and components included, and return how many there were."""
        if not (self.home / SIGN).exists():
            return 0
        with self._locked():
            ended = processes.end(self.home)
            self._reap()
            (self.home / "cluster.json").unlink(missing_ok=True)
        return ended

    def status(self) -> dict[str, int | None]:
        """Return daemon -> process number, or None for one that is not running. Empty: the cluster is down."""
        state = read_state(self.home)
        alive = processes.daemons(self.home)
        return {} if state is None else {name: alive.get(name) for name in state.daemons}

    def not_as_asked(self) -> list[str]:
        """Return the differences between the running cluster and this object: keys of storm.yaml, "expose", "supervisors"."""
        has = self.conf
        asked = [key for key, value in self._conf.items() if has.get(key) != value]
        if self.exposed != self._expose:
            asked = ["expose", *asked]
        return asked if len(self._state().supervisors) == self._supervisors else ["supervisors", *asked]

    def processes(self) -> dict[int, str]:
        """Return all processes, workers and components included: number -> the daemon that started it."""
        return processes.members(self.home)

    def kill(self, daemon: str) -> None:
        """Kill one daemon with ``kill -9``; its workers continue. Raises ShippingError when it isn't running."""
        pid = processes.daemons(self.home).get(daemon)
        if pid is None:
            raise ShippingError(f"no {daemon!r} runs in {self.home}; running: {', '.join(self.status()) or 'none'}")
        os.kill(pid, signal.SIGKILL)
        self._until(lambda: daemon not in processes.daemons(self.home), f"{daemon} did not end")
        self._reap()

    def client(self) -> Nimbus:
        """Connect to Nimbus."""
        return Nimbus([self.address], conf=self.conf)

    def __enter__(self) -> Cluster:  # noqa: PYI034 - Self is not in Python 3.10
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def _jars(self, progress: Callable[[str], None]) -> Path:
        if java() is None:
            raise ShippingError("java not found: Storm needs a Java runtime, 17 or newer, on the path or in JAVA_HOME")
        progress(f"Storm {STORM_VERSION}'s jars")
        return storm_jars()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other calls of ``up`` and ``down``. The system releases the lock of a process that was killed."""
        self._own_home()
        with (self.home / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _own_home(self) -> None:
        check_owners(self.home)
        sign = self.home / SIGN
        if any(letter in str(self.home) for letter in ' :*"%'):
            raise ShippingError(f"{self.home} can't be a cluster's folder: Java's class path can't contain such a name")
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_owners(self.home, must_exist=True)  # again: what is there now stays there
            if not sign.exists() and any(self.home.iterdir()):
                raise ShippingError(
                    f"{self.home} holds other things; name an empty folder for the cluster, or a new one"
                )
            self.home.chmod(0o700)  # its files have secrets, and whoever writes them runs code as this user
            sign.touch()
        except OSError as error:
            raise ShippingError(f"{self.home} can't be a cluster's folder: {error.strerror}; name another") from None

    def _with_drpc(self) -> bool:
        possible = self._drpc is not False and runs_sources()
        if self._drpc and not possible:
            raise ShippingError(
                f"{java()} runs no program from its source, as the DRPC server must be: install a JDK, 17 or newer "
                "(Debian, Ubuntu: apt-get install default-jdk-headless), or leave DRPC out"
            )
        return possible

    def _begin_anew(self, jars: Path) -> ClusterState:
        if not self._expose:
            binding.check(self._conf)
        state = new_state(
            STORM_VERSION, self._supervisors, self._slots, self._with_drpc(), self._conf, exposed=self._expose
        )
        processes.end(self.home)
        self._reap()
        for key in PORTS:  # or another cluster's Nimbus would be taken for this one's
            number = self._conf.get(key)
            if number and _listens(number):
                raise ShippingError(f"{key} is {number}, where another program listens; name another port, or none")
        for path in self.home.iterdir():
            if path.name in (SIGN, _LOCK):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        write_state(self.home, state)
        settings.write_settings(self.home, state, jars, self._conf)
        return state

    def _state(self) -> ClusterState:
        state = read_state(self.home)
        if state is None:
            raise ShippingError(f"there is no cluster in {self.home}; start one: multilang cluster up")
        return state

    def _start(self, state: ClusterState, name: str) -> None:
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = processes.environment(
            self.home, name, PATH=path, STORM_CONF_DIR=str(settings.conf_folder(self.home, name))
        )
        if name == "drpc":  # if it starts first, Storm's folders in ZooKeeper are open to all, whatever the ACLs
            self._until(
                lambda: _ready(state, self.conf), "Nimbus does not answer, or has not found every supervisor", state
            )
        command = settings.command(self.home, name, java() or "java")
        self._children[name] = processes.spawn(command, self.logs / f"{name}.out", environment, self.home)
        if name == "zookeeper":  # otherwise the other daemons first wait a second or more for it
            self._until(lambda: _listens(state.zookeeper), "ZooKeeper does not answer", state)

    def _wait(self, state: ClusterState) -> None:
        """Wait until Nimbus leads and knows every supervisor, and the DRPC server listens."""
        self._until(
            lambda: _ready(state, self.conf), "Nimbus does not answer, or has not found every supervisor", state
        )
        drpc = [port for port in (state.drpc, state.drpc_invocations) if port]
        self._until(lambda: all(map(_listens, drpc)), "the DRPC server does not answer", state)

    def _until(self, condition: Callable[[], bool], otherwise: str, state: ClusterState | None = None) -> None:
        deadline = time.monotonic() + self._start_limit
        while not condition():
            if state is not None:
                self._start_again(state)
            if time.monotonic() > deadline:
                raise ShippingError(f"{otherwise}, after {self._start_limit:.0f} seconds; see the logs in {self.logs}")
            time.sleep(_POLL)

    def _start_again(self, state: ClusterState) -> None:
        """Start the daemons that have ended once more.

        Storm's daemons end at the first surprise, and count upon somebody who starts them again: a Nimbus, for one, that finds the
        node of the Nimbus before it in ZooKeeper just as that node's session is over.
        """
        for name in self._dead():
            if name in self._again:
                raise ShippingError(f"{name} ended at once, twice:\n{self._last_words(name)}")
            self._again.add(name)
            self._start(state, name)

    def _dead(self) -> list[str]:
        """Return the daemons that this process started and that have ended."""
        return [name for name, child in self._children.items() if child.poll() is not None]

    def _last_words(self, name: str) -> str:
        lines: list[str] = []
        for suffix in ("out", "log"):
            path = self.logs / f"{name}.{suffix}"
            if path.exists():
                lines += path.read_text(errors="replace").splitlines()[-15:]
        return "\n".join(lines)

    def _reap(self) -> None:
        """Collect the status of our children that are no longer members of the cluster, as they have ended or will at
        once.
        """
        members = processes.members(self.home)
        for child in self._children.values():
            if child.pid not in members:
                child.wait(self._start_limit)
        self._children = {name: child for name, child in self._children.items() if child.returncode is None}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((LOOPBACK, port)) == 0


def _ready(state: ClusterState, conf: Mapping[str, Any]) -> bool:
    if not _listens(state.nimbus):
        return False
    try:
        with Nimbus([state.address], timeout=10, conf=conf) as nimbus:
            summary = nimbus.summary()
    except ShippingError:
        return False
    return any(each.isLeader for each in summary.nimbuses) and len(summary.supervisors) >= len(state.supervisors)
