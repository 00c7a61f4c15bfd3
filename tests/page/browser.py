"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 90_000  # milliseconds for what takes a moment


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
