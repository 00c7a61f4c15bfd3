"""A client without the token sees nothing, and other sites can't use one that has it."""

from __future__ import annotations

import asyncio

import pytest

from multilang.page.guard import COOKIE, Guard

HOST = "127.0.0.1:8765"


async def page(scope, receive, send):
    await send({"type": "http.response.start" if scope["type"] == "http" else "websocket.accept", "status": 200})


def asked(guard, path="/", kind="http", method="GET", **headers):
    """Return the first message of the answer."""
    messages = []
    path, _, query = path.partition("?")
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
    }

    async def send(message):
        messages.append(message)

    asyncio.run(guard(scope, None, send))
    return messages[0]


@pytest.fixture
def guard():
    return Guard(page, {"localhost", "build"})


def greeted(guard, path="/"):
    """Return the address to which the token leads, and the parts of its cookie."""
    answer = asked(guard, f"{path}{'&' if '?' in path else '?'}token={guard.token}")
    assert answer["status"] == 303
    head = dict(answer["headers"])
    return head[b"location"].decode(), head[b"set-cookie"].decode().split("; ")


@pytest.fixture
def inside(guard):
    """The page's own address, and its cookie."""
    where, (cookie, *_) = greeted(guard)
    return where, cookie


def test_the_token_of_the_address_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(guard):
    where, (cookie, *rest) = greeted(guard, "/topology/x?a=1")
    own = where.removesuffix("/topology/x?a=1")
    assert where != own
    assert {"HttpOnly", "SameSite=Strict", f"Path={own}"} == set(rest)
    assert asked(guard, where.partition("?")[0], cookie=cookie)["status"] == 200


def test_servers_at_other_ports_do_not_get_the_cookie_because_they_do_not_know_its_path(guard, inside):
    where, cookie = inside
    assert len(where) > 16
    assert where not in (greeted(Guard(page, ()))[0], "/")  # drawn at random
    assert asked(guard, "/", cookie=cookie)["status"] == 403  # it is of no use elsewhere


def test_the_path_is_told_to_no_other_site_and_the_page_is_in_no_frame(guard, inside):
    where, cookie = inside
    for answer in (asked(guard, where, cookie=cookie), asked(guard, where), asked(guard, f"/?token={guard.token}")):
        head = dict(answer["headers"])
        assert head[b"referrer-policy"] == b"no-referrer"
        assert head[b"x-frame-options"] == b"DENY"
        assert b"frame-ancestors 'none'" in head[b"content-security-policy"]


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=x", "/?token=é", "/_nicegui/3/static/nicegui.js"])
@pytest.mark.parametrize("headers", [{}, {"cookie": f"{COOKIE}=x"}, {"cookie": "é=;;="}, {"authorization": "Bearer x"}])
def test_without_it_there_is_nothing_to_see(guard, inside, path, headers):
    for each in (path, f"{inside[0]}{path[1:]}"):
        assert asked(guard, each, **headers)["status"] == 403
        assert asked(guard, each, "websocket", **headers)["type"] == "websocket.close"


def test_the_token_of_another_page_is_none(guard, inside):
    other = Guard(page, ())
    assert asked(guard, f"/?token={other.token}")["status"] == 403
    assert asked(guard, inside[0], cookie=greeted(other)[1][0])["status"] == 403


@pytest.mark.parametrize(
    "origin", ["http://elsewhere.example", "http://127.0.0.1:1", "null", "https://127.0.0.1", "http://[", ""]
)
def test_another_sites_page_can_not_use_the_cookie(guard, inside, origin):
    where, cookie = inside
    assert asked(guard, where, "websocket", cookie=cookie, origin=origin)["type"] == "websocket.close"
    assert asked(guard, where, method="POST", cookie=cookie, origin=origin)["status"] == 403
    assert asked(guard, where, "websocket", cookie=cookie)["type"] == "websocket.close"
    assert asked(guard, where, "websocket", cookie=cookie, origin=f"http://{HOST}")["type"] == "websocket.accept"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x"])
def test_what_a_browser_calls_another_site_is_refused(guard, inside, site):
    where, cookie = inside
    for kind in ("http", "websocket"):
        answer = asked(guard, where, kind, cookie=cookie, origin=f"http://{HOST}", sec_fetch_site=site)
        assert answer.get("status", answer["type"]) in (403, "websocket.close")
    assert asked(guard, where, cookie=cookie, sec_fetch_site="same-origin")["status"] == 200


@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:8765", "", "[", "localhost.rebound.example"])
def test_a_name_that_somebody_pointed_here_is_none_of_the_page(guard, inside, host):
    where, cookie = inside
    assert asked(guard, where, cookie=cookie, host=host)["status"] == 403
    assert asked(guard, f"/?token={guard.token}", host=host)["status"] == 403
    origin = f"http://{host}"
    assert asked(guard, where, "websocket", cookie=cookie, host=host, origin=origin)["type"] == "websocket.close"


@pytest.mark.parametrize("host", ["localhost:9000", "[::1]:8765", "10.0.0.7", "build:8765", "BUILD"])
def test_addresses_and_its_own_names_lead_to_the_page(guard, inside, host):
    assert asked(guard, inside[0], cookie=inside[1], host=host)["status"] == 200


def test_a_post_with_the_token_in_its_address_is_refused(guard):
    assert asked(guard, f"/?token={guard.token}", method="POST")["status"] == 403


@pytest.mark.parametrize("path", ["//elsewhere.example", "/\r\nset-cookie: a=b", "/\\elsewhere.example"])
def test_a_crafted_address_leads_nowhere_else(guard, path):
    where, (_, *rest) = greeted(guard, path)
    own = next(each for each in rest if each.startswith("Path=")).removeprefix("Path=")
    assert where.startswith(f"{own}/")
    assert where.isprintable()
    assert "\\" not in where
    assert "//" not in where
