"""The options of the page's charts (of the library ECharts), made of a status."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

from multilang.engine.readable import UNKNOWN, duration, milliseconds, number, per_second, percent
from multilang.exchange.names import STREAM as BLOCKS_STREAM
from multilang.page.layout import layout

if TYPE_CHECKING:
    from typing import Any

    from multilang.engine.status import ComponentStatus, RunStatus, TaskStatus
    from multilang.page.feed import Curves, Feed
    from multilang.page.layout import Layout

BUSY = 0.9
"""The capacity from which on a component is a bottleneck."""
STARTING_SECS = 30.0
"""The time in which a component that does not run yet is no alarm."""

_WIDTH, _HEIGHT = 168, 58  # of a node in a graph without zoom, in pixels
_LETTERS = 18  # of an id and its number of tasks: for more, if they are wide ones, a node is too small
_ACROSS, _DOWN = 248, 92  # between the middles of two nodes
_BESIDE, _ABOVE = (_WIDTH / 2 + 8) / _ACROSS, (_HEIGHT / 2 + 16) / _DOWN  # from a node's middle to the graph's edge


@dataclass(frozen=True)
class Palette:
    """Colours that are distinct with any kind of sight. Each meaning is also written or drawn.

    Attributes:
        text, dim, line, node: Of texts, of less important ones, of edges, and of a node that does nothing.
        busy: Of a node that is always busy; those between are mixed of both.
        alarm: Of bottlenecks and failures.
        curves: Of the curves of several components.
    """

    text: str
    dim: str
    line: str
    node: str
    busy: str
    alarm: str
    curves: tuple[str, ...] = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8c6d31", "#7f7f7f")


LIGHT = Palette(text="#1a2230", dim="#414b59", line="#8d98a7", node="#f1f5fa", busy="#b3d1ee", alarm="#9a2e06")
DARK = Palette(text="#eef2f7", dim="#bac4d0", line="#6b7685", node="#1c2430", busy="#254c74", alarm="#ffab6b")


def is_shown(component: ComponentStatus) -> bool:
    """Return whether a component is drawn: Storm's own are not."""
    return not component.id.startswith("__")


def down(status: RunStatus, component: ComponentStatus) -> int:
    """Return the number of a component's tasks, or of its executors on a cluster, that should run and do not."""
    if status.state != "active" or status.seconds < STARTING_SECS:
        return 0
    if component.up is not None:
        return (component.executors or 0) - component.up
    return sum(task.alive is False for task in component.by_task)


def missing(status: RunStatus) -> str:
    """Return a sentence on a cluster's executors that do not run; empty if all do, or they are not known."""
    of = [(each.up, each.executors or 0) for each in status.components if each.up is not None]
    up, executors = sum(up for up, _ in of), sum(number for _, number in of)
    return f"{up} of {executors} executors run." if up < executors else ""


def graph(feed: Feed, palette: Palette, selected: str | None) -> dict[str, Any]:
    """Return the options of the graph, with nodes from spouts on the left to sinks on the right."""
    assert feed.status is not None
    shown = [each for each in feed.status.components if is_shown(each)]
    plan = _layout(feed.status)
    place = plan.places
    left, right, top, bottom = _box(plan)
    corners = (left, top), (right, bottom)
    edges = _edges(feed)
    most = max((rate for _, rate in edges.values() if rate), default=0.0)
    points: dict[tuple[float, float], None] = {}  # between which edges are drawn
    links = []
    for (source, target), (names, rate) in edges.items():
        if source in place and target in place:
            way = _way(place[source], plan.bends.get((source, target), []), place[target])
            points.update(dict.fromkeys(way))
            links += _links(names, way, rate, most, palette)
    return {
        "animation": False,
        "tooltip": {"show": False},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "symbol": "rect",
                "edgeSymbolSize": 8,
                "left": "center",
                "top": "middle",
                "width": (right - left) * _ACROSS,  # as far as the places reach: nothing is stretched
                "height": (bottom - top) * _DOWN,
                "data": [
                    *(
                        _node(each, place[each.id], palette, each.id == selected, down(feed.status, each))
                        for each in shown
                    ),
                    *(_point(x * _ACROSS, y * _DOWN) for x, y in corners),
                    *(_point(*point) for point in points),
                ],
                "links": links,
            }
        ],
    }


def _edges(feed: Feed) -> dict[tuple[str, str], tuple[list[str], float | None]]:
    """Return source and target of each edge -> the streams between them, and their tuples per second; None: not known."""
    edges: dict[tuple[str, str], tuple[list[str], float | None]] = {}
    for (source, stream, target), rate in feed.traffic.items():
        names, others = edges.get((source, target), ([], 0.0))
        edges[source, target] = [*names, stream], None if rate is None or others is None else others + rate
    return edges


def size(status: RunStatus) -> tuple[int, int]:
    """Return the width and height that the graph needs, in pixels."""
    left, right, top, bottom = _box(_layout(status))
    return round((right - left) * _ACROSS + 4), round((bottom - top) * _DOWN + 4)


def _layout(status: RunStatus) -> Layout:
    shown = [each for each in status.components if is_shown(each)]
    return layout([each.id for each in shown], [(read.component, each.id) for each in shown for read in each.inputs])


def _box(plan: Layout) -> tuple[float, float, float, float]:
    """Return the left, right, upper and lower edge of the graph, with a margin around the nodes."""
    places = [*plan.places.values(), *(bend for bends in plan.bends.values() for bend in bends)]
    across, down = [x for x, _ in places], [y for _, y in places]
    return (
        min(across, default=0) - _BESIDE,
        max(across, default=0) + _BESIDE,
        min(down, default=0) - _ABOVE,
        max(down, default=0) + _ABOVE,
    )


def _point(x: float, y: float) -> dict[str, Any]:
    """Return a node that is not seen: a corner, without which nodes in one line could not be drawn, or an edge's end."""
    return {"name": _name(x, y), "x": x, "y": y, "symbolSize": 0, "label": {"show": False}}


def _name(x: float, y: float) -> str:
    return f"\0{x:g} {y:g}"  # no component's id begins so


def _way(
    source: tuple[int, float], bends: list[tuple[int, float]], target: tuple[int, float]
) -> list[tuple[float, float]]:
    """Return the points of an edge, from the right side of its source to the left side of its target."""
    half = _WIDTH / 2
    way = [(source[0] * _ACROSS + half, source[1] * _DOWN)]
    for x, y in bends:
        way += [(x * _ACROSS - half, y * _DOWN), (x * _ACROSS + half, y * _DOWN)]
    return [*way, (target[0] * _ACROSS - half, target[1] * _DOWN)]


def _node(
    each: ComponentStatus, place: tuple[int, float], palette: Palette, is_selected: bool, down: int
) -> dict[str, Any]:
    is_alarm = bool(each.failed or each.restarts or down) or (each.capacity or 0) >= BUSY
    limit = _LETTERS - len(f" ×{each.tasks}")
    title = each.id if len(each.id) <= limit else f"{each.id[: limit // 2 - 1]}…{each.id[-(limit - limit // 2) :]}"
    lines = [f"{{title|{title}}}{{dim| ×{each.tasks}}}", f"{{figures|{per_second(each.rate)}}}"]
    if each.capacity is not None:
        lines[-1] += f"{{dim|  busy {percent(each.capacity)}}}"
    if down:
        lines.append(f"{{alarm|✗ {number(down)} of {number(each.executors or each.tasks)} down}}")
    elif each.restarts:
        lines.append(f"{{alarm|↻ {number(each.restarts)} restart{'s' * (each.restarts != 1)}}}")
    elif each.failed:
        lines.append(f"{{alarm|✗ {number(each.failed)} failed}}")
    elif is_alarm:
        lines.append("{alarm|▲ bottleneck}")
    return {
        "name": each.id,
        "x": place[0] * _ACROSS,
        "y": place[1] * _DOWN,
        "symbolSize": [_WIDTH, _HEIGHT],
        "itemStyle": {
            "color": mixed(palette.node, palette.busy, each.capacity or 0.0),
            "borderColor": palette.alarm if is_alarm else palette.text if is_selected else palette.line,
            "borderWidth": 3 if is_selected or is_alarm else 1,
            "borderType": "solid" if each.kind == "bolt" else "dashed",
        },
        "label": {
            "show": True,
            "formatter": "\n".join(lines),
            "rich": {
                "title": {"fontWeight": "bold", "fontSize": 13, "color": palette.text, "lineHeight": 18},
                "figures": {"fontSize": 12, "color": palette.text, "lineHeight": 16},
                "dim": {"fontSize": 12, "color": palette.dim, "lineHeight": 16},
                "alarm": {"fontSize": 12, "fontWeight": "bold", "color": palette.alarm, "lineHeight": 16},
            },
        },
    }


def _links(
    streams: list[str],
    way: list[tuple[float, float]],
    rate: float | None,
    most: float,
    palette: Palette,
) -> list[dict[str, Any]]:
    is_named = len(streams) == 1 and streams[0] not in ("default", BLOCKS_STREAM)
    text = f"{streams[0]}: {per_second(rate)}" if is_named else per_second(rate)
    is_back = way[-1][0] <= way[0][0]
    steps = list(pairwise(way))
    return [
        {
            "source": _name(*start),
            "target": _name(*end),
            "symbol": ["none", "arrow" if n == len(steps) - 1 else "none"],
            "lineStyle": {
                "color": palette.line,
                "width": 1.0 + (5.0 * sqrt(rate / most) if rate and most else 0.0),
                "type": "dashed" if rate is None else "solid",
                "opacity": 1,
                "curveness": 0.4 if is_back else 0.0,
            },
            "label": {"show": n == 0 and rate is not None, "formatter": text, "color": palette.dim, "fontSize": 11},
        }
        for n, (start, end) in enumerate(steps)
    ]


def mixed(one: str, other: str, share: float) -> str:
    """Return the colour between two: ``one`` at a share of 0, ``other`` at 1."""
    share = min(max(share, 0.0), 1.0)
    pairs = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * share) for a, b in pairs).hex()


def is_known(history: Curves, ids: list[str], column: str) -> bool:
    """Return whether there is anything to draw of a figure of some components."""
    return any(value is not None for id in ids for value in history.components.get(id, {}).get(column, ()))


def curves(
    history: Curves,
    ids: list[str],
    column: str,
    name: str,
    palette: Palette,
    began: float | None = None,
    is_share: bool = False,
) -> dict[str, Any]:
    """Return the options of a chart with a line for each component.

    Args:
        history: The figures over time.
        ids: The components.
        column: The figure: "rate", "failed", "pending", "latency_ms" or "capacity".
        name: The chart's title, with the unit.
        palette: The colours.
        began: The time of the run's start, in seconds since 1970; None: its time is virtual.
        is_share: Whether the figure is a share from 0 to 1, which is drawn in per cent.
    """
    label = {"color": palette.dim, "fontSize": 10}
    axis = {"axisLine": {"lineStyle": {"color": palette.line}}}
    end = history.at[-1] if history.at else 0.0
    begin = max(end - 60.0, 0.0)
    if history.at:
        begin = min(begin, history.at[0])

    def place(secs: float) -> float:
        return round(secs, 1) if began is None else round((began + secs) * 1000)  # the browser knows its own zone

    factor = 100 if is_share else 1
    return {
        "animation": False,
        "color": list(palette.curves),
        "title": {"text": name, "left": 8, "top": 4, "textStyle": {"fontSize": 12, "color": palette.text}},
        "grid": {"left": 52, "right": 18, "top": 32, "bottom": 24},
        "tooltip": {"trigger": "axis", "confine": True, "textStyle": {"fontSize": 11}},
        "xAxis": {
            "type": "value" if began is None else "time",
            "min": place(begin),
            "max": place(max(end, begin + 1.0)),
            "splitNumber": 4,
            "splitLine": {"show": False},
            "axisLabel": {
                **label,
                "hideOverlap": True,
                "formatter": "{value} s" if began is None else "{HH}:{mm}:{ss}",
            },
            **axis,
        },
        "yAxis": {
            "type": "value",
            "min": 0,
            **({"max": 100} if is_share else {}),
            "splitLine": {"lineStyle": {"color": palette.line, "opacity": 0.25}},
            "axisLabel": {**label, "formatter": "{value} %"} if is_share else label,
            **axis,
        },
        "series": [
            {
                "type": "line",
                "name": id,
                "showSymbol": False,
                "connectNulls": True,
                "lineStyle": {"width": 1.5},
                "data": [
                    [place(at), None if value is None else round(value * factor, 3)]
                    for at, value in zip(history.at, history.components.get(id, {}).get(column, ()), strict=False)
                ],
            }
            for id in ids
        ],
    }


def tasks(component: ComponentStatus, palette: Palette, most: int = 100) -> dict[str, Any] | None:
    """Return the options of a chart with a bar for each task, by which skew is seen at a glance; None: nothing is known."""
    shown = component.by_task[:most]
    counts = [each.executed if component.kind == "bolt" else each.emitted for each in shown]
    if all(count is None for count in counts):
        return None
    of = f" (the first {most} of {len(component.by_task)})" if len(component.by_task) > most else ""
    name = "processed" if component.kind == "bolt" else "emitted"
    return {
        "animation": False,
        "color": [palette.curves[0]],
        "title": {
            "text": f"tuples {name} by task{of}",
            "left": 8,
            "top": 4,
            "textStyle": {"fontSize": 12, "color": palette.text},
        },
        "grid": {"left": 60, "right": 14, "top": 32, "bottom": 24},
        "tooltip": {"trigger": "axis", "confine": True},
        "xAxis": {"type": "category", "data": [task_name(each) for each in shown], "axisLabel": {"color": palette.dim}},
        "yAxis": {
            "type": "value",
            "min": 0,
            "axisLabel": {"color": palette.dim, "fontSize": 10},
            "splitLine": {"lineStyle": {"color": palette.line, "opacity": 0.25}},
        },
        "series": [{"type": "bar", "name": name, "data": counts}],
    }


def task_name(task: TaskStatus) -> str:
    """Return the id of a task, or the ids of an executor's tasks."""
    return str(task.id) if task.id == task.through else f"{task.id}-{task.through}"


def rows(status: RunStatus) -> list[dict[str, Any]]:
    """Return the rows of the table of components."""
    return [
        {
            "id": each.id,
            "kind": each.kind,
            "tasks": f"{each.up} of {each.executors} up" if each.id in status.missing else number(each.tasks),
            "emitted": number(each.emitted),
            "processed": "" if each.kind == "spout" else number(each.executed),
            "acked": number(each.acked),
            "failed": number(each.failed),
            "timed_out": number(each.timed_out) if each.kind == "spout" else "",
            "pending": number(each.waiting),
            "latency": milliseconds(each.latency_ms),
            "p99": milliseconds(each.latency_p99_ms),
            "busy": percent(each.capacity),
            "rate": per_second(each.rate),
            "restarts": number(each.restarts),
        }
        for each in status.components
    ]


def task_rows(component: ComponentStatus) -> list[dict[str, Any]]:
    """Return the rows of the table of a component's tasks."""
    return [
        {
            "id": task_name(each),
            "where": each.where or UNKNOWN,
            "alive": UNKNOWN if each.alive is None else "yes" if each.alive else "no",
            "uptime": duration(each.uptime_secs),
            "emitted": number(each.emitted),
            "processed": "" if component.kind == "spout" else number(each.executed),
            "acked": number(each.acked),
            "failed": number(each.failed),
            "latency": milliseconds(each.process_latency_ms or each.complete_latency_ms or each.execute_latency_ms),
            "p99": milliseconds(each.latency_p99_ms),
            "busy": percent(each.capacity),
            "rate": per_second(each.rate),
        }
        for each in component.by_task
    ]


def place_rows(status: RunStatus) -> list[dict[str, Any]]:
    """Return the rows of the table of workers, or of processes: which tasks run in each."""
    places: dict[str, list[tuple[str, TaskStatus]]] = {}
    for each in status.components:
        for task in each.by_task:
            if task.where is not None:
                places.setdefault(task.where, []).append((each.id, task))
    rows = []
    for where, found in sorted(places.items()):
        of: dict[str, list[str]] = {}
        for id, task in found:
            of.setdefault(id, []).append(task_name(task))
        rows.append(
            {
                "where": where,
                "up": duration(
                    max((task.uptime_secs for _, task in found if task.uptime_secs is not None), default=None)
                ),
                "runs": "; ".join(f"{id} {', '.join(names)}" for id, names in of.items()),
            }
        )
    return rows
