"""The files in the folder of a published source.

``manifest.json``   the source's name, fields and the kinds of its columns; for each partition its rows and the names and
                    checksums of its two files. It is written last: a folder without it has nothing published
``part-*.parquet``  the rows of one partition, in row groups
``part-*.json``     its index: rows, place and checksum of each row group, and of the file's end (Parquet's footer)

Each attempt to write a file gives it another random name, so that a file of a lost attempt is never mistaken for one
that the manifest names. Everything is read and written through fsspec.
"""

from __future__ import annotations

from hashlib import sha256

from multilang.component.errors import ConnectorError, SourceUnavailable
from multilang.connectors.urls import move_file, packages_of_url
from multilang.extras import imported
from multilang.protocol.codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MANIFEST = "manifest.json"
FORMAT = "storm-multilang partitions 1"
JSON = "json"  # the kind of a column that holds JSON texts


def packages_for(url: str) -> dict[str, str]:
    """Return the packages for reading this URL, as in a component's ``requires``, such as s3fs for s3://."""
    return {"fsspec": "fsspec>=2024.6", "pyarrow": "pyarrow>=18", **packages_of_url(url)}


class Folder:
    """A folder on any file system that fsspec knows, by its URL. Raises ConnectorError for an unknown file system."""

    def __init__(self, url: str) -> None:
        core = imported("fsspec.core", "spark", "a published source", error=ConnectorError)
        self.url = url
        try:
            self.fs, path = core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConnectorError(f"{url!r} can't be opened: {error}") from None
        self.path = path.rstrip("/")

    def place(self, name: str) -> str:
        """Return the path of a file in this folder."""
        return f"{self.path}/{name}"

    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return a file, or a part of it.

        Raises ConnectorError when it does not exist, SourceUnavailable for other failures.
        """
        data = self.find(name, start, end)
        if data is None:
            raise ConnectorError(f"{self.url} has no {name}: it was removed, or published anew since")
        return data

    def find(self, name: str, start: int | None = None, end: int | None = None) -> bytes | None:
        """Return a file, or a part of it; None if it does not exist. Raises SourceUnavailable for other failures."""
        try:
            return self.fs.cat_file(self.place(name), start=start, end=end)  # type: ignore[no-any-return]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnavailable(f"{name} of {self.url} can't be read: {error}") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file. A reader finds no file, the old one, or the whole new one."""
        import uuid

        part = self.place(f".{name}.{uuid.uuid4().hex}")
        self.fs.pipe_file(part, data)
        move_file(self.fs, part, self.place(name))

    def names(self) -> list[str]:
        """Return the names of all files that are in the folder now."""
        self.fs.invalidate_cache(self.path)
        try:
            return [path.rpartition("/")[2] for path in self.fs.ls(self.path, detail=False)]
        except FileNotFoundError:
            return []


def checksum(data: bytes) -> str:
    """Return the checksum of a file, or of a part of one."""
    return sha256(data).hexdigest()


def verified(folder: Folder, name: str, start: int, size: int, due: str) -> bytes:
    """Return a part of a file. Raises ConnectorError unless it is what was written."""
    data = folder.read(name, start, start + size)
    if len(data) != size:
        raise ConnectorError(
            f"{name} of {folder.url} is cut short: {start + len(data)} bytes, of {start + size} at least"
        )
    if checksum(data) != due:
        raise ConnectorError(
            f"{name} of {folder.url} was altered: bytes {start} to {start + size} have another checksum"
        )
    return data


def manifest_of(folder: Folder) -> dict[str, Any]:
    """Return the manifest. Raises ConnectorError when nothing was published there, or it was altered."""
    manifest = stored_manifest(folder)
    if manifest is None:
        raise ConnectorError(
            f"{MANIFEST} of {folder.url} was altered: it is no manifest, or does not have its own checksum"
        )
    return manifest


def stored_manifest(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest; None if it was altered. Raises ConnectorError when nothing was published there."""
    data = folder.find(MANIFEST)
    if data is None:
        raise ConnectorError(f"nothing was published at {folder.url}: it has no {MANIFEST}")
    try:
        manifest: dict[str, Any] = loads(data)
        seal = manifest.pop("checksum")
        if manifest["format"] != FORMAT:
            raise ConnectorError(f"{folder.url} has the format {manifest['format']!r}; this is for {FORMAT!r}")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if seal == checksum(dumps(manifest).encode()) else None


def sealed(manifest: dict[str, Any]) -> bytes:
    """Return the manifest's text, with its checksum."""
    return dumps({**manifest, "checksum": checksum(dumps(manifest).encode())}).encode()
