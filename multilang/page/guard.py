"""The page's door: who comes without the token of its address sees and does nothing."""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

if TYPE_CHECKING:
    from typing import Any

FORBIDDEN = (
    b"This page needs the token of its address: open the whole address, as it was printed where the page was started.\n"
)


class Guard:
    """An ASGI application in front of another. A token in the address becomes a cookie, and leaves the address.

    Other sites can use neither: the cookie is sent to this page's own requests alone, and a WebSocket must come from it.

    Args:
        app: The application.
        port: The port, of which the cookie bears the name: the cookies of a host's ports are not kept apart.

    Attributes:
        token: The token.
    """

    def __init__(self, app: Any, port: int) -> None:
        self._app = app
        self._cookie = f"multilang-page-{port}"
        self.token = secrets.token_urlsafe(24)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or let the application answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self._is_known(headers.get(b"cookie", "")) and _is_own(headers, scope["type"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._greet(scope, send)

    async def _greet(self, scope: Any, send: Any) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.pop("token", [""])[0]
        if scope["method"] != "GET" or not self._is_token(given):
            head = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": head})
            await send({"type": "http.response.body", "body": FORBIDDEN})
            return
        rest = f"?{urlencode(query, doseq=True)}" if query else ""
        cookie = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        head = [
            (b"location", (scope["path"] + rest).encode("latin-1", "replace")),
            (b"set-cookie", cookie.encode()),
            (b"referrer-policy", b"no-referrer"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": head})
        await send({"type": "http.response.body", "body": b""})

    def _is_known(self, text: str) -> bool:
        try:
            found = SimpleCookie(text).get(self._cookie)
        except CookieError:
            return False
        return found is not None and self._is_token(found.value)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("latin-1", "replace"), self.token.encode())


def _is_own(headers: dict[bytes, str], kind: str) -> bool:
    """Return whether a request comes from the page itself, as far as the browser says where it comes from."""
    origin = headers.get(b"origin")
    if origin is None:
        return kind == "http"
    return urlsplit(origin).netloc == headers.get(b"host")
