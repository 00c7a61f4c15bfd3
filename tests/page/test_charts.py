"""The charts can be read by everybody, and show every component whatever it is called."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.engine.status import ComponentStatus, InputStatus, RunStatus, TaskStatus
from multilang.page import charts
from multilang.page.charts import DARK, LIGHT, mixed
from multilang.page.feed import Feed

BACKGROUND = {LIGHT: "#ffffff", DARK: "#121212"}
READABLE = 4.5  # the contrast that WCAG asks of texts


def luminance(colour: str) -> float:
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("busy", [0.0, 0.5, 1.0])
def test_texts_stand_out_from_what_is_behind_them(palette, busy):
    node = mixed(palette.node, palette.busy, busy)
    for colour in (palette.text, palette.dim, palette.alarm):
        assert contrast(colour, BACKGROUND[palette]) >= READABLE
        assert contrast(colour, node) >= READABLE, (colour, node)


@pytest.mark.parametrize("tasks", [1, 16, 2000])
def test_a_long_name_does_not_leave_its_node_and_keeps_its_ends(tasks):
    component = ComponentStatus(id="count-by-page-and-by-visitor", kind="bolt", tasks=tasks, restarts=1)
    feed = Feed(lambda: asyncio.sleep(0))
    feed.take(RunStatus(topology="t", engine="process", state="active", seconds=1.0, components=(component,)))
    label = charts.graph(feed, LIGHT, None)["series"][0]["data"][0]["label"]["formatter"]
    (title, count), (restarts,) = (re.findall(r"{\w+\|([^}]*)}", label.splitlines()[row]) for row in (0, -1))
    assert len(title + count) <= 18
    assert re.fullmatch(r"count.*….*itor", title)
    assert restarts == "↻ 1 restart"


counts = st.none() | st.integers(0, 10**12)
shares = st.none() | st.floats(0, 1)


@st.composite
def statuses(draw: st.DrawFn) -> RunStatus:
    ids = draw(st.lists(st.text(min_size=1, max_size=60), unique=True, min_size=1, max_size=6))
    inputs = st.lists(
        st.builds(InputStatus, component=st.sampled_from([*ids, "gone"]), stream=st.text(min_size=1, max_size=5)),
        max_size=3,
    )
    of = {
        "tasks": st.integers(1, 200),
        "executed": counts,
        "failed": counts,
        "restarts": counts,
        "rate": st.none() | st.floats(0, 1e9),
        "capacity": shares,
        "complete_latency_ms": st.none() | st.floats(0, 1e9),
        "by_task": st.lists(
            st.builds(TaskStatus, id=st.integers(1, 9), through=st.integers(1, 9), executed=counts), max_size=3
        ).map(tuple),
    }
    components = [
        draw(
            st.builds(
                ComponentStatus, id=st.just(id), kind=st.sampled_from(["spout", "bolt"]), inputs=inputs.map(tuple), **of
            )
        )
        for id in ids
    ]
    return RunStatus(
        topology="t", engine="process", state="active", seconds=draw(st.floats(0, 1e6)), components=tuple(components)
    )


@given(statuses(), st.sampled_from([LIGHT, DARK]))
def test_every_status_can_be_drawn(status, palette):
    feed = Feed(lambda: asyncio.sleep(0))
    feed.take(status)
    graph = charts.graph(feed, palette, status.components[0].id)
    shown = [each.id for each in status.components if charts.is_shown(each)]
    (series,) = graph["series"]
    assert [node["name"] for node in series["data"] if node["symbolSize"]] == shown
    for axis in "xy":  # the chart fails if all nodes are in one line
        assert len({node[axis] for node in series["data"]}) > 1
    names = [node["name"] for node in series["data"]]
    assert len(set(names)) == len(names)
    assert all({link["source"], link["target"]} <= set(names) for link in series["links"])
    ways = [(link["source"], link["target"]) for link in series["links"]]
    assert len(set(ways)) == len(ways)  # the figures of two streams would stand upon each other
    width, height = charts.size(status)
    assert width > 0
    assert height > 0
    assert len(charts.rows(status)) == len(status.components)
    for each in status.components:
        json.dumps(
            [graph, charts.tasks(each, palette), charts.task_rows(each), charts.place_rows(status)], allow_nan=False
        )
    for began in (None, 1e9):
        json.dumps(charts.curves(feed.curves, shown, "rate", "rate", palette, began), allow_nan=False)


@pytest.mark.parametrize(("kind", "shown"), [("spout", ""), ("bolt", "0")])
def test_a_spout_has_no_figure_of_processed_tuples(kind, shown):
    component = ComponentStatus(
        id="c", kind=kind, tasks=1, executed=0, by_task=(TaskStatus(id=1, through=1, executed=0),)
    )
    status = RunStatus(topology="t", engine="process", state="active", seconds=1.0, components=(component,))
    assert [charts.rows(status)[0]["processed"], charts.task_rows(component)[0]["processed"]] == [shown, shown]
