"""Storm's blob store: files by key, which workers find in their directory."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError, refused
from multilang.shipping.nimbus import chunks
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any, BinaryIO

    from multilang.shipping.nimbus import Nimbus

_KEY = re.compile(r"[\w \t._-]+", re.ASCII)  # Storm's BlobStore.KEY_PATTERN
_PUT = "multilang blob put {key} FILE puts one there, and multilang blob ls shows those there are"
_RIGHTS = {"r": 1, "w": 2, "a": 4, "-": 0}
_ACL = re.compile(r"(?:(u):([^:]+)|(o):):([rwa-]+)")  # as `storm blobstore create --acl` takes


def put_blob(nimbus: Nimbus, key: str, path: Path, replication: int = 1, acl: Sequence[str] = ()) -> bool:
    """Store a file under a key, in the place of an earlier one.

    Topologies that map the key get the new file while they run.

    Args:
        nimbus: The connection.
        key: The key.
        path: The file.
        replication: The number of copies in a store of several nodes.
        acl: Who else has rights to a new key besides its owner, the user who is logged in, as ``"u:NAME:rwa"`` or
            ``"o::r"`` (others). Without a login there is no owner, and Storm gives everybody all rights.

    Returns:
        True if the key is new.

    Raises:
        ShippingError: A key or right is written wrong, or Nimbus refuses.
    """
    try:
        with path.open("rb") as file:
            return store_blob(nimbus, key, file, replication, acl)
    except OSError as error:
        raise ShippingError(f"{path} can't be read: {error.strerror or error}") from None


def store_blob(
    nimbus: Nimbus, key: str, file: BinaryIO, replication: int = 1, acl: Sequence[str] = (), only_new: bool = False
) -> bool:
    """Store what can be read, as ``put_blob`` does with a file. ``only_new``: an earlier one is refused, and stays."""
    rights = [_access(each) for each in acl]
    if not _KEY.fullmatch(key):
        raise ShippingError(
            f"{key!r} is not a key of a blob: use letters, digits, spaces, dots, hyphens and underscores"
        )
    created, session = _begin(nimbus, key, replication, rights, only_new)
    try:
        for piece in chunks(file):
            nimbus.call("uploadBlobChunk", session, piece)
    except BaseException:
        nimbus.call("cancelBlobUpload", session)
        if created:  # otherwise a key would stay listed that can't be used
            delete_blob(nimbus, key)
        raise
    nimbus.call("finishBlobUpload", session)
    if created:
        nimbus.call("createStateInZookeeper", key)  # tells the other Nimbuses, as Storm's own client does
    return created


def list_blobs(nimbus: Nimbus) -> list[str]:
    """Return all keys, sorted."""
    keys: list[str] = []
    session = ""
    while True:
        page = nimbus.call("listBlobs", session)
        if not page.keys:  # the end
            return sorted(keys)
        keys += page.keys
        session = page.session


def check_map(nimbus: Nimbus, mapped: Iterable[str]) -> None:
    """Raise ShippingError for the first key in a topology's blob map that the store does not have."""
    wanted = sorted(mapped)
    there = set(list_blobs(nimbus)) if wanted else set()
    for key in wanted:
        if key not in there:
            raise refused(
                "InvalidTopologyException",
                f"topology.blobstore.map names the blob {key!r}, which {nimbus.address} does not have; {_PUT.format(key=key)}",
            )


def read_blob(nimbus: Nimbus, key: str) -> Iterator[bytes]:
    """Return a blob's content, piece by piece. Raises ShippingError at the first piece when there is no such key."""
    with _found(key):
        begun = nimbus.call("beginBlobDownload", key)
    while piece := nimbus.call("downloadBlobChunk", begun.session):
        yield piece


def save_blob(nimbus: Nimbus, key: str, path: Path) -> int:
    """Write a blob to a file, which is there whole or not at all, and return its size in bytes."""
    pieces = read_blob(nimbus, key)
    size = 0
    part = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}.", delete=False) as file:
            part = file.name
            for piece in pieces:
                size += file.write(piece)
        os.chmod(part, 0o644)
        os.replace(part, path)
        part = None
    except OSError as error:
        raise ShippingError(f"{path} can't be written: {error.strerror or error}") from None
    finally:
        if part is not None:
            os.unlink(part)
    return size


def delete_blob(nimbus: Nimbus, key: str) -> None:
    """Delete a key. Raises ShippingError when there is no such key."""
    with _found(key):
        nimbus.call("deleteBlob", key)


@contextmanager
def _found(key: str) -> Iterator[None]:
    try:
        yield
    except ShippingError as error:
        if error.kind != "KeyNotFoundException":
            raise
        raise refused(error.kind, f"there is no blob {key!r}; {_PUT.format(key=key)}") from None


def _access(text: str) -> Any:
    """Return Storm's AccessControl of ``"u:NAME:rwa"`` or ``"o::r"``."""
    thrift = types()
    match = _ACL.fullmatch(text)
    if match is None:
        raise ShippingError(
            f"{text!r} gives no rights to a blob; write u:NAME:r (a user) or o::r (others), with r, w and a"
        )
    kind = thrift.AccessControlType.USER if match[1] else thrift.AccessControlType.OTHER
    rights = sum(_RIGHTS[each] for each in set(match[4]))
    return thrift.AccessControl(type=kind, name=match[2] or "", access=rights)


def _begin(nimbus: Nimbus, key: str, replication: int, acl: list[Any], only_new: bool) -> tuple[bool, str]:
    meta = types().SettableBlobMeta(acl=acl, replication_factor=replication)  # Nimbus adds its owner
    try:
        return True, nimbus.call("beginCreateBlob", key, meta)
    except ShippingError as error:
        if only_new or error.kind != "KeyAlreadyExistsException":
            raise
    return False, nimbus.call("beginUpdateBlob", key)
