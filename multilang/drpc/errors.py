"""The errors of calls."""

from __future__ import annotations

from multilang.errors import MultilangError

INTERNAL_ERROR, SERVER_SHUTDOWN, SERVER_TIMEOUT, FAILED_REQUEST = range(4)
KINDS = ("INTERNAL_ERROR", "SERVER_SHUTDOWN", "SERVER_TIMEOUT", "FAILED_REQUEST")


class DRPCExecutionException(MultilangError):
    """The server reports that there will be no result (Storm's exception of this name).

    Args:
        message: The reason.
        kind: The number of Storm's DRPCExceptionType; None: the server gave none.

    Attributes:
        message: The reason.
        code: The number of Storm's DRPCExceptionType; None: the server gave none.
        kind: INTERNAL_ERROR, SERVER_SHUTDOWN, SERVER_TIMEOUT or FAILED_REQUEST; None: the server gave none.
    """

    def __init__(self, message: str, kind: int | None = FAILED_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.code = kind

    @property
    def kind(self) -> str | None:
        """The name of Storm's DRPCExceptionType; None if the server gave none."""
        return None if self.code is None or not 0 <= self.code < len(KINDS) else KINDS[self.code]


class DRPCConnectionError(MultilangError, OSError):
    """The server can't be reached, breaks off, or sends something that is no answer.

    Attributes:
        is_refusal: True: the server answered that it can't take such a call.
    """

    def __init__(self, message: str, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal


class DRPCTimeoutError(DRPCConnectionError, TimeoutError):
    """There was no answer within the client's timeout. The client has closed the connection, so the server knows."""
