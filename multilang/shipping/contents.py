"""The files of a shipment by name. No name has two meanings, and none leads out of the folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError
from multilang.shipping.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


EVERYTHING_HARMLESS = Guard()
YOURS = "your files"  # the part with the user's own files


@dataclass(frozen=True)
class Item:
    """One file.

    ``part``: the part that it belongs to, for the list of shipped files; ``why``: the reason why it is shipped.
    """

    name: str
    data: bytes
    part: str
    why: str
    executable: bool = False


class Contents:
    """Files by name, with ``/`` between folders.

    What a jar can't hold, so that launchers make it again: ``executables``, the user's files that may be run; ``folders``, those
    that are empty. For the list of what went in: ``notes``; ``left_out``, by name, with the reason. ``warnings``: sentences on what
    the workers must have themselves. ``guard``: what may be shipped of the user's folders.
    """

    def __init__(self, guard: Guard = EVERYTHING_HARMLESS) -> None:
        self.guard = guard
        self.executables: set[str] = set()
        self.folders: set[str] = set()
        self.notes: dict[str, None] = {}
        self.left_out: dict[str, str] = {}
        self.warnings: dict[str, None] = {}
        self._items: dict[str, Item] = {}
        self._owners: dict[str, Item] = {}

    def add(self, item: Item) -> None:
        """Add a file. Raises ShippingError for a name that leads out of the folder, or that another file has."""
        check_name(item.name, item.why)
        there = self._items.get(item.name)
        if there is None:
            self._check_owner(item)
            self._items[item.name] = item
            if item.executable and item.part == YOURS:
                self.executables.add(item.name)
                if item.data.startswith(b"#!") and item.data.partition(b"\n")[0].endswith(b"\r"):
                    self.warnings[
                        f"{item.name} may be run, and its first line ends in CRLF: Linux finds no such interpreter; write it with LF"
                    ] = None
        elif there.data != item.data:
            raise ShippingError(
                f"two files would be {item.name!r}: that of {there.part} ({there.why}) and that of {item.part} "
                f"({item.why}); rename one of them"
            )

    def add_file(self, name: str, path: Path, part: str, why: str) -> None:
        """Add a file that is on the disk. The user's own files are looked at, and may be left out."""
        if part == YOURS:
            if self.guard.excludes(name):
                self.left_out[name] = "excluded"
                return
            self.guard.check_file(name, path)
        try:
            data = path.read_bytes()
            executable = bool(path.stat().st_mode & 0o100)
        except OSError as error:
            raise ShippingError(f"{path} can't be read: {error.strerror or error}") from None
        self.add(Item(name, data, part, why, executable))

    def has_module(self, name: str) -> bool:
        """Return whether there is a top-level module or package of this name."""
        return name in self._owners

    @property
    def names(self) -> Iterable[str]:
        """The names of all files."""
        return self._items.keys()

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[Item]:
        """Iterate in the order of the names.

        The archive has this order, so that the same input gives the same bytes.
        """
        return iter([self._items[name] for name in sorted(self._items)])

    def __len__(self) -> int:
        return len(self._items)

    def _check_owner(self, item: Item) -> None:
        """Refuse ``x.py`` of one part beside ``x/`` or ``x.*.so`` of another, since one would hide the other from
        imports.
        """
        first, slash, _ = item.name.partition("/")
        if not (slash or first.endswith((".py", ".so"))):
            return
        module = first.partition(".")[0] if not slash else first
        owner = self._owners.setdefault(module, item)
        if owner.part != item.part and not (owner.part.startswith("wheel") and item.part.startswith("wheel")):
            raise ShippingError(
                f"{owner.name!r} of {owner.part} and {item.name!r} of {item.part} ({item.why}) are both imported as "
                f"{module!r}, and one would hide the other; rename yours"
            )


def check_name(name: str, why: str) -> None:
    """Refuse a name that leads out of the folder that it is unpacked into."""
    parts = name.split("/")
    if (
        not name
        or name.startswith("/")
        or "\\" in name
        or "\0" in name
        or any(part in ("", ".", "..") for part in parts)
    ):
        raise ShippingError(f"{name!r} ({why}) can't be a name in an archive: it leads out of the folder")
