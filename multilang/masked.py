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

_WORDS = "password|passwd|passphrase|passcode|authorization|pwd|secret|payload|token|(?<!auto-)credentials?|creds|apikey|(?:(?<=[a-z][._-])|(?-i:(?<=[a-z])(?=P)))pass"
# The word that tells is the last one: "source.secret.file" names a file, and "topology.auto-credentials" names classes.
_KEY = rf"(?:{_WORDS}|(?:secret|api|access|private|signing|encryption|session|keystore)[._-]?key|key\.pem|(?:jaas|oauthbearer)\.config)"
_IS_SECRET = re.compile(rf"(?:.*[^a-z])?{_KEY}", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SLASHES = r":(?:\\*/){2}"  # JSON may write a slash as \/
# A password may have slashes and more; it ends at the last @ before another address begins.
_ADDRESS = re.compile(rf"""((?:\bhttps?)?{_SLASHES}[^\s/:@"'\\]*):((?:(?!{_SLASHES})[^\s"'])+)@""")
_PORT = re.compile(r"\d{1,5}\\*/")
_HEADER = re.compile(r"(authorization\W{1,6}(?:bearer|basic|digest|negotiate|token)\s+)[^\s\"',;\\]+", re.IGNORECASE)
_QUOTED = r"""\\+".*?\\"|[bu]?"(?:[^"\\]|\\.)*"?|[bu]?'(?:[^'\\]|\\.)*'?"""
_BARE = r"""[^\s,;&"'{}\[\]\\]+"""
_ENTRY = re.compile(  # what stands after a key of JSON or Python, or in KEY=VALUE; not the words of a sentence
    rf"""({_KEY}(?:\\*["']\s*[:=]\s*(?={_QUOTED}|{_BARE})|\s*[:=]\s*(?={_QUOTED})|=))({_QUOTED}|{_BARE})""",
    re.IGNORECASE | re.DOTALL,
)


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


def masked(value: Any) -> Any:
    """Return a conf, or any value of JSON, with ``***`` for its secrets. The value itself stays as it is."""
    if isinstance(value, dict):
        return {key: _entry(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return masked_text(value) if isinstance(value, str) else value


def masked_texts(value: Any) -> Any:
    """Return a value of JSON with each text in it as ``masked_text`` returns it, whatever its keys are."""
    if isinstance(value, dict):
        return {key: masked_texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_texts(item) for item in value]
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Return a text with ``***`` for the passwords in its addresses, and for what follows the names of secrets."""
    if "@" in text:
        text = _ADDRESS.sub(_without_password, text)
    text = _HEADER.sub(rf"\1{MASK}", text)
    return _ENTRY.sub(lambda found: f"{found[1]}{_same_quotes(found[2])}", text)


def _entry(key: Any, item: Any) -> Any:
    if not isinstance(key, str) or item is None or is_reference(item) or not is_secret(key):
        return masked(item)
    return MASK


def _without_password(found: re.Match[str]) -> str:
    is_port = found[1].startswith("http") and _PORT.match(found[2])  # as in http://host:80/about@me
    return found[0] if is_port else f"{found[1]}:{MASK}@"


def _same_quotes(value: str) -> str:
    quote = re.match(r"\\*[\"']", value)
    return f"{quote[0]}{MASK}{quote[0]}" if quote else MASK
