"""The owner of a place where something outlives its process: state, transactions, positions.

One law for all stores:

- **An owner has an epoch.** Claiming a place raises it.
- **Nothing is read before the claim**, or it could be older than what the last owner wrote.
- **Every write carries the epoch** (or what was claimed under it) and is refused, in the same atomic step, by a store that
  knows a newer one. To look first and write then is not enough: time passes between the two, and a process can be stopped
  there for hours.
- **The epoch is raised by who takes over**, never by who only looks.

So a writer that is not the newest can write nothing, whatever it believes of itself. Beside the epoch an owner has a
heartbeat, which protects nothing and is there for people: while it beats, another run is refused by name instead of taking
the place over. A process that was killed or stopped does not beat.
"""

from __future__ import annotations

import os
import socket
import threading
from abc import ABC, abstractmethod
from time import monotonic, sleep, strftime

from multilang.protocol.codec import dumps, loads
from multilang.state.errors import InUseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BEAT_SECS = 1.0
LEASE_SECS = 10.0  # without a beat, after which an owner is taken for dead or stopped
CLAIM_SECS = 5.0  # that an owner which beats has to go away: it may be about to end
_POLL_SECS = 0.05
_SLOW_SECS = 1.0  # a look that takes longer says nothing of the time before it


class Owner:
    """A place's owner, as it is written down there.

    Attributes:
        epoch: Grows by one with each claim, from 1 on.
        run: The run that claimed, a topology's ``storm.id``; empty when the owner let the place go.
        topology: Its name, for people.
        host: Where it runs.
        process: Its number and, where the system has such, its namespace of numbers.
        since: When it claimed, local time, for people.
    """

    __slots__ = ("epoch", "host", "process", "run", "since", "topology")

    def __init__(self, epoch: int, run: str, topology: str, host: str, process: list[Any], since: str) -> None:
        self.epoch = epoch
        self.run = run
        self.topology = topology
        self.host = host
        self.process = process
        self.since = since

    def __str__(self) -> str:
        return f"topology {self.topology!r} (process {self.process[0]} on {self.host}, since {self.since})"

    def text(self) -> str:
        """Return it as JSON, to be stored."""
        return dumps([self.epoch, self.run, self.topology, self.host, self.process, self.since])

    @classmethod
    def from_text(cls, text: str | bytes) -> Owner:
        """Return what ``text`` made text of. ValueError for anything else."""
        found = loads(text)
        if not isinstance(found, list) or len(found) != len(cls.__slots__):
            raise ValueError(f"no owner: {text!r}")
        return cls(*found)

    def is_dead(self) -> bool:
        """Return whether its process is known to have ended: it was one of this machine, and is no more."""
        if self.host != socket.gethostname() or self.process[1:] != _number_space():
            return False
        try:
            os.kill(self.process[0], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # somebody else's process
        return False


class OwnedPlace(ABC):
    """How one kind of store keeps a place's owner. All methods may be called from any thread."""

    @abstractmethod
    def owner(self) -> Owner | None:
        """Return the owner; None when there never was one."""

    @abstractmethod
    def beats(self) -> Any:
        """Return anything that differs after each ``beat``."""

    @abstractmethod
    def replace(self, epoch: int, owner: Owner) -> bool:
        """Write ``owner`` down if the one there has ``epoch`` (0: there is none), in one atomic step; whether it had."""

    @abstractmethod
    def beat(self, epoch: int) -> bool:
        """Beat for the owner of ``epoch``; False when the place has another one by now."""

    @abstractmethod
    def describe(self) -> str:
        """Return the place in the words of a message: "the state file /var/lib/shop/state.sqlite"."""

    def close(self) -> None:  # noqa: B027  # not every place has something to close
        """Close the connections that ``beat`` and the others opened."""


class Ownership:
    """A claim of this process. ``epoch``: what every write has to carry."""

    def __init__(self, place: OwnedPlace, owner: Owner) -> None:
        self.epoch = owner.epoch
        self._place = place
        self._owner = owner
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"owner of {place.describe()}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let the place go: who comes next need not wait. Nothing happens when somebody else has it by now."""
        self._ended.set()
        self._thread.join()
        left = Owner(self.epoch, "", self._owner.topology, self._owner.host, self._owner.process, self._owner.since)
        try:
            self._place.replace(self.epoch, left)
        except Exception:  # noqa: BLE001 - the store is gone: who comes next waits for beats that do not come
            pass
        self._place.close()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECS):
            try:
                if not self._place.beat(self.epoch):
                    return
            except Exception:  # noqa: BLE001 - a store that can't be reached now: the epoch protects, not the beat
                continue


def claim(place: OwnedPlace, run: str, topology: str, warn: Callable[[str], None]) -> Ownership:
    """Make this process the owner of ``place``.

    Args:
        place: What is claimed.
        run: The run that claims: what the same run left there (a coordinator that died) is taken over at once.
        topology: The run's topology, for people.
        warn: Told when the place is taken from an owner that neither ended nor beats.

    Raises:
        InUseError: Another run's owner beats.
    """
    while True:
        before = wait_until_free(place, run, warn)
        epoch = 0 if before is None else before.epoch
        me = Owner(
            epoch + 1,
            run,
            topology,
            socket.gethostname(),
            [os.getpid(), *_number_space()],
            strftime("%Y-%m-%d %H:%M:%S"),
        )
        if place.replace(epoch, me):
            place.beat(me.epoch)
            return Ownership(place, me)


def wait_until_free(place: OwnedPlace, run: str | None, warn: Callable[[str], None] = lambda _: None) -> Owner | None:
    """Return the last owner of ``place`` once no other run than ``run`` uses it.

    Raises:
        InUseError: Another run's owner still beats after ``CLAIM_SECS``.
    """
    began = monotonic()
    seen: Any = None
    seen_at = began
    while True:
        before = monotonic()
        owner = place.owner()
        if owner is None or not owner.run or owner.run == run or owner.is_dead():
            return owner
        mark = (owner.epoch, place.beats())
        now = monotonic()
        if seen is None or now - before > _SLOW_SECS:
            seen, seen_at = mark, now
        elif mark != seen:
            if now - began >= CLAIM_SECS:
                raise InUseError(f"{place.describe()} is in use by {owner}; end that one first, or name another place")
            seen, seen_at = mark, now
        elif now - seen_at >= LEASE_SECS:
            warn(
                f"{place.describe()} is taken over from {owner}, which has not answered for {LEASE_SECS:g} s; should it wake "
                "up, it can write nothing any more"
            )
            return owner
        sleep(_POLL_SECS)


def _number_space() -> list[str]:
    """Return what tells apart two containers of one host name, in which a number means different processes."""
    try:
        return [os.readlink("/proc/self/ns/pid")]
    except OSError:
        return []
