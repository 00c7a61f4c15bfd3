"""The component classes of the other libraries, and those of this one that they are written over to."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ACKS_LATER = "ack"  # a streamparse Bolt with auto_ack = False
_PYSTORM = ("pystorm", "streamparse")


@dataclass(frozen=True)
class Kind:
    """A class of another library's that components are subclasses of.

    Attributes:
        library: pystorm, streamparse, storm or petrel.
        name: Bolt, BasicBolt, Spout, ...
    """

    library: str
    name: str

    @property
    def is_spout(self) -> bool:
        """True for a spout."""
        return self.name.endswith("Spout")

    @property
    def is_pystorms(self) -> bool:
        """True if it has pystorm's semantics: automatic anchors, acks and fails, and namedtuples of values."""
        return self.library in _PYSTORM

    @property
    def kept(self) -> str:
        """The reason that no subclass of it can be written over; empty if some can."""
        return _KEPT.get(self.name, "") if self.is_pystorms else ""

    @property
    def methods(self) -> frozenset[str]:
        """The methods that a subclass may define for the library to call."""
        if not self.is_spout:
            found = {"initialize", "process"}
            found |= {"process_tick"} if self.is_pystorms else set()
        else:
            next_ = "next_tuple" if self.is_pystorms else "nextTuple"
            found = {"initialize", "ack", "fail", "activate", "deactivate", next_}
        if self.library == "petrel":
            found |= {"declareOutputFields", "getComponentConfiguration", "__init__"}
            found -= {"activate", "deactivate"}  # of which Petrel's spouts are not told
        return frozenset(found)

    @property
    def theirs(self) -> frozenset[str]:
        """All names that the library's class has."""
        module = {"storm": "multilang.compat.storm", "petrel": "multilang.compat.petrel.emitter"}.get(
            self.library, f"multilang.compat.{self.library}"
        )
        found = _members(getattr(import_module(module), self.name))
        return found | {"pid"} if self.is_pystorms else found

    @property
    def ours(self) -> frozenset[str]:
        """All names that this library's classes of the same sort have."""
        module: Any = import_module("multilang.component")
        if self.is_spout:
            return _members(module.Spout)
        return _members(module.BasicBolt)


_KEPT = {
    "BatchingBolt": "processes a group at the tick after ticks_between_batches ticks, however large it is, and an exception fails all "
    "groups; multilang's BatchingBolt has batch_size, and fails only the group: write it over by hand if that suits you",
    "TicklessBatchingBolt": "processes all groups every secs_between_batches seconds; multilang's LingeringBolt counts linger_secs from the first "
    "tuple of a group: write it over by hand if that suits you",
    "ReliableSpout": "emits a failed tuple again at once, max_fails times, and then counts it as acked; multilang's ReliableSpout emits "
    "it until it is acked, or max_replays times, and tells gave_up: write it over by hand if that suits you",
}


def kind_of(dotted: str | None) -> Kind | None:
    """Return the class that a name with dots stands for; None if it is no component's."""
    if dotted is None:
        return None
    library, _, rest = dotted.partition(".")
    module, _, name = rest.rpartition(".")
    if library in _PYSTORM:
        known = {"Bolt", "Spout", *_KEPT}
        if library == "streamparse" and name == "BasicBolt" and module == "bolt":
            return Kind(library, "Bolt")  # its name before streamparse 3
        return Kind(library, name) if name in known else None
    known = {"Bolt", "BasicBolt", "Spout"}
    if library == "storm" and not module:
        return Kind("storm", name) if name in known else None
    if library == "petrel" and module in ("emitter", "storm"):
        return Kind("petrel", name) if name in known else None
    return None


def is_library(dotted: str | None) -> bool:
    """Return whether a name with dots is of one of the libraries."""
    return dotted is not None and dotted.partition(".")[0] in (*_PYSTORM, "storm", "petrel")


def function_of(dotted: str | None) -> str | None:
    """Return the function of storm.py, or of Petrel's version of it, that a name with dots stands for."""
    if dotted is None:
        return None
    module, _, name = dotted.rpartition(".")
    return name if module in ("storm", "petrel.storm") and name[:1].islower() else None


def _members(kind: type) -> frozenset[str]:
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        found |= set(vars(base)) | set(vars(base).get("__annotations__", {}))
    return frozenset(each for each in found if not each.startswith("__"))
