"""The buttons that change something: each asks first, and reports the result."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from multilang.helpers.masked import masked_text

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Action:
    """An action on a run.

    Attributes:
        name: Its name on the button.
        question: The question that is asked before it is done.
        do: Does it; what it raises is shown.
    """

    name: str
    question: str
    do: Callable[[], object]

    def button(self) -> None:
        """Add the button."""
        ui.button(self.name, on_click=self._ask).props("outline dense no-caps")

    async def _ask(self) -> None:
        with ui.dialog() as dialog, ui.card():
            ui.label(self.question)
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps autofocus")
                ui.button(self.name, on_click=lambda: dialog.submit(True)).props("no-caps color=negative")
        if not await dialog:
            return
        try:
            await asyncio.to_thread(self.do)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown to the user
            ui.notify(
                masked_text(f"{self.name}: {error}"), type="negative", multi_line=True, timeout=0, close_button="Close"
            )
        else:
            ui.notify(f"{self.name}: done", type="positive")
