"""The places of a topology's files and its Python on a worker: in the jar, or in archives of the blob store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.shipping.archive import SUFFIXES
from multilang.shipping.commands import Shipped
from multilang.shipping.errors import ShippingError
from multilang.topology import ShellComponent
from multilang.topology.commands import BLOB_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.shipping.jar import Shipment


@dataclass(frozen=True)
class ShippedBlobs:
    """The blobs with a topology's files and its Python.

    With either, commands of Python components are relative to the worker's directory, where Storm puts a link to each
    blob:
    "The shell command will then be relative to the cwd of the worker." Components in other languages declare themselves
    where they start, unless ``app`` has their files.

    Args:
        env: The blob key of an environment's archive; None: the workers have Python.
        app: The blob key of an archive of the topology's own files; None: they are in the jar.

    Raises:
        ShippingError: A key is not that of an archive, or both give the same name.
    """

    env: str | None = None
    app: str | None = None

    def __post_init__(self) -> None:
        for key in filter(None, (self.env, self.app)):
            if not key.endswith(SUFFIXES) or not local_name(key) or "/" in key:
                raise ShippingError(f"{key!r} is not a blob key of an archive; Storm unpacks those that end in .tgz")
        if self.env is not None and self.app is not None and local_name(self.env) == local_name(self.app):
            raise ShippingError(f"{self.env!r} and {self.app!r} would have the same name in the worker's directory")

    @property
    def local_names(self) -> list[str]:
        """The names of these blobs in the worker's directory."""
        return [local_name(key) for key in (self.env, self.app) if key is not None]

    def conf(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return the topology's conf with these blobs mapped.

        Args:
            conf: The topology's conf.
        """
        keys = [key for key in (self.env, self.app) if key is not None]
        if not keys:
            return dict(conf)
        mapped = {key: {"localname": local_name(key), "uncompress": True} for key in keys}
        return {**conf, BLOB_MAP: {**(conf.get(BLOB_MAP) or {}), **mapped}}

    def start(self, shipment: Shipment, id: str, interpreter: str) -> tuple[list[str], bool]:
        """Return a component's command for the worker, and whether it starts in ``resources/``, as is Storm's default.

        Args:
            shipment: The packed topology.
            id: The component's id.
            interpreter: The workers' command for Python.
        """
        in_worker = shipment.in_worker.get(id)
        program, script = shipment.commands[id]
        if in_worker is None:
            if self.app is None and (self.env is None or isinstance(shipment.topology[id].component, ShellComponent)):
                if self.env is not None and program == interpreter:
                    program = f"../{local_name(self.env)}/bin/python3"  # blobs are above resources/ too
                return [program, script], True
            file = os.path.normpath(script)
            in_worker = [Shipped(program), Shipped(file, True) if file in shipment.contents else Shipped(script)]
        folder = "resources" if self.app is None else f"./{local_name(self.app)}"
        words = [word.seen_from(folder) for word in in_worker]
        if self.env is not None and words[0] == interpreter:
            words[0] = f"./{local_name(self.env)}/bin/python3"
        return words, False


def local_name(key: str) -> str:
    """Return the name of the link to a blob in the worker's directory: ``env`` for ``env.tgz``."""
    return next((key[: -len(suffix)] for suffix in SUFFIXES if key.endswith(suffix)), key)
