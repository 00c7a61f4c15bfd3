"""The PID file, with which the supervisor finds the processes that it has to end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from multilang.conformance.case import PAGE, Section
from multilang.conformance.cases.handshake import BIG_CONF, LETTERS
from multilang.conformance.errors import CaseFailed
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/pid", "PID file", f"{PAGE}, Initial Handshake")
FILE = ("common/pid/1",)
_LONGER = 100_000  # characters; more than 64 KiB, where buffers may end


def has_file(t: Conversation) -> None:
    """Check that the file comes."""
    try:
        path = t.wait_pid_file()
    except CaseFailed as failure:
        why = failure.why.removeprefix("slow start: ")
        raise CaseFailed(why, f"the file {t.monitor.pid}", f"the files {t.pid_files()}", failure.timed_out) from None
    t.check(os.path.isfile(path), "it is no file", f"the file {t.monitor.pid}", "a folder, or something else")


@section.must(
    "a file named by the pid",
    "The component creates a file named by its pid in pidDir: without it the supervisor can't end a left-over process.",
)
def _(t: Conversation) -> None:
    t.handshake()
    has_file(t)


@section.must(
    "the pid is that of the program's process",
    "The supervisor sends signals to this number, so it is a live process: the one started, or one that it started.",
)
def _(t: Conversation) -> None:
    t.handshake()
    pid = t.monitor.pid
    t.check(
        t.child.owns(pid),
        f"the pid {pid} is no process of the program",
        f"a pid of the program's own processes (the one that was started is {t.child.pid})",
        str(pid),
    )


@section.should(
    "the file is there before the pid is sent",
    "The page has the file first and the answer after it. The other order shows in those runs that look between the two.",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.check(
        str(t.monitor.pid) in t.pid_files(), "no file yet when the pid came", f"the file {t.monitor.pid}", t.pid_files()
    )


@section.should("the file is empty", "The page asks for an empty file.", after=FILE)
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    size = os.path.getsize(t.wait_pid_file())
    t.check(size == 0, "the PID file is not empty", "0 bytes", f"{size} bytes")


@section.should("there is one file", "Whatever lies in pidDir is taken for a process to end.", after=FILE)
def _(t: Conversation) -> None:
    t.handshake()
    t.settle()
    t.wait_pid_file()
    t.same(t.pid_files(), [str(t.monitor.pid)], "pidDir holds something else")


@section.must(
    "the file stays",
    "The supervisor reads it when it ends the topology: a file that vanishes while the process runs is as good as none.",
    after=FILE,
    watch=("pid.vanished",),
)
def _(t: Conversation) -> None:
    t.handshake()
    name = str(t.monitor.pid)
    t.wait_pid_file()
    for _ in range(3):
        t.settle()
    t.check(name in t.pid_files(), "the PID file vanished", f"the file {name}", f"the files {t.pid_files()}")


@section.must(
    "a pidDir with blanks and other letters",
    "pidDir is any path: it is used as JSON decodes it.",
    after=(*FILE, *LETTERS),
)
def _(t: Conversation) -> None:
    t.pid_dir = os.path.join(t.pid_dir, "pids é ✓ 'q'")
    os.mkdir(t.pid_dir)
    t.handshake()
    t.wait(lambda: t.pid_files() or None, f"a file in pidDir {t.pid_dir!r}", often=True)
    t.settle()


@section.must(
    "a pidDir behind a large conf",
    "The keys of the handshake have no order, and its conf may have 100 KB: pidDir is found wherever it is.",
    after=(*FILE, "common/handshake/6"),
)
def _(t: Conversation) -> None:
    conf = {**t.world.full_conf(), **BIG_CONF, "filler": "x" * _LONGER}
    t.handshake(conf=conf, text=lambda text: storm_text(dict(sorted(json.loads(text).items()))))
    has_file(t)
    t.settle()
