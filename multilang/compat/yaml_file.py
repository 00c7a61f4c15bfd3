"""Files of YAML, in which other libraries declare topologies and settings. Needs the extra ``storm``."""

from __future__ import annotations

import re
from io import StringIO

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MERGE = "tag:yaml.org,2002:merge"
_EXPONENT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$")


def read_yaml(path: str, change: Callable[[str], str] = str, again: bool = False) -> dict[str, Any]:
    """Return the entries of a file of YAML.

    Args:
        path: The file.
        change: A function of its text, whose result is read.
        again: Whether a key may be repeated in its map, and only the last one counts.

    Raises:
        TopologyError: A key is repeated.
        ConfigError: It can't be read.
    """
    yaml = imported("yaml", "storm", f"reading {path}", package="PyYAML")

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Reads 1e3 and 1.5e3 as numbers, as Java's reader does."""

        def compose_mapping_node(self, anchor: str | None) -> Any:
            node = super().compose_mapping_node(anchor)
            lines: dict[Any, int] = {}
            for key, _ in node.value:
                if again or not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                    continue
                name, line = self.construct_object(key), key.start_mark.line + 1
                same = {name, str(name)}  # 1 and "1" are one key of JSON
                for each in same & lines.keys():
                    raise TopologyError(
                        f"{path}: {key.value!r:.80} is in line {lines[each]} and again in line {line}, and only the last one would "
                        "count: join them, or leave one out"
                    )
                lines.update(dict.fromkeys(same, line))
            return node

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
    try:
        with open(path, encoding="utf-8") as file:
            text = StringIO(change(file.read()))
        text.name = path  # for messages, which quote no line of what is read from a file
        entries = yaml.load(text, Loader)
    except TopologyError:
        raise
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from None
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{path} has no entries; write them as key: value")
    return {str(key): value for key, value in entries.items()}
