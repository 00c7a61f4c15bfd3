"""The error of a source or sink that can't be read or written."""

from __future__ import annotations

from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


class ConnectorError(RuntimeError):
    """What a source has, or a sink got, is not what the connector was declared for; the message names it and the fix."""


def imported(module: str, package: str, extra: str, what: str) -> ModuleType:
    """Import a package of an extra.

    Args:
        module: The module.
        package: The package's name for pip.
        extra: The extra of this library that brings it.
        what: The thing that needs it, in the words of a message.

    Raises:
        ConfigError: It is not installed.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as problem:
        raise ConfigError(
            f"{what} needs the package {package} ({problem}): pip install 'storm-multilang[{extra}]'; for a cluster's workers "
            f"put {package} into the file that multilang submit --requirements names"
        ) from problem
