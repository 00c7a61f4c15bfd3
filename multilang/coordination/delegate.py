"""What coordination stands around, made of what a builder was given."""

from __future__ import annotations

from multilang.coordination.batch import BatchBolt, BatchBoltExecutor
from multilang.coordination.fair import KeyedFairBolt
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.bolt import Bolt


def delegate_of(bolt: type[Bolt | BatchBolt] | Bolt | BatchBolt, where: str) -> tuple[Bolt, Any]:
    """The bolt itself, or what makes one of a batch bolt; and its class, if that was given and makes new ones.

    ``where``: names it in a TopologyError.
    """
    factory = bolt if isinstance(bolt, type) else None
    try:
        made: Any = bolt() if isinstance(bolt, type) else bolt
    except TypeError as problem:
        raise TopologyError(f"{where}: {bolt.__name__}() failed: {problem}; give an instance") from problem  # type: ignore[union-attr]
    if isinstance(made, KeyedFairBolt) and isinstance(made.wrapped, BatchBolt):
        made.wrapped = BatchBoltExecutor(made.wrapped)
    if isinstance(made, BatchBolt):
        return BatchBoltExecutor(made, factory), None  # it makes a new one for each id anyway
    return made, factory
