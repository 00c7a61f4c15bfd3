"""Runs one child under the native parent, and checks its answers before its speed counts."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import environment, wire

CHILDREN = environment.HERE / "children"
#: Answers with a pid and waits for the end of its input, to measure the memory of ujson and Python alone.
IDLE = "import os, ujson; os.write(1, b'{\"pid\":1}\\nend\\n')\nwhile os.read(0, 65536): pass"
EMPTY = "import ujson"


class WrongAnswer(Exception):
    """A child gave a wrong answer."""


@dataclass(frozen=True)
class Child:
    """A way to write components. `suffix` chooses another way of emitting for the workloads that have one."""

    name: str
    command: tuple[str, ...]
    waits_for_task_ids: bool = False
    python_path: str = ""
    suffix: str = ""

    def environment(self) -> dict[str, str]:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE"))}
        return environ | {"PYTHONPATH": self.python_path} if self.python_path else environ

    def argv(self, work: str) -> list[str]:
        if "-c" in self.command:
            return [*self.command]
        base = "filter" if work == "heartbeat" else work.partition("-")[0]
        return [*self.command, base + self.suffix]


def children(ours: Path) -> dict[str, Child]:
    """Return every implementation by name; the folder ``ours`` has our package. Raises environment.Missing."""
    python = str(environment.python())

    def script(name: str) -> tuple[str, ...]:
        return (python, str(CHILDREN / name))

    found = [
        Child("ours-many", script("ours.py"), python_path=str(ours), suffix="-many"),
        Child("ours-bolt", script("ours.py"), python_path=str(ours), suffix="-bolt"),
        Child("ours", script("ours.py"), python_path=str(ours)),
        Child("pystorm", script("pystorm_child.py")),
        Child("streamparse", script("streamparse_child.py")),
        Child("pystorm-layer", (*script("layer.py"), "pystorm"), python_path=str(ours)),
        Child("storm.py-layer", (*script("layer.py"), "storm"), python_path=str(ours)),
        Child("bare", script("bare.py")),
        Child("ujson", (python, "-c", IDLE)),
        Child("import ujson", (python, "-c", EMPTY)),
        Child("native", (str(environment.native("child")),)),
    ]
    storm_py = str(environment.storm_py())
    found.append(Child("storm.py", script("stormpy_child.py"), waits_for_task_ids=True, python_path=storm_py))
    return {child.name: child for child in found}


class Driver:
    """The parent program, and the files with its input."""

    def __init__(self) -> None:
        self.parent = str(environment.native("parent"))
        self.folder = tempfile.TemporaryDirectory(prefix="multilang-bench-")
        self.path = Path(self.folder.name)
        self.pids = self.path / "pids"
        self.pids.mkdir()

    def file(self, name: str, data: bytes) -> str:
        path = self.path / name
        if not path.exists():
            path.write_bytes(data)
        return str(path)

    def run(self, mode: str, child: Child, work: str, **options: object) -> dict[str, float]:
        """Do one run, and return the parent's figures: nanoseconds, KiB, and the number of each command."""
        if mode != "whole":
            options["setup"] = self.file(f"setup-{work}", wire.setup(self.pids, work))
        settings = [f"{name}={value}" for name, value in options.items()]
        command = [self.parent, mode, *settings, "--", *child.argv(work)]
        done = subprocess.run(
            command, env=child.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            raise WrongAnswer(f"{child.name}, {work}: {done.stderr.strip()[-1500:]}")
        figures: dict[str, float] = json.loads(done.stdout)
        if figures["error"] or figures["fail"]:
            raise WrongAnswer(f"{child.name}, {work}: it reported an error: {done.stderr.strip()[-1500:]}")
        return figures

    def chunk(self, child: Child, work: str) -> dict[str, object]:
        ids = child.waits_for_task_ids
        path = self.file(f"chunk-{work}-{ids}", wire.chunk(work, ids))
        acks = len(wire.inputs(work))
        return {"lead": path, "lead_acks": acks, "chunk": path, "chunk_acks": acks}

    def turn(self, child: Child, work: str) -> dict[str, object]:
        path = self.file(f"turn-{'next' if work.startswith('spout') else work}", wire.turn(work))
        return {"turn": path, "ids_per_emit": int(child.waits_for_task_ids)}

    def verify(self, child: Child, work: str) -> None:
        """Compare the meaning of all that the child answers to a small input with the right answers."""
        capture = str(self.path / "capture")
        checked = {"capture": capture, "timeout": 30}
        if work.startswith("spout") or work == "heartbeat":
            self.run("turns", child, work, **self.turn(child, work), leads=0, turns=wire.TURNS, **checked)
        else:
            chunk = self.chunk(child, work)
            self.run("start", child, work, lead=chunk["lead"], lead_acks=chunk["lead_acks"], idle_ms=0, **checked)
        said, wanted = wire.meaning(Path(capture).read_bytes()), wire.expected(work)
        for n, (is_said, is_wanted) in enumerate(zip(said, wanted, strict=False)):
            if is_said != is_wanted:
                raise WrongAnswer(f"{child.name}, {work}: answer {n} is {is_said!r:.300}, should be {is_wanted!r:.300}")
        if len(said) != len(wanted):
            raise WrongAnswer(f"{child.name}, {work}: {len(said)} answers instead of {len(wanted)}")

    def stream(self, child: Child, work: str, repeats: int) -> dict[str, float]:
        """Send chunks as fast as the pipe takes them.

        Adds `units`, the tuples (or megabytes) that were handled in the measured time.
        """
        figures = self.run("stream", child, work, **self.chunk(child, work), repeats=repeats)
        return figures | {"units": repeats * len(wire.inputs(work))}

    def turns(self, child: Child, work: str, turns: int, pin: bool = True) -> dict[str, float]:
        """Have a conversation, with parent and child on one CPU unless `pin` is False."""
        settings = {"leads": max(1, turns // 20), "turns": turns, "pin": int(pin)}
        figures = self.run("turns", child, work, **self.turn(child, work), **settings)
        return figures | {"units": turns * (int(work[5:]) if work.startswith("spout") else 1)}
