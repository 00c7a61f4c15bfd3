"""Records the conversation of a component and its parent. It stands between the two, and passes every byte on.

A recording has a line for each message, as in fixtures/wire of this project: ``t`` seconds since the start, ``d``
direction ("in": the parent wrote it, "out": the component did, "in-eof", "out-eof", "exit" with the status), ``raw``
the exact text.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import IO, TextIO

from multilang.conformance.child import CannotStart
from multilang.helpers import private

_END = b"\nend\n"
_READ = 1 << 16


def record(command: Sequence[str], file: Path) -> int:
    """Run ``command`` in the place of this process until it ends, and return its exit status. Raises CannotStart.

    ``file`` is created. If it exists already, another task of the same component writes it, and the file gets the
    component's pid before its suffix.
    """
    try:
        child = subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        raise CannotStart(f"{command[0]}: {error.strerror or error}") from None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: child.send_signal(number))
    try:
        opened = open_recording(file, child.pid)
    except OSError as error:
        child.kill()
        child.wait()
        raise CannotStart(f"{file} can't be written: {error.strerror or error}; name another file") from None
    with opened as out:
        log = _Log(out)
        assert child.stdin is not None
        assert child.stdout is not None
        reading = threading.Thread(target=log.pump, args=("in", 0, child.stdin.fileno(), child.stdin), daemon=True)
        reading.start()
        log.pump("out", child.stdout.fileno(), 1, None)
        child.stdout.close()  # nobody reads here any more, and the component must see that
        status = child.wait()
        log.write("exit", str(status).encode())
        log.closed = True
    return status if status >= 0 else 128 - status


def open_recording(file: Path, pid: int) -> TextIO:
    """Return a recording to write.

    Args:
        file: The file, which is created.
        pid: The component's pid, which the file gets before its suffix where it exists already.

    Raises:
        OSError: It can't be written, or is another account's.
    """
    try:
        return _made(file, os.O_EXCL)
    except FileExistsError:
        return _made(file.with_name(f"{file.stem}-{pid}{file.suffix}"), os.O_TRUNC)


def _made(file: Path, flag: int) -> TextIO:
    # A conversation has the conf in it, so that nobody else may read it.
    return open(private.open_file(file, os.O_WRONLY | os.O_CREAT | flag), "w", encoding="utf-8")


class _Log:
    def __init__(self, out: TextIO) -> None:
        self.closed = False
        self._out = out
        self._start = monotonic()
        self._lock = threading.Lock()

    def write(self, direction: str, raw: bytes) -> None:
        row = {"t": round(monotonic() - self._start, 4), "d": direction, "raw": raw.decode("utf-8", "backslashreplace")}
        with self._lock:
            if not self.closed:
                self._out.write(json.dumps(row) + "\n")
                self._out.flush()

    def pump(self, direction: str, source: int, target: int, stream: IO[bytes] | None) -> None:
        """Copy until the end. A message is recorded before it is passed on, so that a cause is before its effect."""
        held = b""
        while True:
            try:
                data = os.read(source, _READ)
            except OSError as error:
                sys.stderr.write(f"multilang conformance record: {direction}: {error}\n")
                data = b""
            if not data:
                break
            held = self._messages(direction, held + data)
            try:
                while data:
                    data = data[os.write(target, data) :]
            except OSError:
                break  # the other end is closed
        if held:
            self.write(f"{direction}-partial", held)
        self.write(f"{direction}-eof", b"")
        if stream is not None:
            stream.close()

    def _messages(self, direction: str, held: bytes) -> bytes:
        while True:
            if held.startswith(_END[1:]):
                stop = len(_END) - 1
            else:
                stop = held.find(_END) + len(_END)
                if stop < len(_END):
                    return held
            self.write(direction, held[:stop])
            held = held[stop:]
