"""Ways of a client to a daemon of Storm's: plainly, by TLS, or with a SASL login, as Storm's own keys say.

``nimbus``, ``drpc`` and ``drpc_invocations`` choose a transport from a conf; its ``open`` takes a connected socket through
the handshake. There is no way back: a setting that can't be kept, or a login that fails, is an error, and never a plain
connection.
"""

from __future__ import annotations

from multilang.transport.base import PLAIN, Plain, Transport
from multilang.transport.keys import drpc, drpc_invocations, nimbus, uses_tls

__all__ = ["PLAIN", "Plain", "Transport", "drpc", "drpc_invocations", "nimbus", "uses_tls"]
