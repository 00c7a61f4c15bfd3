"""The packages that a topology needs on workers: found from what it uses, and added to the shipment.

A class names what it needs as ``requires``: the module that is imported -> pip's requirement.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import isroutine
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from multilang import settings
from multilang.component import prometheus
from multilang.component.errors import ConfigError
from multilang.shipping.errors import ShippingError
from multilang.shipping.imports import OURS
from multilang.shipping.named import confs
from multilang.shipping.wheels import add_distribution, add_wheel, download, parts_of
from multilang.state.names import SPOUT
from multilang.state.position_spout import PositionSpout
from multilang.state.positions import check_positions, positions_class
from multilang.state.providers import store_or_provider
from multilang.state.witness import position_places
from multilang.topology import Foreign
from multilang.transactional.names import ID
from multilang.transactional.stores import store_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from multilang.shipping.contents import Contents
    from multilang.shipping.wheels import WheelTarget
    from multilang.topology import Topology

_DEEP = 8  # levels of attributes of a component in which objects are searched
_NO_PARTS = (type(None), str, bytes, int, float, type, ModuleType, property, classmethod, staticmethod)
_MANY = 10_000  # a list or dict with so many items has data, and is not searched for parts of a component


@dataclass(frozen=True)
class Package:
    """A package.

    ``module``: the module that is imported; ``line``: pip's requirement, ``kazoo>=2.10``; ``why``: what needs it.
    """

    module: str
    line: str
    why: str

    @property
    def top(self) -> str:
        """The top-level module."""
        return self.module.partition(".")[0]

    @property
    def distribution(self) -> str:
        """The package's name for pip."""
        match = re.match(r"[A-Za-z0-9._-]+", self.line)
        return match[0] if match else self.line


def packages_of(topology: Topology, asked: set[str]) -> tuple[list[Package], list[str]]:
    """Return the packages that the tasks of ``topology`` need, and a sentence for each setting without which that is not known.

    ``asked``: dotted names of ours that its modules import.
    Raises ConfigError for a conf that can't be read, ShippingError for a ``requires`` that is wrong.
    """
    found: dict[str, Package] = {}
    missing: list[str] = []
    for thing, why in [*_things(topology, missing), *_imported(asked)]:
        for module, line in _requires(thing, why).items():
            found.setdefault(module, Package(module, line, why))
    for whose, conf in confs(topology):
        if settings.value(conf, settings.PROMETHEUS_PORT) is not None:
            for module, line in prometheus.REQUIRES.items():
                found.setdefault(module, Package(module, line, f"{settings.PROMETHEUS_PORT} in {whose}"))
    return [found[module] for module in sorted(found)], missing


def add_packages(
    contents: Contents,
    packages: Sequence[Package],
    target: WheelTarget,
    leave_out: Sequence[str],
    requirements: Path | None = None,
) -> list[str]:
    """Add the missing packages: as they are installed here if workers can run that, or else as pip downloads them.

    Returns what was added, with versions. Raises ShippingError, with the requirement to write, where neither works.
    """
    notes = []
    for each in packages:
        if each.top in leave_out or contents.has_module(each.top):
            continue
        added = add_distribution(contents, each.distribution) if target.here and "[" not in each.line else []
        notes += [f"{name}, as installed here, for {each.why}" for name in added]
        if not added:
            notes += _downloaded(contents, each, target, requirements)
    return notes


def _downloaded(contents: Contents, package: Package, target: WheelTarget, requirements: Path | None) -> list[str]:
    notes = []
    # with the requirements file, so that pip chooses versions that fit both
    lines = [package.line, *(["-r", str(requirements)] if requirements is not None else [])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            wheels = download(lines, target, Path(folder))
        except ShippingError as problem:
            raise ShippingError(
                f"workers need the package {package.distribution} for {package.why}, and it can't be added by itself; put the "
                f"line {package.line} into a file for --requirements, or, if the workers have it, give --leave-out "
                f"{package.top}: {problem}"
            ) from None
        for wheel in wheels:
            name, version = wheel.name.split("-")[:2]
            part = f"wheel {name}"
            if name not in ("storm_multilang", "ujson") and part not in parts_of(contents):
                add_wheel(contents, wheel, part)
                notes.append(f"{name} {version}, for {package.why}")
    return notes


def _things(topology: Topology, missing: list[str]) -> Iterator[tuple[Any, str]]:
    """Yield the objects that may have a ``requires``: what the components are made of, and where they keep state and transactions.

    ``missing`` gets a sentence for each setting that is not there.
    """
    for spec in topology.components.values():
        if isinstance(spec.component, Foreign):
            continue
        who = f"{spec.kind} {spec.id!r}"
        conf = {**topology.conf, **spec.conf}
        for part in _parts(spec.component):
            yield part, f"{type(part).__name__} of {who}"
            if isinstance(part, PositionSpout) and part.keeps_position(conf):
                try:
                    check_positions(conf, spec.id)
                except ConfigError as problem:
                    if not problem.is_unset:
                        raise
                    missing.append(str(problem))
                yield _class(positions_class, conf), f"the position of {who}"
            if hasattr(part, "source_in"):
                yield _source(part, conf, who, missing), f"the source of {who}"
        if spec.id == SPOUT:
            yield _class(store_or_provider, conf), f"the state of topology {topology.name!r}"
            for own in position_places(getattr(spec.component, "elsewhere", ()), conf).values():
                yield _class(positions_class, own), f"what the state of topology {topology.name!r} is compared with"
        if ID in conf:
            yield _class(store_class, conf), f"the transactions of topology {topology.name!r}"


def _source(spout: Any, conf: Mapping[str, Any], who: str, missing: list[str]) -> Any:
    try:
        return spout.source_in(conf)
    except ConfigError as problem:
        if not problem.is_unset:
            raise ShippingError(f"{who}: {problem}") from None
        missing.append(f"{who}: {problem}")
        return None
    except Exception as problem:  # a source's own error, of whatever class
        raise ShippingError(f"the source of {who} can't be used: {problem}") from problem


def _class(kind: Any, conf: Mapping[str, Any]) -> Any:
    """Return a class that the conf names, or None if it can't be imported here; the check of names reports that."""
    try:
        return kind(conf)
    except ConfigError:
        return None


def _parts(component: Any) -> Iterator[Any]:
    """Return the component and all objects in its attributes and its class's, each once."""
    seen: set[int] = set()
    queue = [(component, 0)]
    while queue:
        thing, depth = queue.pop()
        if isinstance(thing, _NO_PARTS) or isroutine(thing) or id(thing) in seen or depth > _DEEP:
            continue
        seen.add(id(thing))
        inner: list[Any] = []
        if isinstance(thing, dict):
            inner = list(thing.values()) if len(thing) < _MANY else []
        elif isinstance(thing, list | tuple | set | frozenset):
            inner = list(thing) if len(thing) < _MANY else []
        elif hasattr(thing, "__dict__"):
            yield thing
            held = [vars(thing), *map(vars, type(thing).__mro__)]
            inner = [value for each in held for name, value in each.items() if not name.startswith("__")]
        queue += [(each, depth + 1) for each in inner]


def _imported(asked: set[str]) -> Iterator[tuple[Any, str]]:
    """Return this project's classes that the topology's modules import, since components may make objects of them
    later.
    """
    for name in sorted(asked):
        module, _, attribute = name.rpartition(".")
        if module.partition(".")[0] != "multilang":
            continue
        try:
            found = getattr(import_module(module), attribute, None)
        except ImportError:
            continue
        if isinstance(found, type):
            yield found, f"{attribute}, which the topology imports"


def _requires(thing: Any, why: str) -> Mapping[str, str]:
    kind = thing if isinstance(thing, type) else type(thing)
    if not hasattr(kind, "requires"):
        return {}
    found = getattr(thing, "requires", None)
    if isinstance(found, Mapping) and all(
        isinstance(module, str) and isinstance(line, str) and re.match(r"[A-Za-z0-9]", line)
        for module, line in found.items()
    ):
        return found
    if any(each.__module__.partition(".")[0] in OURS for each in kind.__mro__):
        raise ShippingError(
            f"requires of {why} is {found!r}; write the module that is imported and pip's line for it, "
            '{"psycopg": "psycopg>=3"}'
        )
    return {}  # an attribute of the same name with another meaning
