"""Faults in what stands between the messages."""

from __future__ import annotations

import json
import os

from .registry import Bolt, Spout, mutant


@mutant("bolt", "common/framing/2")
class PrintsToStdout(Bolt):
    def process(self, tup):
        self.write(b"processing a tuple\n")
        super().process(tup)


@mutant("spout", "common/framing/2")
class Banner(Spout):
    def run(self):
        self.write(b"MySpout 1.0 (c) 2026\n")
        super().run()


@mutant("bolt", "common/framing/1")
class PrintsAMessage(Bolt):
    def process(self, tup):
        self.write(b"processing a tuple\nend\n")
        super().process(tup)


@mutant("bolt", "common/framing/3")
class SendsAnArray(Bolt):
    def process(self, tup):
        super().process(tup)
        self.send(["done", tup["id"]])


@mutant("bolt", "common/framing/4")
class EmptyMessage(Bolt):
    def handle(self, message):
        super().handle(message)
        self.write(b"end\n")


@mutant("bolt", "common/framing/5")
class BlankBehindEnd(Bolt):
    def write(self, data):
        super().write(data.replace(b"\nend\n", b"\nend \n"))


@mutant("bolt", "common/framing/6")
class BreaksOff(Bolt):
    def process(self, tup):
        if self.conf.get("a.text"):  # only in one case's topology
            return super().process(tup)
        super().process(tup)
        self.write(b'{"command": "log", "ms')
        os._exit(0)


@mutant("bolt", "common/framing/7")
class ByteOrderMark(Bolt):
    def process(self, tup):
        self.write(b"\xef\xbb\xbf")
        super().process(tup)


@mutant("bolt", "common/framing/8")
class Latin1(Bolt):
    def send(self, message):
        self.write(json.dumps(message, ensure_ascii=False).encode("latin-1", "replace") + b"\nend\n")


@mutant("bolt", "common/framing/16")
class TwoMessagesInOne(Bolt):
    def do_ack(self, name="this"):
        self.write(b'{"command": "log", "msg": "done", "level": 2}\n')
        super().do_ack(name)


@mutant("bolt", "common/framing/12")
class CrLf(Bolt):
    def write(self, data):
        super().write(data.replace(b"\n", b"\r\n"))


@mutant("bolt", "common/framing/13")
class EmptyLines(Bolt):
    def write(self, data):
        super().write(b"\n" + data)


@mutant("bolt", "common/framing/14")
class RawTabs(Bolt):
    def write(self, data):
        super().write(data.replace(b"\\n end", b"\tend"))


@mutant("bolt", "common/framing/15")
class KeyTwice(Bolt):
    def write(self, data):
        super().write(data.replace(b'{"command": "ack"', b'{"command": "fail", "command": "ack"'))


@mutant("spout", "common/framing/10")
class NestedDeep(Spout):
    def send(self, message):
        if message.get("command") == "log":
            self.write(b'{"command": "log", "msg": "x", "more": ' + b"[" * 450 + b"]" * 450 + b"}\nend\n")
        else:
            super().send(message)
