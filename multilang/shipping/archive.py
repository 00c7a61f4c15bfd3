"""``multilang archive``: a folder or an environment as a .tgz for Storm's blob store."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.contents import EVERYTHING_HARMLESS
from multilang.shipping.environment import check_interpreter, environment_tree, is_environment
from multilang.shipping.errors import ShippingError
from multilang.shipping.guard import Guard
from multilang.shipping.tree import Entry, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from multilang.shipping.jar import Shipment

# The ends of keys for which the supervisor unpacks a blob with the system's tar, which keeps modes and links.
SUFFIXES = (".tgz", ".tar.gz")


@dataclass(frozen=True)
class Archived:
    """An archive that was written.

    Attributes:
        files: The number of files.
        links: The number of symbolic links.
        size: The archive's size in bytes.
        environment: True if it is a virtual environment.
        checked: True if its Python was run in another folder.
        names: The names in it.
        left_out: The names that were left out, with the reason.
    """

    files: int
    links: int
    size: int
    environment: bool
    checked: bool
    names: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def archive_folder(folder: Path, out: Path, guard: Guard = EVERYTHING_HARMLESS) -> Archived:
    """Write a folder to an archive; a virtual environment is written together with its Python.

    Args:
        folder: The folder.
        out: The archive, whose name ends in .tgz.
        guard: The choice of what may be archived, of a folder that is no environment.

    Returns:
        The figures of the archive.

    Raises:
        ShippingError: The folder can't be archived, or the archive can't be written.
    """
    check_suffix(out)
    if not folder.is_dir():
        raise ShippingError(f"{folder} is not a folder; name an environment (python3 -m venv env) or any other folder")
    environment = is_environment(folder)
    if environment:
        tree = environment_tree(folder)
    else:
        tree = Tree()
        tree.add_folder(folder, guard=guard)
    if not tree.entries:
        raise ShippingError(f"{folder} is empty")
    return write_tree(tree, out, str(folder), environment)


def archive_shipment(shipment: Shipment, out: Path) -> Archived:
    """Write the files that a topology's jar has in resources/ to a .tgz. The blob store can renew such code."""
    check_suffix(out)
    tree = Tree()
    for item in shipment.contents:
        for depth in range(1, item.name.count("/") + 1):
            tree.add("/".join(item.name.split("/")[:depth]), Entry())
        tree.add(item.name, Entry(item.data, mode=0o755 if item.executable else 0o644))
    for name in shipment.contents.folders:
        for depth in range(1, name.count("/") + 2):
            tree.add("/".join(name.split("/")[:depth]), Entry())
    return write_tree(tree, out, str(out), environment=False)


def write_tree(tree: Tree, out: Path, name: str, environment: bool) -> Archived:
    """Write the archive beside ``out``, test its Python, and only then move it to ``out``."""
    try:
        handle, part = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    except OSError as error:
        raise ShippingError(f"{out} can't be written: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            tree.write(file)
        os.chmod(part, 0o644)
        checked = any(each.startswith("bin/python3") for each in tree.entries) and check_interpreter(Path(part), name)
        os.replace(part, out)
    except BaseException:
        os.unlink(part)
        raise
    links = sum(entry.link is not None for entry in tree.entries.values())
    files = sum(entry.source is not None for entry in tree.entries.values())
    return Archived(files, links, out.stat().st_size, environment, checked, sorted(tree.entries), tree.left_out)


def check_suffix(out: Path) -> None:
    """Raise ShippingError for a name that no supervisor would unpack."""
    if not out.name.endswith(SUFFIXES):
        raise ShippingError(f"{out.name!r} does not end in .tgz; Storm unpacks a blob by the end of its name")
