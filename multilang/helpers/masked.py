"""Texts and confs as people may see them: secrets are shown as ``***``. It does no I/O, so that the protocol may use it.

A value is a secret by its key's name: ``shop.token``, ``"password"`` in the JSON of another key, or the
password in an address such as ``redis://user:password@host``. ``{"env": NAME}`` and ``{"file": PATH}`` only name a secret,
and are shown as they are.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MASK = "***"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_WORDS = "passwords?|passwd|passphrase|passcode|authorization|pwd|secrets?|auth[._-]payload|token|(?:access|api|auth|bearer|refresh)[._-]?tokens|(?<!auto-)credentials?|creds|apikey|(?:(?<=[a-z][._-])|(?-i:(?<=[a-z])(?=P)))pass"
# The last word counts: "source.secret.file" names a file, and "topology.auto-credentials" names classes.
_KEY = (
    rf"(?:{_WORDS}|(?:secret|api|access|account|private|signing|encryption|session|shared|master|keystore)[._-]?keys?"
    r"|(?:access|amz)[._-]?signature|(?<=[?&])sig|key\.pem|(?:jaas|oauthbearer)\.config)"
)
_IS_SECRET = re.compile(rf"(?:.*[^a-z])?{_KEY}", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# In a text, the end of a password is unknown: it may have quotes, commas, slashes and what else a text has after it. So
# each pattern takes as much as may belong to it: rather too much is hidden than a part of a password shown.
_SLASHES = r":(?:\\*/){2}"  # JSON may write a slash as \/
_ADDRESSES = re.compile(rf"(?:[^\s,;|]|[,;|](?!\w+{_SLASHES}))+")  # a word, or a part of it that begins with an address
_BEGIN = re.compile(_SLASHES)
_PORT = re.compile(r"(?:80|443|8080|8443)\\*/")  # as in http://host:80/about@me
_BARE = r"""\S*?(?=[,;"')\]}\\]{0,3}(?:\s|\Z))"""
_SCHEME = r"authorization\W{1,6}(?:bearer|basic|digest|negotiate|token)|bearer(?=\s+(?=\S*\d)\S{16})"
_HEADER = re.compile(rf"((?:{_SCHEME})\s+){_BARE}", re.IGNORECASE)
_PEM = re.compile(r"(PRIVATE KEY(?: BLOCK)?-----)(?:\s|\\+[nr])*[A-Za-z0-9+/]{16}.*?(?=-----|\Z)", re.DOTALL)
_TOKEN = re.compile(r"[\w~-]{20,}")  # as in https://TOKEN@github.com
_END = r"""(?=[)\]}/?>]*(?:\Z|\s|\\+[nrt"']|["'](?=\Z|[\s,)\]}])|[,;:.&](?=\Z|\s|["'\[{\\]|[\w.-]+["']?[=:])))"""
_QUOTED = re.compile(rf"""[bu]?((\\*)(["'])).*?(?:(?<!\\)\1{_END}|\Z)""", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"""(?<!\\)(\\*)(["']).*?(?:(?<!\\)\1\2|\Z)|[\[({]|[\])}]""", re.DOTALL)  # of a list or an object
_LITERAL = re.compile(r"(?:-?\d[\d.eE+-]*|null|true|false|None|True|False)(?=[\s,}\])]|\Z)")
_REFERENCE = re.compile(r"""\{\s*\\*["'](?:env|file)\\*["']\s*:\s*(\\*["'])[^"'\\]*\1\s*\}""")
_ONE_WORD = re.compile(r"(?:(?i:bearer|basic|digest|negotiate|token)|[A-Za-z][a-z]*(?:\(\))?[.,;:!?]?)(?=\s|\Z)")
_NAMED = re.compile(  # the key of a secret and what stands between it and its value, in JSON, Python, YAML or KEY=VALUE
    rf"""(?P<begin>^[^\S\n]*(?:- )?[\w.-]*?)?(?P<key>{_KEY})(?P<quote>\\*["'])?(?P<sign>[^\S\n]*[:=]=?>?[^\S\n]*)(?=\S)""",
    re.IGNORECASE | re.MULTILINE,
)
_WORD = re.compile(_BARE)
_ENDED = re.compile(_END)


def harmless(line: str, of_json: bool = False) -> str:
    """Return a text without what a terminal obeys: each control character is shown by its number.

    Whoever can make a component log a text could otherwise change what the terminal shows, its title or its clipboard.

    Args:
        line: The text.
        of_json: Whether it is JSON, and must remain the same document.
    """
    return _CONTROL.sub(
        lambda found: f"\\x{ord(found[0]):02x}" if found[0] < "\u0100" and not of_json else f"\\u{ord(found[0]):04x}",
        line,
    )


def is_secret(key: str) -> bool:
    """Return whether the value of a conf's key is a secret, by the key's name."""
    return _IS_SECRET.fullmatch(_CAMEL.sub(".", key)) is not None


def is_reference(value: object) -> bool:
    """Return whether a value only names a secret: ``{"env": NAME}`` or ``{"file": PATH}``."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("env", "file")


def masked(value: Any, key: object = None) -> Any:
    """Return a conf, a text or any value of JSON with ``***`` for its secrets. The value itself stays as it is.

    Args:
        value: The value.
        key: The key that it has, if it has one: all of it may be a secret, by this name.
    """
    if isinstance(key, str) and value is not None and is_secret(key) and not is_reference(value):
        return MASK
    if isinstance(value, dict):
        return {each: masked(item, each) for each, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Return a text with ``***`` for the passwords in its addresses, and for what follows the names of secrets."""
    if "@" in text and "/" in text:
        text = _ADDRESSES.sub(_without_password, text)
    text = _PEM.sub(rf"\1{MASK}", _HEADER.sub(rf"\1{MASK}", text))
    parts: list[str] = []
    at = 0
    while found := _NAMED.search(text, at):
        value = found.end()
        end = _end(text, value, found)
        quoted = _QUOTED.match(text, value)
        parts += (text[at:value], "" if end == value else f"{quoted[1]}{MASK}{quoted[1]}" if quoted else MASK)
        at = end
    return "".join((*parts, text[at:]))


def _end(text: str, at: int, found: re.Match[str]) -> int:
    """Return where a secret's value ends that begins at a place; the place itself, if it is no secret."""
    if _REFERENCE.match(text, at):
        return at
    if value := _QUOTED.match(text, at) or (found["quote"] and _LITERAL.match(text, at)):
        at = value.end()
    elif text[at] in "[{(":
        at = _end_of_list(text, at)
    elif found["sign"][-1].isspace() and (word := _ONE_WORD.match(text, at)):
        before = text[found.start("key") - 1 : found.start("key")]
        is_line = found["begin"] is not None and text[word.end() : word.end() + 1] in ("", "\n")
        if not is_line and found["key"].isalpha() and not (before.isalnum() or before in tuple("._-")):
            return at  # a sentence, such as "password: required"
    rest = None if found["quote"] and _ENDED.match(text, at) else _WORD.match(text, at)
    return rest.end() if rest else at


def _end_of_list(text: str, at: int) -> int:
    """Return where a list or an object ends, which may be the end of a text that was cut."""
    depth = 0
    for part in _PART.finditer(text, at):
        depth += 0 if part[2] else 1 if part[0] in "[({" else -1
        if not depth:
            return part.end()
    return len(text)


def _without_password(found: re.Match[str]) -> str:
    before, at, host = found[0].rpartition("@")
    begin = _BEGIN.search(before)
    user, colon, password = before[begin.end() :].partition(":") if begin else ("", "", "")
    if begin and not colon and _TOKEN.fullmatch(user):
        return f"{before[: begin.end()]}{MASK}{at}{host}"
    if not (begin and colon) or (before[: begin.start()].endswith(("http", "https")) and _PORT.match(password)):
        return found[0]
    return f"{before[: begin.end()]}{user}:{MASK}{at}{host}"
