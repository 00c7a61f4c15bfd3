"""The findings in a config.json of streamparse's."""

from __future__ import annotations

import json

from multilang.compat.migrate.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CONFIG_BYTES = 256 << 10  # of a config.json, each entry of which is looked for in the text
_SSH = (
    "use_ssh_for_nimbus",
    "ssh_password",
    "ssh_port",
    "virtualenv_root",
    "virtualenv_path",
    "use_virtualenv",
    "virtualenv_flags",
)


def in_config(path: str) -> Iterator[Finding]:
    """Return what is to do about a config.json."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        if len(text) > _MAX_CONFIG_BYTES:
            raise ValueError(f"it has more than {_MAX_CONFIG_BYTES:,} characters")
        config = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        yield Finding(path, 0, f"it can't be read as JSON: {error}", "mend it")
        return
    environments = config.get("envs") if isinstance(config, dict) else None
    for name, entries in environments.items() if isinstance(environments, dict) else ():
        if not isinstance(entries, dict):
            yield Finding(path, _line_of(text, f'"{name}"'), f"the environment {name!r} is no object", "mend it")
            continue
        serializer = entries.get("serializer") or config.get("serializer") or "json"
        if serializer != "json":
            what = f"the serializer {serializer!r} of the environment {name!r}"
            yield Finding(path, _line_of(text, '"serializer"'), what, 'write "serializer": "json"')
        for key in _SSH:
            if entries.get(key):
                what = f"{key} of the environment {name!r} means nothing here"
                yield Finding(
                    path, _line_of(text, f'"{key}"'), what, "nothing: jars need neither SSH nor virtualenvs", False
                )


def _line_of(text: str, part: str) -> int:
    return text[: text.find(part)].count("\n") + 1 if part in text else 0
