"""A figure that an engine does not know is a dash in each view, and never a number."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import fields
from io import StringIO

import pytest
from rich.console import Console

from multilang.cli.view import components_table, totals
from multilang.engine.exposition import families
from multilang.engine.readable import UNKNOWN
from multilang.engine.samples import Recorder, sample_of_status
from multilang.engine.status import ComponentStatus, Figures, InputStatus, RunStatus, StreamStatus, TaskStatus
from multilang.page import charts
from multilang.page.charts import LIGHT
from multilang.page.feed import Feed
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import topology_status

ENGINES = ("process", "inprocess", "simulated", "storm", "spark", "spark-stream")
EIGHT = 8  # the number of tasks, and the id of one: the only number that is known


def status(engine: str, at: float = 0.0) -> RunStatus:
    recorder = Recorder(start=None)
    task = TaskStatus(id=EIGHT, through=EIGHT)
    stream, read = StreamStatus(name="default"), InputStatus(component="words", stream="default")
    components = tuple(
        ComponentStatus(id=id, kind=kind, tasks=EIGHT, inputs=inputs, streams=(stream,), by_task=(task,))
        for id, kind, inputs in (("words", "spout", ()), ("count", "bolt", (read,)))
    )
    for time in range(3):
        recorder.record(float(time), {each.id: sample_of_status(each) for each in components})
    return RunStatus(
        topology="t", engine=engine, state="active", seconds=at, components=components, history=recorder.history()
    )


def digits(shown: object) -> set[str]:
    return set(re.findall(r"\d+", str(shown).replace("p99", ""))) - {str(EIGHT)}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_status_of_which_nothing_is_known_shows_no_digit(engine: str) -> None:
    now = status(engine)
    feed = Feed(lambda: asyncio.sleep(0))
    feed.take(now)
    feed.take(status(engine, 2.0))
    assert not digits(charts.rows(now))
    assert not digits([charts.task_rows(each) for each in now.components])
    assert charts.place_rows(now) == []
    assert [charts.tasks(each, LIGHT) for each in now.components] == [None, None]
    assert not any(charts.is_known(feed.curves, ["words", "count"], name) for name in ("rate", "failed", "pending"))
    assert set(feed.traffic.values()) == {None}
    (drawing,) = charts.graph(feed, LIGHT, None)["series"]
    labels = [re.sub(r"{\w+\|([^}]*)}", r"\1", each["label"].get("formatter", "")) for each in drawing["data"]]
    assert not digits(labels)
    assert not [link for link in drawing["links"] if link["label"]["show"]]
    assert [now.total(each.name, None) for each in fields(Figures)] == [None] * len(fields(Figures))
    assert totals(now) == f"{UNKNOWN} acked, {UNKNOWN} failed, {UNKNOWN} pending"
    screen = Console(file=StringIO(), width=200)
    screen.print(components_table(now.averaged(), screen))
    assert not digits(screen.file.getvalue())
    assert {family.name for family in families(now)} == {"multilang_run", "multilang_run_uptime_seconds"}
    assert RunStatus.from_json(json.loads(json.dumps(now.as_json()))) == now


def test_what_no_executor_has_reported_yet_is_not_known() -> None:
    thrift = types()
    executors = [
        thrift.ExecutorSummary(
            executor_info=thrift.ExecutorInfo(task_start=n, task_end=n),
            component_id=id,
            host="a",
            port=6700,
            uptime_secs=0,
        )
        for n, id in enumerate(("words", "count", "__acker"))
    ]
    info = thrift.TopologyInfo(id="t-1", name="t", uptime_secs=1, executors=executors, status="ACTIVE", errors={})
    recorder = Recorder(start=None)
    topology_status(info, recorder)
    info.uptime_secs = 5
    found = topology_status(info, recorder)
    for each in (*found.components, *(task for of in found.components for task in of.by_task)):
        assert {name.name for name in fields(Figures) if getattr(each, name.name) is not None} == set()
    assert {task.uptime_secs for each in found.components for task in each.by_task} == {None}
    assert {column for series in found.history.components.values() for column in series.rate} == {None}
