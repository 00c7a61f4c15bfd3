"""Faults in the handshake, the PID and its file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from .registry import Bolt, Spout, mutant


@mutant("bolt", "common/pid/1")
class NoPidFile(Bolt):
    def shake_hands(self):
        setup = self.read_message()
        self.conf, self.context = setup["conf"], setup["context"]
        self.send({"pid": os.getpid()})


@mutant("bolt", "common/pid/1")
class PidFileOfAnotherName(Bolt):
    def shake_hands(self):
        setup = self.read_message()
        self.conf, self.context = setup["conf"], setup["context"]
        Path(setup["pidDir"], f"{os.getpid()}.pid").touch()
        self.send({"pid": os.getpid()})


@mutant("bolt", "common/pid/2")
class AnotherPid(Bolt):
    def shake_hands(self):
        setup = self.read_message()
        self.conf, self.context = setup["conf"], setup["context"]
        Path(setup["pidDir"], "1").touch()
        self.send({"pid": 1})


@mutant("bolt", "common/pid/4")
class PidFileWithText(Bolt):
    def shake_hands(self):
        setup = self.read_message()
        self.conf, self.context = setup["conf"], setup["context"]
        Path(setup["pidDir"], str(os.getpid())).write_text("running")
        self.send({"pid": os.getpid()})


@mutant("bolt", "common/handshake/2")
class PidAsText(Bolt):
    def send(self, message):
        super().send({"pid": str(message["pid"])} if "pid" in message else message)


@mutant("bolt", "common/handshake/2")
class NoPid(Bolt):
    def send(self, message):
        super().send({"ready": True} if "pid" in message else message)


@mutant("spout", "common/handshake/3")
class PidTwice(Spout):
    def send(self, message):
        super().send(message)
        if "pid" in message:
            super().send(message)


@mutant("bolt", "common/handshake/4")
class ReadsOneLineOfTheHandshake(Bolt):
    def shake_hands(self):
        line = sys.stdin.buffer.readline()
        setup = json.loads(line)
        sys.stdin.buffer.readline()
        self.conf, self.context = setup["conf"], setup["context"]
        Path(setup["pidDir"], str(os.getpid())).touch()
        self.send({"pid": os.getpid()})


@mutant("bolt", "common/context/1")
class WantsTheNewContext(Bolt):
    def shake_hands(self):
        super().shake_hands()
        self.name = self.context["componentid"]


@mutant("bolt", "common/pid/6")
class RemovesItsPidFile(Bolt):
    def handle(self, message):
        super().handle(message)
        for file in self.files:
            file.unlink(missing_ok=True)

    def read_message(self):
        message = super().read_message()
        if "pidDir" in message:
            self.files = [Path(message["pidDir"], str(os.getpid()))]
        return message


@mutant("bolt", "common/context/10")
class KnowsTheStreamsWithTargetsAlone(Bolt):
    def do_context(self, key):
        value = self.context.get(key)
        if key == "streams":
            value = [name for name in value if self.context["stream->target->grouping"].get(name)]
        self.do(["emit", [value]])


@mutant("spout", "common/pid/8")
class LooksForPidDirAtTheBeginning(Spout):
    def read_message(self):
        message = super().read_message()
        if len(json.dumps(message.get("conf", 0))) > 65536:
            message["pidDir"] = os.path.dirname(message["pidDir"])
        return message
