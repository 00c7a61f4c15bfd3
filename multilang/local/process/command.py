"""The commands that start the processes of a topology's tasks."""

from __future__ import annotations

import io
import os
import pickle
import sys
from types import FunctionType
from typing import TYPE_CHECKING

from multilang.engine.child import module_command
from multilang.errors import LocalClusterError
from multilang.protocol.codec import dumps
from multilang.topology.commands import BLOB_MAP, blob_map, local_start
from multilang.topology.identity import submission
from multilang.topology.origin import place_of
from multilang.topology.shell import ShellComponent

if TYPE_CHECKING:
    from typing import Any

    from multilang.topology.model import ComponentSpec, Topology

# The launcher is written beside the pickle, in a private folder; a task's process imports it like any topology. The
# pickle's __main__ is the script that submitted the topology, not the task's own.
_LAUNCHER = """\
import os
import pickle
import sys

main, script = sys.modules["__main__"], {script!r}
if script is not None:
    from multilang.loading.modules import load_module

    sys.modules["__main__"] = load_module(script)
try:
    with open(os.path.join(os.path.dirname(__file__), "topology.pickle"), "rb") as file:
        topology = pickle.load(file)
finally:
    sys.modules["__main__"] = main
"""


class TaskCommands:
    """The commands that start the tasks of a topology's components.

    Args:
        topology: The topology.
        folder: A private folder, for what the processes read.

    Raises:
        TopologyError: A command's files are not on this machine.
        LocalClusterError: The topology can't be sent to another process.
    """

    def __init__(self, topology: Topology, folder: str) -> None:
        conf = {BLOB_MAP: blob_map(topology)}
        self._programs = {
            id: local_start(spec, conf)
            for id, spec in topology.components.items()
            if isinstance(spec.component, ShellComponent)
        }
        self._home = None if topology.home is None else topology.home.root
        python = [id for id, spec in topology.components.items() if not isinstance(spec.component, ShellComponent)]
        self._arguments: list[str] = []
        if python:
            submitted = submission(topology, sys.argv)
            if topology.origin is None:
                submitted["components"] = {}  # what they load is what was submitted, as a pickle
            path = os.path.join(folder, "submitted.json")
            _write(path, dumps(submitted).encode())
            self._arguments = [topology.origin or _pickled(topology, folder), "--submitted", path]

    def of(self, spec: ComponentSpec) -> list[str]:
        """Return the program and its arguments."""
        if spec.id in self._programs:
            return self._programs[spec.id][0]
        return [*module_command("multilang.component"), *self._arguments]

    def folder_of(self, spec: ComponentSpec) -> str | None:
        """Return the folder that replaces the one in which a worker starts the process; None: the current one."""
        return self._programs[spec.id][1] if spec.id in self._programs else self._home


class _Pickler(pickle.Pickler):
    """A pickler that notes in ``names_main`` whether something is defined in ``__main__``."""

    names_main = False

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType) and obj.__module__ == "__main__":
            self.names_main = True
        return NotImplemented


def _pickled(topology: Topology, folder: str) -> str:
    """Return the origin of a topology that has no name in any module: a file of ours that restores it."""
    pickler = _Pickler(buffer := io.BytesIO())
    try:
        pickler.dump(topology)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise LocalClusterError(
            f"topology {topology.name!r} can't be given to its tasks' processes: it has no name in a module that they "
            f"could import, and it can't be pickled ({error}). Assign it to a name in a module, outside of any function "
            '(topology = builder.build(...)), or run it with LocalCluster(mode="inprocess")'
        ) from None
    script = None
    if pickler.names_main:
        script = place_of(sys.modules["__main__"])
        if script is None:
            raise LocalClusterError(
                f"topology {topology.name!r} has components that were typed at a prompt, in a notebook, or piped in, where "
                "its tasks' processes can't import them; write them in a file and import them from it, or run it with "
                'LocalCluster(mode="inprocess")'
            )
    launcher = os.path.join(folder, "launcher.py")
    text = _LAUNCHER.format(script=script)
    _write(os.path.join(folder, "topology.pickle"), buffer.getvalue())
    _write(launcher, text.encode())
    return f"{launcher}:topology"


def _write(path: str, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
