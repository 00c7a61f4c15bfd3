"""Commands whose options may stand in a project's ``multilang.toml`` instead of on the command line."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilang.cli.arguments import PROJECT_CONF
from multilang.cli.exits import fault
from multilang.cli.output import echo
from multilang.compat.project import ENVIRONMENT
from multilang.component.errors import ConfigError
from multilang.project import FILE, ProjectFile, find_project
from multilang.topology.search_path import add_folder

if TYPE_CHECKING:
    from multilang.project import Settings

# The name of a command's parameter -> the setting that it takes when the command line has no value.
_PARAMETERS = {
    "mode": "mode",
    "where": "nimbus",
    "requirements": "requirements",
    "python": "python",
    "platform": "platform",
    "interpreter": "interpreter",
    "include": "include",
    "exclude": "exclude",
    "leave_out": "leave-out",
    "add_jar": "jars",
    "artifacts": "artifacts",
    "master": "spark.master",
    "spark_conf": "spark.conf",
    "sources": "spark.sources",
    "output": "spark.output",
    "state": "spark.state",
    "checkpoint": "spark.checkpoint",
}
_OF_SPARK = ("spark_conf", "master", "sources", "output", "state", "checkpoint")


class ProjectCommand(click.Command):
    """A command that takes from a project's file what the command line does not give."""

    takes_topology = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
            given = self.make_parser(ctx).parse_args(list(args))[0]
            try:
                args = self._take_defaults(ctx, given, args)
            except ConfigError as error:
                raise fault(str(error)) from error
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            if error.param is None or (error.param.name not in ("topology", "name") and self.takes_topology):
                raise
            project = current_project()
            if not self.takes_topology:
                raise click.UsageError(
                    f"{error.format_message()} A command that only looks does not run the code that a {FILE} names, and the topology's "
                    f"code names where its states are: name the topology first, as in multilang state {ctx.info_name} visits.py",
                    ctx,
                ) from None
            if error.param.name == "name":
                raise click.UsageError(_without_name(ctx, project), ctx) from None
            here = "this folder is in no project" if project is None else f"{project.path} names none"
            raise click.UsageError(
                f"it needs a topology, and {here}: name a file or module (multilang {ctx.info_name} visits.py), or stand in a "
                f"project's folder, whose {FILE} has a topology (multilang new makes one)",
                ctx,
            ) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line; a project's file may name the topology."""
        optional = ("TOPOLOGY", "NAME") if self.takes_topology else ()
        return [f"[{each}]" if each in optional else each for each in super().collect_usage_pieces(ctx)]

    def _take_defaults(self, ctx: click.Context, given: dict[str, Any], args: list[str]) -> list[str]:
        """Take defaults from the project's file; return the arguments, with its topology if that was left out before others."""
        place = given.get("topology")
        project = project_for_place(place if isinstance(place, str) else None)
        if project is None:
            return args
        named = given.get("environment")
        settings = chosen(project, named if isinstance(named, str) else None)
        ctx.meta[PROJECT_CONF] = {key: each.value for key, each in settings.conf.items()}
        names = {parameter.name: parameter for parameter in self.params}
        if "topology" in names:
            add_folder(str(project.root))  # its modules are found from a folder below, too
        is_spark = "spark_conf" in names
        found = {
            parameter: settings.get(setting)
            for parameter, setting in _PARAMETERS.items()
            if parameter in names and (is_spark or parameter not in _OF_SPARK) and settings.get(setting) is not None
        }
        if is_spark and given.get("stream") is not True:
            found.pop("checkpoint", None)  # a job has none
        topology = project.topology(settings) if self.takes_topology else None
        if topology is not None and "topology" in names:
            found["topology"] = topology
        own = (settings.get("topology"), topology)
        is_own = not isinstance(place, str) or place in own or os.path.abspath(place) in own
        if "name" in names and is_own and settings.get("name") is not None:
            found["name"] = settings.get("name")
        ctx.default_map = found
        required = [each for each in self.params if isinstance(each, click.Argument) and each.required]
        left_out = (
            len(required) > 1
            and required[0].name == "topology"
            and not isinstance(given.get(str(required[-1].name)), str)
        )
        return [topology, *args] if topology is not None and left_out else args


class LookingCommand(ProjectCommand):
    """A command that needs a topology only to look: it loads none that the command line does not name."""

    takes_topology = False


def current_project() -> ProjectFile | None:
    """Return the project that the current folder is in; None if it is in none.

    Raises:
        ConfigError: The project's file is wrong.
    """
    return find_project(os.curdir, _warn)


@cache
def _warn(text: str) -> None:
    """Print a warning, once in this process."""
    echo(f"warning: {text}", err=True)


def project_for_place(place: str | None) -> ProjectFile | None:
    """Return the project whose settings hold for a topology on the command line.

    Args:
        place: The topology; None: it is not named, and the project's own is meant.

    Returns:
        The project of the current folder; None if there is none, or if the topology is a file that lies outside of it.

    Raises:
        ConfigError: The project's file is wrong.
    """
    project = current_project()
    if project is None:
        return None
    file = (place or "").partition(":")[0]
    if (file.endswith(".py") or os.path.isdir(file)) and not Path(os.path.abspath(file)).is_relative_to(project.root):
        return None
    return project


def chosen(project: ProjectFile, environment: str | None) -> Settings:
    """Return the settings in an environment, and name it to the processes that are started from here.

    Args:
        project: The project.
        environment: The environment that the command line names; None: it names none.

    Raises:
        ConfigError: There is no such environment.
    """
    settings = project.settings(environment or os.environ.get(ENVIRONMENT) or None)
    if settings.environment is not None:
        os.environ[ENVIRONMENT] = settings.environment
    return settings


def project_here() -> ProjectFile:
    """Return the project of the current folder.

    Raises:
        ClickException: There is none, or its file is wrong.
    """
    try:
        project = project_for_place(None)
    except ConfigError as error:
        raise fault(str(error)) from error
    if project is None:
        raise fault(
            f"this folder is in no project, which has a {FILE} in it or above it; multilang new NAME makes a project"
        )
    return project


def _without_name(ctx: click.Context, project: ProjectFile | None) -> str:
    written = f"multilang {ctx.info_name} NAME"
    if project is None:
        return f"it needs a topology's name, and this folder is in no project: {written}"
    return (
        f"it needs the topology's name, and {project.path} has none (the topology is not imported for it, since that runs "
        f'its code): {written}, or add to the file name = "NAME"'
    )
