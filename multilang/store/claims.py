"""Claims of places: the owner's record, its heartbeat, and the takeover. The laws are in ``interface``."""

from __future__ import annotations

import logging
import os
import shlex
import socket
import threading
from contextlib import suppress
from functools import cache
from time import monotonic, sleep, strftime

from multilang.protocol.codec import dumps, loads
from multilang.store.errors import FencedError, InUseError, StateError, StoreGoneError
from multilang.store.settings import may_return, owner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Protocol, TypeAlias

    Rows: TypeAlias = Mapping[str, Mapping[bytes, bytes | None]]

    class Store(Protocol):
        """The calls of a ``multilang.store.interface.Store`` by which places are claimed."""

        setting: str
        claims: list[Claim]

        def get(self, place: str, table: str, keys: Sequence[bytes], /) -> list[bytes | None]: ...
        def compare_and_write(self, place: str, expected: Rows, changes: Rows, cleared: Collection[str], /) -> bool: ...
        def beat(self, place: str, fence: Rows, number: int, /) -> bool: ...
        def beats(self, place: str, /) -> object: ...
        def end_beats(self, place: str, /) -> None: ...
        def hurry(self) -> None: ...
        def describe(self) -> str: ...


OWNER = "$owner"  # the table of a place with its owner; the names of no other tables begin so
BEAT_SECS = 1.0
LEASE_SECS = 10.0  # an owner without a beat for so long counts as dead or stopped
CLAIM_SECS = 5.0  # how long a claim waits for an owner that beats, since it may be about to end
_POLL_SECS = 0.05
_EARLIER = 50  # former runs in an owner's record
_MACHINE_FILES = ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")
_SLOW_SECS = 1.0  # a read that takes longer proves nothing about the time before it
RECORD = b"owner"  # the key of the owner's record in that table
COMMAND = "multilang state "  # how the runs of that command begin
IMPORT = f"{COMMAND}import "

log = logging.getLogger(__name__)


class Owner:
    """The owner of a place, as it is stored there.

    Attributes:
        epoch: Raised by each claim, from 1 on.
        run: The run that claimed: the topology's ``storm.id``.
        topology: The topology's name, for messages.
        host: The host of the owner's process.
        process: The process number, and the namespace and machine in which it counts: see ``_number_space``.
        since: The local time of the claim, for messages.
        earlier: The last runs that claimed before. A run that was fenced does not claim again.
        ended: Whether the owner has released the place.
        token: Drawn at random by each claim; the key of its fence.
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
        ended: bool,
        token: str,
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
    def after(cls, before: Owner | None, run: str, topology: str, above: int = 0) -> Owner:
        """Return this process as the owner that follows ``before``.

        Args:
            before: The previous owner; None for the first one.
            run: The run of this process.
            topology: The run's topology.
            above: An epoch that was used already.
        """
        earlier = [] if before is None else [each for each in (*before.earlier, before.run) if each != run]
        return cls(
            max(_epoch(before), above) + 1,
            run,
            topology,
            socket.gethostname(),
            [os.getpid(), *_number_space()],
            strftime("%Y-%m-%d %H:%M:%S"),
            earlier[-_EARLIER:],
            False,
            os.urandom(8).hex(),
        )

    def changed(self, **members: Any) -> Owner:
        """Return the same owner with other ``members``."""
        return Owner(**{**{name: getattr(self, name) for name in self.__slots__}, **members})

    def __str__(self) -> str:
        return f"topology {self.topology!r} (process {self.process[0]} on {self.host}, since {self.since})"

    @property
    def fence(self) -> Rows:
        """The row that this claim made, and that the next one removes."""
        return {OWNER: {self.token.encode(): b"1"}}

    def text(self) -> bytes:
        """Return the owner as JSON, to be stored."""
        return dumps({name: getattr(self, name) for name in self.__slots__}).encode()

    @classmethod
    def from_text(cls, text: bytes) -> Owner:
        """Return the owner of a text that ``text`` returned.

        Raises:
            ValueError: It is no such text.
        """
        found = loads(text)
        if not isinstance(found, dict) or set(found) != set(cls.__slots__):
            raise ValueError(f"no owner: {text!r}")
        return cls(**found)

    def is_dead(self) -> bool:
        """Return whether the owner's process is known to have ended: it ran on this machine, and does not any more."""
        if self.host != socket.gethostname() or self.process[1:] != _number_space():
            return False
        try:
            os.kill(self.process[0], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # the process is there, and belongs to another user
        return False


class Claim:
    """A place that this process has claimed, with the thread of its heartbeat.

    Attributes:
        owner: The owner as this claim stored it.
        beating: A lock that is held while the claim beats or is renewed.
    """

    def __init__(self, store: Store, place: str, owner: Owner, what: str) -> None:
        self.owner = owner
        self._store = store
        self._place = place
        self._what = what
        self.beating = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"owner of {place}", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The epoch of this claim."""
        return self.owner.epoch

    @property
    def token(self) -> str:
        """A text that identifies this claim."""
        return self.owner.token

    @property
    def fence(self) -> Rows:
        """The rows that every write under this claim expects."""
        return self.owner.fence

    def write(self, changes: Rows, expected: Rows | None = None, cleared: tuple[str, ...] = ()) -> bool:
        """Change rows of the place under this claim; see ``Store.compare_and_write``.

        Returns:
            False if one of the ``expected`` rows is another one.

        Raises:
            FencedError: Another run or process has claimed the place; nothing was changed.
            StoreGoneError: The place was deleted, or restored from an older copy.
        """
        while True:
            fence = self.fence
            if self._store.compare_and_write(self._place, {**(expected or {}), **fence}, changes, cleared):
                return True
            with self.beating:
                self.check()
                if fence == self.fence:
                    return False

    def check(self) -> None:
        """Raise FencedError if somebody has claimed the place since, or StoreGoneError if it was deleted or restored."""
        check_owner(self._store, self._place, self.owner, self._what)

    def renew(self) -> int:
        """Raise the epoch of this claim, so that nothing can be claimed under the previous one any more.

        Returns:
            The new epoch.

        Raises:
            FencedError: Another run or process has taken the place over.
        """
        with self.beating:
            new = self.owner.changed(epoch=self.epoch + 1, token=os.urandom(8).hex())
            if not _replace(self._store, self._place, self.owner, new):
                self.check()
                raise FencedError(f"{describe(self._store, self._what)} was taken over: nothing more is written here")
            self.owner = new
        return self.epoch

    def release(self) -> None:
        """Release the place, so that the next owner need not wait. Nothing happens if it has another owner by now."""
        self.end()
        with suppress(ValueError):
            self._store.claims.remove(self)
        with suppress(Exception):  # without the database, the next owner waits until the lease is over
            if _replace(self._store, self._place, self.owner, self.owner.changed(ended=True)):
                self._store.end_beats(self._place)

    def end(self) -> None:
        """End the heartbeat. The last one is done when this returns."""
        self._ended.set()
        self._store.hurry()
        self._thread.join()

    def _beat(self) -> None:
        number = 0
        while not self._ended.wait(BEAT_SECS):
            number += 1
            try:
                with self.beating:
                    if not self._store.beat(self._place, self.fence, number):
                        return
            except Exception:  # noqa: BLE001 - the database can't be reached now; the fence protects it, not the beat
                continue


def claim(
    store: Store,
    place: str,
    run: str,
    topology: str,
    warn: Callable[[str], None],
    *,
    may_return: bool = True,
    above: int = 0,
    what: str = "",
) -> Claim:
    """Make this process the owner of a place; see ``Store.claim``."""
    while True:
        before = stored_owner(store, place, what)
        if before is not None and run in before.earlier and not may_return:
            raise FencedError(
                f"{describe(store, what)} was taken over by {before}, while this run did not answer: it ends here, and nothing more is "
                "written by it"
            )
        before = wait_until_free(store, place, run, warn, what)
        if before is not None and before.run.startswith(IMPORT) and not before.ended and not run.startswith(COMMAND):
            raise StoreGoneError(
                f"{describe(store, what)} is not whole, since multilang state import has not come to its end: remove it (multilang state rm "
                f"URL {shlex.quote(place)}), and import it again"
            )
        me = Owner.after(before, run, topology, above)
        if _replace(store, place, before, me):
            claimed = Claim(store, place, me, what)
            store.claims.append(claimed)
            return claimed
        now = stored_owner(store, place, what)
        if (None if now is None else now.token) == (None if before is None else before.token):
            raise StoreGoneError(
                f"{describe(store, what)} can't be claimed: its owner's record is not that of its last claim. It was changed by hand, or "
                "damaged: restore it, or remove all that is stored there, to begin with nothing"
            )


def wait_until_free(
    store: Store, place: str, run: str | None, warn: Callable[[str], None] = log.warning, what: str = ""
) -> Owner | None:
    """Wait until no other run than ``run`` uses a place, and return its last owner.

    Raises:
        InUseError: The owner of another run still beats after ``CLAIM_SECS``.
    """
    began = monotonic()
    seen: Any = None
    seen_at = began
    while True:
        before = monotonic()
        owner = stored_owner(store, place, what)
        if owner is None or owner.ended or owner.run == run or owner.is_dead():
            return owner
        mark = (owner.epoch, store.beats(place))
        now = monotonic()
        if seen is None or now - before > _SLOW_SECS:
            seen, seen_at = mark, now
        elif mark != seen:
            if now - began >= CLAIM_SECS:
                raise InUseError(
                    f"{describe(store, what)} is in use by {owner}; end that one first, or name another place in {store.setting}"
                )
            seen, seen_at = mark, now
        elif now - seen_at >= LEASE_SECS:
            warn(
                f"{describe(store, what)} is taken over from {owner}, which has not answered for {LEASE_SECS:g} s; should it be "
                "resumed, it can write nothing any more"
            )
            return owner
        sleep(_POLL_SECS)


def stored_owner(store: Store, place: str, what: str = "") -> Owner | None:
    """Return the owner of a place that was stored last; None if there never was one.

    Raises:
        StateError: The record is damaged.
    """
    (text,) = store.get(place, OWNER, [RECORD])
    try:
        return None if text is None else Owner.from_text(text)
    except (ValueError, TypeError):
        raise StateError(
            f"{describe(store, what)}: the record of its owner is {text!r}: it was changed by hand, or damaged. Restore it, or "
            "remove all that is stored there, to begin with nothing"
        ) from None


def check_owner(store: Store, place: str, owner: Owner, what: str = "") -> None:
    """Check that a place still has this owner, with its fence.

    Raises:
        FencedError: Somebody has claimed the place since.
        StoreGoneError: It was deleted, or restored from an older copy.
    """
    found = stored_owner(store, place, what)
    if found is None or found.token != owner.token or store.get(place, OWNER, [*owner.fence[OWNER]]) == [None]:
        raise refusal(store, owner.epoch, found, what)


def refusal(store: Store, epoch: int, found: Owner | None, what: str = "") -> StateError:
    """Return the error for an epoch that is not that of the stored owner.

    Returns:
        FencedError if that owner is newer; StoreGoneError if the place was deleted, or restored from an older copy.
    """
    if found is not None and found.epoch > epoch:
        return FencedError(
            f"{describe(store, what)} was taken over by {found} (epoch {found.epoch}; this one has {epoch}): nothing more is written "
            "here"
        )
    how = "is missing" if found is None else f"is another one (epoch {found.epoch}; this one has {epoch})"
    return StoreGoneError(
        f"{describe(store, what)} was changed while it was in use: the record of its owner {how}, and what is stored there may be "
        "missing or older, too. Nothing more is written here. Restore it, or restart the topology, which then resumes from what is "
        "there"
    )


def describe(store: Store, what: str) -> str:
    """Return the words of a message for something in a store."""
    return f"{what} in {store.describe()}" if what else store.describe()


def _replace(store: Store, place: str, before: Owner | None, owner: Owner) -> bool:
    """Replace the owner ``before`` and its fence by ``owner``, if it is still stored. All other fences are removed."""
    expected = {OWNER: {RECORD: None}} if before is None else before.fence
    return store.compare_and_write(place, expected, {OWNER: {**owner.fence[OWNER], RECORD: owner.text()}}, [OWNER])


def _epoch(owner: Owner | None) -> int:
    return 0 if owner is None else owner.epoch


@cache
def _machine() -> tuple[str, ...]:
    """Return texts that identify this machine, since two may have the same host name.

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
    """Return the scope of process numbers: the namespace, which differs between containers, and the machine."""
    try:
        return [os.readlink("/proc/self/ns/pid"), *_machine()]
    except OSError:
        return [*_machine()]


def claim_for(conf: Mapping[str, Any], store: Store, place: str, what: str, above: int = 0) -> Claim:
    """Claim a place for the run whose conf this is; see ``Store.claim``."""
    run, topology = owner_of(conf)
    return claim(store, place, run, topology, log.warning, may_return=may_return(conf), above=above, what=what)


def check_free_for(conf: Mapping[str, Any], store: Store, place: str, what: str) -> None:
    """Raise InUseError if another run than that of ``conf`` uses a place."""
    wait_until_free(store, place, owner_of(conf)[0], log.warning, what)
