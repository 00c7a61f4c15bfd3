"""Putting a topology in the place of one that runs, or beside it, and going back if the new one does not come up.

Before anything is ended, Nimbus is asked for all that the running one was submitted with, and this is stored in its blob store
(``deployment_record``). So the running one can be restored, also by the next deployment if this one is broken off.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from multilang.settings import DEPLOYMENT, STORED_NAME
from multilang.shipping import deployment_record as store
from multilang.shipping.errors import UNREACHABLE, ShippingError, refused
from multilang.shipping.former import Former, former_of, submit_again
from multilang.shipping.java_objects import with_java
from multilang.shipping.nimbus import conf_of
from multilang.shipping.settling import SETTLED, announced_by, has_run, wait_until_running
from multilang.shipping.submit import beside_name, check_ready, submit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from multilang.shipping.jar import Shipment
    from multilang.shipping.nimbus import Nimbus
    from multilang.shipping.settling import Outcome

"""The conf key with a deployment's own name, drawn at random, by which it knows its topology from all others."""

_POLL = 0.5  # seconds
_LONGEST_END = 120.0  # seconds for a killed topology to end
# Seconds from there to the end of its workers, which Nimbus does not report; a claim of the state waits another five.
_RELEASE = 5.0


@dataclass(frozen=True)
class Deployed:
    """The outcome of a deployment.

    Attributes:
        new: How the wait for the new topology ended.
        former: The one that it replaced; None: there was none.
        rolled_back: Whether the former one runs again; None: it was not submitted again.
        name: The new topology's name.
    """

    new: Outcome
    former: Former | None
    name: str
    rolled_back: bool | None = None


class Running(NamedTuple):
    """A topology that runs.

    Attributes:
        name: Its name, which is another one's once this one has ended.
        id: Its id, which is no other one's.
    """

    name: str
    id: str


@dataclass(frozen=True)
class Found:
    """The state in which a deployment finds the cluster.

    Attributes:
        running: The topology that is to be ended; None: none runs.
        former: The one that is restored if the new one does not run; None: there is none.
        record: The record of a deployment that was broken off, if it still counts.
    """

    running: Running | None = None
    former: Former | None = None
    record: store.DeploymentRecord | None = None


def deploy(
    nimbus: Nimbus,
    shipment: Shipment,
    *,
    drain: int | None = None,
    timeout: float = 120.0,
    settled: float = SETTLED,
    credentials: Mapping[str, str] | None = None,
    jars: Sequence[Path] = (),
    beside: bool = False,
    active: bool | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Deployed:
    """Submit a topology, in the place of the one of its name that runs, and wait until it runs.

    The running one's spouts are stopped, its tuples in flight get time, and it is killed. If the new one does not run in
    time or reports an error, it is killed, and the former one is submitted again as it was. Each of them claims what is
    stored under the topology's name, with a higher epoch than the one before.

    Args:
        nimbus: The connection.
        shipment: The packed topology.
        drain: Seconds for the tuples in flight; None: the running one's message timeout, after which each is acked or
            failed.
        timeout: Seconds for the new one to run, and for the former one to run again.
        settled: Seconds for which the new one must run without an error, from the moment when all of its tasks are known to have
            started.
        credentials: Storm's credentials of the topology; a former one that is submitted again gets them, too, since
            its own can't be read.
        jars: Jars whose classes are added.
        beside: Whether the new one's workers are started, under another name, while the running one still works.
        active: Whether the new one's spouts emit; None: as those of the one that runs.
        say: Called with a sentence on each step.

    Raises:
        ShippingError: The topology can't be submitted; nothing was ended.
        ShippingError: Nimbus refuses something, or can't be reached; the error's text has what runs.
    """
    name = shipment.topology.name
    mark = secrets.token_hex(8)
    shipment = replace(shipment, topology=shipment.topology.with_conf({DEPLOYMENT: mark}))
    shipment = with_java(shipment, jars)
    shipment.jar(jars)
    check_ready(nimbus, shipment, credentials)  # all that can be refused is refused while the former one runs
    found = find(nimbus, name, settled, say)
    if found.former is None:
        say(f"no topology {name!r} runs on {nimbus.address} yet")
        submit(nimbus, shipment, active=active is not False, credentials=credentials, jars=jars)
        say(f"{name!r} was submitted")
        return Deployed(wait_until_running(nimbus, name, timeout, settled), None, name)
    former = found.former
    work = _Deployment(
        nimbus,
        name,
        mark,
        found,
        former,
        former.drain if drain is None else drain,
        timeout,
        settled,
        credentials,
        former.active if active is None else active,
        say,
    )
    if beside and found.running == _id_of(former):
        return work.beside(shipment, jars)
    if beside:
        say("there is nothing to start it beside of, so that it is submitted as without --blue-green")
    return work.in_place(shipment, jars)


def find(nimbus: Nimbus, name: str, settled: float, say: Callable[[str], None]) -> Found:
    """Return what runs under a name, after a deployment that was broken off, too, whose leavings are put in order.

    Args:
        nimbus: The connection.
        name: The topology's name.
        settled: Seconds for which a new topology's workers must have been up.
        say: Called with a sentence on what was found and done.

    Raises:
        ShippingError: A deployment is under way, or Storm does something with the topology, or two of it run.
        ShippingError: Nimbus can't be reached.
    """
    record = store.record_of(nimbus, name)
    store.refuse_if_under_way(name, record)
    if record is not None:
        say(f"the deployment that was begun {store.ago(record.began)} on {record.host} was broken off")
        for each in _alive(nimbus, name):
            if each.status == "KILLED":
                _wait_until_ended(nimbus, _id_of(each))
    alive = {each.id: each for each in _alive(nimbus, name)}
    if record is not None and not alive.keys() <= {record.former, record.new}:
        say("another one was submitted since; that one counts, and the record of the deployment is removed")
        store.forget(nimbus, name)
        record = None
    if record is None:
        if len(alive) > 1:
            both = " and ".join(repr(each.name) for each in alive.values())
            raise refused(
                "AlreadyAliveException",
                f"{both} run on {nimbus.address}, and both are {name!r}: kill the one that is not to continue (multilang kill)",
            )
        running = next(iter(alive.values()), None)
        return Found() if running is None else Found(_id_of(running), former_of(nimbus, running))
    former, new = alive.get(record.former), alive.get(record.new or "")
    if new is not None and _runs(nimbus, new, settled, record.active):
        say(f"its new one runs, as {new.name!r}")
        if former is not None:
            _kill(nimbus, _id_of(former))
        store.forget(nimbus, name)
        return Found(_id_of(new), former_of(nimbus, new))
    if former is not None:
        if new is not None:
            say(f"its new one, {new.name!r}, does not run, and is killed")
            _kill(nimbus, _id_of(new))
        say(f"the former one, {former.name!r}, is still there")
        return Found(_id_of(former), replace(former_of(nimbus, former), active=record.active), record)
    say(
        "its new one does not run; the former one is restored if this one does not run either"
        if new is not None
        else "none runs now; if the new one does not, the former one is restored"
    )
    return Found(None if new is None else _id_of(new), store.stored_former(nimbus, name), record)


class _Deployment:
    """A deployment in the place of a former topology."""

    def __init__(
        self,
        nimbus: Nimbus,
        name: str,
        mark: str,
        found: Found,
        former: Former,
        drain: int,
        timeout: float,
        settled: float,
        credentials: Mapping[str, str] | None,
        active: bool,
        say: Callable[[str], None],
    ) -> None:
        self._nimbus = nimbus
        self._name = name
        self._mark = mark
        self._former = former
        self._running = found.running
        self._drain = drain
        self._timeout = timeout
        self._settled = settled
        self._credentials = credentials
        self._active = active
        self._say = say
        self._release = min(settled, _RELEASE)
        self._ended = False  # whether the former one is, where the new one was started beside it
        longest = drain + settled + 2 * timeout + 3 * _LONGEST_END
        if found.record is None or found.running == _id_of(former):
            self._record = store.begin(nimbus, name, former, mark, longest)
        else:  # the blob with the former one stays as it is
            self._record = store.take_over(nimbus, name, found.record, mark, longest)

    def in_place(self, shipment: Shipment, jars: Sequence[Path]) -> Deployed:
        """End what runs, and submit the new one."""
        name = shipment.topology.name
        if self._running is not None:
            self._end(self._running)
        with self._or_restore("the new one can't be submitted", lambda: self._restore(name)):
            self._submit(shipment, jars, self._active)
            self._say(f"the new one was submitted{'' if self._active else ', inactive'}")
            new = wait_until_running(self._nimbus, name, self._timeout, self._settled)
        if new.runs:
            store.forget(self._own(), self._name)
            return Deployed(new, self._former, name)
        self._say(f"the new one does not run: {new.problem}")
        return Deployed(new, self._former, name, self._restore(name))

    def beside(self, shipment: Shipment, jars: Sequence[Path]) -> Deployed:
        """Start the new one's workers while the former one works; end that one, and let the new one emit.

        The former one is ended before: what is stored has one owner, and no other may claim it while that one runs.
        """
        former, nimbus = self._former, self._nimbus
        other = beside_name(self._name) if former.name == self._name else self._name
        new = replace(shipment, topology=shipment.topology.with_conf({STORED_NAME: self._name}, other))
        with self._or_restore("the new one can't be started", lambda: self._go_back(other)):
            self._submit(new, jars, active=False)
            self._say(f"the new one was submitted beside it as {other!r}, inactive")
            outcome = wait_until_running(nimbus, other, self._timeout, settled=0)
            if outcome.runs:
                self._stop(_id_of(former))
                self._ended = True
                _kill(self._own(), _id_of(former))
                self._say(f"{former.name!r} is ended")
                if self._active:
                    time.sleep(self._release)
                    self._own().activate(other)
                    self._say(f"{other!r} emits")
                outcome = wait_until_running(nimbus, other, self._timeout, self._settled)
        if not outcome.runs:
            self._say(f"the new one does not run: {outcome.problem}")
            return Deployed(outcome, former, other, self._go_back(other))
        store.forget(self._own(), self._name)
        return Deployed(outcome, former, other)

    def _own(self) -> Nimbus:
        """Return the connection for the next change. Raises ShippingError if another deployment has begun."""
        store.check_own(self._nimbus, self._name, self._record)
        return self._nimbus

    @contextmanager
    def _or_restore(self, problem: str, back: Callable[[], object]) -> Iterator[None]:
        """Call ``back`` if the block fails or is broken off. ``problem``: the failure, in words."""
        try:
            yield
        except ShippingError as error:
            self._say(f"{problem}: {error}")
            back()
            raise
        except KeyboardInterrupt:
            self._say("broken off")
            back()
            raise

    def _submit(self, shipment: Shipment, jars: Sequence[Path], active: bool) -> None:
        submit(self._own(), shipment, active=active, credentials=self._credentials, jars=jars)
        there = {each.name: each.id for each in self._nimbus.summary().topologies}
        self._record = replace(self._record, new=there.get(shipment.topology.name))
        store.note(self._own(), self._name, self._record)

    def _end(self, running: Running) -> None:
        """Stop the spouts, give the tuples in flight time, and kill the topology."""
        try:
            self._stop(running)
        except KeyboardInterrupt:
            self._let_go_on(running)
            self._say(f"broken off; {running.name!r} continues as before")
            if running.name == self._former.name:
                store.forget(self._own(), self._name)
            raise
        _kill(self._own(), running)
        self._say("it is ended")

    def _stop(self, running: Running) -> None:
        if self._former.active and _is_there(self._nimbus, running):
            self._own().deactivate(running.name)
            self._say(f"{running.name!r} emits no more; its tuples in flight get {self._drain} s")
            time.sleep(self._drain)

    def _let_go_on(self, running: Running) -> None:
        if self._former.active and _is_there(self._nimbus, running):
            self._own().activate(running.name)

    def _go_back(self, other: str) -> bool:
        """End the new one, and let the former one continue; return whether that runs."""
        if self._ended:
            return self._restore(other)
        self._kill_new(other)
        self._let_go_on(_id_of(self._former))
        store.forget(self._own(), self._name)
        self._say(f"{self._former.name!r} continues as before")
        return True

    def _kill_new(self, name: str) -> None:
        """End the new one, if it is there: it may be although the answer to its submission did not come."""
        for each in self._nimbus.summary().topologies:
            if each.name == name and (each.id == self._record.new or self._is_own(each.id)):
                _kill(self._own(), _id_of(each))

    def _is_own(self, id: str) -> bool:
        try:
            return conf_of(self._nimbus, id).get(DEPLOYMENT) == self._mark
        except ShippingError as error:
            if error.kind in (None, UNREACHABLE):
                raise
            return False  # another user's, whose conf can't be read, or one that has ended

    def _restore(self, new: str) -> bool:
        """Submit the former topology again, in the place of what may be there; return whether it runs."""
        self._kill_new(new)
        _kill(self._own(), _id_of(self._former))
        for each in _alive(self._nimbus, self._name):
            store.forget(self._own(), self._name)
            raise refused(
                "AlreadyAliveException",
                f"another topology {each.name!r} was submitted to {self._nimbus.address} meanwhile ({each.id}). That one "
                "continues; the former one is ended, and not restored",
            )
        nimbus = self._own()
        try:
            submit_again(nimbus, self._former, self._credentials)
        except ShippingError as error:
            raise ShippingError(
                f"the former {self._former.name!r} can't be submitted again, so that none of that name runs now: {error}. It is "
                "stored in the cluster's blob store: multilang deploy restores it if its new one does not run"
            ) from error
        self._say("the former one was submitted again")
        store.forget(self._own(), self._name)
        return wait_until_running(self._nimbus, self._former.name, self._timeout, self._settled).runs


def _alive(nimbus: Nimbus, name: str) -> list[Any]:
    """Return the topologies that are this one: of its name, or started beside one of that name."""
    found = [each for each in nimbus.summary().topologies if each.name in (name, beside_name(name))]
    return [each for each in found if each.name == name or conf_of(nimbus, each.id).get(STORED_NAME) == name]


def _runs(nimbus: Nimbus, found: Any, settled: float, active: bool) -> bool:
    """Return whether a topology runs as it should. ``found``: Storm's TopologySummary."""
    if active and found.status != "ACTIVE":
        return False
    return has_run(nimbus.topology(found.name), announced_by(nimbus, found.id), settled)


def _id_of(found: Any) -> Running:
    """Return which topology it is that Storm's TopologySummary, or a Former, is about."""
    return Running(found.name, found.id)


def _is_there(nimbus: Nimbus, which: Running) -> bool:
    return any(each.id == which.id for each in nimbus.summary().topologies)


def _kill(nimbus: Nimbus, which: Running) -> None:
    """End a topology if it is there, and no other one that has got its name since."""
    if _is_there(nimbus, which):
        nimbus.kill(which.name, 0)  # Storm kills by name alone: there is a moment in which another could take it
    _wait_until_ended(nimbus, which)


def _wait_until_ended(nimbus: Nimbus, which: Running) -> None:
    deadline = time.monotonic() + _LONGEST_END
    while _is_there(nimbus, which):
        if time.monotonic() > deadline:
            raise ShippingError(
                f"topology {which.name!r} was killed {_LONGEST_END:g} s ago, and is still there; see nimbus.log"
            )
        time.sleep(_POLL)
