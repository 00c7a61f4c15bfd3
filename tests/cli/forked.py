"""A process that has the command loaded, and forks for each command line that it is sent.

Most of a command's time, and of its memory, goes into the start of Python and the import of click and rich. Here both are
done once for many command lines. Each still runs in a process of its own, with its own folder, environment and streams.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys

READ = 1 << 20  # bytes of a request: more than a command line and its environment have
STREAMS = 3
LOADED = ("rich.console", "multilang.cli.app", "multilang.topology")  # a command imports what it needs besides


def serve(place: socket.socket) -> None:
    """Run what is sent until the other end is closed: the process's number, then its status, are the answers."""
    while True:
        request, streams, _, _ = socket.recv_fds(place, READ, STREAMS)
        if not request:
            return
        child = os.fork()
        if not child:
            place.close()
            sys.exit(_run(json.loads(request), streams))
        for fd in streams:
            os.close(fd)
        place.send(str(child).encode())
        place.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _run(request: dict[str, object], streams: list[int]) -> int:
    """Run one command line as ``multilang.cli.main`` does, and return its status."""
    from multilang.cli.app import run_app

    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    arguments, environment, folder = request["arguments"], request["environment"], request["folder"]
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(folder))
    sys.argv[1:] = arguments
    return run_app(arguments)


if __name__ == "__main__":
    from importlib import import_module

    for name in LOADED:
        import_module(name)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    end = socket.socket(fileno=int(sys.argv[1]))
    sys.argv[:] = [os.path.join(os.path.dirname(sys.executable), "multilang")]
    sys.path[0] = os.path.dirname(sys.executable)  # as it is of a program there
    gc.freeze()  # what a search for garbage does not touch, the processes continue to share
    serve(end)
