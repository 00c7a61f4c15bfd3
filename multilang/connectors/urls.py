"""Files by their path, or by a URL of any file system that fsspec knows (``s3://``, ``gs://``, ``memory://``...)."""

from __future__ import annotations

import os
from glob import glob, has_magic
from importlib import import_module

from multilang.component.errors import ConfigError
from multilang.extras import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
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

    Raises:
        ConfigError: There is none, or its file system is not known.
    """
    if is_url(path):
        fs, inner = file_system(path)
        found = [fs.unstrip_protocol(each) for each in fs.glob(inner) if fs.isfile(each)]
    elif has_magic(path):
        found = [each for each in glob(path, recursive=True) if os.path.isfile(each)]
    else:
        found = [path] if os.path.isfile(path) else []
    if not found:
        raise ConfigError(f"there is no file {path}; put it there, or name another (a folder's files are {path}/*)")
    return sorted(found)


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
