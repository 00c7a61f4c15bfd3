"""Places of which one run takes over from another: states and transactions, in each store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.handover.places import Place, States, Transactions
from tests.state.conftest import conf_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "handover" in item.path.parts:
            item.add_marker(pytest.mark.timeout(600))
            if "zookeeper" in item.name:
                item.add_marker(pytest.mark.xdist_group("zookeeper"))  # in one process: one server


@pytest.fixture
def place_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Make a place: ``place_of("exact redis")``; nothing of its lives is left behind."""
    made: list[Place] = []

    def make(what: str, **more: int) -> Place:
        kind, store = what.split()
        folder = tmp_path / f"place-{len(made)}"
        folder.mkdir()
        place: Place
        if kind in ("exact", "at-least-once"):
            place = States(what, folder, conf_of(store, request, folder), **more)
        else:
            conf: dict[str, Any] = {"multilang.transactional.store": f"sqlite://{folder}/transactions.sqlite"}
            if store == "zookeeper":
                conf = {**request.getfixturevalue("zookeeper").conf, "transactional.zookeeper.root": str(folder)}
            place = Transactions(what, folder, conf, **more)
        made.append(place)
        return place

    try:
        yield make
    finally:
        for place in made:
            place.close()
