"""streamparse's Component."""

from __future__ import annotations

from multilang.compat.pystorm import component as pystorm_component
from multilang.compat.pystorm.component import StormHandler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = ["Component", "StormHandler"]


class Component(pystorm_component.Component):
    """The base of streamparse's spouts and bolts.

    Attributes:
        outputs: The fields of the default stream, or Streams.
        par: The number of tasks, or a number for each environment.
        config: The component's own conf.
    """

    outputs: Any = None
    par: Any = 1
    config: Any = None

    @classmethod
    def spec(cls, *_: Any, **__: Any) -> Any:
        """Refuse: only spouts and bolts have specs."""
        raise TypeError(f"a topology consists of spouts and bolts; {cls.__name__} is neither")
