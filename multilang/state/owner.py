"""The owner of stored things that outlive their process: states, transactions, positions.

The same rules hold for all stores:

- **An owner has an epoch.** Each claim raises it.
- **Nothing is read before the claim.** Otherwise it could be older than the last write of the previous owner.
- **Every write carries the epoch**, or a number that was claimed under it. A store that knows a newer one refuses the
  write, in the same atomic step. A check before the write is not enough: time passes between the two, and a process can
  be stopped there for hours.
- **Only a claim raises the epoch**, and its owner, when somebody who heard of it may have been replaced. A process that only
  reads never does.

So only the newest owner can write, whatever an older one believes of itself. An owner also has a heartbeat. It protects
nothing; it is there for people: while it beats, another run is refused with a message that names the owner, and does
not take the place over. A process that was killed or stopped does not beat.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cache
from time import monotonic, sleep, strftime

from multilang.protocol.codec import dumps, loads
from multilang.state.errors import FencedError, InUseError, StoreGoneError, WrongProviderError
from multilang.store.settings import may_return, owner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

BEAT_SECS = 1.0
LEASE_SECS = 10.0  # an owner without a beat for so long counts as dead or stopped
CLAIM_SECS = 5.0  # how long a claim waits for an owner that beats, since it may be about to end
_POLL_SECS = 0.05
_REFUSALS = 20  # tries to claim a place that refuses although nobody else claims it
_EARLIER = 50  # runs that are remembered
_MACHINE_FILES = ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")
_SLOW_SECS = 1.0  # a look that takes longer says nothing about the time before it

log = logging.getLogger(__name__)


class Owner:
    """The owner of a place, as it is stored there.

    Attributes:
        epoch: Raised by one with each claim, from 1 on.
        run: The run that claimed: the topology's ``storm.id``.
        topology: The topology's name, for messages.
        host: The host of the owner's process.
        process: The process number, and what tells its number from the same one elsewhere: see ``_number_space``.
        since: The local time of the claim, for messages.
        earlier: The last runs that claimed before. A run that was taken over from does not come back.
        ended: Whether the owner has released the place.
        token: Drawn at random by each claim, so that a place is known again under another name; empty in what an earlier
            version stored.
    """

    __slots__ = ("earlier", "ended", "epoch", "host", "process", "run", "since", "token", "topology")

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
        token: str = "",
    ) -> None:
        self.epoch = epoch
        self.run = run
        self.topology = topology
        self.host = host
        self.process = process
        self.since = since
        self.earlier = earlier
        self.ended = ended
        self.token = token

    @classmethod
    def after(cls, before: Owner | None, run: str, topology: str) -> Owner:
        """Return this process as the owner that follows ``before``.

        Args:
            before: The previous owner; None for the first one.
            run: The run of this process.
            topology: The run's topology.
        """
        earlier = [] if before is None else [each for each in (*before.earlier, before.run) if each != run]
        epoch = 1 if before is None else before.epoch + 1
        process = [os.getpid(), *_number_space()]
        since = strftime("%Y-%m-%d %H:%M:%S")
        token = os.urandom(8).hex()
        return cls(epoch, run, topology, socket.gethostname(), process, since, earlier[-_EARLIER:], token=token)

    def renewed(self) -> Owner:
        """Return the same owner with the next epoch."""
        return Owner(**{**{name: getattr(self, name) for name in self.__slots__}, "epoch": self.epoch + 1})

    def __str__(self) -> str:
        return f"topology {self.topology!r} (process {self.process[0]} on {self.host}, since {self.since})"

    def text(self) -> str:
        """Return the owner as JSON, to be stored."""
        return dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_text(cls, text: str | bytes) -> Owner:
        """Return the owner that ``text`` gave as JSON.

        Args:
            text: The owner's text, as ``text()`` returned it.

        Raises:
            ValueError: It is something else.
        """
        found = loads(text)
        if not isinstance(found, dict) or {"token", *found} != set(cls.__slots__):
            raise ValueError(f"no owner: {text!r}")
        return cls(**found)

    def is_dead(self) -> bool:
        """Return whether the owner's process is known to have ended: it ran on this machine, and is gone."""
        if self.host != socket.gethostname() or self.process[1:] != _number_space():
            return False
        try:
            os.kill(self.process[0], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # the process is there, and belongs to another user
        return False


class OwnedPlace(ABC):
    """A place that stores its owner, for one kind of store. All methods may be called from any thread.

    Attributes:
        elsewhere: The advice for a run that is refused, in the words of a message.
    """

    elsewhere = "name another place"

    @abstractmethod
    def owner(self) -> Owner | None:
        """Return the owner that was stored last; None if there never was one."""

    @abstractmethod
    def beats(self) -> Any:
        """Return a value that is different after each ``beat``."""

    @abstractmethod
    def replace(self, epoch: int, owner: Owner) -> bool:
        """Store ``owner`` if the stored one has ``epoch``, in one atomic step.

        Args:
            epoch: The epoch of the owner to be replaced; 0: there is no owner yet.
            owner: The new owner.

        Returns:
            Whether it was stored.
        """

    @abstractmethod
    def beat(self, epoch: int) -> bool:
        """Beat for the owner of ``epoch``.

        Args:
            epoch: The epoch of the owner that beats.

        Returns:
            False if the place has another owner by now.
        """

    def written_epoch(self) -> int:
        """Return the highest epoch that what is stored there tells of, beside the owner's record; 0 if it tells of none.

        A claim raises the epoch above it, so that it never falls, even if the record is lost.
        """
        return 0

    @abstractmethod
    def describe(self) -> str:
        """Return the place in the words of a message: "the state file /var/lib/shop/state.sqlite"."""

    def close(self) -> None:  # noqa: B027  # not every place has something to close
        """Close the connections that ``beat`` and the other methods opened."""


class Ownership:
    """A place that this process has claimed, with the thread that beats for it. Every write carries ``epoch``."""

    def __init__(self, place: OwnedPlace, owner: Owner) -> None:
        self.epoch = owner.epoch
        self.token = owner.token
        self._place = place
        self._owner = owner
        self._renewing = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"owner of {place.describe()}", daemon=True)
        self._thread.start()

    def check_record(self) -> None:
        """Raise StoreGoneError if the owner's record is not there any more, or is older than this claim.

        The claims of what is written protect it, not the record. But who comes next would not hear of this owner.
        """
        found = _owner(self._place)
        if _epoch(found) < self.epoch:
            what = "is gone" if found is None else f"is one of epoch {found.epoch}, although this one has {self.epoch}"
            raise StoreGoneError(
                f"{self._place.describe()} was changed while it was in use: the record of its owner {what}, and what is stored there may "
                "be gone or older, too. Nothing more is written here. Put it back, or start the topology again, which then goes on "
                "from what is there"
            )

    def renew(self) -> int:
        """Raise the epoch of this claim, so that whoever heard only of the one before can claim nothing under it any more.

        Returns:
            The new epoch.

        Raises:
            FencedError: Another run or process has taken the place over.
        """
        new = self._owner.renewed()
        with self._renewing:
            if not _whether(self._place, "replace", self._place.replace(self.epoch, new)):
                raise FencedError(
                    f"{self._place.describe()} was taken over by {_owner(self._place) or 'nobody, and its record is gone'}: nothing more "
                    "is written here"
                )
            self._owner, self.epoch = new, new.epoch
        return self.epoch

    def release(self) -> None:
        """Release the place, so that the next owner need not wait. Nothing happens if it has another owner by now."""
        self._ended.set()
        self._thread.join()
        self._owner.ended = True
        try:
            self._place.replace(self.epoch, self._owner)
        except Exception:  # noqa: BLE001 - the store is gone: the next owner will wait until the lease is over
            pass
        self._place.close()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECS):
            try:
                epoch = self.epoch
                if not self._place.beat(epoch):
                    with self._renewing:
                        if epoch == self.epoch:
                            return
            except Exception:  # noqa: BLE001 - the store can't be reached now; the epoch protects it, not the beat
                continue


def claim(
    place: OwnedPlace, run: str, topology: str, warn: Callable[[str], None] = lambda _: None, may_return: bool = True
) -> Ownership:
    """Make this process the owner of ``place``.

    Args:
        place: The place to claim.
        run: The run that claims. A place that the same run left (its coordinator died) is taken over at once.
        topology: The run's topology, for messages.
        warn: Called with a message when the place is taken from an owner that neither ended nor beats.
        may_return: Whether a run that was taken over from may claim again once its successor has ended. It may on
            Storm, where nobody else could end it.

    Returns:
        The claim, with its epoch.

    Raises:
        InUseError: The owner of another run beats.
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
        known = place.written_epoch()
        me.epoch = max(me.epoch, known + 1)
        if _whether(place, "replace", place.replace(_epoch(before), me)):
            if known > _epoch(before):
                warn(
                    f"{place.describe()}: the record of its owner told of epoch {_epoch(before)}, and what is stored there tells of {known}: "
                    f"the record was lost or put back. The epoch goes on with {me.epoch}"
                )
            break
        now = _owner(place)
        refusals = refusals + 1 if _epoch(now) == _epoch(before) else 0
        if refusals >= _REFUSALS:
            raise WrongProviderError(
                f"{_called(place, 'replace')}({_epoch(before)}, owner) returned False {refusals} times, while owner() gave "
                f"{'None' if now is None else f'one of epoch {now.epoch}'}: write the owner down if the one there has that epoch "
                "(0: there is none), and return whether it had"
            )
        if refusals:
            sleep(_POLL_SECS)
    try:
        _check_stored(place, before, me)
    except BaseException:
        me.ended = True  # or the next one would wait for an owner that never beats
        with suppress(Exception):
            place.replace(me.epoch, me)
        raise
    return Ownership(place, me)


def wait_until_free(place: OwnedPlace, run: str | None, warn: Callable[[str], None] = lambda _: None) -> Owner | None:
    """Wait until no other run than ``run`` uses ``place``, and return its last owner.

    Raises:
        InUseError: The owner of another run still beats after ``CLAIM_SECS``.
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


def _check_stored(place: OwnedPlace, before: Owner | None, me: Owner) -> None:
    """Raise WrongProviderError if a place did not store ``me`` behind ``before``, or has no beats for it."""
    now = _owner(place)
    if _epoch(now) < me.epoch:
        raise WrongProviderError(
            f"{_called(place, 'replace')}({_epoch(before)}, owner) returned True, and owner() gives "
            f"{'None' if now is None else f'one of epoch {now.epoch}'} behind it: return the owner that was written down last"
        )
    if not _whether(place, "beat", place.beat(me.epoch)) and _epoch(_owner(place)) == me.epoch:
        raise WrongProviderError(
            f"{_called(place, 'beat')}({me.epoch}) returned False, and the owner there has that epoch: return True, and False only "
            "when the place has another owner"
        )


def _owner(place: OwnedPlace) -> Owner | None:
    found: Any = place.owner()
    if found is not None and not isinstance(found, Owner):
        raise WrongProviderError(
            f"{_called(place, 'owner')}() returned {ascii(found)[:80]} ({type(found).__name__}); return a multilang.state.Owner, which "
            "Owner.from_text makes of its text, or None when there never was one"
        )
    return found


def _whether(place: OwnedPlace, method: str, said: Any) -> bool:
    if not isinstance(said, int):  # a bool is an int, too
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
    """Claim ``place`` for the run whose conf this is; see ``claim``."""
    run, topology = owner_of(conf)
    try:
        return claim(place, run, topology, log.warning, may_return(conf))
    except BaseException:
        place.close()
        raise


def check_free_for(conf: Mapping[str, Any], place: OwnedPlace) -> None:
    """Raise InUseError if another run than that of ``conf`` uses ``place``."""
    try:
        wait_until_free(place, owner_of(conf)[0])
    finally:
        place.close()


@cache
def _machine() -> tuple[str, ...]:
    """Return what differs between two machines, although they may have the same host name.

    The boot's id is drawn at random at each start of the system. Where there is none, it is the address of a network card;
    Python draws one at random if it finds none, and then no owner is known to be dead before its lease is over.
    """
    found = []
    for path in _MACHINE_FILES:
        try:
            with open(path) as file:
                found.append(file.read().strip())
        except OSError:
            continue
    if not found:
        import uuid  # costs a process's start more than all of this module

        found.append(f"{uuid.getnode():x}")
    return tuple(found)


def _number_space() -> list[str]:
    """Return what process numbers are counted in: the namespace, which differs between containers, and the machine."""
    try:
        return [os.readlink("/proc/self/ns/pid"), *_machine()]
    except OSError:
        return [*_machine()]
