"""``multilang migrate``: what stops a program that was written for another library, and what to do."""

from __future__ import annotations

import subprocess
import sys

import click

from multilang.cli import exits
from multilang.compat.migrate import as_text, findings, python_files


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option(
    "--fix",
    is_flag=True,
    help="Rewrite Python 2 as Python 3 first, with fissix (the extra migrate); the old files stay as *.bak.",
)
def migrate(path: str, fix: bool) -> int:
    """Show what stops a project of streamparse, pystorm, storm.py or Petrel from running here.

    Each line names the file, the line, and what to do. Nothing of the project is run.

    \b
    Exit status: 0  nothing stops it
                 1  something does
                 2  the command line is wrong
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    if fix:
        _rewrite(path)
    found = findings(path)
    if found:
        click.echo(as_text(found))
    stops = sum(each.stops for each in found)
    click.echo(f"{stops} to mend, {len(found) - stops} to know", err=True)
    return exits.FAILED_TUPLES if stops else exits.OK


def _rewrite(path: str) -> None:
    """Rewrite the files that have something of Python 2."""
    if subprocess.run([sys.executable, "-c", "import fissix"], capture_output=True).returncode:
        raise click.UsageError(
            "--fix needs the package fissix; install the extra: pip install 'storm-multilang[migrate]'"
        )
    wanted = {each.path for each in findings(path) if "--fix" in each.fix}
    files = [each for each in python_files(path) if each in wanted]
    if files:
        done = subprocess.run([sys.executable, "-m", "fissix", "-w", *files], capture_output=True, text=True)
        if done.returncode:
            raise click.ClickException(f"fissix could not rewrite everything: {done.stderr.strip()[-1500:]}")
        click.echo("\n".join(f"rewritten: {each}" for each in files), err=True)
