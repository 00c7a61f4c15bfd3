"""Where a worker finds a topology's files and its Python: in the jar, or in archives of the blob store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.shipping.archive import SUFFIXES
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BLOB_MAP = "topology.blobstore.map"


@dataclass(frozen=True)
class Places:
    """``env``: the blob key of an environment's archive; ``app``: of the topology's own; None: Python and jar as usual.

    With either, commands are relative to the worker's directory, where Storm puts a link to each blob:
    "The shell command will then be relative to the cwd of the worker."
    """

    env: str | None = None
    app: str | None = None

    def __post_init__(self) -> None:
        for key in filter(None, (self.env, self.app)):
            if not key.endswith(SUFFIXES) or not local_name(key) or "/" in key:
                raise ShippingError(f"{key!r} is no blob key of an archive; Storm unpacks those that end in .tgz")
        if self.env is not None and self.app is not None and local_name(self.env) == local_name(self.app):
            raise ShippingError(f"{self.env!r} and {self.app!r} would have the same name in the worker's directory")

    @property
    def changes_directory(self) -> bool:
        """Whether the child is started in resources/ (Storm's default), not in the worker's directory."""
        return self.env is None and self.app is None

    def conf(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """The topology's conf with the blobs mapped."""
        keys = [key for key in (self.env, self.app) if key is not None]
        if not keys:
            return dict(conf)
        mapped = {key: {"localname": local_name(key), "uncompress": True} for key in keys}
        return {**conf, BLOB_MAP: {**(conf.get(BLOB_MAP) or {}), **mapped}}

    def command(self, words: tuple[str, str], interpreter: str, in_shipment: bool) -> list[str]:
        """A component's two words as the worker is told them. ``in_shipment``: the second is one of the topology's files."""
        if self.changes_directory:
            return list(words)
        program, script = words
        if self.env is not None and program == interpreter:
            program = f"./{local_name(self.env)}/bin/python3"
        folder = "resources" if self.app is None else f"./{local_name(self.app)}"
        return [program, f"{folder}/{script}" if in_shipment else script]


def local_name(key: str) -> str:
    """``env`` for ``env.tgz``: the name of the link to it in the worker's directory."""
    return next((key[: -len(suffix)] for suffix in SUFFIXES if key.endswith(suffix)), key)
