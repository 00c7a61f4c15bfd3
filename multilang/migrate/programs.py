"""The question whether there is a program at a place that could have been written for another library."""

from __future__ import annotations

import os
import re

from multilang.compat.flux import is_flux
from multilang.component.errors import ConfigError
from multilang.loading.topologies import YAML
from multilang.migrate.files import files_of, why_unread
from multilang.migrate.others import OF_PYLEUS

_IMPORT = re.compile(
    rb"^[ \t]*(?:from|import)[ \t]+(?:[\w., \t]*,[ \t]*)?(?:multilang|petrel|pyleus|pystorm|storm|streamparse)\b",
    re.MULTILINE,
)


def has_program(root: str) -> bool:
    """Return whether a file or a folder has a program of a library whose programs are moved, or one that was moved already.

    Such a program imports the library, or is a topology in Clojure or YAML. Python 2 is found, too.

    Args:
        root: The file or the folder.
    """
    return any(_is_program(path) for path in files_of(root) if not why_unread(path))


def _is_program(path: str) -> bool:
    folder, name = os.path.split(path)
    if name.endswith(".py"):
        with open(path, "rb") as file:
            return _IMPORT.search(file.read()) is not None
    if name.endswith(".clj"):
        return os.path.basename(folder) == "topologies"
    if not name.endswith(YAML):
        return False
    try:
        return name == OF_PYLEUS or is_flux(path)
    except ConfigError:
        return False  # YAML of something else
