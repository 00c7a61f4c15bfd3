"""The owner's record: what it remembers, and which processes it takes for dead."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

import pytest

from multilang.store import InUseError, Owner, claims
from multilang.store.memory import MemoryStore


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(claims, "BEAT_SECS", 0.05)
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.3)
    monkeypatch.setattr(claims, "LEASE_SECS", 3600)


@pytest.fixture
def gone():
    """The number of a process that has ended."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    return int(ended.stdout)


def test_a_record_is_read_as_it_was_stored():
    owner = Owner.after(None, "run-1", "a 'shop' ünd more")
    again = Owner.from_text(owner.text())
    assert {name: getattr(again, name) for name in Owner.__slots__} == {
        name: getattr(owner, name) for name in Owner.__slots__
    }
    assert (owner.epoch, owner.earlier, owner.ended) == (1, [], False)
    assert again.changed(ended=True).ended
    for text in (b"", b"{}", b"[1]", b"null", b"\xff", owner.text()[:-1], owner.text().replace(b'"token"', b'"taken"')):
        with pytest.raises(ValueError):  # of JSON's parser, or ours
            Owner.from_text(text)


def test_each_owner_has_a_fence_of_its_own_and_remembers_the_runs_before():
    owner, tokens = None, set()
    for number in range(60):
        owner = Owner.after(owner, f"run {number}", "shop")
        tokens.add(owner.token)
    assert len(tokens) == 60
    assert owner.epoch == 60
    assert owner.earlier == [f"run {number}" for number in range(9, 59)]
    back = Owner.after(owner, "run 20", "shop", above=100)
    assert back.epoch == 101
    assert "run 20" not in back.earlier
    assert back.earlier[-1] == "run 59"


def test_a_process_that_ended_is_dead_and_one_that_may_not_be_signalled_is_not(gone, monkeypatch):
    owner = Owner.after(None, "run", "shop")
    assert not owner.is_dead()
    there = [gone, *owner.process[1:]]
    assert owner.changed(process=there).is_dead()
    assert not owner.changed(process=there, host="elsewhere").is_dead()

    def forbidden(number, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert not owner.changed(process=there).is_dead()


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_live_owner_with_the_same_host_name_on_another_machine_is_not_taken_for_dead(gone, monkeypatch, part):
    """Its process number is none here. Another boot, another machine's id, or another namespace tells that it is elsewhere."""
    here = claims._number_space()
    if part >= len(here):
        pytest.skip("this system has fewer ways to tell machines apart")
    store = MemoryStore()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(claims, "_number_space", lambda: [*here[:part], "elsewhere", *here[part + 1 :]])
        elsewhere.setattr(claims.os, "getpid", lambda: gone)
        first = store.claim("p", "first", "shop")
    with pytest.raises(InUseError, match=rf"is in use by topology 'shop' \(process {gone} on "):
        store.claim("p", "second", "shop")
    first.release()


def test_where_no_file_tells_the_machine_its_network_card_does(monkeypatch):
    claims._machine.cache_clear()
    monkeypatch.setattr(claims, "_MACHINE_FILES", ("/nowhere",))
    monkeypatch.setattr(uuid, "getnode", lambda: 0xC0FFEE)
    try:
        assert claims._number_space()[-1] == "c0ffee"
    finally:
        claims._machine.cache_clear()


def test_a_refusal_names_what_is_in_use_and_the_setting_with_its_place():
    store = MemoryStore(setting="multilang.store")
    first = store.claim("p", "first", "shop")
    with pytest.raises(InUseError) as told:
        store.claim("p", "second", "shop", what="the state of topology 'shop'")
    text = str(told.value)
    assert text.startswith(
        "the state of topology 'shop' in memory of this process is in use by topology 'shop' (process "
    )
    assert text.endswith("end that one first, or name another place in multilang.store")
    first.release()
