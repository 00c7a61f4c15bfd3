"""Passwords and keys that a conf names instead of holding: ``{"env": NAME}`` or ``{"file": PATH}``.

A conf is shown, logged, stored in ZooKeeper and sent to every task. So it names the place of a secret, and the process
that needs the secret reads it there, when it needs it.
"""

from __future__ import annotations

import os

from multilang.component.errors import ConfigError
from multilang.helpers.masked import MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LONGEST = 1 << 20  # bytes of a file: a key, never a disk


class Secret:
    """A password or key whose text only ``reveal`` returns: it is shown as ``***``, wherever it is printed or formatted.

    >>> print(Secret("hunter2", "the password"))
    ***

    Args:
        value: The secret: ``{"env": NAME}``, an environment variable; ``{"file": PATH}``, a file; or the text itself.
        what: The thing that it is, in the words of a message, such as the conf's key.

    Raises:
        ConfigError: The value is none of these.
    """

    __slots__ = ("_value", "what")

    def __init__(self, value: str | Mapping[str, str] | Secret, what: str = "the secret") -> None:
        if isinstance(value, Secret):
            value = value._value
        given: object = value
        if not isinstance(given, str) and not _names_a_place(given):
            raise ConfigError(
                f'{what} is {_shape(given)}; write {{"env": NAME}}, {{"file": PATH}} with an absolute path, or the text'
            )
        self._value: str | Mapping[str, str] = value
        self.what = what

    def reveal(self) -> str:
        """Return the secret's text, read anew from its place; of a file, without the white space around it.

        Raises:
            ConfigError: Nothing is there; the message names the place, never the text.
        """
        if isinstance(self._value, str):
            return self._value
        ((kind, place),) = self._value.items()
        if kind == "env":
            text = os.environ.get(place, "")
            if not text:
                raise ConfigError(f"{self.what} is in the environment variable {place}, which is not set; set it")
            return text
        return self._from_file(place)

    def _from_file(self, path: str) -> str:
        try:
            with open(path, "rb") as file:
                text = file.read(_LONGEST + 1).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise ConfigError(f"{self.what} is in the file {path!r}, which can't be read: {why}") from None
        if len(text) > _LONGEST:
            raise ConfigError(
                f"{self.what} is in the file {path!r}, which is larger than {_LONGEST} bytes: name another"
            )
        if not text.strip():
            raise ConfigError(f"{self.what} is in the file {path!r}, which is empty: write it there")
        return text.strip()

    def __repr__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self.what)


def secret_of(conf: Mapping[str, Any], key: str) -> Secret | None:
    """Return the secret that a conf has under a key; None if it has none.

    Raises:
        ConfigError: The value is neither a text nor the name of a place.
    """
    value = conf.get(key)
    return None if value is None else Secret(value, key)


def _names_a_place(value: object) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, place),) = value.items()
    if not isinstance(place, str) or not place:
        return False
    return kind == "env" or (kind == "file" and os.path.isabs(place))


def _shape(value: object) -> str:
    """Return a description of a value that may hold the secret itself, so without its texts."""
    if isinstance(value, dict):
        kinds = ", ".join(repr(key) for key in value if key in ("env", "file"))
        return f"an object with {kinds}, whose place is not one" if kinds else "an object without 'env' or 'file'"
    return f"of type {type(value).__name__}"
