"""A call of user code that takes long is named, with its line, and so is its end."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading

import pytest

from multilang import BasicBolt, TopologyBuilder
from multilang.local import LocalCluster
from multilang.testing import FixedTupleSpout
from tests.local import watched
from tests.patience import patient

CONF = {"topology.message.timeout.secs": 600}


@pytest.fixture
def named(tmp_path, request):
    """Lines about long calls of the method in question; the first of them lets the call end."""
    method = re.escape(request.node.callspec.params["method"])
    lines, ended = [], threading.Event()
    until = tmp_path / "until"

    class Touch(logging.Handler):
        def emit(self, record):
            if re.search(rf" task \d (has been in|is out of) {method} ", record.getMessage()):
                lines.append((record.levelname, record.getMessage()))
                until.touch()
                if len(lines) == 2:
                    ended.set()

    handler = Touch()
    logging.getLogger().addHandler(handler)
    yield lines, until, ended
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("method", ["initialize", "next_tuple", "process", "timer HeldBolt.flush", "ack"])
@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_it_is_named_in_each_mode(mode, method, named):
    lines, until, is_over = named
    with LocalCluster(mode, {**CONF, "multilang.process.timeout.secs": 5}) as cluster:
        run = cluster.submit(watched.held, conf={"test.held": method, "test.until": str(until)})
        run.wait(timeout=patient(60))
        assert is_over.wait(patient(60)), lines
        run.wait(lambda run: not run.status().long_calls, timeout=patient(60))
    (level, begun), (_, ended) = lines
    who = "bolt task" if method in ("process", "timer HeldBolt.flush") else "spout task"
    assert re.fullmatch(rf"{who} \d has been in {method} for \d s \(\S*watched.py:\d+ in hold\)", begun), begun
    assert re.fullmatch(rf"{who} \d is out of {method} after \d+ s", ended), ended
    assert level == "WARNING"


class Held(BasicBolt):
    """Works on a tuple until its call is named, and then has the next bolt do the same."""

    output_fields = ["n"]
    named = {"one": threading.Event(), "two": threading.Event()}

    def process(self, tup):
        assert self.named[self.context.component].wait(patient(60))
        self.emit([tup["n"]])


def test_its_end_is_that_of_its_task_also_if_another_one_works_then():
    lines = []

    class Let(logging.Handler):
        def emit(self, record):
            found = re.match(r"(one|two) task \d (has been in|is out of) process", record.getMessage())
            if found:
                lines.append(found.groups())
                Held.named[found[1]].set()

    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout(["n"], [[1]]))
    builder.set_bolt("one", Held).shuffle_grouping("numbers")
    builder.set_bolt("two", Held).shuffle_grouping("one")
    handler = Let()
    logging.getLogger().addHandler(handler)
    try:
        with LocalCluster("inprocess", {**CONF, "multilang.process.timeout.secs": 2}) as cluster:
            run = cluster.submit(builder.build("held"))
            run.wait(timeout=patient(60))
            run.wait(lambda run: not run.status().long_calls, timeout=patient(60))
    finally:
        logging.getLogger().removeHandler(handler)
    assert lines == [(id, what) for id in ("one", "two") for what in ("has been in", "is out of")]


def test_the_status_of_processes_has_it_while_it_lasts(tmp_path):
    until = tmp_path / "until"
    conf = {"test.held": "process", "test.until": str(until), "multilang.process.timeout.secs": 5}
    with LocalCluster("process", {**CONF, **conf}) as cluster:
        run = cluster.submit(watched.held)
        run.wait(lambda run: "in process for" in "".join(run.status().long_calls), timeout=patient(60))
        (line,) = run.status().long_calls
        call = run.status()["bolt"].by_task[0].call
        until.touch()
        run.wait(timeout=patient(60))
        run.wait(lambda run: not run.status().long_calls, timeout=patient(60))
    assert line.startswith("bolt task ")
    assert (call.method, call.secs > 0.4, call.at.endswith(" in hold")) == ("process", True, True)


def test_a_process_that_is_stopped_is_named_by_its_parent(caplog):
    with LocalCluster("process", {**CONF, "topology.subprocess.timeout.secs": 9}) as cluster:
        run = cluster.submit(watched.words, conf={"test.sentences": 10**9})
        run.wait(lambda run: run.status()["split"].executed, timeout=patient(60))
        pid = next(each.pid for each in run.tasks if each.component == "count")
        os.kill(pid, signal.SIGSTOP)
        try:
            run.wait(lambda run: run.status().long_calls, timeout=patient(60))
            (line,) = run.status().long_calls
        finally:
            os.kill(pid, signal.SIGCONT)
        run.wait(lambda run: not run.status().long_calls, timeout=patient(60))
    assert re.search(r"count task \d has not been heard of for \d+ s", line)
    said = [each.getMessage() for each in caplog.records if "been heard of" in each.getMessage()]
    assert "did not answer any heartbeat; its process is stopped, or in a call of C code" in said[0]
    assert said[-1].endswith("has been heard of again")
