"""The output of a program, cut into messages and checked more strictly than Storm does.

Storm reads lines until one is ``end``, and gives those before it to a lenient JSON parser. Here each deviation is a
*finding* with a code: some halt a worker, some Storm accepts silently and loses or changes data, some are only untidy.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from multilang.conformance.advice import ADVICE
from multilang.conformance.child import MAX_OUTPUT
from multilang.conformance.values import cut

MAX_DEPTH = 400  # Storm's parser refuses more
_MAX_SHOWN = 1 << 16  # bytes of an open message that are looked at
_MAX_END = 64  # bytes of a closing line with white space around the word, at most
_MAX_DIGITS = 4300  # Python's limit for an integer in text; neither JSON nor Storm has one
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """One deviation. ``halts``: a Storm worker would end there."""

    code: str
    detail: str
    halts: bool = True

    @property
    def text(self) -> str:
        """The deviation and its remedy."""
        advice = ADVICE.get(self.code)
        return f"{self.detail}; {advice}" if advice else self.detail


@dataclass
class ReadMessage:
    """One message of the program: its bytes with the closing line, its content, and its place in the conversation."""

    raw: bytes
    value: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    place: int = 0

    @property
    def command(self) -> str | None:
        """The message's command; None for the answer to the handshake."""
        command = self.value.get("command")
        return command if isinstance(command, str) else None

    @property
    def stream(self) -> str:
        """An emit's stream."""
        return self.value.get("stream") or "default"

    @property
    def values(self) -> Any:
        """An emit's values."""
        return self.value.get("tuple")

    @property
    def anchors(self) -> list[Any]:
        """An emit's anchors; a single one counts as a list of one, as for Storm."""
        anchors = self.value.get("anchors")
        if anchors is None:
            return []
        return anchors if isinstance(anchors, list) else [anchors]

    @property
    def task(self) -> int | None:
        """The task of a direct emit, of which Storm takes the lower 32 bits."""
        task = self.value.get("task")
        return task & 0xFFFFFFFF if type(task) is int else None


class OutputReader:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._at = 0  # the unread bytes before this place have no end of a message

    def take(self, unread: bytearray) -> ReadMessage | None:
        """Remove the next whole message from ``unread`` and return it, or None while there is none."""
        while (at := unread.find(b"end", self._at)) >= 0:
            stop = unread.find(b"\n", at)
            if stop < 0:
                self._at = at
                return None
            start = unread.rfind(b"\n", 0, at) + 1
            line = bytes(unread[start : min(stop, start + _MAX_END)])
            if line.strip(b" \t\r") == b"end" and len(line) < _MAX_END:
                raw = bytes(unread[: stop + 1])
                del unread[: stop + 1]
                self._at = 0
                return _message(raw, raw[:start], line)
            self._at = stop
        self._at = max(self._at, len(unread) - len(b"en"))
        return None


def integer(digits: str) -> int | Decimal:
    """Return a JSON integer; one that is too long for Python is a Decimal."""
    return int(digits) if len(digits) <= _MAX_DIGITS else Decimal(digits)


def leftover(unread: bytearray) -> Finding | None:
    """Return a finding for what is unread when the output has ended, or None if that is only white space."""
    text = bytes(unread)
    if not text.strip():
        return None
    if len(text) > MAX_OUTPUT:
        return Finding("framing.flood", f"{len(text)} bytes without a line 'end'; they begin {text[:80]!r}")
    return Finding("framing.partial", f"the output ends inside a message: {text[-200:]!r}")


def unclosed_message(unread: bytearray) -> Finding | None:
    """Return a finding if a whole JSON object is unread, for want of a closing line, else None."""
    text = bytes(unread[:_MAX_SHOWN]).decode("utf-8", "replace").strip()
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return Finding("framing.end", f"no line that holds only 'end' and a line feed closes this message: {text[:200]!r}")


def _message(raw: bytes, body: bytes, end: bytes) -> ReadMessage:
    message = ReadMessage(raw)
    flag = message.findings.append
    if end == b"end\r" or b"\r\n" in body:
        flag(Finding("framing.crlf", f"a line ends with CR LF: {raw[-40:]!r}", halts=False))
    elif end != b"end":
        flag(Finding("framing.end", f"the closing line is {end!r}, which ends nothing: Storm reads on", halts=False))
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        flag(
            Finding("framing.utf8", f"bytes that are not UTF-8, {error.object[error.start : error.start + 8]!r}", False)
        )
        text = body.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        flag(Finding("framing.bom", "a byte order mark stands before the message"))
        text = text[1:]
    if not text.strip():
        flag(Finding("framing.empty", "an empty message: a line 'end' with nothing before it"))
        return message
    if text.startswith(("\n", "\r")):
        flag(Finding("framing.blank", "empty lines stand before the message", halts=False))
    _parse(message, text.lstrip())
    return message


def _parse(message: ReadMessage, text: str) -> None:
    flag = message.findings.append
    notes = _Notes()
    try:
        value, stop = notes.decode(text)
    except RecursionError:
        flag(Finding("framing.depth", f"nested deeper than the {MAX_DEPTH} levels that Storm reads"))
        return
    except ValueError as error:
        flag(_not_json(text, error))
        return
    rest = text[stop:].strip()
    if rest:
        if _is_message(rest):  # which is awaited, perhaps
            flag(Finding("framing.lost", f"a second message before the line 'end', which Storm drops: {rest[:120]!r}"))
        else:
            flag(Finding("framing.second", f"text behind the JSON object, which Storm drops: {rest[:120]!r}", False))
    if not isinstance(value, dict):
        flag(Finding("framing.object", f"is {_kind(value)}, not an object: {text[:120]!r}"))
        return
    message.value = value
    for finding in notes.findings:
        flag(finding)
    if depth(value) > MAX_DEPTH:
        flag(Finding("framing.depth", f"nested deeper than the {MAX_DEPTH} levels that Storm reads"))
    if "\\u" in text and _lone(value):
        flag(Finding("unicode.surrogate", "a string holds half a surrogate pair, which Storm makes '?'", halts=False))
    if "\x7f" in text and "\\" in text:
        lost = [each for each in _STRING.findall(text[:stop]) if "\x7f" in each and "\\" in each]
        if lost:
            what = f"Storm drops a raw U+007F from a text that also holds an escape: {cut(lost[0], 100)}"
            flag(Finding("unicode.delete", what, halts=False))


def _is_message(text: str) -> bool:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "command" in value


def _not_json(text: str, error: ValueError) -> Finding:
    lines = text.split("\n")
    for number in range(1, len(lines)):
        if lines[number].lstrip().startswith("{"):
            try:
                value, _ = json.JSONDecoder(parse_int=integer).raw_decode("\n".join(lines[number:]).lstrip())
            except ValueError:
                continue
            if isinstance(value, dict):
                before = "\n".join(lines[:number])
                return Finding("framing.stray", f"text before a message that is no part of it: {before[:120]!r}")
    return Finding("framing.json", f"is not JSON ({error}): {text[:120]!r}")


class _Notes:
    """Decodes JSON, and notes what the JSON standard forbids or Storm would change."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def decode(self, text: str) -> tuple[Any, int]:
        hooks: dict[str, Any] = {
            "object_pairs_hook": self._pairs,
            "parse_constant": self._constant,
            "parse_int": integer,
        }
        try:
            return json.JSONDecoder(**hooks).raw_decode(text)
        except json.JSONDecodeError as error:
            if "control character" not in str(error):
                raise
            found = json.JSONDecoder(strict=False, **hooks).raw_decode(text)
            self.findings.append(
                Finding("framing.control", "a string holds a control character that JSON wants escaped", halts=False)
            )
            return found

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            self.findings.append(
                Finding("framing.duplicate", f"an object has the key {cut(twice, 100)!r} twice", halts=False)
            )
        return found

    def _constant(self, name: str) -> float:
        self.findings.append(
            Finding("numbers.constant", f"{name} is not JSON; Storm turns infinities into strings", halts=False)
        )
        return float(name.replace("Infinity", "inf"))


def depth(value: object) -> int:
    """Return how many objects and arrays are nested."""
    deepest, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        deepest += 1
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return deepest


def _lone(value: object) -> bool:
    level = [value]
    while level:
        if any(isinstance(each, str) and _SURROGATE.search(each) for each in level):
            return True
        level = [inner for outer in level for inner in _inside(outer)]
    return False


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
