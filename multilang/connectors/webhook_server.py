"""The server of a webhook: requests that wait until they are taken, and then for their answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING

from multilang.listening.accepting import bind
from multilang.listening.checks import is_from_elsewhere, is_secret
from multilang.listening.http import Head, HttpServer, Refused, Request, answer, unquoted
from multilang.protocol.codec import loads, reason_against

if TYPE_CHECKING:
    from typing import Any

_MORE_CONNECTIONS = 32  # than there are requests that wait: to answer the others with 503
_MARGIN_SECS = 10.0  # for a request to arrive and an answer to leave
_FULL = "too many requests wait; send it again later"


class Post:
    """A request that waits for its answer, in the event loop of the server."""

    __slots__ = ("_loop", "answered", "value")

    def __init__(self, value: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.value = value
        self.answered: asyncio.Future[bool] = loop.create_future()
        self._loop = loop

    def answer(self, ok: bool) -> None:
        """Give the answer, from any thread."""
        with suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self._settle, ok)

    def _settle(self, ok: bool) -> None:
        if not self.answered.done():
            self.answered.set_result(ok)


class WebhookServer:
    """Takes the requests of a task of a webhook's spout, in a thread of its own.

    Args:
        host: The address to listen at.
        port: The port.
        path: The path of the requests.
        secret: What a request must show; None: nothing.
        json: Whether a body is JSON.
        most: The most requests that wait to be taken.
        max_body: The most bytes of a body.
        answer_secs: Seconds after which a request without an answer is answered 503.

    Raises:
        OSError: It can't listen there.

    Attributes:
        waiting: The requests that the spout has not taken yet.
        http: The server that reads them.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        path: str,
        secret: str | None,
        json: bool,
        most: int,
        max_body: int,
        answer_secs: float,
    ) -> None:
        self._path = path
        self._secret = secret
        self._json = json
        self._max_body = max_body
        self._answer_secs = answer_secs
        self._active = True
        self.waiting: Queue[Post] = Queue(most)
        self.http = HttpServer(
            bind(host, port),
            self._respond,
            connections=2 * most + _MORE_CONNECTIONS,  # as many are under way, and wait
            secs=answer_secs + _MARGIN_SECS,
            name="webhook",
        )

    def take(self) -> Post | None:
        """Return the next request that still waits; None if there is none."""
        with suppress(Empty):
            while (post := self.waiting.get_nowait()).answered.done():
                pass  # it waited for too long
            return post
        return None

    def activate(self) -> None:
        """Let requests wait."""
        self._active = True

    def deactivate(self) -> None:
        """Refuse waiting and new requests."""
        self._active = False
        with suppress(Empty):
            while True:
                self.waiting.get_nowait().answer(False)

    def close(self) -> None:
        """Serve no more."""
        self.deactivate()
        self.http.close()

    async def _respond(self, request: Request) -> bytes:
        size = self._size(request.head)
        shown = self._secret is not None  # the head has shown the secret; without one, a whole body admits
        if shown and not request.admit():
            raise _later(_FULL)
        data = await request.body(size)
        if not shown and not request.admit():
            raise _later(_FULL)
        try:
            text = data.decode()
            value = loads(text) if self._json else text
        except ValueError as problem:
            kind = "JSON in UTF-8" if self._json else "text in UTF-8"
            raise Refused(HTTPStatus.BAD_REQUEST, f"the body is no {kind}: {problem}") from None
        reason = reason_against(value)
        if reason is not None:  # then the emit would end the task
            raise Refused(HTTPStatus.BAD_REQUEST, f"the body can't be a tuple's value: {reason}")
        post = Post(value, asyncio.get_running_loop())
        try:
            if self._is_closing():
                raise Full
            self.waiting.put_nowait(post)
        except Full:
            raise _later(_FULL) from None
        if self._is_closing():
            post.answer(False)
        try:
            ok = await asyncio.wait_for(post.answered, self._answer_secs)
        except asyncio.TimeoutError:
            raise _later("it takes too long; send it again") from None
        if not ok:
            raise _later("it failed; send it again")
        return answer(HTTPStatus.OK, "done")

    def _is_closing(self) -> bool:
        """Return whether waiting requests are not taken any more; it may change at any moment."""
        return not self._active

    def _size(self, head: Head) -> int:
        """Return the size of a request's body. Raises Refused for a request that may send none."""
        if "origin" in head.fields or is_from_elsewhere(head.fields):
            raise Refused(HTTPStatus.FORBIDDEN, "no page in a browser may send anything here")
        if self._secret is not None and not is_secret(head.fields.get("authorization", ""), f"Bearer {self._secret}"):
            raise Refused(HTTPStatus.UNAUTHORIZED, "send the secret, as Authorization: Bearer SECRET")
        if unquoted(head.path) != self._path:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is only {self._path}")
        if head.method != "POST":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use POST")
        return head.size(self._max_body)


def _later(why: str) -> Refused:
    return Refused(HTTPStatus.SERVICE_UNAVAILABLE, why, {"Retry-After": "1"})
