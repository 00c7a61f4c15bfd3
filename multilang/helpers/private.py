"""Files and folders that are one user's alone, whatever the umask is and whoever may write beside them."""

from __future__ import annotations

import errno
import os
import stat
from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import TypeVar

    Written = TypeVar("Written")

FILE, FOLDER = 0o600, 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST_LINKS = 40  # on the way to a file, as Linux has it

TRUSTED_FOLDERS = "MULTILANG_TRUSTED_FOLDERS"
"""The environment variable with the folders below which ``check_code`` trusts whoever may write there."""


def make_folder(path: str | Path) -> None:
    """Make a folder, if it is missing, that its user alone may enter. Its parents get the usual rights.

    Raises:
        OSError: It can't be made.
    """
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        os.makedirs(parent, exist_ok=True)
    try:
        os.mkdir(path, FOLDER)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def open_file(path: str | Path, flags: int) -> int:
    """Open a file that its user alone may read, and return its descriptor.

    A link in its place is not followed, and what another account put there is refused.

    Args:
        path: The file.
        flags: Those of ``os.open``, such as ``os.O_WRONLY | os.O_CREAT | os.O_APPEND``.

    Raises:
        OSError: It can't be opened, is a link, or is another account's in a folder in which everybody may make files.
    """
    # A pipe that somebody put there would be waited for.
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, FILE)
    try:
        _check_stranger(path, os.fstat(handle))
        os.set_blocking(handle, True)  # from here on: what is written to a full pipe waits
    except BaseException:
        os.close(handle)
        raise
    return handle


def make_file(path: str | Path) -> None:
    """Make an empty file, if it is missing, that its user alone may read. One that is there stays as it is.

    Raises:
        OSError: It can't be made.
    """
    try:
        os.close(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes to a descriptor. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def replace_file(path: str | Path, write: Callable[[int], Written], mode: int = FILE) -> Written:
    """Write a file anew: a reader finds the old file or the whole new one, which its user alone may read by default.

    The part that is being written has a name that nobody can guess, so that nobody can put a link there.

    Args:
        path: The file.
        write: Writes to a descriptor, which is closed afterwards.
        mode: The file's permissions.

    Returns:
        The result of ``write``.

    Raises:
        OSError: It can't be written; the old file is as it was.
    """
    from tempfile import mkstemp

    folder, name = os.path.split(os.path.abspath(path))
    handle, part = mkstemp(prefix=f".{name}.", dir=folder)
    try:
        try:
            written = write(handle)
            os.fchmod(handle, mode)
        finally:
            os.close(handle)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return written


def is_own_folder(path: str | Path) -> bool:
    """Return whether it is a folder of this account's that nobody else may enter; a link is none. Raises OSError."""
    found = os.lstat(os.path.abspath(path))  # without a slash at its end, by which a link would be followed
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS


def is_open_to_all(path: str | Path) -> bool:
    """Return whether everybody may make files in the folder of a file. Raises OSError."""
    return bool(os.stat(os.path.dirname(os.path.abspath(path))).st_mode & stat.S_IWOTH)


def check_owner(path: str | Path, must_exist: bool = False) -> None:
    """Refuse a file or folder that another account made in a folder in which everybody may make files; a link is judged itself.

    This account's, the folder's and root's may be there. They stay: in such a folder nobody else can replace them, if it is
    sticky, as /tmp is. So check what is about to be used after it was made or found, and with ``must_exist``: what another
    account put there can be missing at the check, and back at the use.

    Args:
        path: The file or folder.
        must_exist: Whether it may not be missing.

    Raises:
        PermissionError: It is such a one; the text names it.
        FileNotFoundError: It is missing, and must not be.
    """
    try:
        found = os.lstat(os.path.abspath(path))
    except OSError:
        if must_exist:
            raise
        return
    _check_stranger(path, found)


def _check_stranger(path: str | Path, found: os.stat_result) -> None:
    folder = os.stat(os.path.dirname(os.path.abspath(path)))
    if folder.st_mode & stat.S_IWOTH and found.st_uid not in (0, os.geteuid(), folder.st_uid):
        raise PermissionError(
            f"{path} belongs to another account (id {found.st_uid}), who put it where everybody may make files"
        )


def check_owners(path: str | Path, must_exist: bool = False) -> None:
    """Refuse a file or folder that another account made, or leads to, in a folder in which everybody may make files.

    Args:
        path: The file or folder.
        must_exist: As for ``check_owner``.

    Raises:
        PermissionError: It, or a folder above it, is such a one; the text names it.
        FileNotFoundError: It is missing, and must not be.
    """
    for each in _way(path):
        check_owner(each, must_exist)


def check_code(path: str | Path) -> None:
    """Refuse a file with code unless this account, root and their groups alone can have written it.

    Nor may another account, or everybody, make files in its folder, beside which other code is found, or replace a folder on
    the way to it. What is below the folders that the environment variable MULTILANG_TRUSTED_FOLDERS names is not looked at.

    Args:
        path: The file.

    Raises:
        PermissionError: It, or a folder or link on the way to it, is another account's, or everybody may change it; the text
            names it.
        FileNotFoundError: It is missing.
    """
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    trusted = [os.path.realpath(each) for each in os.environ.get(TRUSTED_FOLDERS, "").split(os.pathsep) if each]
    if any(os.path.commonpath([each, folder]) == each for each in trusted):
        return
    open_to_all: dict[str, None] = {}
    for each in reversed([*_way(path)]):
        found = os.lstat(each)
        if found.st_uid not in (0, os.geteuid()):
            raise PermissionError(f"{each} belongs to another account (id {found.st_uid})")
        if stat.S_ISLNK(found.st_mode) or not found.st_mode & stat.S_IWOTH:
            continue
        if not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
            open_to_all[each] = None
        elif each == folder:
            raise PermissionError(f"everybody may make files in {each}, beside it (move it into a folder of its own)")
    if open_to_all:
        from shlex import join

        raise PermissionError(
            f"everybody may write {' and '.join(open_to_all)} (chmod o-w {join(open_to_all)} takes that away)"
        )


def _way(path: str | Path) -> Iterator[str]:
    """Yield each folder and link that a path leads through, from the root on, and what is at its end, as the system does."""
    at, links = os.sep, 0
    left = os.path.join(os.getcwd(), path).split(os.sep)[::-1]
    yield at
    while left:
        name = left.pop()
        if name == os.pardir:
            at = os.path.dirname(at)
        elif name not in ("", os.curdir):
            at = os.path.join(at, name)
            yield at
            if os.path.islink(at):
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
                target = os.readlink(at)
                at = os.sep if target.startswith(os.sep) else os.path.dirname(at)
                left += target.split(os.sep)[::-1]


def sync_folder(path: str | Path) -> None:
    """Write a folder's list of files to the disk: only then do new names survive a power loss. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def short_name(name: str, most: int) -> str:
    """Return a name that has at most so many bytes: a longer one is cut, and ends with a checksum of the whole.

    Args:
        name: A file's name, or a part of one.
        most: The number of bytes, from 64 on.
    """
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return name
    end = f"-{sha256(data).hexdigest()[:32]}"
    return data[: min(100, most - len(end))].decode("utf-8", "ignore") + end
