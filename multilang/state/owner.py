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

import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from time import monotonic, sleep, strftime

from multilang.protocol.codec import dumps, loads
from multilang.state.errors import FencedError, InUseError, WrongProviderError
from multilang.state.settings import may_return, owner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

BEAT_SECS = 1.0
LEASE_SECS = 10.0  # without a beat, after which an owner is taken for dead or stopped
CLAIM_SECS = 5.0  # that an owner which beats has to go away: it may be about to end
_POLL_SECS = 0.05
_REFUSALS = 20  # of a place to be claimed, while nobody else claims it
_EARLIER = 50  # runs that are remembered
_SLOW_SECS = 1.0  # a look that takes longer says nothing of the time before it

log = logging.getLogger(__name__)


class Owner:
    """A place's owner, as it is written down there.

    Attributes:
        epoch: Grows by one with each claim, from 1 on.
        run: The run that claimed, a topology's ``storm.id``.
        topology: Its name, for people.
        host: Where it runs.
        process: Its number and, where the system has such, its namespace of numbers.
        since: When it claimed, local time, for people.
        earlier: Runs that had claimed before, the last ones: a run that was taken over from does not come back.
        ended: Whether it let the place go.
    """

    __slots__ = ("earlier", "ended", "epoch", "host", "process", "run", "since", "topology")

    def __init__(
        self,
        epoch: int,
        run: str,
        topology: str,
        host: str,
        process: list[Any],
        since: str,
        earlier: list[str],
        ended: bool = False,
    ) -> None:
        self.epoch = epoch
        self.run = run
        self.topology = topology
        self.host = host
        self.process = process
        self.since = since
        self.earlier = earlier
        self.ended = ended

    @classmethod
    def after(cls, before: Owner | None, run: str, topology: str) -> Owner:
        """Return the owner that this process is after ``before``."""
        earlier = [] if before is None else [each for each in (*before.earlier, before.run) if each != run]
        epoch = 1 if before is None else before.epoch + 1
        process = [os.getpid(), *_number_space()]
        since = strftime("%Y-%m-%d %H:%M:%S")
        return cls(epoch, run, topology, socket.gethostname(), process, since, earlier[-_EARLIER:])

    def __str__(self) -> str:
        return f"topology {self.topology!r} (process {self.process[0]} on {self.host}, since {self.since})"

    def text(self) -> str:
        """Return it as JSON, to be stored."""
        return dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_text(cls, text: str | bytes) -> Owner:
        """Return what ``text`` made text of. ValueError for anything else."""
        found = loads(text)
        if not isinstance(found, dict) or set(found) != set(cls.__slots__):
            raise ValueError(f"no owner: {text!r}")
        return cls(**found)

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
    """How one kind of store keeps a place's owner. All methods may be called from any thread.

    ``elsewhere``: what else to do for who is refused, in the words of a message.
    """

    elsewhere = "name another place"

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
        self._owner.ended = True
        try:
            self._place.replace(self.epoch, self._owner)
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


def claim(
    place: OwnedPlace, run: str, topology: str, warn: Callable[[str], None] = lambda _: None, may_return: bool = True
) -> Ownership:
    """Make this process the owner of ``place``.

    Args:
        place: What is claimed.
        run: The run that claims: what the same run left there (a coordinator that died) is taken over at once.
        topology: The run's topology, for people.
        warn: Told when the place is taken from an owner that neither ended nor beats.
        may_return: Whether a run that was taken over from may go on when its successor has ended, as on Storm, where
            nobody else could end it.

    Raises:
        InUseError: Another run's owner beats.
        FencedError: Another run has taken the place over from this one.
    """
    refusals = 0
    while True:
        before = _owner(place)
        if before is not None and run in before.earlier and not may_return:
            raise FencedError(
                f"{place.describe()} was taken over by {before}, while this run did not answer: it ends here, and nothing more is "
                "written by it"
            )
        before = wait_until_free(place, run, warn)
        me = Owner.after(before, run, topology)
        if _whether(place, "replace", place.replace(me.epoch - 1, me)):
            break
        now = _owner(place)
        refusals = refusals + 1 if _epoch(now) == _epoch(before) else 0
        if refusals >= _REFUSALS:
            raise WrongProviderError(
                f"{_called(place, 'replace')}({me.epoch - 1}, owner) returned False {refusals} times, while owner() gave "
                f"{'None' if now is None else f'one of epoch {now.epoch}'}: write the owner down if the one there has that epoch "
                "(0: there is none), and return whether it had"
            )
        if refusals:
            sleep(_POLL_SECS)
    now = _owner(place)
    if _epoch(now) < me.epoch:
        raise WrongProviderError(
            f"{_called(place, 'replace')}({me.epoch - 1}, owner) returned True, and owner() gives "
            f"{'None' if now is None else f'one of epoch {now.epoch}'} behind it: return the owner that was written down last"
        )
    if not _whether(place, "beat", place.beat(me.epoch)) and _epoch(_owner(place)) == me.epoch:
        raise WrongProviderError(
            f"{_called(place, 'beat')}({me.epoch}) returned False, and the owner there has that epoch: return True, and False only "
            "when the place has another owner"
        )
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
        owner = _owner(place)
        if owner is None or owner.ended or owner.run == run or owner.is_dead():
            return owner
        mark = (owner.epoch, place.beats())
        now = monotonic()
        if seen is None or now - before > _SLOW_SECS:
            seen, seen_at = mark, now
        elif mark != seen:
            if now - began >= CLAIM_SECS:
                raise InUseError(f"{place.describe()} is in use by {owner}; end that one first, or {place.elsewhere}")
            seen, seen_at = mark, now
        elif now - seen_at >= LEASE_SECS:
            warn(
                f"{place.describe()} is taken over from {owner}, which has not answered for {LEASE_SECS:g} s; should it wake "
                "up, it can write nothing any more"
            )
            return owner
        sleep(_POLL_SECS)


def _owner(place: OwnedPlace) -> Owner | None:
    found: Any = place.owner()
    if found is not None and not isinstance(found, Owner):
        raise WrongProviderError(
            f"{_called(place, 'owner')}() returned {ascii(found)[:80]} ({type(found).__name__}); return a multilang.state.Owner, which "
            "Owner.from_text makes of its text, or None when there never was one"
        )
    return found


def _whether(place: OwnedPlace, method: str, said: Any) -> bool:
    if not isinstance(said, int):  # True and False are
        raise WrongProviderError(
            f"{_called(place, method)}() returned {ascii(said)[:80]} ({type(said).__name__}); return True, or False when the place has "
            "another owner by now"
        )
    return bool(said)


def _epoch(owner: Owner | None) -> int:
    return 0 if owner is None else owner.epoch


def _called(place: OwnedPlace, method: str) -> str:
    return f"{type(place).__module__}.{type(place).__qualname__}.{method}"


def claim_for(conf: Mapping[str, Any], place: OwnedPlace) -> Ownership:
    """Claim ``place`` for the run that ``conf`` is that of; see ``claim``."""
    run, topology = owner_of(conf)
    return claim(place, run, topology, log.warning, may_return(conf))


def check_free_for(conf: Mapping[str, Any], place: OwnedPlace) -> None:
    """Raise InUseError when another run than that of ``conf`` uses ``place``."""
    try:
        wait_until_free(place, owner_of(conf)[0])
    finally:
        place.close()


def _number_space() -> list[str]:
    """Return what tells apart two containers of one host name, in which a number means different processes."""
    try:
        return [os.readlink("/proc/self/ns/pid")]
    except OSError:
        return []
