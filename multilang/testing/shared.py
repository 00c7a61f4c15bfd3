"""Objects that a test shares with the tasks of its topology, wherever the tasks run.

In this process it is the same object. A task in a process of its own, whose topology was pickled for it, calls the
object here: over a Unix socket in a private folder, in JSON.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from multilang.child.wire import EndOfInput
from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps, loads

if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import Collector


class Shared:
    """Base of a shared object. Tasks call its methods with ``call``, one at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._address: str | None = None

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the object, wherever it is."""
        with self.lock:
            return getattr(self, name)(*arguments)

    def __deepcopy__(self, memo: dict[int, Any]) -> Shared:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Away, (self._serve(),)

    def _serve(self) -> str:
        with self.lock:
            if self._address is None:
                folder = tempfile.mkdtemp(prefix="multilang-test-")  # mode 0700
                self._address = os.path.join(folder, "socket")
                listening = socket.socket(socket.AF_UNIX)
                listening.bind(self._address)
                listening.listen()
                threading.Thread(target=_accept, args=(listening, weakref.ref(self)), daemon=True).start()
                weakref.finalize(self, _end, listening, folder)
            return self._address


class Away:
    """Represents a Shared of the test's process; the first ``call`` connects to it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._wire: Any = None

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the object in the test's process; when that process ends, so does this one."""
        try:
            if self._wire is None:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(self._address)
                self._wire = connection.makefile("rwb")
                connection.close()
            self._wire.write(dumps([name, list(arguments)]).encode() + b"\n")
            self._wire.flush()
            answer = self._wire.readline()
        except OSError:
            answer = b""
        if not answer:
            raise EndOfInput
        return loads(answer)

    def __deepcopy__(self, memo: dict[int, Any]) -> Away:
        return self


def check_reachable(shared: Shared | Away, collector: Collector, what: str) -> None:
    """Raise ConfigError in a task's process that has imported its topology, and so has another object than the test."""
    if isinstance(shared, Shared) and collector.to_parent:
        raise ConfigError(
            f"{what} is controlled by the test, which this task's process can't reach: it imported its topology from a module. Build "
            'the topology inside the test, where it has no name in a module, or run it with LocalCluster("inprocess") or '
            '"simulated"'
        )


def _accept(listening: socket.socket, shared: weakref.ref[Shared]) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # closed
        threading.Thread(target=_answer, args=(connection, shared), daemon=True).start()


def _answer(connection: socket.socket, shared: weakref.ref[Shared]) -> None:
    with suppress(OSError), connection, connection.makefile("rwb") as wire:  # the task's process may end at any time
        for line in wire:
            name, arguments = loads(line)
            found = shared()
            if found is None or name.startswith("_"):
                return
            wire.write(dumps(found.call(name, *arguments)).encode() + b"\n")
            wire.flush()
            del found


def _end(listening: socket.socket, folder: str) -> None:
    try:
        listening.shutdown(socket.SHUT_RDWR)  # ends the call of the thread that accepts
    except OSError:
        pass
    listening.close()
    shutil.rmtree(folder, ignore_errors=True)
