"""``multilang new``: makes a project, or takes over one of streamparse's."""

from __future__ import annotations

import os
from pathlib import Path

import click

from multilang.cli import exits
from multilang.cli.exits import fault
from multilang.cli.output import echo
from multilang.component.errors import ConfigError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="NAME")
@click.option(
    "--from",
    "source",
    nargs=2,
    type=(click.Choice(["streamparse"]), click.Path(exists=True, file_okay=False, path_type=Path)),
    metavar="streamparse PATH",
    help="Take over the project in PATH, which stays as it is.",
)
def new(folder: Path, source: tuple[str, Path] | None) -> int:
    """Make a project: a topology that runs, tests that pass, and multilang.toml for its settings.

    NAME is the new folder, and the topology's name.
    """
    from multilang.cli.from_streamparse import take_over
    from multilang.project.new import new_project

    notes: list[str] = []
    try:
        if source is None:
            made = new_project(folder)
        else:
            made, notes = take_over(source[1], folder)
    except OSError as error:
        raise fault(f"the project can't be made: {error.filename or folder}: {error.strerror or error}") from error
    except ConfigError as error:
        raise fault(f"the project can't be made: {error}") from error
    for path in made:
        echo(f"  {path}")
    for note in notes:
        echo(f"note: {note}", err=True)
    at = f"cd {folder} && " if os.path.abspath(folder) != os.getcwd() else ""
    echo(f"try it:  {at}multilang run --for 5")
    return exits.OK
