"""A correct component with one fault: `python mutant.py bolt NAME`. The faults stand in MUTANTS, each with its case."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("plain", ROOT / "examples" / "conformance" / "plain.py")
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

MUTANTS = {}  # name -> (kind, the case meant for it, class)


def mutant(kind, case):
    def add(cls):
        MUTANTS[cls.__name__] = (kind, case, cls)
        return cls

    return add


Bolt, Spout = plain.Bolt, plain.Spout

# ---- handshake and PID ----


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


@mutant("bolt", "common/handshake/7")
class WantsConf(Bolt):
    def shake_hands(self):
        super().shake_hands()
        self.name = self.conf["topology.name"]


# ---- framing ----


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


@mutant("bolt", "common/framing/11")
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


# ---- JSON, text, numbers, sizes ----


@mutant("bolt", "common/json/1")
class ReadsOneLineAMessage(Bolt):
    def read_message(self):
        if not hasattr(self, "conf"):
            return super().read_message()
        line = sys.stdin.buffer.readline() or sys.exit(0)
        sys.stdin.buffer.readline()
        return json.loads(line)


@mutant("bolt", "common/json/6")
class EndInQuotesEndsAMessage(Bolt):
    def read_message(self):
        lines = []
        while True:
            line = sys.stdin.buffer.readline() or sys.exit(0)
            if line.strip(b' "\n') == b"end":
                return json.loads(b"".join(lines))
            lines.append(line)


@mutant("bolt", "common/json/7")
class WritesTextUnescaped(Bolt):
    def write(self, data):
        body = data[: -len(b"\nend\n")].replace(b"\\n", b"\n")
        super().write(body + b"\nend\n")


@mutant("bolt", "common/json/10")
class BooleansAreNumbers(Bolt):
    def emit(self, values, options, message):
        values = json.loads(json.dumps(values).replace("true", "1").replace("false", "0"))
        super().emit(values, options, message)


@mutant("bolt", "common/json/11")
class DropsNulls(Bolt):
    def emit(self, values, options, message):
        super().emit(["" if value is None else value for value in values], options, message)


@mutant("bolt", "common/unicode/2")
class SplitsSurrogates(Bolt):
    def send(self, message):
        text = json.dumps(message, ensure_ascii=False)
        self.write("".join(c if ord(c) < 0x10000 else "??" for c in text).encode() + b"\nend\n")


@mutant("bolt", "common/unicode/7")
class NormalisesText(Bolt):
    def send(self, message):
        import unicodedata

        text = json.dumps(message, ensure_ascii=False)
        self.write(unicodedata.normalize("NFC", text).encode() + b"\nend\n")


@mutant("bolt", "common/unicode/3")
class SplitsLinesAnywhere(Bolt):
    def read_message(self):
        lines = []
        while True:
            line = sys.stdin.buffer.readline() or sys.exit(0)
            if line == b"end\n":
                return json.loads("".join(lines).rstrip("\n"))
            for part in line.decode().splitlines():
                if part == "end":
                    return json.loads("".join(lines))
                lines.append(part)


@mutant("bolt", "common/io/6")
class SplitsUtf8(Bolt):
    def read_message(self):
        text = ""
        while not text.endswith("\nend\n"):
            data = os.read(0, 65536) or sys.exit(0)
            text += data.decode("utf-8", "replace")
        self.pieces = getattr(self, "pieces", []) + text.split("\nend\n")[:-1]
        return json.loads(self.pieces.pop(0))

    def read_command(self):
        if getattr(self, "pieces", []):
            self.waiting.append(json.loads(self.pieces.pop(0)))
        return super().read_command()


@mutant("bolt", "common/numbers/6")
class NumbersAreDoubles(Bolt):
    def emit(self, values, options, message):
        def doubled(value):
            if isinstance(value, list):
                return [doubled(each) for each in value]
            return int(float(value)) if type(value) is int else value

        super().emit(doubled(values), options, message)


@mutant("bolt", "common/numbers/2")
class NumbersAreInts(Bolt):
    def emit(self, values, options, message):
        def narrowed(value):
            if isinstance(value, list):
                return [narrowed(each) for each in value]
            return (value + 2**31) % 2**32 - 2**31 if type(value) is int else value

        super().emit(narrowed(values), options, message)


@mutant("bolt", "common/numbers/12")
class WritesNaN(Bolt):
    def emit(self, values, options, message):
        super().emit([float("inf") if value == "plain" else value for value in values], options, message)

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\nend\n")


@mutant("bolt", "common/sizes/2")
class CutsLongTexts(Bolt):
    def emit(self, values, options, message):
        super().emit([value[:100_000] if isinstance(value, str) else value for value in values], options, message)


# ---- logs, metrics, I/O, end ----


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


# ---- bolts ----


@mutant("bolt", "bolt/heartbeat/1")
class NoSync(Bolt):
    def send(self, message):
        if message.get("command") != "sync":
            super().send(message)


@mutant("bolt", "bolt/heartbeat/4")
class AcksHeartbeats(Bolt):
    def handle(self, message):
        super().handle(message)
        if message["stream"] == "__heartbeat":
            self.send({"command": "ack", "id": message["id"]})


@mutant("bolt", "bolt/heartbeat/1")
class HeartbeatsNeedAComponent(Bolt):
    def handle(self, message):
        if message["stream"] != "__heartbeat" or message["comp"]:
            super().handle(message)


@mutant("bolt", "bolt/heartbeat/11")
class TwoSyncs(Bolt):
    def send(self, message):
        super().send(message)
        if message.get("command") == "sync":
            super().send(message)


@mutant("bolt", "bolt/tick/1")
class NeverAcksTicks(Bolt):
    def process(self, tup):
        if tup["stream"] != "__tick":
            super().process(tup)


@mutant("bolt", "bolt/tick/2")
class TicksAreHeartbeats(Bolt):
    def handle(self, message):
        if message["task"] == -1:
            self.send({"command": "sync"})
            if message["stream"] == "__tick":
                self.send({"command": "ack", "id": message["id"]})
        else:
            super().handle(message)


@mutant("bolt", "bolt/tuple/4")
class IdsAreDoubles(Bolt):
    def handle(self, message):
        if message["id"].lstrip("-").isdigit() and abs(int(message["id"])) > 9 * 10**18:
            message["id"] = str(int(float(message["id"])))
        super().handle(message)


@mutant("bolt", "bolt/tuple/5")
class IdsAreNumbers(Bolt):
    def handle(self, message):
        if message["id"].isdigit():
            message["id"] = str(int(message["id"]))
        super().handle(message)


@mutant("bolt", "bolt/emit/3")
class OneStream(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit(values, {**(options or {}), "stream": "default"})


@mutant("bolt", "bolt/emit/8")
class StreamOfItsOwn(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit(values, {**(options or {}), "stream": "mine"} if values == ["plain"] else options)


@mutant("bolt", "bolt/emit/8")
class EmptyStream(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit(values, {"stream": "", **(options or {})})


@mutant("bolt", "bolt/emit/6")
class OneValueWithoutAList(Bolt):
    def send(self, message):
        if message.get("tuple") == ["plain"]:
            message["tuple"] = "plain"
        super().send(message)


@mutant("bolt", "bolt/emit/10")
class ValueTooMuch(Bolt):
    def do_emit(self, values, options=None):
        super().do_emit([*values, None] if values == ["plain"] else values, options)


@mutant("bolt", "bolt/task_ids/1")
class TakesTaskIdsForTuples(Bolt):
    def send(self, message):
        message.pop("need_task_ids", None)
        super().send(message)

    def take_ids(self, ids):
        self.process({"id": ids[0] if ids else None, "tuple": []})


@mutant("bolt", "bolt/task_ids/5")
class TaskIdsInReverse(Bolt):
    """Of two that ask at once, each gets the other's: here the first emit's answer is given to all."""

    first = None

    def wait_for_ids(self, wanted):
        ids = super().wait_for_ids(wanted)
        self.first = self.first or ids
        return self.first


@mutant("bolt", "bolt/task_ids/7")
class DropsTuplesWhileItWaits(Bolt):
    def came_meanwhile(self, message):
        if message["stream"] == "__heartbeat":
            super().came_meanwhile(message)


@mutant("bolt", "bolt/task_ids/4")
class WaitsForATask(Bolt):
    def take_ids(self, ids):
        if ids:
            super().take_ids(ids)


@mutant("bolt", "bolt/anchors/1")
class NoAnchors(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, {**message, "anchors": []})


@mutant("bolt", "bolt/anchors/2")
class AlwaysAnchors(Bolt):
    def do_emit(self, values, options=None):
        options = dict(options or {})
        if not options.get("anchors", True):
            del options["anchors"]
        super().do_emit(values, options)


@mutant("bolt", "bolt/anchors/3")
class OneAnchor(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, {**message, "anchors": message["anchors"][:1]})


@mutant("bolt", "bolt/anchors/8")
class AcksBeforeEmits(Bolt):
    def process(self, tup):
        self.later = []
        super().process(tup)
        for message in self.later:
            super().send(message)

    def send(self, message):
        if message.get("command") == "emit":
            self.later.append(message)
        else:
            super().send(message)


@mutant("bolt", "bolt/anchors/11")
class AnchorWithoutAList(Bolt):
    def send(self, message):
        if message.get("anchors"):
            message["anchors"] = message["anchors"][0]
        super().send(message)


@mutant("bolt", "bolt/anchors/12")
class AnchorTwice(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, {**message, "anchors": message["anchors"] * 2})


@mutant("bolt", "bolt/ack/6")
class AcksTwice(Bolt):
    def finish(self, command, name):
        super().finish(command, name)
        if name == "this":
            self.send({"command": "ack", "id": self.this["id"]})


@mutant("bolt", "bolt/ack/7")
class AcksAnotherId(Bolt):
    def do_ack(self, name="this"):
        super().do_ack(name)
        self.send({"command": "ack", "id": "0"})


@mutant("bolt", "bolt/ack/8")
class AcksNumbers(Bolt):
    def send(self, message):
        if message.get("command") == "ack":
            message["id"] = int(message["id"])
        super().send(message)


@mutant("bolt", "bolt/ack/2")
class AcksWhatIsKept(Bolt):
    def do_keep(self, name):
        super().do_keep(name)
        self.is_open = True


@mutant("bolt", "bolt/fail/1")
class AcksFailures(Bolt):
    def do_fail(self, name="this"):
        self.do_ack(name)


@mutant("bolt", "bolt/fail/5")
class FailsAndAcks(Bolt):
    def do_fail(self, name="this"):
        super().do_ack(name)
        self.send({"command": "fail", "id": self.this["id"]})


@mutant("bolt", "bolt/direct/2")
class WaitsForIdsOfDirectEmits(Bolt):
    def emit(self, values, options, message):
        super().emit(values, options, message)
        if "task" in options:
            self.ids_due.append(wanted := [])
            self.wait_for_ids(wanted)


@mutant("bolt", "bolt/direct/1")
class AnotherTask(Bolt):
    def emit(self, values, options, message):
        if "task" in options:
            options = {**options, "task": 17 - options["task"]}
        super().emit(values, options, message)


@mutant("bolt", "bolt/direct/5")
class TaskAsText(Bolt):
    def send(self, message):
        if "task" in message:
            message["task"] = str(message["task"])
        super().send(message)


@mutant("bolt", "bolt/direct/7")
class ForgetsTheTask(Bolt):
    def send(self, message):
        message.pop("task", None)
        super().send(message)


@mutant("bolt", "bolt/direct/9")
class PlainTask(Bolt):
    def send(self, message):
        if "task" in message:
            message["task"] -= plain.OFFSET
        super().send(message)


@mutant("bolt", "bolt/order/1")
class LogsLast(Bolt):
    def process(self, tup):
        self.logs = []
        super().process(tup)
        for message in self.logs:
            super().send(message)

    def send(self, message):
        if message.get("command") == "log":
            self.logs.append(message)
        else:
            super().send(message)


# ---- spouts ----


@mutant("spout", "spout/direct/2")
class DirectEmitsAreUnreliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {} if "task" in options else message)


@mutant("spout", "spout/commands/1")
class SpoutWithoutSync(Spout):
    def send(self, message):
        if message.get("command") != "sync":
            super().send(message)


@mutant("spout", "spout/sync/2")
class SyncTwice(Spout):
    def send(self, message):
        super().send(message)
        if message.get("command") == "sync":
            super().send(message)


@mutant("spout", "spout/sync/1")
class SyncFirst(Spout):
    def obey(self, message):
        self.early = True
        self.send({"command": "sync"})
        self.early = False
        super().obey(message)

    def send(self, message):
        if message.get("command") != "sync" or self.early:
            super().send(message)


@mutant("spout", "spout/sync/6")
class EmitsAfterTheSync(Spout):
    def obey(self, message):
        super().obey(message)
        if message["command"] == "deactivate":
            self.send({"command": "emit", "tuple": ["late"], "need_task_ids": False})


@mutant("spout", "spout/commands/4")
class DoesNotKnowActivate(Spout):
    def obey(self, message):
        if message["command"] in ("next", "ack", "fail"):
            super().obey(message)


@mutant("spout", "spout/commands/20")
class SpoutThatAcks(Spout):
    def obey(self, message):
        if message["command"] == "ack":
            self.send({"command": "ack", "id": message["id"]})
        super().obey(message)


@mutant("spout", "spout/commands/14")
class MessageIdsAreTexts(Spout):
    def obey(self, message):
        if "id" in message:
            message["id"] = str(message["id"])
        super().obey(message)


@mutant("spout", "spout/commands/15")
class AckIsFail(Spout):
    def obey(self, message):
        if message["command"] == "fail":
            message["command"] = "ack"
        super().obey(message)


@mutant("spout", "spout/emit/1")
class AlwaysReliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {"id": "0", **message})


@mutant("spout", "spout/emit/2")
class NeverReliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {})


@mutant("spout", "spout/emit/3")
class IdsBecomeTexts(Spout):
    def emit(self, values, options, message):
        if "id" in message:
            message["id"] = str(message["id"])
        super().emit(values, options, message)


@mutant("spout", "spout/task_ids/5")
class BlocksForTaskIds(Spout):
    """As storm.py: an ack that comes before the task ids waits for them, and Storm for the ack's sync."""

    def came_meanwhile(self, message):
        self.waiting.append(message)


@mutant("spout", "spout/sync/7")
class NeverSleeps(Spout):
    def do_sleep(self, seconds):
        pass


if __name__ == "__main__":
    MUTANTS[sys.argv[1]][2]().run()
