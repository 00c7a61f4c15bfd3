"""The settings of a project in one environment, each with the place that gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Given:
    """A value, and the place that gave it.

    Attributes:
        value: The value.
        origin: The place, in words.
        over: The values that it overrides, the strongest first.
    """

    value: Any
    origin: str
    over: tuple[Given, ...] = ()


@dataclass(frozen=True)
class Layer:
    """The settings of one section.

    Attributes:
        origin: The section, in words.
        values: Its settings by name, without its conf.
        conf: The entries for topologies' conf.
    """

    origin: str
    values: Mapping[str, Any]
    conf: Mapping[str, Any]


class Settings:
    """The settings of a project in one environment.

    Args:
        environment: The environment's name; None: none was chosen.
        layers: The sections that count, the weakest first.
    """

    def __init__(self, environment: str | None, layers: Sequence[Layer]) -> None:
        self.environment = environment
        self.layers = tuple(layers)

    @property
    def values(self) -> dict[str, Given]:
        """The settings by name; those of tables are joined by a dot, as ``spark.master``."""
        return merged((layer.origin, layer.values) for layer in self.layers)

    @property
    def conf(self) -> dict[str, Given]:
        """The entries for a topology's conf."""
        return merged((layer.origin, layer.conf) for layer in self.layers)

    def get(self, name: str) -> Any:
        """Return a setting; None if it is not given."""
        given = self.values.get(name)
        return None if given is None else given.value


def merged(layers: Any) -> dict[str, Given]:
    """Return what holds of several layers, each an origin and its entries, the weakest first."""
    found: dict[str, Given] = {}
    for origin, entries in layers:
        for key, value in entries.items():
            before = found.get(key)
            over = () if before is None else (Given(before.value, before.origin), *before.over)
            found[key] = Given(value, origin, over)
    return found
