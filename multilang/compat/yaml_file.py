"""Files of YAML, in which other libraries declare topologies and settings. Needs the extra ``storm``."""

from __future__ import annotations

import re
from io import StringIO

from multilang.component.errors import ConfigError
from multilang.extras import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_EXPONENT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$")


def read_yaml(path: str, change: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the entries of a file of YAML.

    Args:
        path: The file.
        change: A function of its text, whose result is read.

    Raises:
        ConfigError: It can't be read.
    """
    yaml = imported("yaml", "storm", f"reading {path}", package="PyYAML")

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Reads 1e3 and 1.5e3 as numbers, as Java's reader does."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
    try:
        with open(path, encoding="utf-8") as file:
            text = StringIO(change(file.read()))
        text.name = path  # for messages, which quote no line of what is read from a file
        entries = yaml.load(text, Loader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from None
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{path} has no entries; write them as key: value")
    return {str(key): value for key, value in entries.items()}
