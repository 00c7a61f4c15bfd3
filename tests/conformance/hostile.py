"""Programs that do their worst to whoever tests them: `python hostile.py NAME`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time


def answer(removes: bool = False) -> None:
    text = b""
    while not text.endswith(b"\nend\n"):
        data = os.read(0, 65536)
        if not data:
            sys.exit(0)
        text += data
    where = json.loads(text[: -len(b"\nend\n")])["pidDir"]
    if removes:
        os.rmdir(where)
    else:
        open(f"{where}/{os.getpid()}", "w").close()
    os.write(1, b'{"pid": %d}\nend\n' % os.getpid())


def never_reads() -> None:
    time.sleep(3600)


def answers_nothing_more() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer()
    time.sleep(3600)


def ignores_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer()
    while True:
        time.sleep(3600)


def floods() -> None:
    answer()
    while True:
        os.write(1, b"a line of text\n" * 4096)


def floods_with_messages() -> None:
    answer()
    while True:
        os.write(1, b'{"command": "log", "msg": "x"}\nend\n' * 2048)


def a_hundred_megabytes_without_a_line() -> None:
    answer()
    block = b"x" * 65536
    for _ in range(1600):
        os.write(1, block)
    time.sleep(3600)


def floods_stderr() -> None:
    answer()
    while True:
        os.write(2, b"e" * 65536)


def closes_stdout() -> None:
    answer()
    os.close(1)
    time.sleep(3600)


def closes_stdin() -> None:
    answer()
    os.close(0)
    time.sleep(3600)


def exits_at_once() -> None:
    sys.exit(3)


def kills_itself() -> None:
    answer()
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves_children() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, __file__, "never_reads", sys.argv[2]])
    answer()
    time.sleep(3600)


def leaves_daemons() -> None:
    """Each in a session of its own, one of them without a parent: as a program does that makes itself a daemon."""
    for parent in ("", "import os; os.fork() and os._exit(0); "):
        code = f"import os; os.setsid(); {parent}os.execv({sys.executable!r}, {[sys.executable, *sys.argv]!r})"
        code = code.replace("'leaves_daemons'", "'never_reads'")
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    answer()
    time.sleep(3600)


def speaks_binary() -> None:
    os.write(1, bytes(range(256)) * 100 + b"\nend\n" * 50)
    time.sleep(3600)


def nests_deep() -> None:
    answer()
    os.write(1, b'{"command": "log", "msg": "\\u0041", "x": ' + b"[" * 700 + b"]" * 700 + b"}\nend\n")
    time.sleep(3600)


def takes_the_folder_away() -> None:
    answer(removes=True)
    time.sleep(3600)


def strange_shapes() -> None:
    answer()
    for value in ([], {}, 0, -1, None, True, "x", [[]], {"a": 1}, 10**30, 1e308):
        for key in ("id", "tuple", "anchors", "task", "stream", "msg", "level", "name", "params", "need_task_ids"):
            message = {"command": "emit" if key in ("tuple", "task", "stream") else "log", "msg": "", key: value}
            os.write(1, json.dumps(message).encode() + b"\nend\n")
    time.sleep(3600)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
