"""The elements of a cluster's page: its topologies, supervisors and daemons."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from nicegui import ui

from multilang.engine.readable import duration
from multilang.page.charts import DARK, LIGHT
from multilang.page.view import Banner, fill, heading, page_style, table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from multilang.page.view import Viewer

EVERY_SECS = 2.0
_TOPOLOGIES = {
    "name": "topology",
    "status": "status",
    "up": "up",
    "workers": "workers",
    "executors": "executors",
    "tasks": "tasks",
}
_SUPERVISORS = {"name": "supervisor", "up": "up", "slots": "slots", "used": "in use"}


class ClusterView:
    """The page of a cluster.

    Args:
        ask: Returns Storm's ClusterSummary.
        viewer: The browser.
    """

    def __init__(self, ask: Callable[[], Awaitable[Any]], viewer: Viewer) -> None:
        self._ask = ask
        self._at: float | None = None  # when it answered last
        self._viewer = viewer
        self._dark = page_style(viewer.is_dark)
        self._title = heading("Storm", 1)
        self._banner = Banner()
        with ui.element("section").classes("panel"):
            heading("Topologies")
            self._topologies = table(_TOPOLOGIES, "No topology runs.", "name")
            self._topologies.add_slot(
                "body-cell-name",
                '<q-td :props="props"><a :href="props.row.link" class="underline font-semibold">{{ props.value }}</a></q-td>',
            )
        with ui.element("section").classes("panel"):
            heading("Supervisors")
            self._supervisors = table(_SUPERVISORS, "No supervisor runs: nothing can be started.", "name")
        ui.timer(EVERY_SECS, self.update)

    async def update(self) -> None:
        """Ask, and show the answer."""
        try:
            summary = await self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown, and asked again
            when = f" What is shown is of {self._viewer.time(self._at)}." if self._at else ""
            self._banner.show(f"The cluster can't be asked: {error}. The page asks again.{when}", self._palette.alarm)
            return
        self._at = time()
        self._banner.show("", self._palette.alarm)
        leader = next((each for each in summary.nimbuses if each.isLeader), None)
        self._title.text = "Storm" if leader is None else f"Storm {leader.version} on {leader.host}:{leader.port}"
        topologies = [
            {
                "name": each.name,
                "link": f"topology/{quote(each.name, safe='')}",
                "status": each.status.lower(),
                "up": duration(each.uptime_secs),
                "workers": each.num_workers,
                "executors": each.num_executors,
                "tasks": each.num_tasks,
            }
            for each in sorted(summary.topologies, key=lambda each: str(each.name))
        ]
        supervisors = [
            {
                "name": f"{each.host} {each.supervisor_id[:8]}",
                "up": duration(each.uptime_secs),
                "slots": each.num_workers,
                "used": each.num_used_workers,
            }
            for each in sorted(summary.supervisors, key=lambda each: (str(each.host), str(each.supervisor_id)))
        ]
        fill(self._topologies, topologies)
        fill(self._supervisors, supervisors)

    @property
    def _palette(self) -> Any:
        return DARK if self._dark.value else LIGHT
