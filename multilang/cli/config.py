"""``multilang config``: the settings that hold in an environment of the project, and the places that gave them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from multilang.cli import exits
from multilang.cli.arguments import PROJECT_ENVIRONMENT, conf_option
from multilang.cli.exits import fault
from multilang.cli.loading import load
from multilang.cli.output import echo, echo_document
from multilang.cli.settings import chosen, project_here
from multilang.cli.view import console
from multilang.component.errors import ConfigError
from multilang.helpers.masked import masked
from multilang.project import FILE
from multilang.project.settings import Given, Layer, merged
from multilang.settings import SETTINGS
from multilang.shipping.conf import default_conf
from multilang.topology.search_path import add_folder


@click.group()
def config() -> None:
    """Show the project's settings, and the keys of this library."""


@config.command()
def keys() -> int:
    """Show the conf keys of this library, with their defaults."""
    screen = console(sys.stdout)
    table = _table(screen, "key", "default", "")
    for row in SETTINGS.values():
        default = row.otherwise.replace("`", "") if row.default is None else json.dumps(row.default).strip('"')
        table.add_row(Text(row.key), Text(default), Text(row.plain_text))
    screen.print(table)
    return exits.OK


@config.command()
@click.argument("topology", required=False)
@PROJECT_ENVIRONMENT
@conf_option("A conf entry, as of run.")
@click.option("--nimbus", "where", metavar="HOST:PORT", help="The cluster's Nimbus, as of submit.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def show(topology: str | None, conf: dict[str, Any], where: str | None, as_json: bool) -> int:
    """Show each setting of the project, and the place that gives it its value.

    Stronger is what comes later: the defaults of multilang submit, the topology's own conf in Python, multilang.toml,
    its section of the environment, the command line. The first two are shown of a TOPOLOGY that is named: its code is run.
    """
    project = project_here()
    try:
        settings = chosen(project, None)
    except ConfigError as error:
        raise fault(str(error)) from error
    line = Layer("command line", {} if where is None else {"nimbus": where}, conf)
    values = merged([*((each.origin, each.values) for each in settings.layers), (line.origin, line.values)])
    layers = [*((each.origin, each.conf) for each in settings.layers), (line.origin, line.conf)]
    if topology is not None:
        add_folder(str(project.root))
        loaded = load(topology)
        defaults = {key: value for key, value in default_conf(loaded).items() if loaded.conf.get(key) != value}
        layers = [("default of submit", defaults), ("the topology", loaded.conf), *layers]
        values.setdefault("name", Given(loaded.name, "the topology"))
    entries = merged(layers)
    if as_json:
        document = {
            "file": str(project.path),
            "environment": settings.environment,
            "topology": topology,
            "settings": _document(values),
            "conf": _document(entries),
        }
        echo_document(document, indent=1)
        return exits.OK
    named = f"environment {settings.environment!r}" if settings.environment else "no environment (choose one with -e)"
    others = [each for each in project.environments if each != settings.environment]
    also = f"; there is also {', '.join(others)}" if others else ""
    echo(f"{project.path}, {named}{also}\n")
    screen = console(sys.stdout)
    table = _table(screen, "setting", "value", "from")
    table.columns[2].no_wrap = True
    for key, given in [*sorted(values.items()), *sorted(entries.items())]:
        table.add_row(Text(key), Text(_shown(key, given.value, project.root)), Text(_place(given)))
        for other in given.over:
            table.add_row(
                "", Text(f"not {_shown(key, other.value, project.root)}", style="dim"), Text(_place(other), style="dim")
            )
    screen.print(table)
    own = project.topology(settings)
    if topology is None and own is not None:
        echo(
            f"\nThe topology's own conf in Python is not among them. To run its code for that: multilang config show {own}"
        )
    return exits.OK


def _table(screen: Console, key: str, value: str, last: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold" if screen.is_terminal else "", padding=(0, 2, 0, 0))
    table.add_column(key, no_wrap=True)
    table.add_column(value, overflow="fold")
    table.add_column(last)
    return table


def _document(found: dict[str, Given]) -> dict[str, Any]:
    return {
        key: {
            "value": masked(each.value, key),
            "from": each.origin,
            "over": [{"value": masked(other.value, key), "from": other.origin} for other in each.over],
        }
        for key, each in sorted(found.items())
    }


def _shown(key: str, value: Any, root: Path) -> str:
    value = masked(value, key)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "\n".join(_path(each, root) for each in value)
    return _path(value, root) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _place(given: Given) -> str:
    return given.origin.removeprefix(f"{FILE} ")  # the file is named above the table


def _path(text: str, root: Path) -> str:
    """Return a path below the project's folder as it stands in the file."""
    return os.path.relpath(text, root) if text.startswith(f"{root}{os.sep}") else text
