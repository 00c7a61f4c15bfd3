"""Who comes without the token sees nothing, and other sites can't use who has it."""

from __future__ import annotations

import asyncio

import pytest

from multilang.page.guard import Guard

PORT = 8765
HOST = f"127.0.0.1:{PORT}"


async def page(scope, receive, send):
    await send({"type": "http.response.start" if scope["type"] == "http" else "websocket.accept", "status": 200})


def asked(guard, path="/", kind="http", method="GET", **headers):
    """Return the first message of the answer."""
    said = []
    path, _, query = path.partition("?")
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in {"host": HOST, **headers}.items()],
    }

    async def send(message):
        said.append(message)

    asyncio.run(guard(scope, None, send))
    return said[0]


@pytest.fixture
def guard():
    return Guard(page, PORT)


def cookie_of(guard):
    answer = asked(guard, f"/?token={guard.token}")
    assert answer["status"] == 303
    (cookie,) = (value.decode() for name, value in answer["headers"] if name == b"set-cookie")
    return cookie


def test_the_token_of_the_address_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(guard):
    cookie = cookie_of(guard)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    answer = asked(guard, f"/topology/x?a=1&token={guard.token}")
    assert dict(answer["headers"])[b"location"] == b"/topology/x?a=1"
    assert asked(guard, cookie=cookie.split(";")[0])["status"] == 200


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=x", "/?token=é", "/_nicegui/3/static/nicegui.js"])
@pytest.mark.parametrize(
    "headers", [{}, {"cookie": f"multilang-page-{PORT}=x"}, {"cookie": "é=;;="}, {"authorization": "Bearer x"}]
)
def test_without_it_there_is_nothing_to_see(guard, path, headers):
    assert asked(guard, path, **headers)["status"] == 403
    assert asked(guard, path, "websocket", **headers)["type"] == "websocket.close"


def test_the_token_of_another_page_is_none(guard):
    other = Guard(page, PORT + 1)
    assert asked(guard, f"/?token={other.token}")["status"] == 403
    assert asked(guard, cookie=cookie_of(other).split(";")[0])["status"] == 403


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "http://127.0.0.1:1", "null", "https://127.0.0.1"])
def test_another_sites_page_can_not_use_the_cookie(guard, origin):
    cookie = cookie_of(guard).split(";")[0]
    assert asked(guard, kind="websocket", cookie=cookie, origin=origin)["type"] == "websocket.close"
    assert asked(guard, method="POST", cookie=cookie, origin=origin)["status"] == 403
    assert asked(guard, kind="websocket", cookie=cookie)["type"] == "websocket.close"
    assert asked(guard, kind="websocket", cookie=cookie, origin=f"http://{HOST}")["type"] == "websocket.accept"


def test_a_post_with_the_token_in_its_address_is_refused(guard):
    assert asked(guard, f"/?token={guard.token}", method="POST")["status"] == 403
