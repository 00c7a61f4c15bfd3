"""The manual as a site: it is built strictly, every page is in it, and a reader's browser fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.patience import patient

ROOT = Path(__file__).parents[2]
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not os.environ.get("CI"):
        pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    # A proxy that is not there: nothing may be fetched while it is built.
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "NO_MKDOCS_2_WARNING": "1"}
    shown = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, timeout=patient(170), env={**os.environ, **nowhere},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return folder


class _Loaded(HTMLParser):
    """Gathers what a browser loads for a page by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in LOADS and given.get("rel") not in ("canonical", "prev", "next"):
            self.found.append(given.get(LOADS[tag]) or "")


def test_every_page_of_the_manual_is_in_the_site(site: Path) -> None:
    pages = {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.name for path in site.glob("*.html")}


def test_a_browser_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        loaded = _Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.found
        assert [each for each in loaded.found if re.match(r"(https?:)?//", each)] == [], page.name


def test_the_reference_has_the_docstrings_arguments(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in ("TopologyBuilder", "set_bolt", "LocalCluster", "fail_fast", "KeyValueState"):
        assert name in text
