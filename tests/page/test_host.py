"""The page's process, seen from the run: it asks while somebody looks, and the run outlives it whatever happens."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from multilang.component.errors import ConfigError
from multilang.engine.status import RunStatus
from multilang.page import RunPage
from multilang.page.host import MAX_LINES, RunLog
from tests.servers import free_port, wait_for

STATUS = RunStatus(topology="t", engine="process", state="active", seconds=1.0)


def children() -> set[int]:
    """Return the processes that this one started, and that are still there."""
    found = set()
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{each}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(each))
    return found


@pytest.fixture
def browser():
    with closing(build_opener(HTTPCookieProcessor())) as opener:
        yield lambda url: opener.open(url, timeout=90).read().decode()


def test_a_page_can_be_opened_with_the_address_that_is_printed(browser):
    before = children()
    with RunPage(lambda: STATUS, 0) as page:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{32,}", page.url)
        assert "<html" in browser(page.url)
        assert not page.is_watched  # nothing has connected that shows figures
    assert children() == before


def test_a_port_that_is_taken_gives_the_next_one():
    port = free_port()
    with RunPage(lambda: STATUS, port) as one, RunPage(lambda: STATUS, port) as other:
        assert urlsplit(one.url).port == port
        assert port < urlsplit(other.url).port < port + 100


def test_a_run_goes_on_when_its_page_is_killed():
    before = children()
    page = RunPage(lambda: STATUS, 0)
    (process,) = children() - before
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: children() == before, "it has ended")
    page.close(STATUS)


def test_each_line_of_the_log_is_taken_once_by_whichever_thread():
    log = RunLog()
    begin = threading.Barrier(2)

    def take(_: int) -> list[str]:
        begin.wait()
        return [line["text"] for line in log.taken()]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            for _ in range(10):
                for number in range(MAX_LINES):
                    log.handle(logging.LogRecord("split", logging.INFO, "", 0, str(number), None, None))
                assert sorted(map(int, chain(*threads.map(take, range(2))))) == list(range(MAX_LINES))
    finally:
        sys.setswitchinterval(before)


def test_a_missing_package_is_named_before_the_run_begins(tmp_path, monkeypatch):
    (tmp_path / "nicegui.py").write_text("raise ImportError('not installed')")
    monkeypatch.syspath_prepend(tmp_path)
    before = children()
    with pytest.raises(ConfigError, match=r"needs the package nicegui .*pip install 'storm-multilang\[page\]'"):
        RunPage(lambda: STATUS, 0)
    assert children() == before


def test_an_address_that_is_not_this_machines_is_refused():
    with pytest.raises(ConfigError, match=r"no free port for the page from 8765 on at 203\.0\.113\.1"):
        RunPage(lambda: STATUS, host="203.0.113.1")
