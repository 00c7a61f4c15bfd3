"""What can't be shipped, and what a cluster answers."""

from __future__ import annotations


class ShippingError(ValueError):
    """Something can't go to a cluster; the text names it and says what to write instead."""


class NimbusError(RuntimeError):
    """Nimbus could not do what it was asked; the text says why, as a person can act on it."""


class UnreachableError(NimbusError):
    """No Nimbus answers there, or not as this client speaks."""


class RefusedError(NimbusError):
    """Nimbus refused. ``kind``: the name of its exception, as ``"NotAliveException"``."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ClusterError(RuntimeError):
    """A cluster on this machine can't be started or stopped; the text says why and what to do."""
