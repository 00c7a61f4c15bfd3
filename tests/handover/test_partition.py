"""A network that is cut between a coordinator and ZooKeeper, for longer than its session: it writes nothing when it is healed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import TYPE_CHECKING

import pytest

from multilang.store import zookeeper as stores
from multilang.transactional.names import ID
from multilang.transactional.stores import check_state
from tests.handover.proxy import Proxy
from tests.servers import wait_for
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.handover.places import Place
    from tests.servers import ZooKeeperServer


@pytest.mark.parametrize("seed", range(5 if SOAK else 1))
@pytest.mark.parametrize("what", ["transactional zookeeper", "opaque zookeeper"] if SOAK else ["opaque zookeeper"])
def test_who_was_cut_off_from_zookeeper_writes_nothing_when_the_network_is_healed(
    what: str, seed: int, place_of: Callable[..., Place], zookeeper: ZooKeeperServer
) -> None:
    place = place_of(what, size=3)
    with Proxy(zookeeper.port) as proxy:
        first = place.begin(**{"transactional.zookeeper.port": proxy.port})
        wait_for(lambda: place.counts().total() > 100 * seed, "it has counted some")
        proxy.cut()
        place.begin().ends_well()
        counts = place.counts()
        place.check(counts)
        proxy.heal()
        place.fences(first)
    assert place.counts() == counts


def test_a_zookeeper_that_is_there_and_slow_is_waited_for_before_a_start(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "START_SECS", 0.2)
    with Proxy(zookeeper.port) as proxy, ThreadPoolExecutor(1) as threads:
        proxy.cut()
        conf = {**zookeeper.conf, "transactional.zookeeper.port": proxy.port, "transactional.zookeeper.root": "/slow"}
        checked = threads.submit(check_state, {**conf, ID: "words"})
        sleep(5 * stores.START_SECS)  # so slow is this network
        assert not checked.done()
        proxy.heal()
        checked.result()
