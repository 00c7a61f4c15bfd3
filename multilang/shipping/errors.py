"""Errors of shipping, and errors of a cluster."""

from __future__ import annotations


class ShippingError(ValueError):
    """Something can't be sent to a cluster. The text names it and says what to write instead."""


class NimbusError(RuntimeError):
    """Nimbus could not do what it was asked. The text says why, and what the reader can do."""


class UnreachableError(NimbusError):
    """No Nimbus answers at that address, or it does not speak this client's protocol."""


class RefusedError(NimbusError):
    """Nimbus refused a call.

    Attributes:
        kind: The name of Storm's exception, such as ``"NotAliveException"``.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ClusterError(RuntimeError):
    """A cluster on this machine can't be started or stopped. The text says why and what to do."""
