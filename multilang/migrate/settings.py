"""The findings in a config.json of streamparse's."""

from __future__ import annotations

import json

from multilang.compat.project import NEEDLESS
from multilang.migrate.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CONFIG_BYTES = 256 << 10  # of a config.json, each entry of which is looked for in the text


def in_config(path: str) -> Iterator[Finding]:
    """Return what is to do about a config.json."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        if len(text) > _MAX_CONFIG_BYTES:
            raise ValueError(f"it has more than {_MAX_CONFIG_BYTES:,} characters")
        config = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        yield Finding(path, 0, f"it can't be read as JSON: {error}", "mend its JSON")
        return
    environments = config.get("envs") if isinstance(config, dict) else None
    for name, entries in environments.items() if isinstance(environments, dict) else ():
        here = text.find(json.dumps(name, ensure_ascii=False), text.find('"envs"'))
        if not isinstance(entries, dict):
            what = f"the environment {name!r} is not a JSON object"
            yield Finding(path, _line_of(text, here), what, "write its settings in braces")
            continue
        serializer = entries.get("serializer") or config.get("serializer") or "json"
        if serializer != "json":
            what = (
                f"the environment {name!r} has the serializer {serializer!r}, which needs a Java class on the workers"
            )
            at = text.find('"serializer"', here if entries.get("serializer") else 0)
            yield Finding(path, _line_of(text, at), what, 'write "serializer": "json"')
        options = entries.get("options")
        for key in NEEDLESS:
            if entries.get(key) or (isinstance(options, dict) and options.get(key)):
                what = f"{key} of the environment {name!r} means nothing here"
                fix = "jars need neither SSH nor virtualenvs, so it may stay or go"
                yield Finding(path, _line_of(text, text.find(f'"{key}"', here)), what, fix, False)


def _line_of(text: str, place: int) -> int:
    """Return the line of a place in a text; 0 if the place was not found."""
    return text[:place].count("\n") + 1 if place >= 0 else 0
