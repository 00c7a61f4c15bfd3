"""Objects by their dotted names, as confs give them: ``shop.tracing.Tracer``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def by_dotted_name(name: str) -> Any:
    """Return the object that ``package.module.Name`` names, after importing its module.

    Args:
        name: The dotted name.

    Raises:
        ImportError: There is no such module, or it can't be imported.
        AttributeError: The module has no such name.
        ValueError: It is no dotted name.
    """
    from pkgutil import resolve_name  # imported here, since most processes need none

    # with a colon, so that a module that can't be imported says why
    return resolve_name(":".join(name.rpartition(".")[::2]))
