"""Loading the topology that the command line names, with errors that name what to write."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from multilang.cli.exits import fault
from multilang.cli.old_python import explained, note_python_2
from multilang.component.errors import ConfigError
from multilang.topology import TopologyError, load_topology

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.topology import Topology

PYLEUS = "pyleus_topology.yaml"
_OURS = {"multilang", "importlib", "_frozen_importlib", "_frozen_importlib_external"}


def load(where: str) -> Topology:
    """Return the topology at ``where``.

    Raises ClickException, whose message has what to write, or where the module's code failed.
    """
    place = where
    try:
        place = resolved(where)
        topology = load_topology(place)
    except (TopologyError, ConfigError) as error:
        raise fault(_with_place(error)) from error
    except SyntaxError as error:
        shown = "".join(traceback.format_exception_only(type(error), error)).rstrip()
        text = f"{where} is not valid Python:\n{shown}"
        raise fault(explained(place, error.filename or "", error.lineno or 0, text)) from error
    except Exception as error:
        own = [each for each in _their_frames(error) if _is_own(each)]
        text = _missing(where, error) if isinstance(error, ImportError) else _failed(where, error)
        raise fault(explained(place, own[-1].filename, own[-1].lineno or 0, text) if own else text) from error
    except SystemExit as error:
        raise fault(
            f"importing {where} ended the program (exit status {error.code!r}): put code that should run only as a "
            'script below if __name__ == "__main__":'
        ) from error
    note_python_2(place, topology)
    return topology


def _failed(where: str, error: Exception) -> str:
    """Return which line of the user's failed, and how."""
    frames = _their_frames(error)
    cause = "".join(traceback.format_exception_only(type(error), error)).rstrip()
    trace = "".join(traceback.format_list(frames)).rstrip()
    return f"importing {where} failed in {_place(where, frames)}: {cause}\n{trace}".rstrip()


def _missing(where: str, error: ImportError) -> str:
    """Return which import of the user's failed, and what to do; a traceback would only repeat it."""
    frames = _their_frames(error)
    place = _place(where, frames)
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return f"{place}: {error}"
    top = error.name.partition(".")[0]
    asked = "" if not frames or _is_own(frames[-1]) else f", which {frames[-1].filename} imports"
    if top != error.name and top in sys.modules:
        return f"{place}: the package {top!r} has no module {error.name!r}{asked}; look at the spelling, and whether the file is there"
    return f"{place}: there is no module {error.name!r}{asked}; {_to_install(where, top)}"


def _to_install(where: str, module: str) -> str:
    """Return what brings a module that is not there: in a project of streamparse, its requirements."""
    from multilang.compat.project import project_of
    from multilang.migrate.requirements import requirements_in

    advice = "install the package that brings it, or, if it is a file of yours, put its folder on PYTHONPATH"
    file = resolved(where).partition(":")[0]
    if module in ("petrel", "pyleus"):
        return f"its programs do not run here as they are: multilang migrate {os.path.dirname(file) or os.curdir} shows what to write"
    project = project_of(file)
    if project is None:
        return advice
    name = os.path.basename(file).removesuffix(".py")
    path = project.requirements(name)
    try:
        if path is not None and requirements_in(path, os.path.dirname(path)):
            return f"the project's packages are installed by: pip install -r {path}"
    except (OSError, ValueError):
        return advice  # multilang migrate reports that it can't be read
    path = path or os.path.join(project.virtualenvs, f"{name}.txt")
    others = os.path.join(project.root, "requirements.txt")
    known = f"; {others} may name it" if os.path.isfile(others) else ""
    return f"add the package that brings {module!r} to {path}, and install it{known}"


def _place(where: str, frames: list[traceback.FrameSummary]) -> str:
    """Return the last line of the user's own files that a traceback is about."""
    own = [each for each in frames if _is_own(each)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else where


def _is_own(frame: traceback.FrameSummary) -> bool:
    """Return whether a line is in a file of the user's, and in none that is installed."""
    folders = frame.filename.split(os.sep)
    installed = {"site-packages", "dist-packages"}.intersection(folders)
    return not installed and not frame.filename.startswith((os.path.dirname(os.__file__) + os.sep, "<"))


def load_replayed(topology: Topology, file: Path, pace: str = "fast") -> Topology:
    """Return a topology whose spouts emit what is in a recording. Raises ClickException."""
    from multilang.recording import Recording, replayed

    try:
        return replayed(topology, Recording(file), pace)
    except ConfigError as error:
        raise fault(str(error)) from error


def load_stand_ins(topology: Topology, given: dict[str, str]) -> Topology:
    """Return a topology with stand-ins, each a file or ``module:Class``. Raises ClickException."""
    from multilang.loading.topologies import load_object
    from multilang.topology.stand_in import with_stand_ins

    if not given:
        return topology
    try:
        return with_stand_ins(
            topology,
            {id: load_object(what) if ":" in what and not os.path.exists(what) else what for id, what in given.items()},
        )
    except ConfigError as error:
        raise fault(str(error)) from error
    except ImportError as error:
        raise fault(f"--stand-in: {error}") from error


def resolved(where: str) -> str:
    """Return the place of a topology whose project, or whose name in the project in the current folder, was given.

    Raises:
        ConfigError: The project has no such topology.
    """
    from multilang.compat.project import project_at

    place, colon, name = where.partition(":")
    place = os.path.dirname(place) or os.curdir if os.path.basename(place) == PYLEUS else place
    clojure = place.endswith(".clj")
    if os.path.isdir(place) or clojure:
        folder, only = os.path.split(place.rstrip(os.sep)) if clojure else (place, None)
        project = project_at(os.path.dirname(folder) or os.curdir) if clojure else project_at(folder)
        if project is not None:
            return f"{project.file(only[:-4] if only else None)}{colon}{name}"
        if only is None and os.path.isfile(os.path.join(folder, PYLEUS)):
            raise ConfigError(
                f"{os.path.join(folder, PYLEUS)} is a topology of Pyleus's, which does not run here as it is: multilang migrate {folder} "
                "shows what to write"
            )
    elif place.isidentifier():
        project = project_at(os.curdir)
        if project is not None and os.path.isfile(os.path.join(project.topologies, f"{place}.py")):
            return f"{project.file(place)}{colon}{name}"
    return where


def _their_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of the traceback in the user's files, without this package and the import system."""
    return [
        summary
        for (frame, _), summary in zip(
            traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True
        )
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _OURS
    ]


def _with_place(error: Exception) -> str:
    """Return the message, after the line of the user's file that it is about, if there is one."""
    frames = _their_frames(error)
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {error}" if frames else str(error)
