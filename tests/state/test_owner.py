"""The owner of what is stored: who may claim it, who is refused, and who may not come back."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import ujson

from multilang.runtime.clock import VirtualClock
from multilang.state import FencedError, InUseError, StateError, owner
from multilang.state.exact_spout import ExactCheckpointSpout
from multilang.state.providers import provider_of
from multilang.state.spout import CheckpointSpout


def in_file(path):
    return {
        "topology.name": "stateful",
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(path)},
    }


def provider(conf, run, parent="local"):
    return provider_of({**conf, "storm.id": run, "multilang.parent": parent})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(owner, "BEAT_SECS", 0.05)
    monkeypatch.setattr(owner, "CLAIM_SECS", 0.3)
    monkeypatch.setattr(owner, "LEASE_SECS", 2.0)


def stopped(found):
    """As if its process was stopped: it beats no more."""
    found._owned._ended.set()
    found._owned._thread.join()


def test_each_claim_raises_the_epoch(durable):
    epochs = []
    for run in ("one", "one", "other"):
        found = provider(durable, run)
        epochs.append(found.claim())
        assert found.claim() == epochs[-1]  # once in a process
        found.close()
    assert epochs == [1, 2, 3]


def test_an_owner_that_an_earlier_version_stored_is_read_and_followed():
    text = ujson.dumps(
        {
            name: value
            for name, value in ujson.loads(owner.Owner.after(None, "run", "t").text()).items()
            if name != "token"
        }
    )
    before = owner.Owner.from_text(text)
    assert (before.token, before.epoch) == ("", 1)
    after = owner.Owner.after(before, "next", "t")
    assert (after.epoch, after.earlier) == (2, ["run"])
    assert len({after.token, owner.Owner.after(before, "next", "t").token, ""}) == 3
    assert owner.Owner.from_text(after.renewed().text()).token == after.token


def test_another_run_is_refused_by_name_while_the_owner_beats(durable):
    first = provider(durable, "first")
    first.claim()
    for use in (provider(durable, "second").claim, provider(durable, "second").check_free):
        with pytest.raises(
            InUseError, match=r"is in use by topology 'stateful' \(process \d+ on .+, since \d{4}-\d\d-\d\d "
        ):
            use()
    first.close()
    second = provider(durable, "second")
    second.check_free()
    assert second.claim() == 2
    second.close()


@pytest.mark.parametrize("how", ["ended", "stopped"])
def test_another_topologys_state_is_refused_until_it_is_adopted(tmp_path, monkeypatch, how):
    monkeypatch.setattr(owner, "LEASE_SECS", 0.5)
    first, conf = provider(in_file(tmp_path / "state.sqlite"), "first"), in_file(tmp_path / "state.sqlite")
    assert first.claim() == 1
    if how == "ended":
        first.close()
    else:
        stopped(first)
    other = provider({**conf, "topology.name": "renamed"}, "second")
    for use in (other.check_free, other.claim):
        with pytest.raises(
            StateError, match=r"has the state of topology 'stateful', and this one is 'renamed': .* state adopt"
        ):
            use()
    other.adopt()
    other.check_free()
    assert other.claim() == 3
    other.close()
    with pytest.raises(StateError, match="has the state of topology 'renamed', and this one is 'stateful'"):
        provider(conf, "third").claim()


def test_a_topology_that_stores_under_another_ones_name_takes_over_what_that_one_had(tmp_path):
    first, conf = provider(in_file(tmp_path / "state.sqlite"), "first"), in_file(tmp_path / "state.sqlite")
    assert first.claim() == 1
    first.close()
    beside = provider({**conf, "topology.name": "stateful-green", "multilang.state.name": "stateful"}, "second")
    assert beside.claim() == 2
    beside.close()
    assert provider(conf, "third").claim() == 3


MOUNTED = """
import sys
from multilang.state import owner
from tests.state.test_owner import in_file, provider
owner.BEAT_SECS, owner.CLAIM_SECS = 0.05, 0.3
there, here = sys.argv[1:]
first, second = provider(in_file(there), "first"), provider(in_file(here), "second")
for each in (first, second):
    try:
        each.claim()
        print("claimed")
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize("what", ["the file", "its folder"])
@pytest.mark.parametrize("name", ["state.sqlite", "a state\\.sqlite"])
def test_a_file_that_is_mounted_by_itself_is_refused_and_a_folder_is_the_same(tmp_path, what, name):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    if what == "the file":
        (there / name).touch()
        (here / name).touch()
        mounted = [there / name, here / name]
    else:
        mounted = [there, here]
    own = ["unshare", "--mount", "--map-root-user", "sh", "-c"]  # what is mounted so goes with the process
    if (
        shutil.which("unshare") is None
        or subprocess.run([*own, 'mount --bind "$1" "$2"', "-", *mounted], capture_output=True).returncode
    ):
        pytest.skip("nothing may be mounted here")
    command = [sys.executable, "-c", MOUNTED, there / name, here / name]
    shown = subprocess.run(
        [*own, 'mount --bind "$1" "$2"; shift 2; exec "$@"', "-", *mounted, *command],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    first, second = shown.stdout.splitlines()
    assert first == "claimed", shown
    if what == "the file":
        assert second.startswith(f"StateError the state file {here / name} is mounted by itself (mount --bind"), shown
    else:
        assert second.startswith(f"InUseError the state file {here / name} is in use by topology 'stateful'"), shown


def test_another_run_is_refused_by_name_through_a_symbolic_link_to_the_file(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path, link = tmp_path / "state.sqlite", tmp_path / "elsewhere" / "link.sqlite"
    link.symlink_to(path)
    first, second = provider(in_file(path), "first"), provider(in_file(link), "second")
    first.claim()
    with pytest.raises(InUseError, match=r"is in use by topology 'stateful' "):
        second.claim()
    first.close()


def test_a_file_with_two_names_is_refused_since_their_users_would_not_see_each_other(tmp_path):
    path, link = tmp_path / "state.sqlite", tmp_path / "link.sqlite"
    provider(in_file(path), "first").claim()
    link.hardlink_to(path)
    for each in (path, link):
        with pytest.raises(StateError, match=rf"{each} has 2 names \(hard links\), .*: keep one name"):
            provider(in_file(each), "second").claim()


def test_the_same_run_takes_over_at_once(durable):
    first, again = provider(durable, "run"), provider(durable, "run")
    assert (first.claim(), again.claim()) == (1, 2)
    first.close()  # which is the owner's no more, and lets nothing go
    with pytest.raises(InUseError):
        provider(durable, "other").claim()
    again.close()


def test_who_was_taken_over_from_does_not_come_back_unless_nobody_else_could_end_it(durable):
    first = provider(durable, "first")
    first.claim()
    stopped(first)
    second = provider(durable, "second")
    assert second.claim() == 2
    for found in (first, provider(durable, "first")):
        found._owned = None
        with pytest.raises(FencedError, match=r"taken over by topology 'stateful'.* it ends here"):
            found.claim()
    second.close()
    with pytest.raises(FencedError):
        provider(durable, "first").claim()
    on_storm = provider(durable, "first", None)
    assert on_storm.claim() == 3
    on_storm.close()


def test_an_owner_whose_process_was_killed_is_known_to_be_gone(durable, monkeypatch):
    monkeypatch.setattr(owner, "LEASE_SECS", 3600)
    script = (
        "import os, signal, sys, ujson; from multilang.state.providers import provider_of\n"
        "provider_of(ujson.loads(sys.argv[1])).claim(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, ujson.dumps({**durable, "storm.id": "killed"})])
    found = provider(durable, "next")
    assert found.claim() == 2
    found.close()


def test_what_is_released_by_one_that_was_taken_over_from_stays_the_others(durable):
    first = provider(durable, "first")
    first.claim()
    stopped(first)
    second = provider(durable, "second")
    second.claim()
    first.close()
    with pytest.raises(InUseError):
        provider(durable, "third").claim()
    second.close()


@pytest.mark.parametrize("alignment", ["at-least-once", "exact"])
def test_on_storm_a_checkpoint_spout_that_is_refused_says_so_once_and_goes_on_when_the_place_is_free(
    durable, alignment, run_spout
):
    kinds = {"exact": ExactCheckpointSpout, "at-least-once": CheckpointSpout}
    other = provider(durable, "other")
    other.claim()
    clock = VirtualClock()
    conf = {**durable, "storm.id": "on-storm", "multilang.parent": "storm", "multilang.state.alignment": alignment}
    run = run_spout(kinds[alignment]([], alignment), 5, conf=conf, clock=clock)
    for _ in range(3):
        clock.sleep(11)
        run.next(3)
    assert [line for line in run.errors if "in use by topology 'stateful'" in line] == run.errors[:1] == run.errors
    assert run.emitted == []
    assert run.exhausted is False
    other.close()
    clock.sleep(11)
    run.next(2)
    assert [values[1] for values in run.values][:1] == [{"exact": "ROLLBACK", "at-least-once": "INITSTATE"}[alignment]]
    run.close()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_live_owner_with_the_same_host_name_on_another_machine_is_not_taken_for_dead(durable, monkeypatch, place):
    """Its process number is none here. Another boot, another machine's id, or another namespace tells that it is elsewhere."""
    here = owner._number_space()
    if place >= len(here):
        pytest.skip("this system has fewer ways to tell machines apart")
    there = [*here[:place], "elsewhere", *here[place + 1 :]]
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(owner, "_number_space", lambda: there)
        elsewhere.setattr(owner.os, "getpid", lambda: int(ended.stdout))
        first = provider(durable, "first")
        first.claim()
    with pytest.raises(InUseError, match="is in use by topology 'stateful'"):
        provider(durable, "second").claim()
    first.close()


def test_where_no_file_tells_the_machine_its_network_card_does(monkeypatch):
    owner._machine.cache_clear()
    monkeypatch.setattr(owner, "_MACHINE_FILES", ("/nowhere",))
    monkeypatch.setattr(uuid, "getnode", lambda: 0xC0FFEE)
    try:
        assert owner._number_space()[-1] == "c0ffee"
    finally:
        owner._machine.cache_clear()
