"""The texts of errors that come through Spark."""

from __future__ import annotations

import re

_BEHIND = re.compile(r"\n\n?\tat |(?:\s+SQLSTATE: [0-9A-Z]{5})+(?=\s*(?:\n|$))")


def without_traces(text: str) -> str:
    """Return the text of an error without the traces and the code that Spark has behind it."""
    return _BEHIND.split(text, maxsplit=1)[0].rstrip()
