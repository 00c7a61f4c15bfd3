"""The commands that make jars, archives and Flux YAML."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilang.cli.arguments import PROJECT_ENVIRONMENT
from multilang.cli.exits import fault
from multilang.cli.loading import load
from multilang.cli.output import echo
from multilang.cli.project import project_for, requirements_of
from multilang.cli.settings import ProjectCommand
from multilang.component.errors import ConfigError
from multilang.shipping.archive import SUFFIXES, Archived, archive_folder, archive_shipment
from multilang.shipping.errors import ShippingError
from multilang.shipping.guard import Guard
from multilang.shipping.jar import Shipment, pack, write
from multilang.shipping.maven import Artifact, fetch_jars
from multilang.shipping.wheels import WheelTarget
from multilang.topology import ShellComponent
from multilang.topology.java import JavaComponent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from multilang.topology import Topology

_PATH = click.Path(path_type=Path)
_INTERPRETER = click.option(
    "--interpreter", default="python3", show_default=True, help="The workers' command for Python, one word."
)


_EXCLUDE = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Files and folders to leave out, by name or by path: '*.csv', data/large.",
)
_FORCE = click.option("--force", is_flag=True, help="Ship secrets, too, and what links lead to outside of the folder.")


ADD_JAR = click.option(
    "--add-jar",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="JAR",
    help="A jar whose classes are added.",
)
ARTIFACTS = click.option(
    "--artifacts",
    multiple=True,
    metavar="GROUP:NAME:VERSION",
    help="What Maven gets, with all that it needs, and whose classes are added; ^GROUP:NAME after it leaves something out.",
)


def packing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the content of a shipment to a command, which passes them to ``packed``."""
    options = [
        click.option(
            "-r",
            "--requirements",
            type=_PATH,
            metavar="FILE",
            help="A file of packages to add, in the format of pip's requirements.txt.",
        ),
        click.option(
            "--python",
            metavar="3.N",
            help="The workers' Python version; by default that of the Python that runs this command.",
        ),
        click.option(
            "--platform",
            metavar="NAME",
            help="The workers' platform, such as manylinux2014_x86_64; by default this machine's.",
        ),
        click.option(
            "--include", multiple=True, type=_PATH, metavar="PATH", help="A further file or folder to add as it is."
        ),
        click.option(
            "--leave-out",
            multiple=True,
            metavar="MODULE",
            help="A module to leave out, because the workers have it or never import it.",
        ),
        _EXCLUDE,
        _FORCE,
        _INTERPRETER,
        PROJECT_ENVIRONMENT,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def packed(
    topology: str | Topology,
    *,
    requirements: Path | None,
    python: str | None,
    platform: str | None,
    include: Sequence[Path],
    leave_out: Sequence[str],
    interpreter: str,
    blobs: Sequence[str] = (),
    exclude: Sequence[str] = (),
    force: bool = False,
) -> Shipment:
    """Pack the topology that the command line names. Raises ClickException.

    ``blobs``: names of blobs in the worker's directory that the topology's conf does not map.
    """
    loaded = load(topology) if isinstance(topology, str) else topology
    project = project_for(loaded)
    own = ExitStack()
    if requirements is None and project is not None:
        requirements = own.enter_context(requirements_of(project, loaded))
    try:
        return pack(
            loaded,
            target=WheelTarget.of(python, platform),
            requirements=requirements,
            build=project is not None,
            leave_out=leave_out,
            include=include,
            interpreter=interpreter,
            blobs=blobs,
            guard=Guard(exclude, force),
        )
    except (ShippingError, ConfigError) as error:
        raise fault(str(error)) from error
    finally:
        own.close()


@contextmanager
def jars_of(add_jar: Sequence[Path], artifacts: Sequence[str]) -> Iterator[list[Path]]:
    """Return the jars whose classes are added, as long as they are needed.

    Args:
        add_jar: Jars.
        artifacts: What Maven is to get: texts as of ``--artifacts``, or several of them with commas.

    Raises:
        ShippingError: Maven can't get them.
    """
    with tempfile.TemporaryDirectory(prefix="multilang-jars-") as folder:
        wanted = [Artifact.of(each.strip()) for text in artifacts for each in text.split(",")]
        if wanted:
            echo(f"asking Maven for {', '.join(f'{each.name} {each.version}' for each in wanted)}", err=True)
            fetch_jars(wanted, Path(folder))
        yield [*add_jar, *sorted(Path(folder).glob("*.jar"))]


@click.command(cls=ProjectCommand)
@click.argument("topology")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="The .jar to write, or a .tgz for the blob store.")
@ADD_JAR
@ARTIFACTS
@click.option("--dry-run", is_flag=True, help="Write nothing; show the files, the commands and the conf.")
@click.option("-v", "--verbose", is_flag=True, help="List every file.")
@packing
def package(
    topology: str,
    output: Path | None,
    add_jar: tuple[Path, ...],
    artifacts: tuple[str, ...],
    dry_run: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Pack a topology into a jar that needs nothing on the workers but Python.

    The jar has the topology's module, your own modules that it imports, this package, ujson compiled for the workers,
    and the packages that --requirements names. The same input gives the same bytes.
    """
    shipment = packed(topology, **options)
    output = output or Path(f"{shipment.topology.name}.jar")
    blob = output.name.endswith(SUFFIXES)
    try:
        checked = shipment.check()
        if blob and (add_jar or artifacts):
            raise ShippingError(
                "--add-jar and --artifacts put Java classes into a jar; a .tgz is for Python's side alone"
            )
        if not blob and output.suffix != ".jar":
            raise ShippingError(f"{output.name!r} is neither a .jar nor a .tgz; give it one of these endings")
        if not dry_run and blob:
            archive_shipment(shipment, output)
        elif not dry_run:
            with jars_of(add_jar, artifacts) as jars:
                write(output, shipment.jar(jars))
    except ShippingError as error:
        raise fault(str(error)) from error
    echo(listed(shipment, verbose or dry_run))
    if dry_run:
        echo(plan(shipment))
        return 0
    echo(
        "the topology was loaded from these files alone, and loads"
        if checked
        else f"not tried here: the files are for Python {shipment.target.python}, {shipment.target.platform_name}"
    )
    echo(f"{output}: {output.stat().st_size:,} bytes")
    return 0


@click.command()
@click.argument("folder", type=_PATH)
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="The .tgz to write; the folder's name unless given.")
@_EXCLUDE
@_FORCE
def archive(folder: Path, output: Path | None, exclude: tuple[str, ...], force: bool) -> int:
    """Pack a folder or a virtual environment into a .tgz for the blob store.

    Modes and links stay as they are. An environment (python3 -m venv env) becomes relocatable: its Python and the standard
    library are added, so that ./env/bin/python runs in any folder.
    """
    output = output or Path(f"{folder.resolve().name}.tgz")
    try:
        made = archive_folder(folder, output, Guard(exclude, force))
    except ShippingError as error:
        raise fault(str(error)) from error
    if not made.environment:
        echo("\n".join(f"  {name}" for name in made.names))
    echo(
        "\n".join(
            [*(f"  without {name}: {why}" for name, why in sorted(made.left_out.items())), _archived(output, made)]
        )
    )
    return 0


@click.command(cls=ProjectCommand)
@click.argument("topology")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="The file to write; standard output unless given.")
@click.option("--env", metavar="KEY", help="The blob of an environment whose Python runs the components: env.tgz.")
@click.option("--app", metavar="KEY", help="The blob of the topology's files, if not in the jar: app.tgz.")
@click.option("--java", is_flag=True, help="Show a Java class instead, which can do everything that Storm can.")
@packing
def flux(topology: str, output: Path | None, env: str | None, app: str | None, java: bool, **options: Any) -> int:
    """Show a topology as YAML for Storm's Flux.

    Commands are run in the jar's resources folder. With --env or --app they are relative to the worker's directory
    (changeChildCWD false), which has the blobs.
    """
    from multilang.shipping.flux import check_flux, flux_yaml
    from multilang.shipping.java_text import java_class
    from multilang.shipping.places import ShippedBlobs

    try:
        if not java:
            check_flux(load(topology))
        places = ShippedBlobs(env, app)
        shipment = packed(topology, **options, blobs=places.local_names)
        text = (java_class if java else flux_yaml)(shipment, options["interpreter"], places)
        for warning in warnings(shipment):
            echo(warning, err=True)
        if output is not None:
            write(output, text.encode())
    except ShippingError as error:
        raise fault(str(error)) from error
    if output is None:
        click.echo(text, nl=False)  # a document, whose texts are escaped
    return 0


def listed(shipment: Shipment, every: bool) -> str:
    """Return the list of what is shipped, with reasons; of packages only the size."""
    lines = []
    parts: dict[str, list[int]] = {}
    for item in shipment.contents:
        if every or item.part in ("your files", "launcher"):
            lines.append(f"  {item.name}  {len(item.data):,} bytes: {item.part}, {item.why}")
        else:
            parts.setdefault(item.part, []).append(len(item.data))
    lines += [f"  {part}: {len(sizes)} files, {sum(sizes):,} bytes" for part, sizes in sorted(parts.items())]
    lines += [f"  with {note}" for note in shipment.notes]
    lines += [f"  without {name}: {reason}" for name, reason in sorted(shipment.contents.left_out.items())]
    lines += [f"  {warning}" for warning in warnings(shipment)]
    return "\n".join(lines)


def warnings(shipment: Shipment) -> list[str]:
    """Return the things to see to before the topology runs, in lines to show."""
    later = "this may be given where the topology is submitted; the packages that it needs come by --requirements"
    return [
        f"note: {each}" for each in [*(f"{each}; {later}" for each in shipment.missing), *shipment.contents.warnings]
    ]


def plan(shipment: Shipment) -> str:
    """Return the commands and the conf that a submission would have."""
    from multilang.protocol.codec import dumps
    from multilang.shipping.conf import storm_conf

    lines = [f"  {id}: {' '.join(words)}{_starts(shipment, id)}" for id, words in shipment.commands.items()]
    lines += [
        f"  {spec.id}: the Java class {spec.component.java_class}"
        for spec in shipment.topology.components.values()
        if isinstance(spec.component, JavaComponent)
    ]
    lines += [f"  {key} = {dumps(value)}" for key, value in storm_conf(shipment.topology).items()]
    return "\n".join(lines)


def _starts(shipment: Shipment, id: str) -> str:
    component = shipment.topology[id].component
    if id not in shipment.in_worker or not isinstance(component, ShellComponent):
        return ""
    return f" (in the worker's directory: {shlex.join(component.command)})"


def _archived(output: Path, made: Archived) -> str:
    what = "a relocatable environment, " if made.environment else ""
    tried = "; its Python runs in another folder" if made.checked else ""
    return f"{output}: {what}{made.files:,} files, {made.links} links, {made.size:,} bytes{tried}"
