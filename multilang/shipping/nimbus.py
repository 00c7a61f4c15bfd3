"""A Nimbus client without a JVM: Thrift's binary protocol in frames, with neither login nor TLS (Storm's default)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from multilang.shipping.errors import NimbusError, RefusedError, UnreachableError
from multilang.shipping.storm_yaml import Address
from multilang.shipping.thrift_types import types
from multilang.topology.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import BinaryIO

CHUNK = 307200  # bytes of one upload call, as StormSubmitter's; Nimbus takes frames up to nimbus.thrift.max_buffer_size
TIMEOUT = 60.0  # seconds for an answer: submitting waits for the blob store
CONNECT_TIMEOUT = 10.0  # seconds


class Nimbus:
    """A connection to the leading Nimbus. A context manager; not for several threads at once.

    ``seeds``: the addresses to try, in order. With several, the leader that the first to answer names is asked; with
    one, that one, whatever it calls itself. Raises UnreachableError when none answers. Every call raises RefusedError
    with Storm's own words, or UnreachableError.
    """

    def __init__(self, seeds: Sequence[Address], timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self.address, self._client = self._connect_first(seeds)
        if len(seeds) > 1:
            try:
                self._follow_leader()
            except NimbusError:
                self.close()
                raise

    def __enter__(self) -> Nimbus:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def call(self, method: str, *arguments: object) -> Any:
        """One call of Storm's interface, by its name in the IDL."""
        return _call(self._client, self.address, method, arguments)

    def summary(self) -> Any:
        """The whole cluster: Storm's ClusterSummary (``.supervisors``, ``.topologies``, ``.nimbuses``)."""
        return self.call("getClusterInfo")

    def topology(self, name: str) -> Any:
        """A topology by name: Storm's TopologyInfo (``.status``, ``.executors``, ``.errors``). RefusedError if none."""
        running = {each.name: each.id for each in self.summary().topologies}
        if name not in running:
            raise self._not_alive(name)
        return self.call("getTopologyInfo", running[name])

    def kill(self, name: str, wait: int | None = None) -> None:
        """End a topology. ``wait``: seconds from its deactivation to its end; Storm's default is its message timeout."""
        self._call_for(name, "killTopologyWithOpts", types().KillOptions(wait_secs=wait))

    def activate(self, name: str) -> None:
        """Let the spouts emit again."""
        self._call_for(name, "activate")

    def deactivate(self, name: str) -> None:
        """Let the spouts emit no more."""
        self._call_for(name, "deactivate")

    def rebalance(
        self,
        name: str,
        wait: int | None = None,
        workers: int | None = None,
        executors: dict[str, int] | None = None,
    ) -> None:
        """Distribute a topology anew. ``workers``, ``executors`` (by component): new numbers; None: as they are.

        Raises RefusedError for what Storm would ignore or not explain: more executors than tasks, and a topology that is being
        rebalanced or killed.
        """
        check_rebalance(self.topology(name), executors or {})
        options = types().RebalanceOptions(wait_secs=wait, num_workers=workers, num_executors=executors or None)
        try:
            self._call_for(name, "rebalance", options)
        except RefusedError as error:
            if error.kind == "TApplicationException":
                check_rebalance(self.topology(name), {})  # somebody else's began meanwhile
            raise

    def upload(self, data: bytes) -> str:
        """Give Nimbus a jar; what submitting calls its location."""
        location: str = self.call("beginFileUpload")
        for start in range(0, len(data), CHUNK):
            self.call("uploadChunk", location, data[start : start + CHUNK])
        self.call("finishFileUpload", location)
        return location

    def _call_for(self, name: str, method: str, *arguments: object) -> None:
        """A call about a topology; when there is none of that name, the error says which there are."""
        try:
            self.call(method, name, *arguments)
        except RefusedError as error:
            if error.kind != "NotAliveException":
                raise
            raise self._not_alive(name) from None

    def _not_alive(self, name: str) -> RefusedError:
        running = sorted(each.name for each in self.summary().topologies)
        there = f"running: {', '.join(map(repr, running))}" if running else "there is none at all"
        return RefusedError("NotAliveException", f"no topology {name!r} runs on {self.address}; {there}")

    def _connect_first(self, seeds: Sequence[Address]) -> tuple[Address, Any]:
        problems = []
        for address in seeds:
            try:
                return address, _connect(address, self._timeout)
            except UnreachableError as error:
                problems.append(str(error))
        raise UnreachableError("\n".join(problems))

    def _follow_leader(self) -> None:
        leader = self.call("getLeader")
        address = Address(leader.host, leader.port)
        if address != self.address:
            self.close()
            self.address, self._client = address, _connect(address, self._timeout)


def check_rebalance(found: Any, executors: Mapping[str, int]) -> None:
    """Raise RefusedError when a topology (Storm's TopologyInfo) can't be rebalanced so."""
    name = found.name
    if found.status in ("REBALANCING", "KILLED"):
        doing, then = (
            ("rebalanced", "its status is ACTIVE again") if found.status == "REBALANCING" else ("killed", "it is gone")
        )
        raise RefusedError(
            "AlreadyAliveException",
            f"topology {name!r} is being {doing}, and Storm does one thing after the other: wait until {then} "
            f"(multilang status {name})",
        )
    tasks: dict[str, int] = {}
    for each in found.executors or ():
        info = each.executor_info
        tasks[each.component_id] = tasks.get(each.component_id, 0) + info.task_end - info.task_start + 1
    for component, wanted in executors.items():
        if tasks and component not in tasks:
            there = [id for id in tasks if not id.startswith("__")]
            raise RefusedError(
                "InvalidTopologyException",
                f"topology {name!r} has no component {component!r}; {did_you_mean(component, there)}",
            )
        has = tasks.get(component, wanted)
        if wanted > has:
            raise RefusedError(
                "InvalidTopologyException",
                f"{component!r} of topology {name!r} has {has} task{'s' * (has != 1)}, and no executor is without one: ask for {has} "
                f"at most. The number of tasks is settled when a topology is submitted, by tasks={wanted} in set_spout or "
                "set_bolt",
            )


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """A file's content in the pieces of an upload."""
    while piece := file.read(CHUNK):
        yield piece


def _connect(address: Address, timeout: float) -> Any:
    service = types().Nimbus
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.thrift import TClient
    from thriftpy2.transport import TFramedTransportFactory, TSocket

    try:
        # Not thriftpy2's own way to connect, which knows either IPv4 or IPv6 and hides the reason of a failure.
        plug = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT)
    except OSError as error:
        raise UnreachableError(f"no Nimbus listens on {address}: {_reason(error)}") from None
    plug.settimeout(timeout)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = TFramedTransportFactory().get_transport(TSocket(sock=plug))
    return TClient(service, TBinaryProtocolFactory().get_protocol(transport))


def _call(client: Any, address: Address, method: str, arguments: tuple[object, ...]) -> Any:
    from thriftpy2.thrift import TApplicationException, TException
    from thriftpy2.transport import TTransportException

    try:
        return getattr(client, method)(*arguments)
    except TimeoutError:
        raise UnreachableError(
            f"{address} gave no answer to {method} in time: it is very busy, or not a Nimbus that speaks plain Thrift in "
            "frames (a login by Kerberos or TLS is not supported)"
        ) from None
    except (TTransportException, OSError, EOFError) as error:
        raise _broken_off(address, method, error) from None
    except TApplicationException as error:
        raise RefusedError(
            "TApplicationException", f"Nimbus at {address} failed in {method} ({error}); see its log, nimbus.log"
        ) from None
    except TException as error:
        kind = type(error).__name__
        if not hasattr(error, "msg"):  # every exception of Storm's has it; these are thriftpy2's own
            raise _broken_off(address, method, error) from None
        raise RefusedError(kind, f"{error.msg or 'refused without a word'} ({kind})") from None
    except Exception as error:
        # What is raised for bytes that are no Thrift depends on how thriftpy2 was built; not all has a common ancestor.
        if not type(error).__module__.startswith("thriftpy2."):
            raise
        raise _broken_off(address, method, error) from None


def _broken_off(address: Address, method: str, error: Exception) -> UnreachableError:
    return UnreachableError(
        f"{address} broke off the connection at {method} ({_reason(error)}): it is no Nimbus, it ended, or it wants a "
        "login by Kerberos or TLS, which is not supported (storm.thrift.transport must be SimpleTransportPlugin)"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(getattr(error, "message", None) or error) or type(error).__name__
