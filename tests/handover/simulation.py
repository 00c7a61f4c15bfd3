"""Several runs of a topology in one process, of which one at a time goes on: which, how far, and what is done to it has a seed.

Each is a simulated topology in a thread of its own, that waits for its turn at each step of its protocol and between two
events. One that is stopped gets no turn and does not beat, and one that is killed never gets another. So runs meet in every way
in which processes can, as often as wanted, and a seed repeats it.
"""

from __future__ import annotations

import threading
import time
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from multilang.local import LocalCluster
from multilang.store import claims, zookeeper_client
from tests.handover.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest

    from multilang.topology.model import Topology

_LOOK_EVERY = 20  # events, whether all is processed
_SLICE_SECS = 0.2  # that pass in a turn, at the most
_STEPS = 8  # of a turn, about
TURNS = 100_000


class Killed(BaseException):
    """Comes out of a run that is killed: nobody catches it."""


_current = threading.local()


def at_step(who: str, step: str, txid: int) -> None:
    """The ``multilang.*.trace`` of these runs: here others may have their turn."""
    run: SimulatedRun | None = getattr(_current, "run", None)
    # Within a transaction of SQLite nobody else could write, so that it would not be another's turn but the end.
    if run is not None and not step.endswith(" sync"):
        run.let_others(f"{who} {step}")


class SimulatedRun:
    """One life of a topology. ``error``: what ended it, None when it came to its end; ``where``: its last step."""

    def __init__(self, world: World, topology: Topology, conf: dict[str, Any], seed: int) -> None:
        self.world = world
        self.stopped = self.ended = self.killed = False
        self.error: BaseException | None = None
        self.where = ""
        self.points = 0
        self.owned: list[claims.Claim] = []
        self._parts = (topology, conf, seed)
        self._go = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    @property
    def can_go_on(self) -> bool:
        """Return whether the run may have a turn."""
        return not (self.stopped or self.ended)

    @property
    def epoch(self) -> int:
        """The last that it claimed; 0: none."""
        return max((owned.epoch for owned in self.owned), default=0)

    def turn(self) -> None:
        """Let it go on until it lets others."""
        self._go.release()
        self.world.back.acquire()

    def kill(self) -> None:
        """It does nothing more."""
        self.killed = True
        self.turn()

    def let_others(self, where: str = "") -> None:
        """In its thread: wait for the next turn, if this one is over."""
        self.where = where
        self.points += 1
        if self.world.is_over():
            self.world.back.release()
            self._go.acquire()
            if self.killed:
                raise Killed

    def _live(self) -> None:
        self._go.acquire()
        _current.run = self
        topology, conf, seed = self._parts
        cluster = LocalCluster(mode="simulated", conf=conf, seed=seed)
        try:
            if not self.killed:
                run = cluster.submit(topology)
                self._until_drained(run)
                cluster.close()
        except Killed:
            pass  # nothing is closed, as nothing is when a process is killed
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            self.error = error
            try:
                cluster.close()
            except Killed:
                pass
        self.ended = True
        self.world.back.release()

    def _until_drained(self, run: Any) -> None:
        events = 0

        def drained(_: object) -> bool:
            nonlocal events
            events += 1
            if events % _LOOK_EVERY:
                return False
            self.let_others()
            return not run.waiting_for

        run.wait(until=drained, timeout=24 * 3600)


class World:
    """All runs, and the clock by which they judge each other. ``chance`` decides everything."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chance = Random(seed)
        self.now = 0.0
        self.back = threading.Semaphore(0)
        self.runs: list[SimulatedRun] = []
        self._left = 0
        self._beats = count()

        class Registered(claims.Claim):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                _current.run.owned.append(self)

        monkeypatch.setattr(claims, "Claim", Registered)
        monkeypatch.setattr(claims, "BEAT_SECS", 1e6)  # it beats here
        monkeypatch.setattr(claims, "monotonic", lambda: self.now)
        monkeypatch.setattr(claims, "sleep", self._sleep)

    def begin(self, topology: Topology, conf: dict[str, Any]) -> SimulatedRun:
        """Another run."""
        run = SimulatedRun(self, topology, conf, self.chance.getrandbits(32))
        self.runs.append(run)
        return run

    def go_on(self, until: Callable[[], object], turns: int = TURNS) -> bool:
        """Give turns to those that can take them until something is so; False: it never was."""
        for _ in range(turns):
            if until():
                return True
            able = [run for run in self.runs if run.can_go_on]
            if not able:
                return bool(until())
            self.now += self.chance.random() * _SLICE_SECS
            self.time_passed()
            for run in able:
                for owned in run.owned:
                    owned._store.beat(owned._place, owned.fence, next(self._beats))
            self._left = 1 + int(self.chance.expovariate(1 / _STEPS))
            self.chance.choice(able).turn()
        return bool(until())

    def time_passed(self) -> None:
        """Let those parts of a run go on, or end, that need no turn of the run."""

    def is_over(self) -> bool:
        """Count one more step of the present turn, and return whether the turn is over."""
        self._left -= 1
        return self._left <= 0

    def _sleep(self, secs: float) -> None:
        run: SimulatedRun | None = getattr(_current, "run", None)
        if run is not None:  # else the test looks
            self._left = 0
            run.let_others("waits")


class ZooKeeperWorld(World):
    """Runs whose transactions are in a ZooKeeper at ``port``, each behind a network of its own; a context manager.

    A session lives in threads that have no turns: of a run that is stopped or killed nothing gets through any more, and its session
    is ended when it would be over. One that wakes finds it so.
    """

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch, port: int, session_secs: float) -> None:
        super().__init__(seed, monkeypatch)
        self._port = port
        self._session_secs = session_secs
        self._networks: dict[SimulatedRun, Proxy] = {}
        self._clients: dict[SimulatedRun, list[Any]] = {}
        self._silent: dict[SimulatedRun, float] = {}  # since when
        self._over: dict[Any, int] = {}  # by client, the session of its that was ended
        connect = zookeeper_client.ZooKeeperClient._connect

        def connected(connection: Any) -> Any:
            client = connect(connection)
            run = getattr(_current, "run", None)
            if run is not None:  # else the test looks
                self._clients[run].append(client)
            return client

        monkeypatch.setattr(zookeeper_client.ZooKeeperClient, "_connect", connected)
        monkeypatch.setattr(zookeeper_client, "monotonic", lambda: self.now)
        monkeypatch.setattr(zookeeper_client, "sleep", self._sleep_a_little)

    def begin(self, topology: Topology, conf: Mapping[str, Any]) -> SimulatedRun:
        network = Proxy(self._port)
        run = super().begin(topology, {**conf, zookeeper_client.PORT: network.port})
        self._networks[run] = network
        self._clients[run] = []
        return run

    def time_passed(self) -> None:
        for run, network in self._networks.items():
            if not (run.stopped or run.killed):
                network.heal()
                if self._silent.pop(run, None) is not None and not run.ended:
                    self._wait_for_connections(run)
            elif run not in self._silent:
                self._silent[run] = self.now
                network.cut()
            elif self.now - self._silent[run] > self._session_secs:
                for client in self._open_clients(run):
                    self._end_session(client)
                self._silent[run] = float("inf")

    def _wait_for_connections(self, run: SimulatedRun) -> None:
        """They are made in real time, while no other passes."""
        end = time.monotonic() + 10
        for client in self._open_clients(run):
            before = self._over.pop(client, None)
            while not (client.connected and client._session_id != before) and time.monotonic() < end:
                time.sleep(0.002)

    def _open_clients(self, run: SimulatedRun) -> list[Any]:
        return [client for client in self._clients[run] if not client._stopped.is_set()]

    def _end_session(self, client: Any) -> None:
        from kazoo.client import KazooClient

        self._over[client] = client._session_id
        known = client._session_id, client._session_passwd
        if known[0]:
            other = KazooClient(f"127.0.0.1:{self._port}", client_id=known, timeout=self._session_secs)
            try:
                other.start(timeout=10)
            finally:
                other.stop()
                other.close()

    def _sleep_a_little(self, secs: float) -> None:
        time.sleep(0.01)  # connections are made in real time
        self._sleep(secs)

    def __enter__(self) -> ZooKeeperWorld:  # noqa: PYI034  # Self is not in typing of Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        for run, network in self._networks.items():
            network.heal()
            for client in self._clients[run]:
                client.stop()
                client.close()
            network.__exit__(None, None, None)
