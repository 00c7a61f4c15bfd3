"""Projects of streamparse on the command line: their requirements and their hooks."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.cli.output import echo
from multilang.compat.project import Project, check_owner, project_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from multilang.topology import Topology

_LAYER = re.compile(r"(?i)^(streamparse|pystorm)\b(?![-_.][a-z0-9])|[/=](streamparse|pystorm)(\.git)?\b")
_PINNED = re.compile(r"([A-Za-z0-9][\w.-]*)\s*==\s*([\w.!+]+)\s*(?:$|;|--)")


def project_for(topology: Topology) -> Project | None:
    """Return the project that a topology is in; None if it is in none."""
    place = (topology.origin or "").rpartition(":")[0]
    return project_of(place) if topology.home is not None and place.endswith(".py") else None


@contextmanager
def requirements_of(project: Project, topology: Topology) -> Iterator[Path | None]:
    """Make a file with the requirements that the project has for a topology, without those that this library replaces."""
    name = Path((topology.origin or "").rpartition(":")[0]).stem
    file = project.requirements(name)
    with without_layer([] if file is None else [Path(file)]) as path:
        yield path


@contextmanager
def without_layer(files: Sequence[Path]) -> Iterator[Path | None]:
    """Make a file with the requirements of several, without those that this library replaces; None if nothing is left."""
    lines = [line for file in files for line in _lines(file)]
    if not lines:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, files[0].name)
        path.write_text("\n".join(lines) + "\n", "utf-8")
        yield path


def _lines(file: Path) -> Iterator[str]:
    from multilang.migrate.requirements import INCLUDE, lines_in

    check_owner(str(file), must_exist=True)
    for text in lines_in(str(file)):
        included = INCLUDE.match(text)
        if included is not None:
            yield from _lines(file.parent / included[1])
        elif text and _LAYER.search(text) is None:
            yield text


def note_other_versions(topology: Topology) -> None:
    """Note which packages of a project's requirements are installed in another version than the one that they name."""
    from importlib.metadata import PackageNotFoundError, version

    project = project_for(topology)
    if project is None:
        return
    try:
        with requirements_of(project, topology) as path:
            lines = [] if path is None else path.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return  # a file that can't be read is reported when it is packed
    for line in lines:
        found = _PINNED.match(line)
        try:
            installed = None if found is None else version(found[1])
        except PackageNotFoundError:
            continue  # it is reported when it is imported
        if found is not None and installed not in (None, found[2]):
            echo(
                f"note: {found[1]} {installed} is installed, and the project's requirements name {found[2]}, which a jar has; if it has to be "
                f"that one: pip install {found[1]}=={found[2]}",
                err=True,
            )


class Hooks:
    """The functions ``pre_submit`` and ``post_submit`` in a project's tasks.py and fabfile.py.

    Args:
        project: The project.
        name: The name under which the topology is submitted.
    """

    def __init__(self, project: Project, name: str) -> None:
        self._project = project
        self._name = name
        self._environment, self._entries = project.environment()
        self._modules = [module for each in ("tasks", "fabfile") if (module := self._imported(each)) is not None]

    def call(self, hook: str, options: dict[str, Any]) -> None:
        """Call a hook where it is defined, with as many arguments as it takes.

        Args:
            hook: ``pre_submit`` or ``post_submit``.
            options: The topology's conf, which ``pre_submit`` may change.
        """
        arguments = (self._name, self._environment, self._entries, options)
        for module in self._modules:
            function = getattr(module, hook, None)
            if callable(function):
                function(*arguments[: _arity(function)])

    def _imported(self, name: str) -> Any:
        root = self._project.root
        path = os.path.join(root, f"{name}.py")
        if not os.path.isfile(path):
            return None
        check_owner(path, must_exist=True)
        spec = spec_from_file_location(f"{name} of {root}", path)  # another project's has another name
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = module_from_spec(spec)
        sys.path.insert(0, root)
        try:
            spec.loader.exec_module(module)
            return module
        except ImportError as error:
            echo(f"note: {name}.py of the project is not used, because it can't be imported: {error}", err=True)
            return None
        finally:
            sys.path.remove(root)


def _arity(function: Any) -> int:
    from inspect import Parameter, signature

    parameters = signature(function).parameters.values()
    if any(each.kind is Parameter.VAR_POSITIONAL for each in parameters):
        return 4
    return len(
        [each for each in parameters if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    )
