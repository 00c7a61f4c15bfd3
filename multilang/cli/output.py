"""The command's output, in which texts of a cluster, a project or a component are escaped and are no markup."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.segment import Segment

from multilang.helpers.masked import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rich.console import ConsoleOptions, RenderableType


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print a text, with a number for each character that a terminal would obey.

    Args:
        text: The text.
        err: Whether it goes to standard error.
        nl: Whether the line ends with it.
    """
    click.echo(harmless(str(text)), err=err, nl=nl)


def echo_document(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON, which means the same with the characters escaped that a terminal would obey.

    Args:
        value: The value.
        indent: Spaces of each level; None: all on one line.
    """
    click.echo(harmless(json.dumps(value, ensure_ascii=False, indent=indent), of_json=True))


def echo_data(text: str) -> None:
    """Print a text that a program may read: as it is, but for a terminal."""
    if sys.stdout.isatty():
        echo(text)
    else:
        click.echo(text)


class HarmlessConsole(Console):
    """A console that prints texts as ``echo`` does; its colours are its own. No text is taken for markup."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the pieces of what is printed."""
        for piece in super().render(renderable, options):
            if piece.control:  # how progress is drawn over its last state
                yield piece
            else:
                yield Segment(harmless(piece.text), piece.style)
