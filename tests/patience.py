"""Time limits of tests by the speed of the machine: what takes a moment on a quiet one may take many times as long on this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time

_QUIET_SECS = 0.15  # in which a quiet machine starts a Python, or less
_MOST = 8.0
SLOW = 3.0  # the pace from which on processes that start at once wait for one another
# Seconds that one test may take on any machine, unless it may take longer on a quiet one: hanging tests must not take all of CI's time.
LONGEST = 1200.0
_TRIES = 3
_KEY = "MULTILANG_TEST_PACE"


def _measured() -> float:
    """Return how many times as long as on a quiet machine a process takes to start, from 1."""
    begun = time.monotonic()
    # Their mean: a machine may be as quick as others most of the time, and stand still in between.
    for _ in range(_TRIES):
        subprocess.run([sys.executable, "-c", "import json, socket, subprocess, threading"], check=True)
    return round(min(max((time.monotonic() - begun) / _TRIES / _QUIET_SECS, 1.0), _MOST), 1)


# Measured once: the processes that run tests, and those that tests start, get the result from the first of them.
PACE = float(os.environ.get(_KEY) or _measured())
os.environ[_KEY] = str(PACE)


def patient(secs: float) -> int:
    """Return the seconds to wait on this machine. ``secs``: those on a quiet one, with other tests beside."""
    return round(secs * PACE)


def paced(secs: float) -> float:
    """Return the length on this machine of a session, a heartbeat or a message timeout that has ``secs`` seconds on a quiet one.

    A server that hears nothing for so long takes the other side for dead, which on a slow machine is only late.
    """
    return secs * PACE
