"""The function that runs a component alone, as the process of one task.

``Component.run()`` is a method of what users subclass, and the process stands above that: ``multilang`` itself, which is imported
before both, brings the two together here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_alone(component: Any) -> None:
    """Run a component of this library until its input ends."""
    raise NotImplementedError
