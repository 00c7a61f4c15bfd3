"""``multilang page`` in a real browser: a cluster's topologies are seen, and what its buttons ask for is done."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from multilang.cli import exits
from multilang.shipping.errors import ShippingError
from tests.cli.command import multilang
from tests.page.browser import confirms, opened, shows_trace
from tests.patience import patient
from tests.storm.conftest import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

TOPOLOGY = """
import time
from multilang import BasicBolt, Spout, TopologyBuilder

class Numbers(Spout):
    output_fields = ["number"]
    def next_tuple(self):
        self.emit([1], 1)
        time.sleep(0.01)

class Broken(BasicBolt):
    def process(self, tup):
        if self.context.task_index == 0:
            raise ValueError("nobody counts ones")

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("broken", Broken, parallelism=2).shuffle_grouping("numbers")
topology = builder.build("seen")
"""


def test_a_cluster_is_watched_and_its_topologies_controlled(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    (tmp_path / "seen.py").write_text(TOPOLOGY)
    submitted = multilang("submit", tmp_path / "seen.py", "--nimbus", storm.address)
    assert submitted.returncode in (exits.OK, exits.BROKE_OFF), submitted.stderr  # the error may come while it looks
    command = [sys.executable, "-m", "multilang", "page", "--nimbus", str(storm.address), "--port", "0"]
    page_process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        assert page_process.stdout is not None
        url = page_process.stdout.readline().split()[-1]
        with opened(url) as page:
            page.get_by_role("link", name="seen").click()
            page.get_by_role("heading", name="seen").wait_for()
            page.get_by_role("cell", name="broken", exact=True).first.wait_for()
            error, code = "ValueError: nobody counts ones", 'raise ValueError("nobody counts ones")'
            wait_for(
                lambda: shows_trace(page, error, code), "the traceback of an error is open"
            )  # the bolt dies again and again
            log = page.locator(".log", has_text=re.compile(r"ERROR broken task \d Error[\s\S]*nobody counts ones"))
            wait_for(log.is_visible, "the log shows what the bolt reported")
            page.get_by_role("button", name="Deactivate").click()
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Cancel").wait_for(state="hidden")
            assert nimbus.status("seen").state == "active"
            wait_for(lambda: confirms(page, "Deactivate"), "the dialog was answered")
            wait_for(lambda: nimbus.status("seen").state == "inactive", "it is deactivated")
            page.get_by_text("inactive", exact=True).wait_for()
            wait_for(lambda: is_rebalanced(page, nimbus), "it is rebalanced")
            page.get_by_text("rebalancing", exact=True).wait_for()
            nimbus.kill("seen", 0)
            wait_for(lambda: not alive(nimbus), "it is gone")
            page.get_by_text("no topology 'seen' runs").wait_for()
            page.get_by_role("link", name="all topologies").click()
            page.get_by_text("No topology runs.").wait_for()
    finally:
        page_process.terminate()
        page_process.communicate(timeout=patient(90))


def is_rebalanced(page: Any, nimbus: Nimbus) -> bool:
    """Ask for it. A Nimbus that has not yet heard of all workers, which die here, forgets a request without a word."""
    if not confirms(page, "Rebalance"):
        return False
    until = time.monotonic() + 10
    while (state := nimbus.status("seen").state) != "rebalancing" and time.monotonic() < until:
        time.sleep(0.2)
    return state == "rebalancing"


def alive(nimbus: Nimbus) -> bool:
    try:
        nimbus.status("seen")
    except ShippingError:
        return False
    return True
