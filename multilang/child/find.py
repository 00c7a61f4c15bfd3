"""Find the component that a task runs, in the topology that was submitted."""

from __future__ import annotations

import sys

from multilang.component.base import Component
from multilang.component.errors import ConfigError
from multilang.loading.topologies import from_foreign, is_foreign, load_object
from multilang.topology import importing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.component.context import Context


def find_component(
    target: str, context: Context, submitted: Mapping[str, Any] | None = None, root: str = ""
) -> Component:
    """Return the component that this task runs.

    It is ``target`` itself, or the component with the task's id in the topology that ``target`` names.

    Args:
        target: The place of the topology or component.
        context: The task's context.
        submitted: The description of the submitted topology, from topology.identity.submission().
        root: The folder of the topology's files, if that is another one than where it was submitted.

    Raises:
        ConfigError: There is no such object, or it is no component that runs in Python, or it is not the one that was submitted.
    """
    importing.by_task = True
    if submitted is not None:
        sys.argv[:] = submitted["arguments"]
    try:
        found = load_object(target)
        if is_foreign(found):
            found = from_foreign(found, target)
        if callable(found) and not isinstance(found, type | Component) and not hasattr(found, "components"):
            found = found()
    finally:
        importing.by_task = False
    if isinstance(found, type) and issubclass(found, Component):
        found = found()
    if isinstance(found, Component):
        return found
    components = getattr(found, "components", None)
    if components is None:
        raise ConfigError(
            f"{target} is a {type(found).__name__}; name a Topology, a function that returns one, or a component"
        )
    try:
        component = components[context.component].component
    except KeyError:
        raise ConfigError(
            f"the topology {target} has no component {context.component!r}; it has "
            f"{', '.join(map(repr, components))}: is this the code that was submitted?"
        ) from None
    if not isinstance(component, Component):
        raise ConfigError(
            f"component {context.component!r} of {target} is a {type(component).__name__}, which runs by its own command"
        )
    if submitted is not None:
        from multilang.topology.identity import check_found

        check_found(submitted, components[context.component], target, root)
    return component
