"""The components of the captures in fixtures/wire, without a library: `python replayed.py split`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("plain", ROOT / "examples" / "conformance" / "plain.py")
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)


class Sink(plain.Bolt):
    def process(self, tup):
        self.send({"command": "ack", "id": tup["id"]})


class Split(plain.Bolt):
    offset = plain.OFFSET

    def ids_of(self, message):
        self.send({"command": "emit", **message})
        self.ids_due.append(wanted := [])
        return self.wait_for_ids(wanted)

    def process(self, tup):
        if tup["comp"] == "__system":
            self.send({"command": "ack", "id": tup["id"]})
            return
        word, anchors = tup["tuple"][0], [tup["id"]]
        if word == "timeout":
            return
        if word == "failme":
            self.send({"command": "fail", "id": tup["id"]})
            return
        ids = self.ids_of({"tuple": [word, len(str(word))], "anchors": anchors})
        self.do_log(f"task ids {ids!r}")
        sink = min(int(task) for task, name in self.context["task->component"].items() if name == "sink")
        direct = {"task": sink + self.offset, "stream": "routed", "tuple": ["direct", word], "anchors": anchors}
        self.send({"command": "emit", **direct})
        self.ids_of({"tuple": [word], "stream": "summary"})
        self.send({"command": "ack", "id": tup["id"]})


class Src(plain.Spout):
    def obey(self, message):
        if message["command"] == "next" and self.rows:
            row = self.rows.pop(0)
            self.send({"command": "emit", **row})
            self.ids_due.append(wanted := [])
            self.do_log(f"task ids {self.wait_for_ids(wanted)!r}")
        elif message["command"] in ("activate", "deactivate"):
            self.do_log(message["command"])
        self.send({"command": "sync"})

    rows = [
        {"tuple": ["ant", 1], "id": "s1"},
        {"tuple": ["bee", 2], "id": 2},
        {"tuple": ["unreliable", 3]},
        {"tuple": ["ctl-a"], "stream": "control", "id": {"k": [1, "x"]}},
        {"tuple": ['héllo ✓ 🐍 "q" \\ / </b> \n end', 4], "id": "s4"},
        {"tuple": [{"a": [1, 2.5, None, True, 1e300], "b": {}}, 12345678901234567890], "id": "s5"},
        {"tuple": ["failme", 6], "id": "s6"},
        {"tuple": ["timeout", 7], "id": "s7"},
    ]


class ForgetsToFail(Split):
    def send(self, message):
        if message.get("command") == "fail":
            message["command"] = "ack"
        super().send(message)


class SaysTooMuch(Split):
    def handle(self, message):
        super().handle(message)
        if message.get("stream") == "__tick":
            self.do_log("a tick")


if __name__ == "__main__":
    {"sink": Sink, "split": Split, "src": Src, "forgets": ForgetsToFail, "much": SaysTooMuch}[sys.argv[1]]().run()
