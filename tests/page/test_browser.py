"""``multilang run --page`` in a real browser: figures grow, kills and failures are seen, and the end is shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from itertools import count
from threading import Event
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from multilang.engine.status import ComponentStatus, InputStatus, RunError, RunStatus
from multilang.page import RunPage
from tests.page.browser import figure, opened, shows_trace
from tests.patience import patient
from tests.servers import wait_for
from tests.soak import soak_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPOLOGY = """
import time
from multilang import BasicBolt, ReliableSpout, TopologyBuilder

class Numbers(ReliableSpout):
    output_fields = ["number"]
    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.number = 0
    def next_tuple(self):
        self.number += 1
        self.emit([self.number])
        time.sleep(0.002)

class Square(BasicBolt):
    output_fields = ["square"]
    def process(self, tup):
        if tup["number"] == 50:
            raise ValueError("fifty is <b>not</b> squared, password=hunter2")
        self.emit([tup["number"] ** 2])

class Sink(BasicBolt):
    def process(self, tup):
        pass

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("square", Square, parallelism=2).shuffle_grouping("numbers")
builder.set_bolt("sink", Sink).shuffle_grouping("square")
topology = builder.build("squares")
"""


class Run:
    """A run of the topology, with its page."""

    def __init__(self, folder: Path) -> None:
        (folder / "squares.py").write_text(TOPOLOGY)
        command = [sys.executable, "-m", "multilang", "run", "squares.py", "--page", "0"]
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert self.process.stderr is not None
        self.url = next(line.split()[-1] for line in self.process.stderr if line.startswith("page: "))

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=patient(90))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    started = Run(tmp_path)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.end()


def test_a_run_is_watched_from_its_start_to_its_end(run: Run) -> None:
    with opened(run.url) as page:
        assert "token" not in page.url
        page.get_by_role("heading", name="squares").wait_for()
        wait_for(lambda: figure(page, "acked") > 100, "the counts grow")
        grown = figure(page, "acked")
        wait_for(lambda: figure(page, "acked") > grown, "they continue to grow")
        # The error's traceback, as text and not as HTML.
        error, code = (
            re.compile("fifty is <b>not</b> squared"),
            'raise ValueError("fifty is <b>not</b> squared, password=',
        )
        wait_for(lambda: shows_trace(page, error, code), "the traceback of an error is open")
        page.locator(
            ".q-expansion-item", has_text=re.compile(r"square \(task \d\).*ValueError[\s\S]*at \d\d:\d\d:\d\d")
        ).wait_for()
        page.locator(".log", has_text=re.compile(r"\d\d:\d\d:\d\d ERROR square task \d ValueError")).wait_for()
        assert "hunter2" not in page.content()
        # The tasks of a component; one of them is killed.
        page.get_by_role("cell", name="square", exact=True).first.click()
        page.get_by_role("heading", name="square: its tasks").wait_for()
        page.locator("tr.selected", has_text="square").wait_for()
        page.get_by_role("combobox", name="component").locator("xpath=../../..").get_by_text("square").wait_for()
        places = page.locator("section", has=page.get_by_role("heading", name="Processes"))
        assert re.search(r"square \d", places.inner_text())
        where = page.locator("tr", has=page.get_by_role("cell", name="yes", exact=True)).first.locator("td").nth(1)
        os.kill(int(where.inner_text()), signal.SIGKILL)
        wait_for(lambda: figure(page, "restarts") == 1, "the task that was killed is seen")
        page.keyboard.press("Escape")
        page.get_by_role("heading", name="square: its tasks").wait_for(state="hidden")
        run.end()
        page.get_by_text(re.compile("The run is over")).wait_for()
        page.wait_for_function("document.getElementById('popup').ariaHidden === 'false'")  # NiceGUI has noticed it, too
        assert not page.get_by_text("Trying to reconnect").is_visible()
        assert figure(page, "acked") > grown


@pytest.mark.parametrize(
    "never_comes",
    [pytest.param("", id="whole"), pytest.param("**/*.woff2", id="without_the_icons", marks=soak_only)],
)
def test_a_phone_shows_all_of_it_without_scrolling_sideways(run: Run, never_comes: str) -> None:
    with opened(run.url, never_comes, viewport={"width": 390, "height": 800}, color_scheme="dark") as page:
        wait_for(lambda: figure(page, "acked") > 0, "the counts grow")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.body.classList.contains('body--dark')")
        wait_for(lambda: page.locator("canvas").count() == 5, "the graph and the curves are drawn")


def test_without_the_token_there_is_nothing_to_see(run: Run) -> None:
    with pytest.raises(HTTPError, match="403") as caught:
        urlopen(run.url.split("?")[0], timeout=90)
    assert b"token" in caught.value.read()


def test_errors_of_one_kind_are_one_line_which_stays_open_and_what_a_cluster_can_not_know_is_no_0() -> None:
    trace = "Traceback (most recent call last):\n  File \"bolts.py\", line 7, in process\n    tup['lines']\nKeyError: 'lines'"
    inputs = tuple(InputStatus(component="b0", stream=stream) for stream in ("default", "$checkpoint"))
    bolts = [ComponentStatus(id=f"b{n}", kind="bolt", tasks=2, inputs=inputs if n else ()) for n in range(40)]
    asked = count(1)

    def source() -> RunStatus:
        errors = [
            RunError(
                component="b0",
                message=f"KeyError in component 'b0' (task 5) on tuple {n}, values [{n}]: 'lines'\n{trace}",
                task=5,
            )
            for n in range(next(asked))
        ]
        fatal = RunError(component="s", message="OSError in component 's' (task 1): no disk", task=1, fatal=True)
        spout = ComponentStatus(id="s", kind="spout", tasks=1, acked=3)
        return RunStatus(
            topology="many",
            engine="storm",
            state="active",
            seconds=1.0,
            components=(spout, *bolts),
            errors=(fatal, *errors),
        )

    with RunPage(source, 0) as shown, opened(shown.url) as page:
        lines = page.locator(".q-expansion-item")
        line = lines.filter(has_text=re.compile(r"b0 \(task 5\), [0-9]+ times: KeyError: 'lines'"))
        line.wait_for()
        assert lines.count() == 2
        lines.filter(has_text="s (task 1) died: OSError in component 's'").wait_for()
        line.click()
        opened_trace = line.locator(".trace")
        opened_trace.wait_for()
        times = int(line.inner_text().split(",")[1].split()[0])
        wait_for(lambda: int(line.inner_text().split(",")[1].split()[0]) > times + 1, "more of this kind came")
        assert opened_trace.is_visible()
        assert figure(page, "acked") == 3
        assert {
            page.locator(f'[data-figure="{name}"]').inner_text() for name in ("pending", "timed out", "restarts")
        } == {"-"}
        wait_for(lambda: page.evaluate("document.querySelector('.graph').scrollTop") > 100, "the spouts are in view")


def test_a_status_that_can_not_be_had_is_told_and_asked_for_again() -> None:
    answers = [None]

    def source() -> RunStatus | None:
        if answers:
            answers.pop()
            return None
        if not came.is_set():
            raise RuntimeError("nobody answers at db:5432, password=hunter2")
        return RunStatus(topology="late", engine="process", state="active", seconds=1.0)

    came = Event()
    with RunPage(source, 0) as shown:
        with opened(shown.url) as page:
            page.get_by_text(
                re.compile(r"The topology can't be asked: nobody answers at db:5432, password=\*\*\*")
            ).wait_for()
            assert page.get_by_role("heading").all_inner_texts() == ["a topology"]  # and no empty frames
            assert shown.is_watched
            came.set()
            page.get_by_role("heading", name="late").wait_for()
            page.get_by_text("The topology can't be asked").wait_for(state="hidden")
        wait_for(lambda: not shown.is_watched, "nobody looks any more, and the run is not asked any more")
