"""The maps that a transactional topology's bolts update: executors must be able to reach them, and note them.

An executor may not reach the store of the transactions. So each job takes along what is noted there of maps, and its report
brings back what to note: before the transaction is committed, so that nothing is committed without its note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.dotted import by_dotted_name
from multilang.state.old_databases import DATABASES
from multilang.transactional.maps.base import maps_of
from multilang.transactional.maps.registry import MapNotes, path_of, path_of_note
from spark_bridge.job.errors import NotOnSparkError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.topology.model import Topology
    from multilang.transactional.maps import Backing


class CarriedNotes(MapNotes):
    """The notes as a Spark task has them.

    ``where``: the place of the transactions, in the words of a message. ``made``: by its path in the store, what is to be noted.
    """

    keeps = False

    def __init__(self, where: str, known: Sequence[Mapping[str, Any]]) -> None:
        self._where = where
        self._known = {path_of_note(each): each for each in known}
        self.made: dict[str, Mapping[str, Any]] = {}

    def describe(self) -> str:
        return self._where

    def get(self, place: str, keeper: str = "") -> Mapping[str, Any] | None:
        return self._known.get(path_of(place, keeper))

    def all(self) -> list[Mapping[str, Any]]:
        return list(self._known.values())

    def put(self, note: Mapping[str, Any]) -> None:
        self.made[path_of_note(note)] = note


def check_maps(topology: Topology, master: str) -> None:
    """Raise NotOnSparkError for a map among a bolt's attributes that the bolt's tasks can't reach."""
    for spec in topology.bolts.values():
        for found in maps_of(innermost(spec.component)):
            if not _is_shared(found.backing, master):
                kinds = (by_dotted_name(row.maps) for row in DATABASES.values() if row.maps)
                elsewhere = " or ".join(f"a {kind.__name__}" for kind in kinds if _is_shared(kind, master))
                raise NotOnSparkError(
                    f"bolt {spec.id!r} updates a map ({found.backing.describe()}), which the executors of {master} don't share: "
                    f"give it {elsewhere}"
                )


def _is_shared(backing: Backing | type[Backing], master: str) -> bool:
    """Return whether all executors of this master can reach the values."""
    return backing.durable and (not backing.local or master.startswith("local"))
