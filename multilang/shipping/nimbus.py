"""A Nimbus client without a JVM: Thrift's binary protocol over the transport that Storm's own keys choose."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from multilang import transport
from multilang.component.errors import ConfigError
from multilang.engine.samples import REPORT_SECS, Recorder
from multilang.shipping.errors import UNREACHABLE, ShippingError, refused, unreachable
from multilang.shipping.storm_yaml import Address
from multilang.shipping.task_reports import TaskReports
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import topology_status
from multilang.topology.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import BinaryIO

    from multilang.engine.status import RunStatus

CHUNK = 307200  # bytes of one upload call, as in StormSubmitter; nimbus.thrift.max_buffer_size is Nimbus's limit
TIMEOUT = 60.0  # seconds for an answer; submitting takes long because Nimbus waits for the blob store
CONNECT_TIMEOUT = 10.0  # seconds


class Nimbus:
    """A connection to the leading Nimbus. It is a context manager, and must not be used by several threads at once.

    Every call raises ShippingError, with Storm's own text if Nimbus refuses it.

    Args:
        seeds: The addresses to try, in order. With several, the leader that the first to answer names is used; with
            one, that one is used, whatever it names.
        timeout: Seconds for an answer.
        conf: Entries of a storm.yaml, for the login and TLS; None: neither.

    Attributes:
        address: The address of the Nimbus that is used.
        conf: The entries of storm.yaml that were given.

    Raises:
        ShippingError: No Nimbus answers.
        ShippingError: Nimbus refuses the login.
        ShippingError: The conf's security settings can't be met; nothing was sent.
    """

    def __init__(
        self, seeds: Sequence[Address], timeout: float = TIMEOUT, conf: Mapping[str, Any] | None = None
    ) -> None:
        self._timeout = timeout
        self.conf: Mapping[str, Any] = conf or {}
        self._tls, self._transport = _chosen(self.conf)
        self._recorders: dict[str, Recorder] = {}
        self._structures: dict[str, Any] = {}
        self._reports: dict[str, TaskReports] = {}
        self.address, self._client = self._connect_first(seeds)
        if len(seeds) > 1:
            try:
                self._follow_leader()
            except ShippingError:
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
        """Call a method of Storm's interface, by a new connection if an answer did not come on the one before.

        Args:
            method: The method's name in the IDL.
            arguments: The method's arguments.
        """
        if self._client.closed:
            self._client = _connect(self.address, self._timeout, self._transport)
        return _call(self._client, self.address, method, arguments)

    def summary(self) -> Any:
        """Return Storm's ClusterSummary of the whole cluster (``.supervisors``, ``.topologies``, ``.nimbuses``)."""
        return self.call("getClusterInfo")

    def topology(self, name: str) -> Any:
        """Return Storm's TopologyInfo of a topology (``.status``, ``.executors``, ``.errors``).

        Args:
            name: The topology's name.

        Raises:
            ShippingError: No topology of that name is running.
        """
        running = {each.name: each.id for each in self.summary().topologies}
        if name not in running:
            raise self._not_alive(name)
        return self.call("getTopologyInfo", running[name])

    def status(self, name: str) -> RunStatus:
        """Return the status of a topology.

        Its history has the calls of this connection, one a second at most. What a component's processes know of
        themselves, such as how busy they are, is from the logs of the workers, if these can be read.

        Args:
            name: The topology's name.

        Raises:
            ShippingError: No topology of that name is running.
        """
        info = self.topology(name)
        if info.id not in self._structures:
            self._structures[info.id] = self.call("getUserTopology", info.id)
        recorder = self._recorders.setdefault(info.id, Recorder(start=None, report_secs=REPORT_SECS))
        reports = self._reports.setdefault(info.id, TaskReports(lambda: nimbus_conf(self)))
        return topology_status(info, recorder, reports.read(info), self._structures[info.id])

    def kill(self, name: str, wait: int | None = None) -> None:
        """End a topology.

        Args:
            name: The topology's name.
            wait: Seconds from its deactivation to its end; None: its message timeout.
        """
        self._call_for(name, "killTopologyWithOpts", types().KillOptions(wait_secs=wait))

    def activate(self, name: str) -> None:
        """Let the spouts emit again.

        Args:
            name: The topology's name.
        """
        self._call_for(name, "activate")

    def deactivate(self, name: str) -> None:
        """Stop the spouts from emitting.

        Args:
            name: The topology's name.
        """
        self._call_for(name, "deactivate")

    def rebalance(
        self,
        name: str,
        wait: int | None = None,
        workers: int | None = None,
        executors: dict[str, int] | None = None,
    ) -> None:
        """Distribute a topology over the workers again.

        Args:
            name: The topology's name.
            wait: Seconds from its deactivation to the new distribution; None: its message timeout.
            workers: The new number of workers; None: as it is.
            executors: Component id -> the new number of its executors; None: as they are.

        Raises:
            ShippingError: Storm refuses it, or would ignore it or not explain the failure: there are more executors than
                tasks, or the topology is being rebalanced or killed.
        """
        check_rebalance(self.topology(name), executors or {})
        options = types().RebalanceOptions(wait_secs=wait, num_workers=workers, num_executors=executors or None)
        try:
            self._call_for(name, "rebalance", options)
        except ShippingError as error:
            if error.kind == "TApplicationException":
                check_rebalance(self.topology(name), {})  # another rebalance may have begun meanwhile
            raise

    def upload(self, data: bytes) -> str:
        """Upload a jar, and return its location for the submission.

        Args:
            data: The jar.
        """
        location: str = self.call("beginFileUpload")
        for start in range(0, len(data), CHUNK):
            self.call("uploadChunk", location, data[start : start + CHUNK])
        self.call("finishFileUpload", location)
        return location

    def _call_for(self, name: str, method: str, *arguments: object) -> None:
        """Call a method about a topology.

        If there is no topology of that name, the error names those that are running.
        """
        try:
            self.call(method, name, *arguments)
        except ShippingError as error:
            if error.kind != "NotAliveException":
                raise
            raise self._not_alive(name) from None

    def _not_alive(self, name: str) -> ShippingError:
        running = sorted(each.name for each in self.summary().topologies)
        there = f"running: {', '.join(map(repr, running))}" if running else "there is none at all"
        return refused("NotAliveException", f"no topology {name!r} runs on {self.address}; {there}")

    def _connect_first(self, seeds: Sequence[Address]) -> tuple[Address, Any]:
        problems = []
        for address in seeds:
            try:
                return address, _connect(address, self._timeout, self._transport)
            except ShippingError as error:
                if error.kind != UNREACHABLE:
                    raise
                problems.append(str(error))
        raise unreachable("\n".join(problems))

    def _follow_leader(self) -> None:
        leader = self.call("getLeader")
        address = Address(leader.host, leader.tlsPort or self.address.port if self._tls else leader.port)
        if address != self.address:
            self.close()
            self.address, self._client = address, _connect(address, self._timeout, self._transport)


def check_rebalance(found: Any, executors: Mapping[str, int]) -> None:
    """Raise ShippingError when a topology (Storm's TopologyInfo) can't be rebalanced in this way."""
    name = found.name
    if found.status in ("REBALANCING", "KILLED"):
        doing, then = (
            ("rebalanced", "its status is ACTIVE again")
            if found.status == "REBALANCING"
            else ("killed", "it has ended")
        )
        raise refused(
            "AlreadyAliveException",
            f"topology {name!r} is being {doing}, and Storm does one thing at a time: wait until {then} "
            f"(multilang status {name})",
        )
    tasks: dict[str, int] = {}
    for each in found.executors or ():
        info = each.executor_info
        tasks[each.component_id] = tasks.get(each.component_id, 0) + info.task_end - info.task_start + 1
    for component, wanted in executors.items():
        if tasks and component not in tasks:
            there = [id for id in tasks if not id.startswith("__")]
            raise refused(
                "InvalidTopologyException",
                f"topology {name!r} has no component {component!r}; {did_you_mean(component, there)}",
            )
        has = tasks.get(component, wanted)
        if wanted > has:
            raise refused(
                "InvalidTopologyException",
                f"{component!r} of topology {name!r} has {has} task{'s' * (has != 1)}, and no executor is without one: ask for {has} "
                f"at most. The number of tasks is settled when a topology is submitted, by tasks={wanted} in set_spout or "
                "set_bolt",
            )


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """Return a file's content in the pieces of an upload."""
    while piece := file.read(CHUNK):
        yield piece


def _chosen(conf: Mapping[str, Any]) -> tuple[bool, transport.Transport]:
    try:
        return transport.uses_tls(conf), transport.nimbus(conf)
    except ConfigError as error:
        raise ShippingError(str(error)) from None


def _connect(address: Address, timeout: float, over: transport.Transport) -> Any:
    service = types().Nimbus
    from multilang.shipping.answers import BoundedClient

    try:
        # thriftpy2's own way to connect tries either IPv4 or IPv6, and hides the reason of a failure.
        plug = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT)
    except OSError as error:
        raise unreachable(f"no Nimbus listens on {address}: {_reason(error)}") from None
    plug.settimeout(timeout)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        plug = _opened(plug, address, over)
    except BaseException:
        plug.close()
        raise
    return BoundedClient(service, plug, over.framed, timeout)


def _opened(plug: socket.socket, address: Address, over: transport.Transport) -> socket.socket:
    """Return the socket after its handshake. A failed handshake is an error."""
    try:
        return over.open(plug, address.host)
    except ConfigError as error:
        raise ShippingError(f"{error}; nothing was sent to {address}") from None
    except PermissionError as error:
        raise refused("LoginError", f"Nimbus at {address} {error}") from None
    except OSError as error:
        raise unreachable(f"{address} broke off the connection at the login: {_reason(error)}") from None


def _call(client: Any, address: Address, method: str, arguments: tuple[object, ...]) -> Any:
    from thriftpy2.thrift import TApplicationException, TException

    try:
        return getattr(client, method)(*arguments)
    except TimeoutError:
        client.close()
        raise unreachable(
            f"{address} gave no answer to {method} in time: it is very busy, or it wants another login or TLS than "
            "storm.yaml says (storm.thrift.transport, nimbus.thrift.client.use.tls)"
        ) from None
    except KeyboardInterrupt:
        client.close()  # a late answer is none to the next request
        raise
    except TApplicationException as error:
        raise refused(
            "TApplicationException", f"Nimbus at {address} failed in {method} ({error}); see its log, nimbus.log"
        ) from None
    except (ShippingError, OSError, EOFError) as error:
        client.close()  # what follows on the connection is no answer to what is asked next
        raise _broken_off(address, method, error) from None
    except TException as error:
        kind = type(error).__name__
        if not hasattr(error, "msg"):  # Storm's exceptions all have it, so this is one of thriftpy2's own
            raise _broken_off(address, method, error) from None
        raise refused(kind, f"{error.msg or 'refused without a word'} ({kind})") from None
    except Exception as error:
        # The exception for bytes that are no Thrift depends on how thriftpy2 was built, and there is no common base
        # class.
        if not type(error).__module__.startswith("thriftpy2."):
            raise
        raise _broken_off(address, method, error) from None


def _broken_off(address: Address, method: str, error: Exception) -> ShippingError:
    return unreachable(
        f"{address} broke off the connection at {method} ({_reason(error)}): it is no Nimbus, it ended, or it wants "
        "another login or TLS than storm.yaml says (storm.thrift.transport, nimbus.thrift.client.use.tls)"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(getattr(error, "message", None) or error) or type(error).__name__


def nimbus_conf(nimbus: Nimbus) -> dict[str, Any]:
    """Return the conf of Nimbus, which has the places of logs, the port of logviewers, and the values that topologies don't set."""
    return _object(nimbus, nimbus.call("getNimbusConf"), "its conf")


def conf_of(nimbus: Nimbus, id: str) -> dict[str, Any]:
    """Return the conf of a topology. ``id``: its id."""
    return _object(nimbus, nimbus.call("getTopologyConf", id), f"the conf of {id!r}")


def _object(nimbus: Nimbus, text: str, what: str) -> dict[str, Any]:
    try:
        conf = json.loads(text)
    except (ValueError, RecursionError):
        conf = None
    if not isinstance(conf, dict):
        raise unreachable(f"{nimbus.address} is no Nimbus: what it gives as {what} is no JSON object")
    return conf
