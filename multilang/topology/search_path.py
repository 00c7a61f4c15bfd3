"""The folders that are searched last for modules, which a process passes to those that it starts."""

from __future__ import annotations

import os
import sys

_last: list[str] = []  # the folders that add_folder() has added

FOLDERS = "MULTILANG_FOLDERS"
"""The environment variable with the folders that a process searches last, as the one that started it does."""


def add_folder(folder: str) -> None:
    """Let modules be found in a folder by their names, after the installed ones, of which it so hides none."""
    if folder not in sys.path:
        place = min((sys.path.index(each) for each in _last if each in sys.path), default=len(sys.path))
        sys.path.insert(place, folder)  # the newest comes before the others, as the current folder may change
        _last.append(folder)


def add_current_folder() -> None:
    """Let modules be found in the current folder: a console command's path starts with its own folder, not the user's."""
    if not {"", os.getcwd()} & set(sys.path):
        add_folder(os.getcwd())


def add_inherited_folders() -> None:
    """Let modules be found in the folders that the process which started this one searches last."""
    for each in reversed(os.environ.get(FOLDERS, "").split(os.pathsep)):
        if each:
            add_folder(each)


def search_first(folder: str) -> None:
    """Note that a folder is not searched last any more."""
    _last[:] = [each for each in _last if each != folder]


def last_folders() -> list[str]:
    """Return the folders that are searched last, in their order."""
    return [each for each in sys.path if each in _last]
