"""The elements of the page of one run, and what changes in them with each status."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from html import escape
from typing import TYPE_CHECKING

from nicegui import ui

from multilang.engine.readable import UNKNOWN, duration, milliseconds, number, per_second
from multilang.engine.status import by_kind, error_kind
from multilang.helpers.masked import masked_text
from multilang.page import charts
from multilang.page.charts import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.engine.status import ComponentStatus, RunError, RunStatus
    from multilang.page.actions import Action
    from multilang.page.feed import Feed, LogLine

MAX_ERRORS = 20
MAX_LINES = 200  # of the log
MAX_WAITING = 8
MAX_ROWS = 25  # of a table at once
_COLUMNS = {
    "id": "component",
    "kind": "kind",
    "tasks": "tasks",
    "rate": "rate",
    "busy": "busy",
    "latency": "latency",
    "p99": "p99",
    "pending": "pending",
    "failed": "failed",
    "timed_out": "timed out",
    "emitted": "emitted",
    "processed": "processed",
    "acked": "acked",
    "restarts": "restarts",
}
_OF_TASKS = {
    "id": "task",
    "where": "where",
    "alive": "runs",
    "uptime": "up",
    "emitted": "emitted",
    "processed": "processed",
    "acked": "acked",
    "failed": "failed",
    "latency": "latency",
    "p99": "p99",
    "busy": "busy",
    "rate": "rate",
}
_PLACES = {"where": "where", "up": "up", "runs": "tasks"}
_OF_TEXT = ("id", "kind", "where", "name", "status", "runs")
_CURVES = {
    "rate": "tuples per second",
    "latency_ms": "latency (ms)",
    "pending": "pending tuples",
    "capacity": "busy (% of the time)",
}
_STATES = {
    "inactive": "The topology is inactive: its spouts emit nothing.",
    "rebalancing": "The topology is being rebalanced: its spouts emit nothing until its tasks are distributed again.",
    "killed": "The topology is being killed: its spouts emit nothing, and its workers end after its message timeout.",
    "failed": "The topology has failed: the last error has the reason.",
}
STYLE = """
body { font-variant-numeric: tabular-nums; }
.nicegui-content { padding: 0.75rem; gap: 0.75rem; max-width: 1600px; margin: 0 auto; }
.panel { width: 100%; border: 1px solid rgba(128,140,155,.35); border-radius: 8px; padding: .75rem; overflow: hidden; }
.panel h2 { font-size: .95rem; font-weight: 600; line-height: 1.4; margin: 0 0 .35rem 0; }
.graph { width: 100%; max-height: 640px; overflow: auto; }
.figure { display: flex; flex-direction: column; min-width: 5.5rem; }
.figure .value { font-size: 1.25rem; font-weight: 600; line-height: 1.5rem; }
.figure .name { font-size: .75rem; opacity: .75; }
.banner { width: 100%; white-space: pre-line; border: 2px solid; border-radius: 8px; padding: .5rem .75rem; font-weight: 600; }
.trace { white-space: pre-wrap; overflow-x: auto; font: .75rem/1.35 ui-monospace, monospace; max-height: 22rem; }
.hint { font-size: .8rem; opacity: .75; }
.log { margin-top: .5rem; font: .75rem/1.45 ui-monospace, monospace; max-height: 24rem; overflow: auto; }
.log > div { white-space: pre-wrap; overflow-wrap: anywhere; }
.log .about { opacity: .75; }
.log .warn { font-weight: 600; }
.log .error { font-weight: 600; color: #9a2e06; }
.body--dark .log .error { color: #ffab6b; }
/* An icon is a word until its font has come: the word may neither widen the page nor be read. */
.q-icon { width: 1em; overflow: hidden; }
/* A run that is over is not connected to any more: nobody waits for it. */
.over #popup { display: none; }
"""


# Where the graph is higher than its frame, the spouts are halfway down.
TO_THE_SPOUTS = (
    "document.querySelectorAll('.graph').forEach(e => { e.scrollTop = (e.scrollHeight - e.clientHeight) / 2 })"
)


class RunView:
    """The page of one run.

    Args:
        feed: The run.
        actions: Name -> what can be done with the run.
        viewer: The browser.
        home: The address of the page that this one belongs to; empty: to none.
        name: The run's name, as long as no status has it.
    """

    def __init__(
        self, feed: Feed, actions: Mapping[str, Action], viewer: Viewer, home: str = "", name: str = "a topology"
    ) -> None:
        self._feed = feed
        self._name = name
        self._version = -1
        self._selected: str | None = None
        self._shown_errors: dict[tuple[object, ...], _ErrorElement] = {}
        self._viewer = viewer
        self._dark = page_style(viewer.is_dark)
        self._build(actions, home)
        ui.keyboard(self._key)
        self._is_centred = False
        ui.timer(0.5, self._tick)
        self.update()

    # ---- elements, once ----

    def _build(self, actions: Mapping[str, Action], home: str) -> None:
        with ui.row().classes("w-full items-center gap-3"):
            if home:
                ui.link("all topologies", home).classes("underline")
            self._title = heading("", 1)
            self._state = ui.badge("").props("outline").classes("text-sm")
            self._since = ui.label("").classes("opacity-75")
            ui.space()
            for action in actions.values():
                action.button()
            ui.button(icon="contrast", on_click=self._switch_colours).props('flat dense aria-label="Light or dark"')
        self._banner = Banner()
        self._known = ui.column().classes("w-full items-stretch gap-3")  # empty frames would show nothing
        with self._known:
            self._build_known()

    def _build_known(self) -> None:
        """Add what shows a status."""
        with ui.row().classes("w-full gap-x-8 gap-y-2"):
            self._figures = {
                name: _figure(name)
                for name in (
                    "acked",
                    "failed",
                    "timed out",
                    "pending",
                    "rate",
                    "latency",
                    "p50",
                    "p99",
                    "restarts",
                    "checkpoint",
                )
            }
        with ui.element("section").classes("panel"):
            heading("Graph")
            ui.label("A click on a component, or j and k, shows its tasks; Esc closes them.").classes("hint")
            with ui.element("div").classes("graph"):
                self._graph = ui.echart({"series": []}, on_point_click=self._clicked)
        self._details = _Details(self._feed)
        self._notes = ui.label("").classes("hint whitespace-pre-line")
        with ui.element("section").classes("panel"):
            heading("Components")
            self._table = table(_COLUMNS, "No component has reported yet.")
            self._table.on("row-click", lambda event: self.select(event.args[1]["id"]))
        with ui.element("section").classes("panel") as self._of_waiting:
            heading("Waiting for")
            self._waiting = ui.label("").classes("whitespace-pre-line")
        with ui.element("section").classes("panel"):
            heading("Last errors")
            self._no_error = ui.label("none")
            self._errors = ui.column().classes("w-full gap-1")
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 gap-3"):
            self._curves = {}
            for column in _CURVES:
                with ui.element("section").classes("panel") as panel:
                    self._curves[column] = panel, ui.echart({"series": []}).classes("w-full h-48")
        self._not_drawn = ui.label("").classes("hint")
        with ui.element("section").classes("panel") as self._where:
            self._of_places = heading("")
            self._places = table(_PLACES, "", "where")
        self._log = _Log(self._feed, self._time_of)

    # ---- what the user does ----

    def select(self, component: str | None) -> None:
        """Show a component's tasks and its lines of the log; None: of none."""
        self._selected = None if component == self._selected else component
        self._log.choose(self._selected)
        self._draw()

    def _clicked(self, event: Any) -> None:
        if event.data_type == "node" or event.data_type is None:
            self.select(event.name)

    def _key(self, event: Any) -> None:
        status = self._feed.status
        if status is None or not event.action.keydown:
            return
        ids = [each.id for each in status.components]
        if event.key == "Escape":
            self.select(self._selected)
        elif event.key in ("j", "k") and ids:
            step = 1 if event.key == "j" else -1
            at = ids.index(self._selected) + step if self._selected in ids else 0
            self.select(ids[at % len(ids)])

    def _switch_colours(self) -> None:
        self._dark.value = not self._dark.value
        self._draw()

    # ---- what the run does ----

    def _tick(self) -> None:
        self.update()
        if not self._is_centred and self._feed.status is not None:
            self._is_centred = True
            ui.run_javascript(TO_THE_SPOUTS)

    def update(self) -> None:
        """Show the last status, if it is another one than was shown."""
        if self._version != self._feed.version:
            self._version = self._feed.version
            self._draw()
            self._log.show()

    def _draw(self) -> None:
        feed, status = self._feed, self._feed.status
        palette = DARK if self._dark.value else LIGHT
        self._say(palette)
        if status is None:
            self._title.text = self._name
            self._state.visible = self._known.visible = False
            return
        self._known.visible = True
        self._title.text = status.topology
        self._state.visible = True
        self._state.text = "ended" if feed.is_over and status.state != "failed" else status.state
        begin = "" if status.engine == "simulated" else f", since {self._viewer.time(feed.began)}"
        self._since.text = f"{status.engine}{begin}, {duration(status.seconds)}"
        self._totals(status)
        self._graph.options.clear()
        self._graph.options.update(charts.graph(feed, palette, self._selected))
        width, height = charts.size(status)
        self._graph.style(f"height: {height}px; min-width: {width}px")
        self._graph.update()
        if self._selected is not None and self._selected not in {each.id for each in status.components}:
            self._selected = None
        self._details.show(None if self._selected is None else status[self._selected], palette)
        self._table.selected = [] if self._selected is None else [{"id": self._selected}]
        fill(self._table, charts.rows(status))
        self._notes.text = "\n".join(status.notes)
        self._notes.visible = bool(status.notes)
        places = charts.place_rows(status)
        self._where.visible = bool(places)
        self._of_places.text = "Workers" if status.engine == "storm" else "Processes"
        fill(self._places, places)
        self._draw_curves(status, palette)
        self._of_waiting.visible = status.waiting_for is not None
        waiting = status.waiting_for or ("nothing",)
        more = f"\nand {len(waiting) - MAX_WAITING} more" if len(waiting) > MAX_WAITING else ""
        self._waiting.text = "\n".join(waiting[:MAX_WAITING]) + more
        self._show_errors(status.errors)

    def _draw_curves(self, status: RunStatus, palette: charts.Palette) -> None:
        shown = [each for each in status.components if charts.is_shown(each)]
        busiest = sorted(shown, key=lambda each: -(each.rate or 0.0))[: len(palette.curves)]
        ids = [each.id for each in shown if each in busiest]
        if self._selected is not None:
            ids = [self._selected]
        of = "" if self._selected is None else f"{self._selected}: "
        history = self._feed.curves
        began = None if status.engine == "simulated" else self._feed.began
        unknown = []
        for column, (panel, chart) in self._curves.items():
            panel.visible = charts.is_known(history, ids, column)
            if not panel.visible:
                unknown.append(_CURVES[column])
                continue
            name, is_share = of + _CURVES[column], column == "capacity"
            chart.options.clear()
            chart.options.update(charts.curves(history, ids, column, name, palette, began, is_share))
            if len(ids) > 1:
                chart.options["legend"] = {
                    "type": "scroll",
                    "right": 8,
                    "top": 4,
                    "left": 170,
                    "textStyle": {"color": palette.dim, "fontSize": 11},
                    "itemWidth": 14,
                }
            chart.update()
        self._not_drawn.text = f"Not drawn, because nothing of it is known (yet): {of}{', '.join(unknown)}."
        self._not_drawn.visible = bool(unknown)

    def _say(self, palette: charts.Palette) -> None:
        feed, status, text = self._feed, self._feed.status, ""
        when = f" What is shown is of {self._viewer.time(feed.at)}." if status is not None else ""
        if feed.problem:
            text = f"The topology can't be asked: {feed.problem}. The page asks again.{when}"
        elif feed.is_over:
            text = f"The run is over.{when}"
            ui.query("body").classes("over")
        elif status is None:
            text = "The topology is being started; it has no status yet."
        else:
            about = _STATES.get(status.state) or charts.missing(status)
            text = "\n".join(filter(None, (about, *status.long_calls[:MAX_WAITING])))
        is_alarm = bool(feed.problem) or (status is not None and (status.state == "failed" or status.long_calls))
        self._banner.show(text, palette.alarm if is_alarm else palette.line)

    def _totals(self, status: RunStatus) -> None:
        latencies = [each.complete_latency_ms for each in status.spouts if each.complete_latency_ms is not None]
        rates = [each.rate for each in status.spouts if each.rate is not None]
        last = status.checkpoint
        values = {
            "acked": number(status.total("acked")),
            "failed": number(status.total("failed")),
            "timed out": number(status.total("timed_out")),
            "pending": number(status.total("pending")),
            "rate": per_second(sum(rates) if rates else None),
            "latency": milliseconds(max(latencies, default=None)),
            "p50": milliseconds(
                max((each.latency_p50_ms for each in status.spouts if each.latency_p50_ms), default=None)
            ),
            "p99": milliseconds(
                max((each.latency_p99_ms for each in status.spouts if each.latency_p99_ms), default=None)
            ),
            "restarts": number(status.total("restarts", None)),
            "checkpoint": UNKNOWN
            if last is None
            else f"{number(last.number)}{'' if last.age_secs is None else f', {duration(last.age_secs)} ago'}",
        }
        for name, label in self._figures.items():
            label.text = values[name]

    def _show_errors(self, errors: tuple[RunError, ...]) -> None:
        """Add new kinds of errors above those that are shown, of which one may be open, and remove the oldest."""
        shown = {(each.component, each.fatal, error_kind(each.message)): each for each in by_kind(errors)[-MAX_ERRORS:]}
        for key in self._shown_errors.keys() - shown.keys():
            self._shown_errors.pop(key).delete()
        self._no_error.visible = not shown
        with self._errors:
            for key, error in shown.items():
                if key not in self._shown_errors:
                    self._shown_errors[key] = _ErrorElement()
                    self._shown_errors[key].move(target_index=0)
                self._shown_errors[key].show(error, self._spans(error))

    def _spans(self, error: RunError) -> str:
        """Return when an error was, and where."""
        last = self._time_of(error.time, error.at)
        first = self._time_of(error.first_time, error.first_at)
        parts = [f"last at {last}, first at {first}" if first else f"at {last}" if last else ""]
        return ", ".join([*filter(None, parts), *([] if error.where is None else [f"on {error.where}"])])

    def _time_of(self, time: float | None, at: float | None) -> str:
        """Return a time as the viewer reads it, of one since 1970 or since the run's start; empty if neither is known."""
        if time is None and at is None:
            return ""
        if time is None and self._feed.status is not None and self._feed.status.engine == "simulated":
            return f"{at:.1f} s of virtual time"
        return self._viewer.time(self._feed.began + (at or 0.0) if time is None else time)


class _ErrorElement(ui.expansion):
    """The last error of a kind: one line, and all of it when that is opened."""

    def __init__(self) -> None:
        super().__init__("")
        self.classes("w-full").props("dense")
        with self:
            self._trace = ui.label("").classes("trace")

    def show(self, error: RunError, spans: str) -> None:
        """Show an error in the place of the one before."""
        text = masked_text(error.message).strip()
        last = text.splitlines()[-1] if text else ""
        task = "" if error.task is None else f" (task {error.task})"
        times = f", {number(error.times)} times" if error.times > 1 else ""
        self.text = f"{error.component}{task}{' died' if error.fatal else ''}{times}: {last[:200]}"
        self.props["caption"] = spans
        self._trace.text = text


class Banner:
    """A line about an unusual state, visible only then."""

    def __init__(self) -> None:
        self._label = ui.label("").classes("banner").props('role="status"')
        self._label.visible = False

    def show(self, text: str, colour: str) -> None:
        """Show a text in a frame of a colour; an empty one: nothing."""
        self._label.text = masked_text(text)
        self._label.visible = bool(text)
        self._label.style(f"border-color: {colour}")


class _Details:
    """The tasks of the component that was clicked on."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        with ui.element("section").classes("panel") as self._panel:
            self._name = heading("")
            self._streams = ui.label("").classes("opacity-75 whitespace-pre-line")
            self._bars = ui.echart({"series": []}).classes("w-full h-44")
            self._table = table(_OF_TASKS, "Its tasks are not known.")

    def show(self, component: ComponentStatus | None, palette: charts.Palette) -> None:
        """Show a component; None: nothing."""
        self._panel.visible = component is not None
        if component is None:
            return
        self._name.text = f"{component.id}: its tasks"
        reads = [
            f"reads {each.component}/{each.stream}, {each.grouping or 'grouping not known'}"
            for each in component.inputs
        ]
        emits = [
            f"emits {each.name} ({', '.join(each.fields or ())}): {number(each.emitted)}" for each in component.streams
        ]
        self._streams.text = "\n".join(reads + emits)
        bars = charts.tasks(component, palette)
        self._bars.visible = bars is not None
        self._bars.options.clear()
        self._bars.options.update(bars or {})
        self._bars.update()
        fill(self._table, charts.task_rows(component))


class _Log:
    """The last lines of the log, of all components or of one.

    Args:
        feed: The run.
        time_of: Returns a time since 1970 as the viewer reads it.
    """

    def __init__(self, feed: Feed, time_of: Callable[[float | None, float | None], str]) -> None:
        self._feed = feed
        self._time_of = time_of
        self._shown: tuple[object, ...] = ()
        with ui.element("section").classes("panel") as self._panel:
            with ui.row().classes("w-full items-center gap-3"):
                heading("Log")
                self._component = ui.select({"": "all components"}, value="", on_change=self.show)
                self._component.props('dense options-dense outlined aria-label="component"')
                self._task = ui.select({"": "all tasks"}, value="", on_change=self.show)
                self._task.props('dense options-dense outlined aria-label="task"')
                ui.label("The newest line comes first.").classes("hint")
            self._problem = ui.label("").classes("hint")
            self._lines = ui.html("", sanitize=False).classes("log")

    def choose(self, component: str | None) -> None:
        """Show a component's lines; None: those of all."""
        if (component or "") in self._component.options:
            self._component.value = component or ""

    def show(self) -> None:
        """Show the lines as they are now."""
        feed, component, task = self._feed, self._component.value, self._task.value
        status = feed.status
        self._panel.visible = status is not None and bool(feed.log or feed.log_problem)
        if status is None or not self._panel.visible:
            return
        if self._shown == (feed.log_version, feed.log_problem, component, task):
            return
        tasks = {each.id: [task.id for task in each.by_task] for each in status.components if charts.is_shown(each)}
        ids = tasks.get(component, [])
        components = {"": "all components", **{id: id for id in tasks}}
        if self._component.options != components:  # otherwise a list that is open would be drawn anew
            self._component.set_options(components)
        names: dict[str | int, str] = {"": "all tasks", **{id: f"task {id}" for id in ids}}
        if self._task.options != names:
            self._task.set_options(names, value=task if task in ids else "")
            task = self._task.value
        self._task.visible = len(ids) > 1
        self._shown = (feed.log_version, feed.log_problem, component, task)
        found = [each for each in feed.log if component in ("", each.component) and task in ("", each.task)]
        self._lines.content = "".join(map(self._line, reversed(found[-MAX_LINES:])))
        self._problem.text = masked_text(f"New lines are missing: {feed.log_problem}" if feed.log_problem else "")
        self._problem.visible = bool(feed.log_problem)

    def _line(self, line: LogLine) -> str:
        task = "" if line.task is None else f"task {line.task}"
        time = line.time if line.at is None else self._time_of(line.at, None)
        about = " ".join(filter(None, (time, line.level.upper(), line.component, task, line.where)))
        level = "error" if line.level in ("error", "critical") else "warn" if line.level.startswith("warn") else ""
        return f'<div class="{level}"><span class="about">{escape(about)}</span> {escape(masked_text(line.text))}</div>'


@dataclass(frozen=True)
class Viewer:
    """A browser.

    Attributes:
        is_dark: Whether it asks for a dark page.
        offset: The minutes by which its time is behind UTC.
    """

    is_dark: bool
    offset: int

    def time(self, secs: float) -> str:
        """Return a time, in seconds since 1970, as the browser's user reads it; of another day with its date."""
        zone = timezone(timedelta(minutes=-self.offset))
        then, today = datetime.fromtimestamp(secs, zone), datetime.now(zone).date()
        return f"{then:%H:%M:%S}" if then.date() == today else f"{then:%Y-%m-%d %H:%M:%S}"


async def viewer() -> Viewer:
    """Return the browser of this page."""
    asked = "[matchMedia('(prefers-color-scheme: dark)').matches, new Date().getTimezoneOffset()]"
    return Viewer(*await ui.run_javascript(asked, timeout=5.0))


def page_style(is_dark: bool) -> ui.dark_mode:
    """Set the style of a page, and return the switch of its colours."""
    ui.add_css(STYLE)
    return ui.dark_mode(value=is_dark)


def heading(text: str, level: int = 2) -> ui.label:
    """Add a heading."""
    size = "text-xl font-bold" if level == 1 else "text-base font-semibold"
    return ui.label(text).classes(size).props(f'role="heading" aria-level="{level}"')


def _figure(name: str) -> ui.label:
    with ui.element("div").classes("figure"):
        value = ui.label("-").classes("value").props(f'data-figure="{name}"')
        ui.label(name).classes("name")
    return value


def table(columns: dict[str, str], empty: str, key: str = "id") -> ui.table:
    """Add a table.

    Args:
        columns: The names of the columns, with what stands above each.
        empty: The text in the place of rows, as long as there are none.
        key: The column whose values identify the rows.
    """
    made = [
        {"name": name, "label": label, "field": name, "align": "left" if name in _OF_TEXT else "right"}
        for name, label in columns.items()
    ]
    table = ui.table(columns=made, rows=[], row_key=key, pagination=MAX_ROWS).classes("w-full")
    return table.props(f'flat dense :no-data-label="\'{empty}\'" :rows-per-page-options="[{MAX_ROWS}, 100, 0]"')


def fill(table: ui.table, rows: list[dict[str, Any]]) -> None:
    """Show rows in a table, whose pages are turned only where they are more than one."""
    table.rows[:] = rows
    table.props(remove="hide-pagination") if len(rows) > MAX_ROWS else table.props("hide-pagination")
    table.update()
