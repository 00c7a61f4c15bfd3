"""The owner of a topology's states: who may claim them, who is refused, and who may not come back."""

from __future__ import annotations

import pytest

from multilang.engine.clock import VirtualClock
from multilang.state import FencedError, InUseError
from multilang.state.exact_spout import ExactCheckpointSpout
from multilang.state.providers import provider_of
from multilang.state.spout import CheckpointSpout
from multilang.store import claims
from tests.state.conftest import opened


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
    monkeypatch.setattr(claims, "BEAT_SECS", 0.05)
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.3)
    monkeypatch.setattr(claims, "LEASE_SECS", 2.0)


def stopped(found):
    """As if its process was stopped: it beats no more."""
    found._claim._ended.set()
    found._claim._thread.join()


def test_each_claim_raises_the_epoch(durable):
    epochs = []
    for run in ("one", "one", "other"):
        found = provider(durable, run)
        epochs.append(found.claim())
        assert found.claim() == epochs[-1]  # once in a process
        found.close()
    assert epochs == [1, 2, 3]


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


def test_two_topologies_have_owners_of_their_own_in_one_place(durable):
    first, other = provider(durable, "first"), provider({**durable, "topology.name": "other"}, "second")
    assert (first.claim(), other.claim()) == (1, 1)
    states = [opened(first, "count-0"), opened(other, "count-0")]
    for number, state in enumerate(states):
        state.put("moon", number)
        state.commit()
    with pytest.raises(InUseError, match=r"the state of topology 'other' in .* is in use by topology 'other'"):
        provider({**durable, "topology.name": "other"}, "third").claim()
    assert [dict(state) for state in states] == [{"moon": 0}, {"moon": 1}]
    other.replace({"count-0": {}})
    assert (first.namespaces(), other.namespaces()) == (["count-0"], [])
    for each in (*states, first, other):
        each.close()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["stateful"], "there are states of 'stateful' in"),
        (["b/c", "a"], "there are states of 'a', 'b/c' in"),
        ([], None),
    ],
)
def test_a_file_that_a_conf_names_with_states_of_other_topologies_alone_is_reported_once(tmp_path, caplog, names, says):
    conf = in_file(tmp_path / "state.sqlite")
    for name in names:
        found = provider({**conf, "topology.name": name}, "first")
        opened(found, "count-0").close()
        found.close()
    caplog.clear()
    for _ in range(2):
        found = provider({**conf, "topology.name": "renamed"}, "second")
        found.claim()
        found.close()
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == bool(says)
    if says:
        assert says in told[0]
        assert "set multilang.state.name to that name" in told[0]


def test_a_topology_that_stores_under_another_ones_name_takes_over_what_that_one_had(tmp_path):
    first, conf = provider(in_file(tmp_path / "state.sqlite"), "first"), in_file(tmp_path / "state.sqlite")
    assert first.claim() == 1
    first.close()
    beside = provider({**conf, "topology.name": "stateful-green", "multilang.state.name": "stateful"}, "second")
    assert beside.claim() == 2
    beside.close()
    assert provider(conf, "third").claim() == 3


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
        found._claim = None
        with pytest.raises(FencedError, match=r"taken over by topology 'stateful'.* it ends here"):
            found.claim()
    second.close()
    with pytest.raises(FencedError):
        provider(durable, "first").claim()
    on_storm = provider(durable, "first", None)
    assert on_storm.claim() == 3
    on_storm.close()


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
