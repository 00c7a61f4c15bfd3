"""A Nimbus of the tests' own, which speaks Storm's Thrift: its topologies run at once, or report errors, by their conf.

It says nothing of what a worker would do. It can go away in the middle: after a number of calls it answers no more.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from multilang.shipping.storm_yaml import Address
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKEN = "test.broken"  # in a topology's conf: what its component reports once its spouts are active


class Gone(Exception):
    """The Nimbus is gone."""


class NimbusServer:
    """The topologies and blobs that a Nimbus knows.

    Attributes:
        topologies: By name.
        blobs: By key.
        left: The number of calls until it is gone; None: it stays.
        calls: The names of all calls.
        version: Storm's version.
    """

    def __init__(self) -> None:
        self.version = "2.8.3"
        self.topologies: dict[str, dict[str, Any]] = {}
        self.blobs: dict[str, bytes] = {}
        self.left: int | None = None
        self.calls: list[str] = []
        self._sessions: dict[str, Any] = {}
        self._number = 0

    def versions(self) -> list[tuple[str, str, str]]:
        """Return the name, the version and the status of each topology."""
        return sorted((name, each["conf"]["test.version"], each["status"]) for name, each in self.topologies.items())

    def called(self, name: str) -> None:
        """Count a call. Raises Gone if it is one too many."""
        if self.left is not None:
            if not self.left:
                raise Gone
            self.left -= 1
        self.calls.append(name)

    def getClusterInfo(self) -> Any:
        thrift = types()
        counts = {"num_tasks": 1, "num_executors": 1, "num_workers": 1, "uptime_secs": 100}
        return thrift.ClusterSummary(
            supervisors=[],
            topologies=[
                thrift.TopologySummary(id=each["id"], name=name, status=each["status"], **counts)
                for name, each in self.topologies.items()
            ],
            nimbuses=[thrift.NimbusSummary(host="a", port=1, uptime_secs=1, isLeader=True, version=self.version)],
        )

    def getNimbusConf(self) -> str:
        return json.dumps({"storm.cluster.mode": "distributed", "topology.stats.sample.rate": 0.05})

    def getTopologyInfo(self, id: str) -> Any:
        thrift = types()
        each = self._of(id)
        broken = each["conf"].get(BROKEN) if each["status"] == "ACTIVE" else None
        executor = thrift.ExecutorSummary(
            executor_info=thrift.ExecutorInfo(task_start=1, task_end=1),
            component_id="count",
            host="a",
            port=6700,
            uptime_secs=100,
            stats=thrift.ExecutorStats(
                emitted={":all-time": {"__system": 20} if each["status"] == "ACTIVE" else {}},
                transferred={":all-time": {}},
                specific=thrift.ExecutorSpecificStats(
                    bolt=thrift.BoltStats(acked={}, failed={}, process_ms_avg={}, executed={}, execute_ms_avg={})
                ),
            ),
        )
        return thrift.TopologyInfo(
            id=id,
            name=each["name"],
            uptime_secs=100,
            executors=[executor],
            status=each["status"],
            errors={"count": [thrift.ErrorInfo(error=broken, error_time_secs=1)]} if broken else {},
        )

    def getTopologyConf(self, id: str) -> str:
        return json.dumps({**self._of(id)["conf"], "storm.id": id, "storm.version": "2.8.3"})

    def getUserTopology(self, id: str) -> Any:
        return self._of(id)["structure"]

    def submitTopologyWithOpts(self, name: str, location: str, conf: str, structure: Any, options: Any) -> None:
        if name in self.topologies:
            raise types().AlreadyAliveException(msg=f"{name} is already alive")
        self._number += 1
        id = f"{name}-{self._number}-1"
        status = "ACTIVE" if options.initial_status == types().TopologyInitialStatus.ACTIVE else "INACTIVE"
        self.topologies[name] = {
            "id": id,
            "name": name,
            "status": status,
            "conf": json.loads(conf),
            "structure": structure,
        }
        self.blobs[f"{id}-stormjar.jar"] = bytes(self._sessions[location])

    def killTopologyWithOpts(self, name: str, options: Any) -> None:
        self._named(name)
        del self.topologies[name]

    def activate(self, name: str) -> None:
        self._named(name)["status"] = "ACTIVE"

    def deactivate(self, name: str) -> None:
        self._named(name)["status"] = "INACTIVE"

    def beginFileUpload(self) -> str:
        return self._session(bytearray())

    def uploadChunk(self, location: str, chunk: bytes) -> None:
        self._sessions[location] += chunk

    def finishFileUpload(self, location: str) -> None:
        pass

    def beginCreateBlob(self, key: str, meta: Any) -> str:
        if key in self.blobs:
            raise types().KeyAlreadyExistsException(msg=key)
        self.blobs[key] = b""
        return self._session((key, bytearray()))

    def beginUpdateBlob(self, key: str) -> str:
        return self._session((key, bytearray()))

    def uploadBlobChunk(self, session: str, chunk: bytes) -> None:
        self._sessions[session][1].extend(chunk)

    def finishBlobUpload(self, session: str) -> None:
        key, data = self._sessions[session]
        self.blobs[key] = bytes(data)

    def cancelBlobUpload(self, session: str) -> None:
        pass

    def createStateInZookeeper(self, key: str) -> None:
        pass

    def beginBlobDownload(self, key: str) -> Any:
        if key not in self.blobs:
            raise types().KeyNotFoundException(msg=key)
        return types().BeginDownloadResult(version=1, session=self._session([self.blobs[key]]), data_size=1)

    def downloadBlobChunk(self, session: str) -> bytes:
        return self._sessions[session].pop() if self._sessions[session] else b""

    def deleteBlob(self, key: str) -> None:
        if self.blobs.pop(key, None) is None:
            raise types().KeyNotFoundException(msg=key)

    def _session(self, what: Any) -> str:
        self._number += 1
        self._sessions[str(self._number)] = what
        return str(self._number)

    def _of(self, id: str) -> dict[str, Any]:
        for each in self.topologies.values():
            if each["id"] == id:
                return each
        raise types().NotAliveException(msg=id)

    def _named(self, name: str) -> dict[str, Any]:
        if name not in self.topologies:
            raise types().NotAliveException(msg=name)
        return self.topologies[name]


class _Counted:
    def __init__(self, server: NimbusServer) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._server, name)

        def counted(*arguments: Any) -> Any:
            self._server.called(name)
            return function(*arguments)

        return counted


@contextmanager
def serving(server: NimbusServer) -> Iterator[Address]:
    """Serve it on this machine."""
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.thrift import TProcessor
    from thriftpy2.transport import TFramedTransportFactory, TSocket

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket) -> None:
            protocol = TBinaryProtocolFactory().get_protocol(
                TFramedTransportFactory().get_transport(TSocket(sock=connection))
            )
            with connection, suppress(Exception):  # the client is gone, or this Nimbus is
                while True:
                    TProcessor(types().Nimbus, _Counted(server)).process(protocol, protocol)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield Address("127.0.0.1", listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
