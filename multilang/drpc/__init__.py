"""Distributed RPC: a topology answers calls, and many tasks work on each request at once (Storm's linear DRPC).

``LinearDRPCTopologyBuilder`` declares such a topology, and ``LocalDRPC`` runs it and asks it in a test. ``DRPCServer``
stands between clients and topologies. ``DRPCClient`` and ``AsyncDRPCClient`` ask that server, or Storm's own.
``DRPCInvocationsClient`` answers requests outside a topology.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.drpc.aio import AsyncDRPCClient
    from multilang.drpc.builder import LinearDRPCTopologyBuilder
    from multilang.drpc.client import DRPCClient
    from multilang.drpc.errors import DRPCConnectionError, DRPCExecutionException, DRPCTimeoutError
    from multilang.drpc.invocations import DRPCInvocationsClient
    from multilang.drpc.join import JoinResult
    from multilang.drpc.local import LocalDRPC
    from multilang.drpc.prepare import PrepareRequest
    from multilang.drpc.returns import ReturnResults
    from multilang.drpc.server import DRPCServer
    from multilang.drpc.spout import DRPCSpout

__all__ = [
    "AsyncDRPCClient",
    "DRPCClient",
    "DRPCConnectionError",
    "DRPCExecutionException",
    "DRPCInvocationsClient",
    "DRPCServer",
    "DRPCSpout",
    "DRPCTimeoutError",
    "JoinResult",
    "LinearDRPCTopologyBuilder",
    "LocalDRPC",
    "PrepareRequest",
    "ReturnResults",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".aio": ("AsyncDRPCClient",),
        ".builder": ("LinearDRPCTopologyBuilder",),
        ".client": ("DRPCClient",),
        ".errors": ("DRPCConnectionError", "DRPCExecutionException", "DRPCTimeoutError"),
        ".invocations": ("DRPCInvocationsClient",),
        ".join": ("JoinResult",),
        ".local": ("LocalDRPC",),
        ".prepare": ("PrepareRequest",),
        ".returns": ("ReturnResults",),
        ".server": ("DRPCServer",),
        ".spout": ("DRPCSpout",),
    },
)
