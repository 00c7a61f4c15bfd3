"""The elements of the page of one run, and what changes in them with each status."""

from __future__ import annotations

from dataclasses import replace
from time import localtime, strftime
from typing import TYPE_CHECKING

from nicegui import ui

from multilang.component.repeats import kind_of
from multilang.engine.readable import milliseconds, number, per_second
from multilang.helpers.masked import masked_text
from multilang.page import charts
from multilang.page.charts import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.engine.status import ComponentStatus, RunError, RunStatus
    from multilang.page.actions import Action
    from multilang.page.feed import Feed

MAX_ERRORS = 20
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
    "emitted": "emitted",
    "processed": "processed",
    "acked": "acked",
    "failed": "failed",
    "latency": "latency",
    "p99": "p99",
    "busy": "busy",
    "rate": "rate",
}
_OF_TEXT = ("id", "kind", "where", "name", "status")
_CURVES = {
    "rate": "tuples per second",
    "latency_ms": "latency (ms)",
    "pending": "pending tuples",
    "capacity": "share of time busy",
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
.banner { width: 100%; border: 2px solid; border-radius: 8px; padding: .5rem .75rem; font-weight: 600; }
.trace { white-space: pre-wrap; overflow-x: auto; font: .75rem/1.35 ui-monospace, monospace; max-height: 22rem; }
.hint { font-size: .8rem; opacity: .75; }
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
        is_dark: Whether the browser asks for a dark page.
        home: The address of the page that this one belongs to; empty: to none.
        name: The run's name, as long as no status has it.
    """

    def __init__(
        self, feed: Feed, actions: Mapping[str, Action], is_dark: bool, home: str = "", name: str = "a topology"
    ) -> None:
        self._feed = feed
        self._name = name
        self._version = -1
        self._selected: str | None = None
        self._shown_errors: dict[tuple[object, ...], _ErrorElement] = {}
        self._dark = page_style(is_dark)
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
        with ui.element("section").classes("panel"):
            heading("Components")
            self._table = table(_COLUMNS, "No component has reported yet.")
            self._table.on("row-click", lambda event: self.select(event.args[1]["id"]))
        with ui.element("section").classes("panel"):
            heading("Waiting for")
            self._waiting = ui.label("").classes("whitespace-pre-line")
        with ui.element("section").classes("panel"):
            heading("Last errors")
            self._no_error = ui.label("none")
            self._errors = ui.column().classes("w-full gap-1")
        with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 gap-3"):
            self._curves = {}
            for column in _CURVES:
                with ui.element("section").classes("panel"):
                    self._curves[column] = ui.echart({"series": []}).classes("w-full h-48")

    # ---- what the user does ----

    def select(self, component: str | None) -> None:
        """Show a component's tasks; None: of none."""
        self._selected = None if component == self._selected else component
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
        self._since.text = f"{status.engine}, {duration(status.seconds)}"
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
        self._draw_curves(status, palette)
        waiting = status.waiting_for
        more = f"\nand {len(waiting) - MAX_WAITING} more" if waiting is not None and len(waiting) > MAX_WAITING else ""
        self._waiting.text = (
            "not known" if waiting is None else "\n".join(waiting[:MAX_WAITING]) + more if waiting else "nothing"
        )
        self._show_errors(status.errors)

    def _draw_curves(self, status: RunStatus, palette: charts.Palette) -> None:
        shown = [each for each in status.components if charts.is_shown(each)]
        busiest = sorted(shown, key=lambda each: -(each.rate or 0.0))[: len(palette.curves)]
        ids = [each.id for each in shown if each in busiest]
        if self._selected is not None:
            ids = [self._selected]
        of = "" if self._selected is None else f"{self._selected}: "
        for column, chart in self._curves.items():
            chart.options.clear()
            chart.options.update(
                charts.curves(self._feed.curves, ids, column, of + _CURVES[column], palette, column == "capacity")
            )
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

    def _say(self, palette: charts.Palette) -> None:
        feed, status, text = self._feed, self._feed.status, ""
        when = f" What is shown is of {strftime('%H:%M:%S', localtime(feed.at))}." if status is not None else ""
        if feed.problem:
            text = f"The topology can't be asked: {feed.problem}. The page asks again.{when}"
        elif feed.is_over:
            text = f"The run is over.{when}"
            ui.query("body").classes("over")
        elif status is None:
            text = "The topology is being started; it has no status yet."
        elif status.state == "failed":
            text = "The topology has failed: the last error has the reason."
        is_alarm = bool(feed.problem) or (status is not None and status.state == "failed")
        self._banner.show(text, palette.alarm if is_alarm else palette.line)

    def _totals(self, status: RunStatus) -> None:
        latencies = [each.complete_latency_ms for each in status.spouts if each.complete_latency_ms is not None]
        rates = [each.rate for each in status.spouts if each.rate is not None]
        last = status.checkpoint
        values = {
            "acked": _total(status, "acked"),
            "failed": _total(status, "failed"),
            "timed out": _total(status, "timed_out"),
            "pending": _total(status, "pending"),
            "rate": per_second(sum(rates) if rates else None),
            "latency": milliseconds(max(latencies, default=None)),
            "p50": milliseconds(
                max((each.latency_p50_ms for each in status.spouts if each.latency_p50_ms), default=None)
            ),
            "p99": milliseconds(
                max((each.latency_p99_ms for each in status.spouts if each.latency_p99_ms), default=None)
            ),
            "restarts": _total(status, "restarts", None),
            "checkpoint": "-"
            if last is None
            else f"{number(last.number)}{'' if last.age_secs is None else f', {duration(last.age_secs)} ago'}",
        }
        for name, label in self._figures.items():
            label.text = values[name]

    def _show_errors(self, errors: tuple[RunError, ...]) -> None:
        """Add new kinds of errors above those that are shown, of which one may be open, and remove the oldest."""
        kinds: dict[tuple[object, ...], RunError] = {}
        for each in errors:
            kind = each.component, each.where, each.fatal, kind_of(each.message)
            before = kinds.pop(kind, None)
            kinds[kind] = each if before is None else replace(each, times=each.times + before.times)
        shown = dict(list(kinds.items())[-MAX_ERRORS:])
        for key in self._shown_errors.keys() - shown.keys():
            self._shown_errors.pop(key).delete()
        self._no_error.visible = not shown
        with self._errors:
            for key, error in shown.items():
                if key not in self._shown_errors:
                    self._shown_errors[key] = _ErrorElement()
                    self._shown_errors[key].move(target_index=0)
                self._shown_errors[key].show(error)


def _total(status: RunStatus, name: str, kind: str | None = "spout") -> str:
    """Return a sum as text; a cluster does not report all counts."""
    is_known = any(getattr(each, name) is not None for each in status.components if kind in (None, each.kind))
    return number(status.total(name, kind) if is_known else None)


class _ErrorElement(ui.expansion):
    """The last error of a kind: one line, and all of it when that is opened."""

    def __init__(self) -> None:
        super().__init__("")
        self.classes("w-full").props("dense")
        with self:
            self._trace = ui.label("").classes("trace")

    def show(self, error: RunError) -> None:
        """Show an error in the place of the one before."""
        text = masked_text(error.message).strip()
        last = text.splitlines()[-1] if text else ""
        task = "" if error.task is None else f" (task {error.task})"
        where = "" if error.where is None else f" on {error.where}"
        when = "" if error.time is None else f" at {strftime('%H:%M:%S', localtime(error.time))}"
        times = f", {number(error.times)} times" if error.times > 1 else ""
        self.text = f"{error.component}{task}{where}{when}{' died' if error.fatal else ''}{times}: {last[:200]}"
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
        self._bars.options.clear()
        self._bars.options.update(charts.tasks(component, palette))
        self._bars.visible = bool(component.by_task)
        self._bars.update()
        fill(self._table, charts.task_rows(component))


async def prefers_dark() -> bool:
    """Return whether the browser asks for a dark page."""
    return bool(await ui.run_javascript("matchMedia('(prefers-color-scheme: dark)').matches", timeout=5.0))


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


def duration(secs: float) -> str:
    """Return a time as text."""
    whole = int(secs)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
