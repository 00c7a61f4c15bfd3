"""``multilang migrate``: what stops a program that was written for another library, and what to do."""

from __future__ import annotations

import os

import click

from multilang.cli import exits
from multilang.cli.output import echo
from multilang.migrate import (
    as_text,
    findings,
    from_clojure,
    from_flux,
    has_program,
    is_old_storm,
    python_files,
    to_rewrite,
)
from multilang.migrate.python2 import rewrite


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option(
    "--fix",
    is_flag=True,
    help="First rewrite Python 2 as Python 3, with fissix (the extra migrate), topologies in Clojure as classes of "
    "streamparse's DSL, and those of Flux's as modules of this library; the old files stay, as *.bak or as they were.",
)
def migrate(path: str, fix: bool) -> int:
    """Show what stops a project of streamparse, pystorm or storm.py from running here.

    Each line names the file, the line, and what to do. Nothing of the project is run.

    \b
    Exit status: 0  nothing stops it
                 1  something does
                 2  the command line is wrong, or PATH has no such program
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    is_there = has_program(path) or (fix and bool(findings(path)))
    if fix:
        _rewrite(path)
    found = findings(path, rewritten=fix)
    if not found and not is_there:
        raise _nothing_found(path)
    if found:
        echo(as_text(found))
    stops = sum(each.stops for each in found)
    echo(f"{stops} to mend, {len(found) - stops} to know", err=True)
    return exits.FAILED_TUPLES if stops else exits.OK


def _nothing_found(path: str) -> click.ClickException:
    """Return the error for a place without a program, about which an answer would mislead."""
    number = len(python_files(path))
    files = "no Python file" if not number else f"no Python file that imports one of them, among {number}"
    known = "petrel, pystorm, pyleus, storm (storm.py) or streamparse"
    if os.path.isfile(path):
        return exits.fault(
            f"{path} is no program written for {known}, so there is nothing to move; name such a program, or its folder"
        )
    return exits.fault(
        f"{path} has no program written for {known}, so there is nothing to move: it has {files}, no topologies/*.clj, and no "
        "topology of Flux's in YAML; name the folder of the project"
    )


def _rewrite(path: str) -> None:
    """Rewrite the files that have something of Python 2."""
    from importlib.util import find_spec

    if find_spec("fissix") is None:
        raise click.UsageError(
            "--fix needs the package fissix; install the extra: pip install 'storm-multilang[migrate]'"
        )
    for old in python_files(path):
        if old.endswith("storm.py") and is_old_storm(old):
            os.rename(old, f"{old}.bak")
            echo(f"renamed: {old} to {old}.bak", err=True)
    for new in (*from_clojure(path), *from_flux(path)):
        echo(f"written: {new}", err=True)
    try:
        changed = rewrite(*to_rewrite(path))
    except RuntimeError as error:
        raise click.ClickException(f"fissix could not rewrite everything: {error}") from None
    echo("".join(f"rewritten: {each}\n" for each in changed), nl=False, err=True)
