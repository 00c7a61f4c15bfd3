"""Faults with JSON, text, numbers and sizes."""

from __future__ import annotations

import json
import os
import sys

from .registry import Bolt, Spout, mutant


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


@mutant("bolt", "common/json/21")
class EmptyLineEndsAMessage(Bolt):
    def read_message(self):
        lines = []
        while True:
            line = sys.stdin.buffer.readline() or sys.exit(0)
            if line == b"end\n" or (line == b"\n" and lines):
                if lines:
                    return json.loads(b"".join(lines))
            else:
                lines.append(line)


@mutant("bolt", "common/json/20")
class TrimsTexts(Bolt):
    def emit(self, values, options, message):
        super().emit([value.strip() if isinstance(value, str) else value for value in values], options, message)


@mutant("spout", "common/json/17")
class TrimsKeys(Spout):
    def read_message(self):
        text = json.dumps(super().read_message())
        return json.loads(text, object_pairs_hook=lambda pairs: {key.strip(): value for key, value in pairs})


@mutant("bolt", "common/json/10")
class BooleansAreNumbers(Bolt):
    def emit(self, values, options, message):
        values = json.loads(json.dumps(values).replace("true", "1").replace("false", "0"))
        super().emit(values, options, message)


@mutant("bolt", "common/json/10")
class KeepsOneOfEqualValues(Bolt):
    cache = {}

    def emit(self, values, options, message):
        plain = (bool, int, float, str)
        values = [self.cache.setdefault(value, value) if isinstance(value, plain) else value for value in values]
        super().emit(values, options, message)


@mutant("bolt", "common/json/11")
class DropsNulls(Bolt):
    def emit(self, values, options, message):
        super().emit(["" if value is None else value for value in values], options, message)


@mutant("bolt", "common/json/11")
class DropsNullsAtTheEnd(Bolt):
    def emit(self, values, options, message):
        while len(values) > 1 and values[-1] is None:
            values = values[:-1]
        super().emit(values, options, message)


@mutant("bolt", "common/unicode/5")
class TrimsZeros(Bolt):
    """Takes U+0000 at an end of a text for padding."""

    def emit(self, values, options, message):
        super().emit([value.strip("\0") if isinstance(value, str) else value for value in values], options, message)


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


@mutant("bolt", "common/unicode/13")
class WritesDeleteRaw(Bolt):
    def write(self, data):
        super().write(data.replace(b"\\u007f", b"\x7f"))


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


@mutant("bolt", "common/json/20")
class UnifiesLineEnds(Bolt):
    def emit(self, values, options, message):
        super().emit(json.loads(json.dumps(values).replace("\\r\\n", "\\n")), options, message)
