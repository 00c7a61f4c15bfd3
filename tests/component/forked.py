"""A process that has loaded what every component needs, and forks for each component that it is asked to start.

Its modules are those that ``python -m multilang.component`` loads before the handshake. A component's own process begins
behind them, with its own folder, environment and streams.
"""

from __future__ import annotations

import gc
import os
import runpy
import signal
import socket
import sys
from select import select

import ujson

import multilang.child.process

READ = 1 << 20  # bytes of a request
DESCRIPTORS = 4  # the three streams, and where the status is written


def serve(place: socket.socket) -> None:
    """Start what is asked for until the other end is closed, and write each status when its process has ended."""
    ended, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready = select([place, ended], [], [])[0]
        if ended in ready:
            os.read(ended, 4096)
            for pid in list(statuses):
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    told = statuses.pop(pid)
                    try:
                        os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
                    except BrokenPipeError:
                        pass  # nobody wants to know
                    os.close(told)
        if place in ready:
            request, given, _, _ = socket.recv_fds(place, READ, DESCRIPTORS)
            if not request:
                return
            *streams, told = given
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for fd in (ended, wakes, told, place.detach(), *statuses.values()):
                    os.close(fd)
                _run(ujson.loads(request), streams)
                return
            statuses[pid] = told
            for fd in streams:
                os.close(fd)
            place.send(str(pid).encode())


def _run(request: dict[str, object], streams: list[int]) -> None:
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    environment, folder = request["environment"], str(request["folder"])
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0] = folder  # as with python -m
    sys.argv[1:] = [str(request["target"])]
    runpy.run_module("multilang.component", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    assert multilang.child.process
    end = socket.socket(fileno=int(sys.argv[1]))
    gc.freeze()
    serve(end)
