"""Transports from a client to a daemon of Storm's: plain, TLS, or with a SASL login, by Storm's own keys.

``nimbus``, ``drpc`` and ``drpc_invocations`` choose a transport from a conf; its ``open`` does the handshake on a connected
socket. There is no fallback: a setting that can't be obeyed, or a login that fails, is an error, and never leads to a
plain connection.
"""

from __future__ import annotations

from multilang.transport.base import PLAIN, Plain, Transport
from multilang.transport.keys import drpc, drpc_invocations, nimbus, uses_tls

__all__ = ["PLAIN", "Plain", "Transport", "drpc", "drpc_invocations", "nimbus", "uses_tls"]
