"""The conformance component with this library: `python3 ours.py bolt`, `python3 ours.py spout`.

multilang conformance bolt -- python3 examples/conformance/ours.py bolt
"""

from __future__ import annotations

import sys
import time
from typing import Any

from multilang import Bolt, FailedException, Spout, Stream
from multilang.component import Component
from multilang.protocol import UnserializableValue

STREAMS: dict[str, list[str] | Stream] = {
    "other": ["value"],
    "pair": ["left", "right"],
    "direct": Stream(["value"], direct=True),
    "quiet": ["value"],
}
COMMON = ["emit", "ids", "direct", "log", "error", "metric", "conf", "context", "print", "throw", "sleep"]


class Steps(Component):
    """The steps that bolts and spouts have in common."""

    output_fields = ["value"]
    output_streams = STREAMS
    knows = COMMON

    def do(self, step: list[Any]) -> None:
        name, *arguments = step
        getattr(self, f"do_{name}")(*arguments)

    def do_contract(self) -> None:
        self.do(["emit", [["conformance", 1, self.knows]]])

    def do_conf(self, key: str) -> None:
        self.do(["emit", [self.conf.get(key)]])

    def do_context(self, key: str) -> None:
        self.do(["emit", [self.context.get(key)]])

    def do_log(self, text: str, level: int = 2) -> None:
        self.log(text, level)

    def do_error(self, text: str) -> None:
        self.report_error(text)

    def do_metric(self, name: str, params: Any) -> None:
        self.report_metric(name, params)

    def do_print(self, text: str) -> None:
        print(text)

    def do_throw(self, text: str) -> None:
        raise RuntimeError(text)

    def do_sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ConformanceBolt(Steps, Bolt):
    """A bolt that does the steps in a tuple's first value."""

    knows = [*COMMON, "ack", "fail", "keep", "tuple"]

    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.kept: dict[str, Any] = {}

    def process(self, tup: Any) -> None:
        self.this = tup
        self.is_kept = False
        try:
            for step in tup[0] if len(tup) and isinstance(tup[0], list) else []:
                self.do(step)
        except UnserializableValue as error:
            raise FailedException(str(error)) from error
        if tup.unfinished and not self.is_kept:
            self.ack(tup)

    def named(self, name: str) -> Any:
        return self.this if name == "this" else self.kept[name]

    def do_emit(self, values: list[Any], options: dict[str, Any] | None = None) -> None:
        options = options or {}
        anchors = [self.named(name) for name in options.get("anchors", ["this"])]
        need = options.get("ids", False)
        ids = self.emit(values, options.get("stream"), anchors, options.get("task"), need)
        if need:
            self.do_emit([["ids", ids]])

    def do_ack(self, name: str = "this") -> None:
        self.ack(self.named(name))

    def do_fail(self, name: str = "this") -> None:
        self.fail(self.named(name))

    def do_keep(self, name: str) -> None:
        self.kept[name] = self.this
        self.is_kept = True

    def do_tuple(self) -> None:
        tup = self.this
        self.do_emit([[tup.id, tup.component, tup.stream, tup.task, tup.values[1:]]])


class ConformanceSpout(Steps, Spout):
    """A spout that does the steps in the conf on each next, and on the other commands."""

    knows = [*COMMON, "heard"]

    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        self.script = iter(conf.get("conformance.script", []))
        self.on = conf.get("conformance.on", {})

    def obey(self, steps: list[Any], *heard: Any) -> None:
        self.heard = list(heard)
        try:
            for step in steps:
                self.do(step)
        except UnserializableValue as error:
            self.report_error(str(error))

    def next_tuple(self) -> None:
        self.obey(next(self.script, []), "next", "")

    def ack(self, tup_id: Any) -> None:
        self.obey(self.on.get("ack", []), "ack", tup_id)

    def fail(self, tup_id: Any) -> None:
        self.obey(self.on.get("fail", []), "fail", tup_id)

    def activate(self) -> None:
        self.obey(self.on.get("activate", []), "activate", "")

    def deactivate(self) -> None:
        self.obey(self.on.get("deactivate", []), "deactivate", "")

    def do_emit(self, values: list[Any], options: dict[str, Any] | None = None) -> None:
        options = options or {}
        need = options.get("ids", False)
        ids = self.emit(values, options.get("id"), options.get("stream"), options.get("task"), need)
        if need:
            self.do_emit([["ids", ids]])

    def do_heard(self) -> None:
        self.do_emit([self.heard])


if __name__ == "__main__":
    component: Component = {"bolt": ConformanceBolt, "spout": ConformanceSpout}[sys.argv[1]]()
    component.run()
