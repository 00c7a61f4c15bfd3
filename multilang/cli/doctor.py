"""``multilang doctor``: checks this machine and the project, and lists what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from multilang.cli import exits
from multilang.cli.arguments import PROJECT_ENVIRONMENT
from multilang.cli.nimbus import NIMBUS, connected
from multilang.cli.settings import ProjectCommand, chosen, project_for_place
from multilang.cli.view import console
from multilang.component.errors import ConfigError
from multilang.helpers.masked import is_reference, masked_text
from multilang.helpers.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.project import ProjectFile

_OLDEST_JAVA = 17
_TIMEOUT = 20  # seconds for a program to print its version

# An extra -> a module of it, and the things that it is for.
_EXTRAS = {
    "storm": ("thriftpy2", "submit, deploy, status, logs: a real cluster"),
    "page": ("nicegui", "--page and multilang page"),
    "watch": ("watchfiles", "run --watch"),
    "spark": ("pyspark", "multilang spark"),
    "redis": ("redis", "state and positions in Redis"),
    "kafka": ("confluent_kafka", "Kafka as a source"),
    "zookeeper": ("kazoo", "transactional topologies on a cluster"),
    "metrics": ("prometheus_client", "--prometheus"),
    "tls": ("cryptography", "key stores in PKCS #12"),
    "migrate": ("fissix", "multilang migrate: Python 2"),
}


@dataclass(frozen=True)
class Finding:
    """Something that was looked at. ``state``: "ok", "missing" (only what needs it fails) or "wrong"."""

    what: str
    state: str
    found: str
    needed_for: str = ""
    remedy: str = ""


@click.command(cls=ProjectCommand)
@NIMBUS
@PROJECT_ENVIRONMENT
def doctor(where: str | None) -> int:
    """Check this machine and the project, and list what is missing.

    Exit status 0: nothing is wrong, though something may be missing that you don't need; 1: something is wrong.
    """
    findings = list(_all(where))
    screen = console(sys.stdout)
    screen.print(_table(findings, screen.is_terminal))
    remedies = [each for each in findings if each.remedy]
    if remedies:
        screen.print()
    for each in remedies:
        screen.print(Text(f"{each.what}: {each.remedy}"), soft_wrap=not screen.is_terminal)
    return exits.OK if all(each.state != "wrong" for each in findings) else 1


def _all(where: str | None) -> Iterator[Finding]:
    yield _python()
    for extra, (module, purpose) in _EXTRAS.items():
        yield _extra(extra, module, purpose)
    yield _java()
    yield _maven()
    yield _program("redis-server", "a Redis on this machine", "apt install redis-server", "--version", r"v=([\d.]+)")
    yield from _project()
    yield _nimbus(where)


def _table(findings: list[Finding], colours: bool) -> Table:
    signs = {"ok": ("ok", "green"), "missing": ("-", "dim"), "wrong": ("WRONG", "bold red")}
    table = Table(box=None, pad_edge=False, header_style="bold" if colours else "", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("what", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_column("needed for", overflow="fold")
    for each in findings:
        sign, style = signs[each.state]
        table.add_row(
            Text(sign, style=style if colours else ""), Text(each.what), Text(each.found), Text(each.needed_for)
        )
    return table


def _python() -> Finding:
    import ujson

    from multilang import __version__

    found = f"{platform.python_version()}, storm-multilang {__version__}, ujson {ujson.__version__}"
    return Finding("Python", "ok", found, "everything")


def _extra(extra: str, module: str, purpose: str) -> Finding:
    name = f"extra {extra}"
    if find_spec(module) is None:
        return Finding(name, "missing", "not installed", purpose, f"pip install 'storm-multilang[{extra}]'")
    package = next(iter(metadata.packages_distributions().get(module, [module])))
    return Finding(name, "ok", f"{package} {metadata.version(package)}", purpose)


def _java() -> Finding:
    purpose = "multilang cluster, multilang spark"
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    remedy = f"install a JDK, {_OLDEST_JAVA} or newer (Debian: apt install default-jdk-headless)"
    if program is None:
        return Finding("Java", "missing", "no java on the path", purpose, remedy)
    output = _output(program, "-version")
    version = re.search(r'version "(\d+)([^"]*)"', output or "")
    if version is None:
        where = f"JAVA_HOME is {home!r}; " if home else ""
        return Finding("Java", "wrong", f"{where}{program} does not print its version", purpose, remedy)
    found = f"{version[1]}{version[2]}"
    if int(version[1]) < _OLDEST_JAVA:
        return Finding("Java", "wrong", f"{found} is too old", purpose, remedy)
    if "jdk.compiler" not in (_output(program, "--list-modules") or ""):
        return Finding(
            "Java", "missing", f"{found}, without a compiler", f"{purpose}; a JDK: Storm's DRPC, closed ports", remedy
        )
    return Finding("Java", "ok", f"{found}, a JDK", purpose)


def _maven() -> Finding:
    from multilang.shipping.cluster.artifacts import cache_folder

    is_downloaded = any((cache_folder() / "artifacts").glob("*.jar")) or any(cache_folder().glob("*/*.jar"))
    purpose = "multilang cluster for the first time; artifacts"
    return _program(
        "mvn",
        purpose + (" (Storm's jars are here already)" if is_downloaded else ""),
        "apt install maven",
        "-v",
        r"Maven ([\d.]+)",
    )


def _program(name: str, purpose: str, remedy: str, option: str, pattern: str) -> Finding:
    program = shutil.which(name)
    if program is None:
        return Finding(name, "missing", "not on the path", purpose, f"Debian: {remedy}")
    version = re.search(pattern, _output(program, option) or "")
    return Finding(name, "ok", version[1] if version else program, purpose)


def _project() -> Iterator[Finding]:
    try:
        project = project_for_place(None)
        if project is None:
            return
        settings = chosen(project, None)
    except ConfigError as error:
        yield Finding("multilang.toml", "wrong", "can't be used", "the project", str(error))
        return
    environment = f"environment {settings.environment!r}" if settings.environment else "no environment"
    yield Finding("multilang.toml", "ok", environment, "the project")
    place = project.topology(settings)
    if place is not None:
        yield _topology(project, place)
    for key, given in sorted(settings.conf.items()):
        for name, reference in _references(key, given.value):
            try:
                Secret(reference, name).reveal()
            except ConfigError as error:
                yield Finding("secret", "missing", f"{name}: not here", "a run on this machine", str(error))
            else:
                yield Finding("secret", "ok", f"{name}: found", "a run on this machine")


def _topology(project: ProjectFile, place: str) -> Finding:
    """Look whether there is a file for the topology, which is not imported: that would run its code."""
    name = place.partition(":")[0]
    own = os.path.join(project.root, *name.split("."))
    files = (
        os.path.join(project.root, name),
        f"{own}.py",
        os.path.join(own, "__init__.py"),
        os.path.join(project.root, "topologies", f"{name}.py"),  # of streamparse's projects
    )
    found = next((each for each in files if os.path.exists(each)), None)
    if found is None and not (name.partition(".")[0].isidentifier() and find_spec(name.partition(".")[0])):
        remedy = f"there is no {files[0]}, and no module of that name: see topology in {project.path}"
        return Finding("topology", "wrong", "not there", "the project", remedy)
    return Finding("topology", "ok", f"{found or name} (multilang show loads it)", "the project")


def _references(key: str, value: object) -> Iterator[tuple[str, dict[str, str]]]:
    if isinstance(value, dict):
        if is_reference(value):
            yield key, value
        else:
            for name, item in value.items():
                yield from _references(f"{key}.{name}", item)


def _nimbus(where: str | None) -> Finding:
    purpose = "submit, deploy, status, logs"
    if find_spec("thriftpy2") is None:
        return Finding("Nimbus", "missing", "can't be asked without the extra storm", purpose)
    try:
        with connected(where) as nimbus:
            summary = nimbus.summary()
            address = nimbus.address
    except click.ClickException as error:
        text = error.format_message()
        start = (
            "multilang cluster up starts one on this machine" if where is None else "is it up, and the address right?"
        )
        return Finding("Nimbus", "missing" if where is None else "wrong", masked_text(text), purpose, start)
    version = next((each.version for each in summary.nimbuses if each.isLeader), "of an unknown version")
    free = sum(each.num_workers - each.num_used_workers for each in summary.supervisors)
    found = f"{address}, Storm {version}, supervisors: {len(summary.supervisors)}, free slots: {free}"
    if not free:
        return Finding(
            "Nimbus", "wrong", found, purpose, "no slot is free: a topology that is submitted now gets no worker"
        )
    return Finding("Nimbus", "ok", found, purpose)


def _output(program: str, option: str) -> str | None:
    try:
        shown = subprocess.run(
            [program, option], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return shown.stdout + shown.stderr
