"""Faults with logs, errors, metrics, input and output, and the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from .registry import Bolt, Spout, mutant


@mutant("bolt", "common/log/6")
class LogsObjects(Bolt):
    def do_log(self, text, level=2):
        self.send({"command": "log", "msg": {"text": text}, "level": level})


@mutant("bolt", "common/log/8")
class LevelsAsWords(Bolt):
    def do_log(self, text, level=2):
        self.send({"command": "log", "msg": text, "level": ["trace", "debug", "info", "warn", "error"][level]})


@mutant("bolt", "common/log/2")
class CutsLogsAtTheLine(Bolt):
    def do_log(self, text, level=2):
        super().do_log(text.partition("\n")[0], level)


@mutant("spout", "common/error/3")
class EndsOnAnError(Spout):
    def do_error(self, text):
        super().do_error(text)
        sys.exit(1)


@mutant("bolt", "common/error/6")
class SwallowsExceptions(Bolt):
    def do_throw(self, text):
        self.is_open = False


@mutant("bolt", "common/metrics/3")
class UnknownMetric(Bolt):
    def do_metric(self, name, params):
        super().do_metric("nosuch", params)


@mutant("bolt", "common/io/9")
class HoldsOutputBack(Bolt):
    """Its output is written when the next input is there."""

    held = b""

    def write(self, data):
        self.held += data
        if b'"pid"' in data or b'"sync"' in data:
            self.write_held()

    def write_held(self):
        data, self.held = self.held, b""
        super().write(data)

    def read_message(self):
        message = super().read_message()
        self.write_held()
        return message


@mutant("bolt", "common/io/10")
class TalksOnStandardErrorAtItsStart(Bolt):
    def shake_hands(self):
        sys.stderr.write("loading ...\n" * 20_000)
        super().shake_hands()


@mutant("spout", "common/io/10")
class TalksOnStandardErrorAtWork(Spout):
    def obey(self, message):
        sys.stderr.write("asked for the next one\n" * 5_000)
        super().obey(message)


@mutant("bolt", "common/io/13")
class PrintsWhatUsersPrint(Bolt):
    def do_print(self, text):
        self.write(text.encode() + b"\n")


@mutant("bolt", "common/end/1")
class LivesOnWithoutInput(Bolt):
    def read_message(self):
        try:
            return super().read_message()
        except SystemExit:
            time.sleep(3600)


@mutant("bolt", "common/end/10")
class WaitsForTaskIdsWithoutInput(Bolt):
    def wait_for_ids(self, wanted):
        try:
            return super().wait_for_ids(wanted)
        except SystemExit:
            time.sleep(3600)


@mutant("spout", "common/log/8")
class LevelsStick(Spout):
    last = 2

    def do_log(self, text, level=None):
        self.last = self.last if level is None else level
        super().do_log(text, self.last)


@mutant("spout", "common/io/12")
class ForgetsALineAfterAMoment(Spout):
    def read_message(self):
        lines, at = [], time.monotonic()
        while (line := sys.stdin.buffer.readline()) != b"end\n" or not lines:
            lines.append(line or sys.exit(0))
            at = time.monotonic()
        if time.monotonic() - at > 0.4:
            return self.read_message()
        return json.loads(b"".join(lines))


@mutant("spout", "common/end/4")
class IgnoresSigterm(Spout):
    def run(self):
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().run()


@mutant("bolt", "common/unknown/2")
class MessageWithoutCommand(Bolt):
    def do_ack(self, name="this"):
        super().do_ack(name)
        self.send({"done": True})


@mutant("bolt", "common/end/8")
class LeavesAHelper(Bolt):
    def shake_hands(self):
        super().shake_hands()
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)


@mutant("bolt", "common/end/11")
class LeavesAHelperAtAnException(Bolt):
    def do_throw(self, text):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)
        super().do_throw(text)


@mutant("bolt", "common/end/8")
class LeavesAHelperWithoutEnvironment(Bolt):
    """The helper's parent has ended, and nothing of its environment is left."""

    def shake_hands(self):
        super().shake_hands()
        script = "sleep 600 </dev/null >/dev/null 2>&1 &"
        subprocess.run(["/bin/sh", "-c", script], env={}, start_new_session=True, check=True)


@mutant("bolt", "common/sizes/9")
class LeavesEndedProcesses(Bolt):
    def process(self, tup):
        if os.fork() == 0:
            os._exit(0)
        super().process(tup)


@mutant("spout", "common/sizes/9")
class LeavesFilesOpen(Spout):
    files = []

    def obey(self, message):
        self.files.append(os.open("/dev/null", os.O_RDONLY))
        super().obey(message)


@mutant("bolt", "common/sizes/8")
class FallsSilent(Bolt):
    count = 0

    def process(self, tup):
        self.count += 1
        if self.count < 4000:
            super().process(tup)


@mutant("bolt", "common/io/14")
class DiesOfSilence(Bolt):
    def read_message(self):
        signal.alarm(2)
        return super().read_message()


@mutant("bolt", "common/error/8")
class CutsErrors(Bolt):
    def do_error(self, text):
        super().do_error(text[:2000])


@mutant("bolt", "common/error/9")
class StripsErrors(Bolt):
    def do_error(self, text):
        super().do_error(text.strip() if "\n" not in text else text)


@mutant("bolt", "common/metrics/4")
class DropsFalsyParams(Bolt):
    def do_metric(self, name, params):
        super().do_metric(name, params or None)
