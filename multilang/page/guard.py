"""The page's authentication: without the token of its address, a client sees and does nothing."""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode

from multilang.listening.checks import asks_for, is_from_elsewhere, is_secret
from multilang.listening.http import fields_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

COOKIE = "multilang-page"
ADMIT = "multilang-admit"  # in a scope's state: called if the connection has shown the token
FORBIDDEN = (
    b"This page needs the token of its address: open the whole address, as it was printed where the page was started.\n"
)
_HEAD = [
    (b"referrer-policy", b"no-referrer"),  # the path of the cookie stays here
    (b"x-frame-options", b"DENY"),  # a frame of another page could lead the user's clicks
    (b"content-security-policy", b"frame-ancestors 'none'"),
]


class Guard:
    """An ASGI application in front of another. A token in the address becomes a cookie, and leaves the address.

    The cookie belongs to a path that is drawn at random, under which the application is found: a browser sends cookies to
    every port of a host, and so to other accounts' servers, but not without this path. Other sites can't use the cookie: it
    is sent to this page's own requests alone, which carry their origin.

    Args:
        app: The application.
        hosts: The names by which the page may be asked for, besides addresses.

    Attributes:
        token: The token.
    """

    def __init__(self, app: Any, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = hosts
        self._path = f"/{secrets.token_urlsafe(12)}"
        self.token = secrets.token_urlsafe(24)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or let the application answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEAD]
            await send(message)

        fields = fields_of((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        is_here = scope["path"].startswith(f"{self._path}/")
        if is_here and self._has_cookie(fields.get("cookie", "")) and self._is_own(fields, scope["type"]):
            scope.get("state", {}).pop(ADMIT, lambda: None)()
            await self._app({**scope, "root_path": self._path}, receive, answer)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._greet(scope, fields, answer)

    async def _greet(self, scope: Any, fields: dict[str, str], send: Any) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.pop("token", [""])[0]
        if scope["method"] != "GET" or not is_secret(given, self.token) or not asks_for(fields, self._hosts):
            head = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 403, "headers": head})
            await send({"type": "http.response.body", "body": FORBIDDEN})
            return
        rest = f"?{urlencode(query, doseq=True)}" if query else ""
        path = scope["path"].removeprefix(self._path)
        head = [
            (b"location", f"{self._path}/{quote(path.lstrip('/'))}{rest}".encode()),
            (b"set-cookie", f"{COOKIE}={self.token}; Path={self._path}; HttpOnly; SameSite=Strict".encode()),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": head})
        await send({"type": "http.response.body", "body": b""})

    def _has_cookie(self, text: str) -> bool:
        try:
            found = SimpleCookie(text).get(COOKIE)
        except CookieError:
            return False
        return found is not None and is_secret(found.value, self.token)

    def _is_own(self, fields: dict[str, str], kind: str) -> bool:
        """Return whether a request comes from the page itself, by the origin that the browser sends."""
        has_origin = kind == "http" or "origin" in fields  # which every browser sends for a WebSocket
        return has_origin and asks_for(fields, self._hosts) and not is_from_elsewhere(fields)
