"""The process's standard descriptors, protected from user code.

The protocol uses standard input and output, and so does every ``print``, C's ``printf`` and each child process that
inherits them. So the real ones are moved to other numbers at the start, and replaced by an empty input and two pipes,
whose text the watchdog thread writes to Storm's log.
"""

from __future__ import annotations

import os
import sys


class Stdio:
    """The descriptors that the protocol reads and writes, and the pipes that capture what user code prints."""

    def __init__(self) -> None:
        self.input = os.dup(0)
        self.output = os.dup(1)
        self.error = os.dup(2)  # Storm shows what a dying process wrote there
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self.captured_output = _catch(1)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and hasattr(stream, "reconfigure"):
                stream.reconfigure(line_buffering=True)
        self.captured_error = _catch(2)  # last, so that an error above is still shown


def _catch(fd: int) -> int:
    """Replace ``fd`` by a pipe, which child processes inherit as well, and return its reading end."""
    reading, writing = os.pipe()
    os.dup2(writing, fd)
    os.close(writing)
    os.set_blocking(reading, False)
    return reading
