"""A network that loses answers, ends connections and delivers late: each write that was answered was made once (law 4)."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from multilang.store import StateError, open_store
from multilang.testing.stores import contents
from tests.handover.proxy import Proxy
from tests.soak import SOAK

TIMES = 200 if SOAK else 40


@pytest.fixture
def proxy(network):
    with Proxy(network[0]) as found:
        yield found


def trouble(proxy, chance):
    """Make trouble for one call of several."""
    proxy.delay_secs = chance.choice([0, 0, 0.003])
    if chance.random() < 0.2:
        chance.choice([proxy.lose_answer, proxy.lose_answer, proxy.sever])()


def increments(store, writer, proxy, chance):
    """Return what was said of each attempt: True, False, or None for an error."""
    said = {}
    attempt = 0
    while sum(did is True for did in said.values()) < TIMES:
        key = b"%d %d" % (writer, attempt)
        attempt += 1
        try:
            (text,) = store.get("p", "t", [b"n"])
            said[key] = None
            new = b"%d" % (int(text or 0) + 1)
            trouble(proxy, chance)
            said[key] = store.compare_and_write("p", {"t": {b"n": text}}, {"t": {b"n": new}, "log": {key: new}})
        except StateError:
            continue
    return said


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_each_increment_that_was_answered_is_made_once(network, proxy, seed):
    port, url_of = network
    stores = [open_store(url_of(proxy.port)) for _ in range(2)]
    said = {}
    with ThreadPoolExecutor(2) as pool:
        for writer in [
            pool.submit(increments, store, number, proxy, random.Random(f"{seed} {number}"))
            for number, store in enumerate(stores)
        ]:
            said |= writer.result()
    direct = open_store(url_of(port))
    found = contents(direct, "p", "t", "log")
    made = sorted(int(value) for value in found["log"].values())
    assert made == [*range(1, len(made) + 1)], "law 1: two increments made the same number, or one was made twice"
    assert found["t"] == {b"n": b"%d" % len(made)}, "law 4: an increment was made twice"
    assert [key for key, did in said.items() if did and key not in found["log"]] == [], (
        "law 2: what was answered is gone"
    )
    assert [key for key, did in said.items() if did is False and key in found["log"]] == [], (
        "law 3: False, and it was made"
    )
    for each in (*stores, direct):
        each.close()


def test_a_write_whose_answer_is_lost_is_answered_with_what_was_done(network, proxy):
    port, url_of = network
    store, direct = open_store(url_of(proxy.port)), open_store(url_of(port))
    assert store.compare_and_write("p", {}, {"t": {b"n": b"0"}})
    for number in range(5):
        proxy.lose_answer()
        change = {"t": {b"n": b"%d" % (number + 1)}}
        assert store.compare_and_write("p", {"t": {b"n": b"%d" % number}}, change) is True, (
            "law 4: it was made, and is denied"
        )
        assert direct.get("p", "t", [b"n"]) == [b"%d" % (number + 1)]
        proxy.lose_answer()
        assert store.compare_and_write("p", {"t": {b"n": b"%d" % number}}, change) is False
    for each in (store, direct):
        each.close()


def test_a_first_copy_that_is_late_changes_nothing(network, proxy):
    """It would fit: meanwhile somebody has put back what it expects."""
    port, url_of = network
    direct = open_store(url_of(port))
    stores = {place: open_store(url_of(proxy.port)) for place in ("compared", "blind", "merged")}

    def write(place):
        expected = {"t": {b"n": b"1"}} if place == "compared" else {}
        merged = ("from", "t") if place == "merged" else None
        return stores[place].compare_and_write(place, expected, {"t": {b"n": b"2"}}, (), merged)

    for place, store in stores.items():
        assert store.compare_and_write(place, {}, {"t": {b"n": b"1"}, "from": {b"n": b"2"}})
    proxy.hold()
    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(write, stores)] == [True] * 3, "a second copy goes by a new connection"
    for place in stores:
        assert direct.compare_and_write(place, {"t": {b"n": b"2"}}, {"t": {b"n": b"1"}, "from": {b"later": b"1"}})
    before = {place: contents(direct, place, "t", "from") for place in stores}
    proxy.let_go()
    for _ in range(10):
        sleep(0.02)  # what has arrived is done
        assert {place: contents(direct, place, "t", "from") for place in stores} == before, (
            "law 4: a late copy was made"
        )
    for each in (*stores.values(), direct):
        each.close()
