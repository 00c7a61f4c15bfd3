"""The files of a project that are searched. The project is not trusted: no link is followed, and no pipe is read."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 4 << 20  # of a file that is looked at
_SKIPPED = {
    *(".git", ".hg", ".svn", ".tox", "__pycache__", "_build", "_resources", "build", "dist", "node_modules"),
    *("site-packages", "dist-packages"),
}


def python_files(root: str) -> list[str]:
    """Return the Python files of a project, or the one file."""
    return [path for path in files_of(root) if path.endswith(".py") and not why_unread(path)]


def why_unread(path: str) -> str:
    """Return why a file is not looked at; empty if it is. The project is not trusted, and a pipe has no end."""
    try:
        about = os.lstat(path)
    except OSError as error:
        return f"it can't be read: {error.strerror}"
    if not stat.S_ISREG(about.st_mode):
        return "a link, which is not followed" if stat.S_ISLNK(about.st_mode) else "it is no ordinary file"
    return f"{about.st_size:,} bytes, which is too large for a source" if about.st_size > MAX_BYTES else ""


def files_of(root: str) -> Iterator[str]:
    """Return the files of a project, without those of environments and of version control, or the one file."""
    if os.path.isfile(root):
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            each for each in folders if each not in _SKIPPED and not _is_environment(os.path.join(folder, each))
        )
        for name in sorted(names):
            yield os.path.join(folder, name)


def _is_environment(folder: str) -> bool:
    return any(
        os.path.exists(os.path.join(folder, each)) for each in ("pyvenv.cfg", "bin/activate", "bin/activate_this.py")
    )
