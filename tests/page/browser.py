"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import patient

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = patient(90_000)  # milliseconds for what takes a moment


def chromium() -> str:
    """Return the browser's path."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "no Chromium here (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def opened(url: str, never_comes: str = "", **options: Any) -> Iterator[Any]:
    """Open a page, whose own scripts may not fail, and which fetches nothing from elsewhere.

    Args:
        url: The address of the page.
        never_comes: A pattern of the addresses from which nothing comes; empty: none.
        options: Of the browser's window, as Playwright's ``new_context`` takes them.
    """
    from playwright.sync_api import sync_playwright

    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            page = browser.new_context(**options).new_page()
            page.set_default_timeout(LIMIT)
            if never_comes:
                page.route(never_comes, lambda route: route.abort())
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda message: print(message.type, message.text))  # shown if the test fails
            page.on(
                "request",
                lambda request: (
                    wrong.append(request.url)
                    if "127.0.0.1" not in request.url and request.url.startswith("http")
                    else None
                ),
            )
            page.goto(url)
            yield page
        finally:
            browser.close()
    assert wrong == []


def figure(page: Any, name: str) -> int:
    """Return one of the figures above the graph; -1 as long as it is not known."""
    text = page.locator(f'[data-figure="{name}"]').inner_text()
    digits = text.split("/")[0].replace(",", "")
    return int(digits) if digits.isdigit() else -1


# A page is loaded again when its connection was away for too long, as on a machine that is very busy: what was open is closed.


def shows_trace(page: Any, error: Any, code: str) -> bool:
    """Open an error, unless its traceback is open; return whether it is, with this code."""
    from playwright.sync_api import TimeoutError as NotInTime

    trace = page.locator(".trace:visible", has_text=code).first
    if not trace.is_visible():
        page.get_by_text(error).first.click()
        with suppress(NotInTime):
            trace.wait_for(timeout=10_000)
    return bool(trace.is_visible())


def confirms(page: Any, name: str) -> bool:
    """Press a button and the same one of the dialog that asks whether it is meant; return whether both could be pressed."""
    from playwright.sync_api import TimeoutError as NotInTime

    really = page.get_by_role("dialog").get_by_role("button", name=name)
    try:
        if not really.is_visible():
            page.get_by_role("button", name=name).click(timeout=10_000)
        really.click(timeout=10_000)
    except NotInTime:
        return False
    return True
