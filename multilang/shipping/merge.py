"""The classes of other jars in a topology's jar."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from pathlib import Path

RESOURCES = "resources/"  # ShellProcess: "packaged inside of your topology jar under the resources subdirectory"
_META = "META-INF/"
_SERVICES = "META-INF/services/"  # Java's ServiceLoader reads one file of each name
_SIGNED = (".SF", ".RSA", ".DSA")  # the signature of another jar is not valid in this one
_LEGAL = ("LICENSE", "NOTICE", "DEPENDENCIES", "ABOUT", "README", "COPYING", "CHANGELOG")


def merge(files: dict[str, bytes], other: Path) -> None:
    """Add the files of a jar.

    Args:
        files: Name -> content, of the jars before it.
        other: The jar.

    Raises:
        ShippingError: It can't be read, or has another class or file under a name that is there already.
    """
    try:
        with zipfile.ZipFile(other) as archive:
            for info in archive.infolist():
                if not info.is_dir() and _is_wanted(info.filename):
                    _add(files, info.filename, archive.read(info), other)
    except (OSError, zipfile.BadZipFile) as error:
        raise ShippingError(f"{other} is not a jar that can be read: {error}") from None


def _is_wanted(name: str) -> bool:
    upper = name.upper()
    if name.startswith(RESOURCES) or upper == "META-INF/MANIFEST.MF" or name.rpartition("/")[2] == "module-info.class":
        return False
    return not (upper.startswith(_META) and upper.endswith(_SIGNED))


def _add(files: dict[str, bytes], name: str, data: bytes, other: Path) -> None:
    there = files.setdefault(name, data)
    if there == data:
        return
    if name.startswith(_SERVICES):
        lines = dict.fromkeys(line for each in (there, data) for line in each.splitlines() if line.strip())
        files[name] = b"".join(line + b"\n" for line in lines)
    elif not name.startswith(_META) and not ("/" not in name and name.upper().startswith(_LEGAL)):
        raise ShippingError(f"two jars have the file {name!r}, {other} and one before it; leave one out")
