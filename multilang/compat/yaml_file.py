"""Files of YAML, in which other libraries declare topologies and settings. Needs the extra ``storm``."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.extras import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_yaml(path: str) -> dict[str, Any]:
    """Return the entries of a file of YAML.

    Args:
        path: The file.

    Raises:
        ConfigError: It can't be read.
    """
    yaml = imported("yaml", "storm", f"reading {path}", package="PyYAML")
    try:
        with open(path, encoding="utf-8") as file:
            entries = yaml.safe_load(file)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from None
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{path} has no entries; write them as key: value")
    return {str(key): value for key, value in entries.items()}
