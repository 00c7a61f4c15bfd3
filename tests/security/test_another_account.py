"""Another account of the same machine: it reads, writes and reaches nothing of what runs here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import COMMAND, ROOT
from tests.servers import free_port, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534  # Debian's account that owns nothing


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, with the user's home and a folder for temporary files."""
    if os.geteuid() != 0:
        assert "CI" not in os.environ
        pytest.skip("only root can become another account")
    folder = Path(tempfile.mkdtemp(prefix="multilang-place-"))
    folder.chmod(0o755)
    (folder / "home").mkdir(mode=0o755)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def started(place: Path, *command: object) -> Iterator[int]:
    """Run a command of ours in that home, with the rights for new files that a system usually has; yield its process."""
    own = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MULTILANG_STATE"))}
    process = subprocess.Popen(
        [COMMAND, *map(str, command)],
        cwd=ROOT,
        env={**kept, **own},
        umask=0o022,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
        assert process.poll() is None, "it ran all the time"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def as_another(use: Callable[[], object]) -> object:
    """Return what a call gives in a process of another account."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads end in the child, which takes no lock of theirs
        pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(theirs, json.dumps(use()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def reached(folder: Path) -> dict[str, list[str]]:
    """Try all that is in a folder: to list, read, write and connect."""
    found: dict[str, list[str]] = {"read": [], "write": [], "connect": []}
    for name, _, files in os.walk(folder):
        if os.access(name, os.W_OK):
            found["write"].append(name)
        for path in (Path(name, each) for each in files):
            if stat.S_ISSOCK(path.lstat().st_mode):
                with socket.socket(socket.AF_UNIX) as wire:
                    if wire.connect_ex(str(path)) == 0:
                        found["connect"].append(str(path))
                continue
            for kind, right in (("read", os.R_OK), ("write", os.W_OK)):
                if os.access(path, right):
                    found[kind].append(str(path))
    return found


def test_it_reads_and_reaches_nothing_of_an_embedded_run_with_state(place: Path) -> None:
    text = place / "text"
    text.write_text("the cow jumped over the moon\n" * 1_000_000)
    with started(place, "run", ROOT / "examples" / "stateful_word_count.py", "--input", text):
        wait_for(lambda: list(place.rglob("home/**/*.sqlite")), "the state is there")
        wait_for(lambda: list(place.rglob("tmp/*/pids/*")), "the components run")
        assert as_another(lambda: reached(place)) == {"read": [str(text)], "write": [str(place / "tmp")], "connect": []}
    left = as_another(lambda: reached(place))
    assert left == {"read": [str(text)], "write": [str(place / "tmp")], "connect": []}


def test_it_reaches_no_drpc_server_on_unix_sockets(place: Path) -> None:
    sockets = place / "tmp" / "drpc"
    sockets.mkdir(mode=0o700)
    with started(place, "drpc", "serve", "--host", f"unix:{sockets}", ROOT / "examples" / "exclamation.py"):
        wait_for(lambda: len(list(sockets.iterdir())) >= 2, "it listens")
        assert as_another(lambda: reached(place)) == {"read": [], "write": [str(place / "tmp")], "connect": []}
        assert len(reached(place)["connect"]) == 2, "its own account reaches it"


def test_it_reads_no_recording_and_no_page_and_nothing_of_the_processes(place: Path) -> None:
    text, recording = place / "text", place / "recording"
    text.write_text("the cow jumped over the moon\n" * 1_000_000)
    port = free_port()
    command = ("run", ROOT / "examples" / "word_count.py", "--input", text, "--record", recording, "--page", port)
    with started(place, *command) as pid:
        wait_for(lambda: recording.exists() and recording.stat().st_size, "it records")
        wait_for(lambda: answer_of(port), "the page is there")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found = as_another(lambda: {**reached(place), "page": answer_of(port), "of": taken([pid, *map(int, children)])})
    assert found == {"read": [str(text)], "write": [str(place / "tmp")], "connect": [], "page": "403", "of": []}


def answer_of(port: int) -> str:
    """Return the status of what a page answers to who has no token; "" if nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), 30) as wire:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            with wire.makefile("rb") as answer:
                return answer.readline().split()[1].decode()
    except ConnectionRefusedError:
        return ""


def taken(processes: list[int]) -> list[str]:
    """Try to read the memory, environment and files of processes, and to signal them."""
    found = []
    for pid in processes:
        for name in ("environ", "mem", "maps"):
            try:
                Path(f"/proc/{pid}/{name}").read_bytes()
                found.append(f"{pid} {name}")
            except OSError:
                pass
        try:
            os.kill(pid, 0)
            found.append(f"{pid} signal")
        except OSError:
            pass
    return found
