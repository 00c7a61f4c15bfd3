"""The other Pythons that a component may run on, where there are any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.protocol.messages import Emit
from tests.soak import soak_only

if TYPE_CHECKING:
    from tests.component.harness import Starter


def find(version: str) -> str | None:
    """A Python of that version that has ujson: on the path, or one of pyenv's."""
    known = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *map(str, known)):
        if candidate is not None:
            have = subprocess.run(
                [candidate, "-c", "import sys, ujson; print(*sys.version_info[:2], sep='.')"],
                capture_output=True,
                text=True,
            )
            if have.stdout.strip() == version:
                return candidate
    return None


@pytest.fixture(
    scope="session",
    params=[  # in one process each, which may have to install ujson
        pytest.param("3.10", marks=pytest.mark.xdist_group("Python 3.10")),
        pytest.param("3.12", marks=soak_only),
        pytest.param("3.13", marks=pytest.mark.xdist_group("Python 3.13")),
    ],
)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    version: str = request.param
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    found = find(version)
    if found is not None:
        return found
    bare = next(iter(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")), None) or shutil.which(
        f"python{version}"
    )
    if bare is None:
        pytest.skip(f"there is no Python {version} here")
    folder = tmp_path_factory.mktemp(f"python{version}")
    for command in (
        [str(bare), "-m", "venv", "--without-pip", str(folder)],
        [
            *(sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"),
            *("install", "--quiet", "ujson>=5.12"),
        ],
    ):
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            if os.environ.get("CI"):
                pytest.fail(f"Python {version} is here, but ujson can't be installed for it:\n{done.stderr[-2000:]}")
            pytest.skip(f"ujson can't be installed for Python {version}: {done.stderr.strip()[-200:]}")
    return str(folder / "bin" / "python")


def test_a_bolt_works_on_it(start: Starter, python: str) -> None:
    child = start(
        """
        import logging, subprocess, threading
        log = logging.getLogger("shop")
        class Part(BasicBolt):
            output_fields = ["value"]
            middleware = [Timing(), Retry(1)]
            def process(self, tup):
                if tup[0] == "bad":
                    raise ValueError("bad")
                print("printed")
                log.warning("logged")
                subprocess.run(["echo", "from a grandchild"])
                self.emit([[tup["value"], self.emit([1], need_task_ids=True)]])
                thread = threading.Thread(target=lambda: self.emit(["thread"]))
                thread.start()
                thread.join()
            def close(self):
                self.log("closed")
        """,
        python=python,
    )
    good, bad = child.give("x"), child.give("bad")
    child.until(lambda: child.acked and child.failed)
    child.tick()
    child.beat()
    child.signal()
    child.ended(0)
    assert (child.acked, child.failed) == ([good, "tick3"], [bad])
    assert [emit.values for emit in child.all(Emit)] == [[1], [["x", [2]]], ["thread"]]
    assert len(child.errors) == 1
    assert "ValueError: bad" in child.errors[0]
    for line in ("stdout: printed", "shop: logged", "stdout: from a grandchild", "closed"):
        assert line in child.logged()
    assert child.stderr == b""


def test_a_spout_works_on_it(start: Starter, python: str) -> None:
    child = start(
        """
        class Part(ReliableSpout):
            output_fields = ["value"]
            n = 0
            def next_tuple(self):
                self.n += 1
                self.emit([self.n], tup_id=self.n)
        """,
        spout=True,
        python=python,
    ).started()
    child.ask("activate")
    child.ask()
    child.ask("fail", 1)
    child.ask()
    child.ask("ack", 1)
    child.ask()
    child.close_input()
    child.ended(0)
    assert [(emit.values, emit.id) for emit in child.all(Emit)] == [([1], 1), ([1], 1), ([2], 2)]
    assert child.stderr == b""


def test_a_hung_bolt_ends_on_it(start: Starter, python: str) -> None:
    child = start(
        """
        class Part(BasicBolt):
            def process(self, tup):
                while True:
                    pass
        """,
        {"multilang.process.timeout.secs": 3},  # which a start may not take, on a busy machine
        python=python,
    )
    child.give("x")
    child.ended(1)
    assert "while True" in child.errors[0] or "in process" in child.errors[0]
