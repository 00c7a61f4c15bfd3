"""The base classes of components that a topology of Petrel's declares."""

from __future__ import annotations

import os
import sys

from multilang.compat.petrel import storm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BasicBolt", "Bolt", "EmitterBase", "Spout"]


class EmitterBase:
    """A component with its script, its fields and its conf.

    Args:
        script: The file of the component, whose function ``run`` runs it.
    """

    DEFAULT_PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"

    def __init__(self, script: str) -> None:
        self.execution_command = self.DEFAULT_PYTHON
        self.script = f"{os.path.splitext(os.path.basename(script))[0]}.py"
        self._json: dict[str, Any] = {}

    def declareOutputFields(self) -> Any:  # noqa: N802 - Petrel's name, as the one below
        """Return the fields of the default stream."""
        raise NotImplementedError(
            f"{type(self).__name__} has no declareOutputFields method: define declareOutputFields(self), which returns the "
            "names of the fields, or []"
        )

    def getComponentConfiguration(self) -> Any:  # noqa: N802
        """Return the component's own conf, or None."""
        return self._json or None


class Spout(EmitterBase, storm.Spout):
    """A source of tuples: define ``nextTuple``."""


class BasicBolt(EmitterBase, storm.BasicBolt):
    """A bolt whose tuples are anchored and acked for it: define ``process``."""


class Bolt(EmitterBase, storm.Bolt):
    """A bolt that anchors and acks by itself: define ``process``."""
