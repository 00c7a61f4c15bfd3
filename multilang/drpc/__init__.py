"""Distributed RPC: a topology answers calls, and many tasks work on each request at once (Storm's linear DRPC).

``LinearDRPCTopologyBuilder`` declares such a topology, and ``LocalDRPC`` runs it and asks it in a test. ``DRPCServer``
stands between clients and topologies. ``DRPCClient`` and ``AsyncDRPCClient`` ask that server, or Storm's own.
``DRPCInvocationsClient`` answers requests outside a topology.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.drpc.aio import AsyncDRPCClient
    from multilang.drpc.builder import LinearDRPCTopologyBuilder
    from multilang.drpc.client import DRPCClient
    from multilang.drpc.errors import DRPCConnectionError, DRPCError, DRPCExecutionException, DRPCTimeoutError
    from multilang.drpc.invocations import DRPCInvocationsClient
    from multilang.drpc.join import JoinResult
    from multilang.drpc.local import LocalDRPC
    from multilang.drpc.prepare import PrepareRequest
    from multilang.drpc.returns import ReturnResults
    from multilang.drpc.server import DRPCServer
    from multilang.drpc.spout import DRPCSpout

_HOMES = {
    "AsyncDRPCClient": "aio",
    "DRPCClient": "client",
    "DRPCConnectionError": "errors",
    "DRPCError": "errors",
    "DRPCExecutionException": "errors",
    "DRPCInvocationsClient": "invocations",
    "DRPCServer": "server",
    "DRPCSpout": "spout",
    "DRPCTimeoutError": "errors",
    "JoinResult": "join",
    "LinearDRPCTopologyBuilder": "builder",
    "LocalDRPC": "local",
    "PrepareRequest": "prepare",
    "ReturnResults": "returns",
}

__all__ = [
    "AsyncDRPCClient",
    "DRPCClient",
    "DRPCConnectionError",
    "DRPCError",
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


def __getattr__(name: str) -> Any:
    """Import a name at its first use: a task's process needs the bolts, not the server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
