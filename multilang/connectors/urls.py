"""Files by their path, or by a URL of any file system that fsspec knows (``s3://``, ``gs://``, ``memory://``...)."""

from __future__ import annotations

import os
from glob import escape, glob, has_magic
from importlib import import_module

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

_PACKED = {".gz": "gzip", ".bz2": "bz2"}


def is_url(path: str) -> bool:
    """Return whether fsspec opens it, and not Python."""
    return "://" in path


def located(path: str | os.PathLike[str]) -> str:
    """Return a path as an absolute one; a URL as it is.

    Raises:
        ConfigError: It is neither.
    """
    given: object = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str) or not given:
        raise ConfigError(f"{path!r} is no file; give a path, a pattern such as 'logs/*.csv', or a URL")
    return given if is_url(given) else os.path.abspath(os.path.expanduser(given))


def packages_of_url(url: str) -> dict[str, str]:
    """Return the packages that open this URL, as in a component's ``requires``, such as s3fs for s3://."""
    if not is_url(url):
        return {}
    found = {"fsspec": "fsspec>=2024.6"}
    try:
        from fsspec.registry import known_implementations
    except ImportError:
        return found
    for part in url.split("::"):
        known = known_implementations.get(part.partition("://")[0], {})
        package = known.get("class", "fsspec").partition(".")[0]
        found.setdefault(package, package)
    return found


def matching(path: str) -> list[str]:
    """Return the files that a path, pattern or URL names, in the order of their names.

    An existing name is a name, and no pattern; also a folder's in a longer pattern.

    Raises:
        ConfigError: There is none, or its file system is not known.
    """
    if is_url(path):
        fs, inner = file_system(path)
        named = [inner] if fs.isfile(inner) else _matching(inner, fs.glob)
        found = [fs.unstrip_protocol(each) for each in named if fs.isfile(each)]
    else:
        named = [path] if os.path.lexists(path) else _matching(path, lambda each: glob(each, recursive=True))
        found = [each for each in named if os.path.isfile(each)]
    if not found and not is_url(path) and os.path.exists(path):
        raise ConfigError(
            f"{path} is a folder, a pipe or the like, and no file; name a file (a folder's files are {path}/*)"
        )
    if not found:
        raise ConfigError(f"there is no file {path}; put it there, or name another (a folder's files are {path}/*)")
    return sorted(found)


def _matching(path: str, glob: Callable[[str], list[str]]) -> list[str]:
    """Return what matches a pattern, of which each part is a name where there is such a name."""
    pattern = ""
    for part in path.split("/"):
        named = pattern + escape(part)
        pattern = (named if not has_magic(part) or glob(named) else pattern + part) + "/"
    return glob(pattern[:-1])


def move_file(fs: Any, path: str, target: str) -> None:
    """Give a file another name.

    Args:
        fs: The file system of fsspec.
        path: The file; no pattern, for which ``fs.mv`` takes it.
        target: Its name from now on.
    """
    if type(fs).mv is imported("fsspec", "files", path).AbstractFileSystem.mv:
        fs.cp_file(path, target)
        fs.rm_file(path)
    else:  # one that does it in one step
        fs.mv(path, target)


def opened(path: str) -> BinaryIO:
    """Open a file to read its bytes; those that were packed, if its name ends in ``.gz`` or ``.bz2``.

    Raises:
        OSError: It can't be opened.
    """
    unpack = next((module for end, module in _PACKED.items() if path.endswith(end)), None)
    file: BinaryIO
    if is_url(path):
        fs, inner = file_system(path)
        file = fs.open(inner, "rb", compression=None if unpack is None else "infer")
    elif unpack is not None:
        file = import_module(unpack).open(path, "rb")
    else:
        file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    return file


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path in it.

    Raises:
        ConfigError: fsspec, or the package for this kind of URL, is missing.
    """
    core = imported("fsspec.core", "files", f"the file {url}", on_workers=True)
    try:
        fs, path = core.url_to_fs(url)
    except (ImportError, ValueError) as problem:
        raise ConfigError(f"{url} can't be opened: {problem}") from problem
    return fs, path
