"""The settings of a topology of Petrel's, which are in a file of YAML beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from multilang.compat.project import ENVIRONMENT
from multilang.compat.yaml_file import read_yaml
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

USUAL = "topology"
_OWN = "petrel."
_TASKS = "petrel.parallelism."


@dataclass(frozen=True)
class Settings:
    """The settings.

    Attributes:
        conf: The topology's conf.
        tasks: The numbers of tasks that override those of the builder, by component.
    """

    conf: dict[str, Any]
    tasks: dict[str, int]

    def check(self, components: Collection[str]) -> None:
        """Check that the numbers of tasks are for components that there are.

        Args:
            components: The components' ids.

        Raises:
            ConfigError: There is no such component.
        """
        unknown = sorted(self.tasks.keys() - set(components))
        if unknown:
            raise ConfigError(
                f"{_TASKS}{unknown[0]} is for a component that there is not; there are {', '.join(map(repr, components))}"
            )


def settings_of(folder: str) -> Settings:
    """Return the settings in a folder: those of ``topology.yaml``, or of the file that ``MULTILANG_ENVIRONMENT`` names.

    Args:
        folder: The folder.

    Raises:
        ConfigError: The file is not there, or can't be read.
    """
    named = os.environ.get(ENVIRONMENT)
    path = os.path.join(folder, f"{named or USUAL}.yaml")
    if not os.path.isfile(path):
        if named:
            raise ConfigError(f"there is no {path}, which is Petrel's file of settings for the environment {named!r}")
        return Settings({}, {})
    entries = read_yaml(path)
    conf = {key: value for key, value in entries.items() if not key.startswith(_OWN)}
    tasks = {key.removeprefix(_TASKS): value for key, value in entries.items() if key.startswith(_TASKS)}
    for component, number in tasks.items():
        if type(number) is not int or number < 1:
            raise ConfigError(f"{_TASKS}{component} in {path} is {number!r}; use a number from 1 on")
    return Settings(conf, tasks)
