"""The option ``--page`` of commands that run a topology."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from multilang.component.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from multilang.engine.status import RunStatus
    from multilang.page import RunPage

PAGE = click.option(
    "--page",
    type=click.IntRange(0, 65535),
    metavar="[PORT]",
    is_flag=False,
    flag_value=8765,
    help="Show the run in a browser while it lasts: its graph, figures, curves and errors.",
)


@contextmanager
def shown_on_page(
    port: int | None, source: Callable[[], RunStatus | None], echo: Callable[[str], object]
) -> Iterator[RunPage | None]:
    """Show a run on a page, if there is a port.

    Args:
        port: The port; None: no page.
        source: Returns the last status, in any thread; None: there is none yet.
        echo: Prints the page's address.
    """
    if port is None:
        yield None
        return
    from multilang.page import RunPage

    try:
        page = RunPage(source, port)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    echo(f"page: {page.url}")
    try:
        yield page
    finally:
        page.close(source())
