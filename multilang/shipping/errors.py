"""The error of shipping and of clusters."""

from __future__ import annotations

from multilang.errors import MultilangError

UNREACHABLE = "unreachable"
"""The ``kind`` of an error: no Nimbus answers at that address, or it does not speak this client's protocol."""


class ShippingError(MultilangError, ValueError):
    """Something can't be sent to a cluster, or a cluster can't do what it is asked. The text has the reason and what to do.

    Attributes:
        kind: The name of Storm's exception if Nimbus refused a call, such as ``"NotAliveException"``; UNREACHABLE; or None.
    """

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


def refused(kind: str, message: str) -> ShippingError:
    """Return the error of a call that Nimbus refused with Storm's exception ``kind``."""
    return ShippingError(message, kind)


def unreachable(message: str) -> ShippingError:
    """Return the error of a Nimbus that can't be reached."""
    return ShippingError(message, UNREACHABLE)
