"""Packages that an extra of this library brings, and the sentence for one that is not installed."""

from __future__ import annotations

from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def imported(
    module: str,
    extra: str,
    what: str,
    *,
    package: str = "",
    error: type[Exception] = ConfigError,
    on_workers: bool = False,
    more: str = "",
) -> Any:
    """Import a module of a package that an extra brings.

    Args:
        module: The module.
        extra: The extra.
        what: The thing that needs it, in the words of a message.
        package: The package's name for pip, if it is not the first part of the module's.
        error: The class of the exception.
        on_workers: Whether a cluster's workers need it, too.
        more: The end of the message, such as another way.

    Raises:
        Exception: It is not installed; of the class ``error``.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as problem:
        package = package or module.partition(".")[0]
        at_work = (
            f"; for a cluster's workers put {package} into the file that multilang submit --requirements names"
            if on_workers
            else ""
        )
        raise error(
            f"{what} needs the package {package} ({problem}): pip install 'storm-multilang[{extra}]'{at_work}{more}"
        ) from problem
