"""The places in stores where a topology keeps things, beside its states."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.state.positions import positions_url
from multilang.store.admin import entries
from multilang.store.opening import open_store
from multilang.store.settings import place_of, stored_name
from multilang.transactional.maps.base import maps_of
from multilang.transactional.names import ID
from multilang.transactional.stores import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from multilang.store.admin import Entry
    from multilang.store.interface import Store
    from multilang.topology.model import Topology


@contextmanager
def kept_places(topology: Topology, conf: Mapping[str, Any]) -> Iterator[list[tuple[Store, Entry]]]:
    """Give the places of a topology's positions, transactions, maps and marks of sources, each with its store, open.

    Args:
        topology: The topology.
        conf: Its conf, with what a run would add to it.
    """
    with ExitStack() as opened:
        found: dict[tuple[str, str], tuple[Store, Entry]] = {}
        for store, start in _starts(topology, conf, opened):
            for entry in entries(store, start):
                found.setdefault((store.describe(), entry.place), (store, entry))
        yield [*found.values()]


def _starts(topology: Topology, conf: Mapping[str, Any], opened: ExitStack) -> Iterator[tuple[Store, str]]:
    name = stored_name(conf)
    for spec in topology.components.values():
        own = {**conf, **spec.conf}
        url = positions_url(own) if spec.kind == "spout" else None
        if url is not None:
            yield opened.enter_context(closing(open_store(url[0], own, url[1]))), place_of("position", name)
        if own.get(ID) is not None:
            url = store_of(own)
            yield opened.enter_context(closing(open_store(url[0], own, url[1]))), place_of("transactions", str(own[ID]))
        for found in maps_of(innermost(spec.component)):
            yield found.backing.store, place_of("map", found.backing.name)
        marks = getattr(innermost(spec.component), "kept_marks", None)
        where = None if marks is None else marks(own, spec.id)
        if where is not None:
            yield opened.enter_context(closing(where[0])), where[1]
