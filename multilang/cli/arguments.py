"""Arguments of the command line, turned into values. Each error message has what to write instead."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from multilang import settings
from multilang.compat.project import ENVIRONMENT
from multilang.topology import TopologyError
from multilang.topology.conf import check_keys, check_values, known

if TYPE_CHECKING:
    from collections.abc import Callable


PROJECT_CONF = "conf of the project"
"""The name in a context's ``meta`` of the conf entries of the project's file (see ``settings``)."""
GIVEN_CONF = "conf of the command line"
"""The name in a context's ``meta`` of the conf entries of the command line alone."""


def conf_entries(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Parse any number of entries such as ``topology.max.spout.pending=100``, which override those of the project's file.

    A value is JSON, or else text.
    """
    conf: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE; write for example topology.max.spout.pending=100")
        try:
            conf[key] = json.loads(value)
        except ValueError:
            conf[key] = value
        try:
            check_keys([key], text)
            check_values({key: conf[key]}, text)
        except TopologyError as error:
            raise click.BadParameter(str(error)) from error
    context = click.get_current_context(silent=True)
    if context is None:
        return conf
    context.meta[GIVEN_CONF] = conf
    return {**context.meta.get(PROJECT_CONF, {}), **conf}


def conf_option(text: str = "A conf entry; VALUE is JSON or text.") -> Callable[[Any], Any]:
    """Return the option ``-c KEY=VALUE``, which gives a command its ``conf``, with the given help."""
    return click.option(
        "-c", "--conf", multiple=True, metavar="KEY=VALUE", callback=conf_entries, shell_complete=_keys, help=text
    )


def _keys(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    given = [*settings.SETTINGS, *(key for key in known() if key.startswith("topology."))]
    return [CompletionItem(f"{key}=") for key in given if key.startswith(begun)]


def _named_environment(_context: click.Context, _parameter: click.Parameter, name: str | None) -> None:
    if name is not None:
        os.environ[ENVIRONMENT] = name  # the processes that load the topology again need it, too


def _environments(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from multilang.component.errors import ConfigError
    from multilang.project import find_project

    try:
        project = find_project(os.curdir)
    except ConfigError:
        return []
    return [name for name in (project.environments if project else []) if name.startswith(begun)]


def environment_option(*names: str) -> Callable[[Any], Any]:
    """Return the option that names the project's environment, under the given names."""
    return click.option(
        *names,
        "environment",
        metavar="NAME",
        callback=_named_environment,
        shell_complete=_environments,
        expose_value=False,
        is_eager=True,
        help="The environment of the project, in its multilang.toml (of streamparse's: config.json).",
    )


PROJECT_ENVIRONMENT = environment_option("-e", "--environment")


REPLAY = click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Let the spouts emit what run --record wrote into FILE.",
)


def _stand_ins(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, what = text.partition("=")
        if not sign or not name or not what:
            raise click.BadParameter(f"{text!r}: write NAME=FILE, or NAME=module:Class")
        found[name] = what
    return found


STAND_IN = click.option(
    "--stand-in",
    "stand_ins",
    multiple=True,
    metavar="NAME=FILE",
    callback=_stand_ins,
    help="What runs in the place of a component in Java: lines of a file for a spout, or NAME=module:Class of one in Python.",
)


@dataclass(frozen=True)
class Top:
    """The rows that ``--top`` shows: the greatest values of a field, by another field, of one stream."""

    component: str
    stream: str
    key: str
    value: str | None
    """The field to rank by; None: the number of tuples of each key."""


def top_spec(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Top | None:
    """Parse ``count:word:count``: component (and stream), field to show, field to rank by, or none to count tuples."""
    if text is None:
        return None
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise click.BadParameter(
            f"{text!r} is not COMPONENT[/STREAM]:FIELD[:FIELD]; write for example count:word:count, "
            "the words with the greatest counts among what the component 'count' emitted"
        )
    component, _, stream = parts[0].partition("/")
    return Top(component, stream or "default", parts[1], parts[2] if len(parts) == 3 else None)
