"""What goes wrong with a call."""

from __future__ import annotations

INTERNAL_ERROR, SERVER_SHUTDOWN, SERVER_TIMEOUT, FAILED_REQUEST = range(4)
KINDS = ("INTERNAL_ERROR", "SERVER_SHUTDOWN", "SERVER_TIMEOUT", "FAILED_REQUEST")


class DRPCError(Exception):
    """A call that gave no result."""


class DRPCExecutionException(DRPCError):
    """The server says that there will be no result (Storm's exception of this name).

    ``kind``: INTERNAL_ERROR, SERVER_SHUTDOWN, SERVER_TIMEOUT or FAILED_REQUEST; None when it does not say.
    """

    def __init__(self, message: str, kind: int | None = FAILED_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.code = kind

    @property
    def kind(self) -> str | None:
        """The name of Storm's DRPCExceptionType."""
        return None if self.code is None or not 0 <= self.code < len(KINDS) else KINDS[self.code]


class DRPCConnectionError(DRPCError, OSError):
    """The server can't be reached, breaks off, or says what is no answer."""


class DRPCTimeoutError(DRPCConnectionError, TimeoutError):
    """No answer within the time that the client gives it; the server is told, by the end of the connection."""
