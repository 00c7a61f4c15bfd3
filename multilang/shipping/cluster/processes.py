"""The processes of a cluster, found by a mark in their environment, which every worker and child inherits.

So no process is lost: neither those of an ``up`` that was killed, nor the workers that a supervisor leaves behind. And
no other process is taken for one of the cluster because it got the same process number.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.helpers import private
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MARK = "MULTILANG_CLUSTER_MEMBER"
_PROC = Path("/proc")
_PATIENCE = 3.0  # seconds from SIGTERM to SIGKILL
_LIMIT = 30.0  # seconds for processes to end after SIGKILL
# The only variables that daemons, and through them workers and components, get from the caller. A component must find
# what it needs in the jar, on every machine, and not in a variable that a developer's shell happens to set.
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TZ", "JAVA_HOME")


def environment(home: Path, name: str, **more: str) -> dict[str, str]:
    """Return the environment of a daemon called ``name``. ``home``: the cluster's folder."""
    passed = {key: value for key, value in os.environ.items() if key in _PASSED_ON or key.startswith("LC_")}
    return {**passed, **more, MARK: f"{home}:{name}"}


def spawn(command: Sequence[str], log: Path, environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a daemon in a session of its own, so that Ctrl-C in a terminal does not end it."""
    with os.fdopen(private.open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as out:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            umask=0o077,  # logs, states and jars of topologies are the user's alone
        )


def daemons(home: Path) -> dict[str, int]:
    """Return name -> process number of each daemon that is alive."""
    return {name: pid for pid, name in members(home).items() if _leads(pid)}


def members(home: Path) -> dict[int, str]:
    """Return all processes of a cluster, workers and components included: number -> the daemon that started it."""
    mark = f"{MARK}={home}:"
    found = _marked_in_proc(mark) if _PROC.joinpath("self", "environ").exists() else _marked_by_ps(mark)
    found.pop(os.getpid(), None)
    return found


def end(home: Path, names: Iterable[str] | None = None) -> int:
    """End all processes of a cluster, or those that some daemons started, and return how many. Raises ShippingError."""
    wanted = None if names is None else set(names)

    def alive() -> list[int]:
        return [pid for pid, name in members(home).items() if wanted is None or name in wanted]

    ended = set(alive())
    _send(ended, signal.SIGTERM)
    patient = time.monotonic() + _PATIENCE
    deadline = patient + _LIMIT
    while left := alive():
        ended.update(left)
        if time.monotonic() > patient:
            _send(left, signal.SIGKILL)  # repeated, because a supervisor may start another worker meanwhile
        if time.monotonic() > deadline:
            raise ShippingError(f"these processes of the cluster in {home} don't end: {', '.join(map(str, left))}")
        time.sleep(0.05)
    return len(ended)


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _leads(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def _marked_in_proc(mark: str) -> dict[int, str]:
    found = {}
    prefix = mark.encode()
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            content = (_PROC / entry / "environ").read_bytes()
        except OSError:  # it ended meanwhile, or belongs to another user
            continue
        for variable in content.split(b"\0"):
            if variable.startswith(prefix):
                found[int(entry)] = variable[len(prefix) :].decode()
    return found


def _marked_by_ps(mark: str) -> dict[int, str]:
    """Find the processes where there is no /proc (macOS): ``ps`` shows a process's environment after its command."""
    shown = subprocess.run(["ps", "axeww", "-o", "pid=,command="], capture_output=True, text=True, errors="replace")
    if shown.returncode:
        raise ShippingError(f"ps can't list the processes: {shown.stderr.strip()}")
    found = {}
    for line in shown.stdout.splitlines():
        number, _, rest = line.strip().partition(" ")
        at = rest.find(f" {mark}")
        if at >= 0 and number.isdigit():
            found[int(number)] = rest[at + 1 + len(mark) :].split(" ", 1)[0]
    return found
