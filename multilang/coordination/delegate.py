"""The bolt inside of a coordinated bolt, made from a builder's argument."""

from __future__ import annotations

from multilang.coordination.batch import BatchBolt, BatchBoltExecutor
from multilang.coordination.fair import KeyedFairBolt
from multilang.coordination.program import ProgramBolt
from multilang.topology.errors import TopologyError
from multilang.topology.shell import ShellBolt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.bolt import Bolt


def delegate_of(bolt: type[Bolt | BatchBolt] | Bolt | BatchBolt | ShellBolt, where: str) -> tuple[Bolt, Any]:
    """Return the bolt that is to be coordinated, and its class if a class was given that makes new ones.

    A batch bolt or a program is wrapped in a bolt.

    Args:
        bolt: The builder's argument.
        where: Its name in a TopologyError.

    Raises:
        TopologyError: The class needs arguments.
    """
    factory = bolt if isinstance(bolt, type) else None
    try:
        made: Any = bolt() if isinstance(bolt, type) else bolt
    except TypeError as problem:
        raise TopologyError(f"{where}: {bolt.__name__}() failed: {problem}; give an instance") from problem  # type: ignore[union-attr]
    if isinstance(made, ShellBolt):
        made = ProgramBolt(made)
    if isinstance(made, KeyedFairBolt) and isinstance(made.wrapped, BatchBolt):
        made.wrapped = BatchBoltExecutor(made.wrapped)
    if isinstance(made, BatchBolt):
        return BatchBoltExecutor(made, factory), None  # it makes a new one for each id in any case
    return made, factory
