"""Answers over HTTP within bounds: Python's own timeout restarts with each byte, and trailers have no bound."""

from __future__ import annotations

from http.client import HTTPException, HTTPResponse
from io import BufferedReader, RawIOBase
from time import monotonic
from typing import TYPE_CHECKING
from urllib.request import AbstractHTTPHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, build_opener

if TYPE_CHECKING:
    from typing import Any
    from urllib.request import Request


def opened(request: Request | str, silence: float, secs: float, most: int) -> Any:
    """Return the answer to a request, which must be no redirect. It is read within its bounds; errors are those of ``urlopen``.

    Args:
        request: The request, or its address.
        silence: The most seconds without a byte.
        secs: The most seconds in all, from the connection on.
        most: The most bytes in all, its head included.

    Raises:
        HTTPException: There are more bytes; also while the answer is read.
    """
    bounds = secs, most
    opener = build_opener(_NoRedirect, _InTime(bounds), _InTimeByTls(bounds))
    return opener.open(request, timeout=min(silence, secs))


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # a POST would become a GET without a body, and the answering server would choose the request


class _Reader(RawIOBase):
    """Reads from a socket within its bounds."""

    def __init__(self, raw: Any, wire: Any, secs: float, most: int) -> None:
        self._raw = raw
        self._wire = wire
        self._silence = wire.gettimeout()
        self._end = monotonic() + secs
        self._most = most
        self._came = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        left = self._end - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._wire.settimeout(min(left, self._silence))
        size = self._raw.readinto(buffer)
        self._came += size or 0
        if self._came > self._most:
            raise HTTPException(f"the answer has more than {self._most} bytes")
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Bounded(AbstractHTTPHandler):
    def __init__(self, bounds: tuple[float, int]) -> None:
        super().__init__()
        self._bounds = bounds

    def do_open(self, http_class: Any, req: Any, **http_conn_args: Any) -> Any:
        bounds = self._bounds

        class Answer(HTTPResponse):
            def __init__(self, sock: Any, *more: Any, **named: Any) -> None:
                super().__init__(sock, *more, **named)
                fp: Any = self.fp
                self.fp = BufferedReader(_Reader(fp.detach(), sock, *bounds))

        def made(*arguments: Any, **named: Any) -> Any:
            connection = http_class(*arguments, **named)
            connection.response_class = Answer
            return connection

        return super().do_open(made, req, **http_conn_args)


class _InTime(_Bounded, HTTPHandler):
    pass


class _InTimeByTls(_Bounded, HTTPSHandler):
    pass
