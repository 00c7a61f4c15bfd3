"""A folder as a .tgz that keeps modes and symbolic links.

No name leads out of it, and the same files give the same bytes.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from multilang.shipping.contents import check_name
from multilang.shipping.errors import ShippingError
from multilang.shipping.guard import VERSION_CONTROL

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.shipping.guard import Guard

_UNWANTED = (".pyc", ".pyo")  # they contain the time of their source, so that each archive would be different


@dataclass(frozen=True)
class Entry:
    """A file (``source``: its path or its bytes), a symbolic ``link``, or, with neither, a folder."""

    source: Path | bytes | None = None
    link: str | None = None
    mode: int = 0o755


class Tree:
    """Entries by name, with ``/`` between folders."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.left_out: dict[str, str] = {}  # with the reason
        self._guard: Guard | None = None

    def add(self, name: str, entry: Entry) -> None:
        """Add or replace an entry."""
        check_name(name, "to be archived")
        self.entries[name] = entry

    def add_folder(
        self,
        folder: Path,
        prefix: str = "",
        skip: Callable[[str], bool] = lambda _: False,
        guard: Guard | None = None,
    ) -> None:
        """Add the content of ``folder``.

        ``skip``: returns True for names in it, of folders or files, that are left out. ``guard``: what may be added;
        None: everything, as of an environment.

        A link to something in the folder stays; a link to the outside is replaced by what it leads to.
        """
        root = Path(os.path.realpath(folder))
        if not root.is_dir():
            raise ShippingError(f"{folder} is not a folder")
        self._guard = guard
        self._walk(root, root, prefix, "", skip, (root,))

    def write(self, out: IO[bytes]) -> None:
        """Write the .tgz. Owners and times are always the same, and the names are sorted."""
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=6) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as tar,
        ):
            for name in sorted(self.entries):
                self._write_one(tar, name, self.entries[name])

    @staticmethod
    def _write_one(tar: tarfile.TarFile, name: str, entry: Entry) -> None:
        info = tarfile.TarInfo(name)
        info.mode = entry.mode & 0o777  # without set-user-id
        info.mtime = 315532800  # 1980, because some programs take zero for an error
        if entry.link is not None:
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
            tar.addfile(info)
        elif entry.source is None:
            info.type = tarfile.DIRTYPE
            tar.addfile(info)
        else:
            try:
                data = entry.source if isinstance(entry.source, bytes) else entry.source.read_bytes()
            except OSError as error:
                raise ShippingError(f"{entry.source!s} can't be read: {error.strerror or error}") from None
            info.size = len(data)
            tar.addfile(info, BytesIO(data))

    def _walk(
        self, root: Path, folder: Path, prefix: str, below: str, skip: Callable[[str], bool], above: tuple[Path, ...]
    ) -> None:
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            raise ShippingError(f"{folder} can't be read: {error.strerror or error}") from None
        for each in names:
            path, inner = folder / each, f"{below}{each}"
            if each == "__pycache__" or each.endswith(_UNWANTED) or skip(inner):
                continue
            guard = self._guard
            if guard is not None and (guard.excludes(inner) or each in VERSION_CONTROL):
                self.left_out[f"{prefix}{inner}"] = "of version control" if each in VERSION_CONTROL else "excluded"
                continue
            if path.is_symlink():
                real = _resolved(path)
                if real.is_relative_to(root):
                    self.add(f"{prefix}{inner}", Entry(link=_inside(path, real)))
                    continue
                if guard is not None:
                    guard.check_link(inner, path, real)
                path = real
            kind = path.stat().st_mode
            if stat.S_ISDIR(kind):
                if any(path == one or one.is_relative_to(path) for one in above):
                    raise ShippingError(
                        f"{folder / each} leads to {path}, which it is itself a part of; remove that link"
                    )
                self.add(f"{prefix}{inner}", Entry(mode=kind))
                # In a folder to which a link led, links stay if they lead into that folder, which is copied as a
                # whole.
                base = root if path.is_relative_to(root) else path
                self._walk(base, path, prefix, f"{inner}/", skip, (*above, path))
            elif stat.S_ISREG(kind):
                if guard is not None:
                    guard.check_file(inner, path)
                self.add(f"{prefix}{inner}", Entry(path, mode=kind))
            else:
                raise ShippingError(
                    f"{folder / each} is neither a file nor a folder nor a link, so no archive can hold it"
                )


def _resolved(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise ShippingError(
            f"the link {path} -> {os.readlink(path)} leads nowhere ({error.strerror}); remove it"
        ) from None


def _inside(path: Path, real: Path) -> str:
    """Return the link's text as a relative path that leads to the same file wherever the folder is unpacked."""
    text = os.readlink(path)
    there = path.parent / os.path.dirname(text)
    if (
        not os.path.isabs(text)
        and Path(os.path.realpath(there)) == real.parent
        and there / real.name == path.parent / text
    ):
        return text
    return os.path.relpath(real, path.parent)
