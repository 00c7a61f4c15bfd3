"""Checks of a request's secret and origin, by its fields ``Host``, ``Origin`` and ``Sec-Fetch-Site``."""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def is_secret(given: str, secret: str) -> bool:
    """Return whether a text that was sent is the secret, in constant time."""
    return compare_digest(given.encode("latin-1", "replace"), secret.encode())


def asks_for(fields: Mapping[str, str], names: Collection[str]) -> bool:
    """Return whether the host that a request asks for is an address or one of these names: others may point here, too.

    Args:
        fields: The request's fields, by their names in small letters.
        names: The server's names, in small letters.
    """
    name = _parts(f"//{fields.get('host', '')}").hostname or ""
    try:
        ip_address(name)
    except ValueError:
        return name in names
    return True


def is_from_elsewhere(fields: Mapping[str, str]) -> bool:
    """Return whether the page of another site caused a request, if the browser reports its origin.

    Args:
        fields: The request's fields, by their names in small letters.
    """
    if fields.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    if "origin" not in fields:
        return False
    place = _parts(fields["origin"]).netloc
    return not place or place != fields.get("host")


def _parts(address: str) -> SplitResult:
    """Return the parts of an address; empty ones if it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
