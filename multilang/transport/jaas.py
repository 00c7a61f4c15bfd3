"""Java's login configuration (JAAS), from which Storm's clients take their user and password, or their keytab.

StormClient {
   org.apache.storm.security.auth.digest.DigestLoginModule required
   username="bob"
   password="bobsecret";
};
"""

from __future__ import annotations

import os
import re

from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "java.security.auth.login.config"
_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|"(?P<text>(?:[^"\\\n]|\\.)*)"|(?P<word>[\w.$*-]+)|(?P<sign>[{}=;])', re.DOTALL
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_PROPERTY = re.compile(r"\$\{([^}]*)\}")


def read_section(conf: Mapping[str, Any], section: str) -> dict[str, str]:
    """Return the options of a section of the JAAS file that the conf names.

    Those of a later module of the section replace those of an earlier one, as in Storm's clients.

    Args:
        conf: The conf with the key ``java.security.auth.login.config``.
        section: The section's name, such as ``StormClient``.

    Raises:
        ConfigError: There is no such file or section, or it can't be read. No error shows a value of the file.
    """
    path = conf.get(FILE)
    if not isinstance(path, str) or not path:
        raise ConfigError(
            f"a login needs a JAAS file with a section {section}, and {FILE} names none: set it to the file's path"
        )
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        raise ConfigError(f"the JAAS file {path} ({FILE}) can't be read: {why}") from None
    sections = parse(text, path)
    if section not in sections:
        there = ", ".join(sections) or "none at all"
        raise ConfigError(f"the JAAS file {path} has no section {section}, which the login needs; it has {there}")
    return sections[section]


def parse(text: str, path: str) -> dict[str, dict[str, str]]:
    """Return section -> option -> value of a JAAS file's text. ``path``: the file, for errors. Raises ConfigError."""
    tokens = _Tokens(text, path)
    sections: dict[str, dict[str, str]] = {}
    while tokens.more():
        name = tokens.take("a section's name")
        options: dict[str, str] = {}
        tokens.take_sign("{")
        while not tokens.at("}"):
            tokens.take("a login module's class")
            tokens.take("a module's flag, such as required")
            while not tokens.at(";"):
                option = tokens.take("an option or ;")
                tokens.take_sign("=")
                options[option] = _expanded(tokens.take(f"the value of {option}"), path)
            tokens.take_sign(";")
        tokens.take_sign("}")
        tokens.take_sign(";")
        sections[name] = options
    return sections


class _Tokens:
    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._found: list[tuple[str, str, int]] = []  # kind, text, line
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            line = text.count("\n", 0, at) + 1
            if match is None:
                raise self._wrong(
                    line, "a character that belongs into quotation marks, or a quotation mark without its other"
                )
            kind = match.lastgroup or ""
            if kind != "skip":
                self._found.append((kind, match[kind], line))
            at = match.end()
        self._last = text.count("\n") + 1
        self._next = 0

    def more(self) -> bool:
        return self._next < len(self._found)

    def at(self, sign: str) -> bool:
        if not self.more():
            raise self._wrong(self._last, f"its end, where {sign} is missing")
        return self._found[self._next][:2] == ("sign", sign)

    def take(self, what: str) -> str:
        kind, text, line = self._found[self._next] if self.more() else ("sign", "", self._last)
        if kind == "sign":
            raise self._wrong(line, f"{text!r} in the place of {what}" if text else f"its end in the place of {what}")
        self._next += 1
        return _ESCAPE.sub(_unescaped, text) if kind == "text" else text

    def take_sign(self, sign: str) -> None:
        if not self.at(sign):
            raise self._wrong(self._found[self._next][2], f"something else in the place of {sign}")
        self._next += 1

    def _wrong(self, line: int, what: str) -> ConfigError:
        return ConfigError(
            f'the JAAS file {self._path} has in line {line} {what}; write Section {{ class required name="value"; }};'
        )


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPED.get(escape, escape)


def _expanded(value: str, path: str) -> str:
    """Return a value with the Java properties in it that have a meaning here."""
    known = {"user.home": os.path.expanduser("~"), "user.name": os.environ.get("USER", ""), "/": os.sep}

    def one(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ConfigError(
                f"the JAAS file {path} uses the Java property ${{{match[1]}}}, which is not known here; write its value"
            )
        return known[match[1]]

    return _PROPERTY.sub(one, value)
