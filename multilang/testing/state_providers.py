"""Tests that every state provider passes, for a provider of your own. A store of your own has ``multilang.testing.stores``.

Example:
    from multilang.testing.state_providers import StateProviderTests


    class TestShop(StateProviderTests):
        def state_conf(self, folder):
            return {
                "topology.state.provider": "shop.states.ShopProvider",
                "topology.state.provider.config": {"path": str(folder)},
            }
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from multilang.settings import CACHED_KEYS
from multilang.state import FencedError, InUseError, StateError, StateProvider
from multilang.state.providers import provider_of
from multilang.store import claims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any


def opened(provider: StateProvider, namespace: str) -> Any:
    """Return a task's state, claimed as a topology does it."""
    state = provider.new_state(namespace)
    state.claim(provider.claim())
    return state


def unclaimed(provider: StateProvider, namespace: str) -> Any:
    """Return a task's state as a reader has it."""
    return provider.new_state(namespace)


class KeyValueStateTests:
    """The rules of prepare, commit and rollback, which hold for providers that are not durable, too."""

    def state_conf(self, folder: Path) -> dict[str, Any]:
        """Return the conf that names the provider, in JSON's types. Each test needs a place without states.

        Args:
            folder: A folder of the test's own.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method state_conf(self, folder)")

    @pytest.fixture
    def conf(self, tmp_path: Path) -> dict[str, Any]:
        """The conf of a topology that stores its states in the place of this test."""
        return {"topology.name": "stateful", "storm.id": "one", **self.state_conf(tmp_path)}

    @pytest.fixture
    def provider(self, conf: dict[str, Any]) -> Iterator[StateProvider]:
        """The provider."""
        found = provider_of(conf)
        yield found
        found.close()

    def test_what_is_put_is_got_deleted_and_iterated(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        assert state.get("moon") is None
        assert state.get("moon", 7) == 7
        state.put("moon", 1)
        state.put("sun", {"of": ["two", 2, None, 1.5], "é": True})
        state.put(("a", 1), "tuple")
        state.put(3, -(2**63))
        assert (state.get("moon"), state.get("sun")["é"], state.get(("a", 1)), state.get(3)) == (
            1,
            True,
            "tuple",
            -(2**63),
        )
        assert dict(state) == dict(state.items()) == {
            "moon": 1, "sun": {"of": ["two", 2, None, 1.5], "é": True}, ("a", 1): "tuple", 3: -(2**63)
        }  # fmt: skip
        assert state.delete("moon") == 1
        assert state.delete("moon") is None
        assert state.get("moon", 0) == 0
        assert "moon" not in dict(state)

    def test_what_is_not_committed_is_undone_by_a_rollback(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        state.put("kept", 1)
        state.put("changed", 1)
        state.put("deleted", 1)
        state.prepare_commit(1)
        state.commit(1)
        state.put("changed", 2)
        state.delete("deleted")
        state.put("new", 1)
        state.prepare_commit(2)
        state.put("newer", 1)
        assert dict(state) == {"kept": 1, "changed": 2, "new": 1, "newer": 1}
        state.rollback()
        assert dict(state) == {"kept": 1, "changed": 1, "deleted": 1}
        assert state.get("new") is None
        state.put("changed", 3)
        state.prepare_commit(2)
        state.commit(2)
        state.rollback()
        assert dict(state) == {"kept": 1, "changed": 3, "deleted": 1}

    def test_what_is_put_after_a_prepare_is_no_part_of_it(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        state.put("moon", 1)
        state.prepare_commit(1)
        state.put("moon", 2)
        state.commit(1)
        assert state.get("moon") == 2
        state.rollback()
        assert state.get("moon") == 1

    def test_a_state_that_is_rolled_back_before_any_commit_is_empty(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        state.put("moon", 1)
        state.prepare_commit(0)
        state.rollback()
        assert dict(state) == {}
        state.put("moon", 5)
        state.prepare_commit(0)
        state.commit(0)
        assert state.get("moon") == 5

    def test_preparing_again_adds_to_what_is_prepared(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        state.put("moon", 1)
        state.put("sun", 1)
        state.prepare_commit(1)
        state.put("sun", 2)
        state.prepare_commit(1)
        state.commit(1)
        state.rollback()
        assert dict(state) == {"moon": 1, "sun": 2}

    def test_transactions_go_forward_only(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        state.prepare_commit(5)
        with pytest.raises(StateError, match="where 5 is prepared"):
            state.commit(6)
        state.commit(5)
        state.commit(5)  # repeated after a failure
        with pytest.raises(StateError, match="5 is committed already"):
            state.prepare_commit(5)
        with pytest.raises(StateError, match="5 is committed already"):
            state.commit(4)
        state.prepare_commit(6)

    def test_a_commit_without_a_prepare_is_taken(self, provider: StateProvider) -> None:
        state = opened(provider, "count-0")
        state.commit(3)
        assert dict(state) == {}

    def test_a_commit_under_no_transaction_saves_at_once(self, provider: StateProvider) -> None:
        state = opened(provider, "$checkpointspout-0")
        state.put("__state", [4, "COMMITTING"])
        state.put("__gone", 1)
        state.commit()
        state.delete("__gone")
        state.commit()
        state.rollback()
        assert dict(state) == {"__state": [4, "COMMITTING"]}

    def test_namespaces_are_apart(self, provider: StateProvider) -> None:
        one, other = opened(provider, "count-0"), opened(provider, "count-1")
        one.put("moon", 1)
        one.prepare_commit(1)
        one.commit(1)
        assert other.get("moon") is None
        assert dict(other) == {}


class StateProviderTests(KeyValueStateTests):
    """All rules: those of a durable provider with an owner, too."""

    @pytest.mark.parametrize("step", ["prepare", "commit", "commit at once", "rollback", "claim"])
    def test_a_former_owner_can_write_nothing(self, conf: dict[str, Any], step: str) -> None:
        provider = provider_of(conf)
        old = opened(provider, "count-0")
        old.put("moon", 1)
        old.prepare_commit(5)
        old.commit(5)
        old.put("moon", 2)
        old.prepare_commit(6)
        new = opened(provider_of(conf), "count-0")
        new.rollback()
        new.put("moon", 10)
        new.prepare_commit(6)
        old.put("moon", 3)
        with pytest.raises(FencedError, match=r"'count-0'.* taken over"):
            steps_of(old)[step]()
        new.commit(6)
        assert dict(unclaimed(provider, "count-0")) == {"moon": 10}

    def test_of_several_that_claim_at_once_one_can_write(self, conf: dict[str, Any]) -> None:
        for _ in range(20):
            providers = [provider_of(conf) for _ in range(4)]
            states = [unclaimed(each, "count-0") for each in providers]
            together = threading.Barrier(len(states))

            def run(
                number: int, states: Any = states, providers: Any = providers, together: Any = together
            ) -> int | None:
                together.wait()
                try:
                    states[number].claim(providers[number].claim())
                    seen: int = states[number].get("last", -1)
                    states[number].put("last", seen + 1)
                    states[number].put("by", number)
                    states[number].commit()
                except FencedError:
                    return None
                return seen

            with ThreadPoolExecutor(len(states)) as pool:
                did = [*pool.map(run, range(len(states)))]
            for each in (*states, *providers):
                each.close()
            provider = provider_of(conf)
            state = opened(provider, "count-0")
            before = dict(state)["last"] - sum(seen is not None for seen in did)
            assert sorted(seen for seen in did if seen is not None) == [*range(before, dict(state)["last"])]
            state.close()
            provider.close()

    def test_nothing_is_written_before_it_is_claimed(self, conf: dict[str, Any]) -> None:
        provider = provider_of(conf)
        state = unclaimed(provider, "count-0")
        assert dict(state) == {}  # to look is free
        state.put("moon", 1)
        with pytest.raises(StateError, match="before it was claimed"):
            state.prepare_commit(1)
        state.claim(provider.claim())
        state.prepare_commit(1)
        provider.close()

    def test_a_claim_is_read_anew(self, conf: dict[str, Any]) -> None:
        first, second = provider_of(conf), provider_of(conf)
        early = unclaimed(second, "count-0")
        late = opened(first, "count-0")
        late.put("moon", 1)
        late.commit()
        early.claim(second.claim())
        assert early.get("moon") == 1
        first.close()
        second.close()

    def test_another_task_finds_what_was_committed_and_what_was_prepared(self, conf: dict[str, Any]) -> None:
        first = provider_of(conf)
        state = opened(first, "count-0")
        for word in ("moon", "sun", "star"):
            state.put(word, 1)
        state.prepare_commit(1)
        state.commit(1)
        state.put("moon", 2)
        state.delete("sun")
        state.prepare_commit(2)
        state.put("star", 99)
        state.close()
        first.close()
        second = provider_of(conf)
        again = opened(second, "count-0")
        assert second.txids("count-0") == (1, 2)
        assert dict(again) == {"moon": 2, "star": 1}
        again.commit(2)
        again.rollback()
        assert dict(again) == {"moon": 2, "star": 1}
        again.close()
        second.close()

    @pytest.mark.parametrize("cached", [0, 3, 100_000])
    def test_keys_that_memory_does_not_hold_are_read_when_they_are_asked_for(
        self, conf: dict[str, Any], cached: int
    ) -> None:
        found = provider_of({**conf, CACHED_KEYS: cached})
        state = opened(found, "count-0")
        for n in range(50):
            state.put(n, n * n)
            if n % 7 == 0:
                state.prepare_commit(n)
            if n % 14 == 0:
                state.commit(n)
        state.delete(10)
        assert [state.get(n) for n in range(50)] == [None if n == 10 else n * n for n in range(50)]
        assert state.get(50) is None
        assert dict(state) == {n: n * n for n in range(50) if n != 10}
        state.close()
        again = opened(found, "count-0")  # what was put after the last prepare is not there
        assert dict(again) == {n: n * n for n in range(50)}
        state = again
        again.rollback()
        assert dict(again) == {n: n * n for n in range(43)}
        assert again.get(49) is None
        state.close()
        found.close()

    @pytest.mark.parametrize("cached", [0, 3, 100_000])
    def test_an_iteration_shows_each_key_once_whatever_is_done_meanwhile(
        self, conf: dict[str, Any], cached: int
    ) -> None:
        found = provider_of({**conf, CACHED_KEYS: cached})
        state = opened(found, "count-0")
        for n in range(20):
            state.put(n, n)
        state.prepare_commit(0)
        state.commit(0)
        state.rollback()
        seen = {}
        for key, value in state:
            assert key not in seen
            seen[key] = value
            assert state.get(19 - key) == 19 - key
            assert state.get(("none", key)) is None
            if key % 3 == 0:
                state.put(("new", key), key)
        assert seen == {n: n for n in range(20)}
        for key, _ in state:
            state.delete(key)
        assert dict(state) == {}
        state.close()
        found.close()

    def test_an_iteration_continues_across_checkpoints_of_all_tasks(self, conf: dict[str, Any]) -> None:
        keys = 12_000  # more than a store reads at once
        found = provider_of({**conf, CACHED_KEYS: 0})
        state, other = opened(found, "count-0"), opened(found, "count-1")
        for n in range(keys):
            state.put(n, n)
        state.prepare_commit(0)
        state.commit(0)
        seen = []
        rows = state.items()
        for txid in (1, 2, 3):
            seen += [next(rows)[0] for _ in range(100)]
            for each in (other, state):
                each.put("last", txid)
                each.prepare_commit(txid)
                if txid == 2:
                    each.rollback()
                else:
                    each.commit(txid)
        seen += [key for key, _ in rows if key != "last"]
        assert sorted(seen) == list(range(keys))
        for each in (other, state):
            assert each.get("last") == 3
            each.close()
        found.close()

    def test_what_a_provider_stores_is_listed_and_replaced(self, conf: dict[str, Any]) -> None:
        found = provider_of(conf)
        if type(found).replace is StateProvider.replace:
            pytest.skip(f"{type(found).__name__} defines no replace: states can't be imported or resharded")
        assert found.namespaces() == []
        for index in range(3):
            state = opened(found, f"count-{index}")
            state.put("moon", index)
            state.prepare_commit(1)
            state.commit(1)
            state.put("moon", 99)
            state.prepare_commit(2)
            state.close()
        assert found.namespaces() == ["count-0", "count-1", "count-2"]
        found.replace({"count-0": {"sun": 1, 2: 3}, "count-1": {}})
        contents = {}
        for name in found.namespaces():
            state = opened(found, name)
            contents[name] = dict(state)
            state.close()
        assert contents == {"count-0": {"sun": 1, 2: 3}, "count-2": {"moon": 99}}
        state = opened(found, "count-0")
        state.prepare_commit(0)
        state.close()
        found.close()

    def test_another_run_is_refused_while_the_owner_beats(
        self, conf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(claims, "BEAT_SECS", 0.05)
        monkeypatch.setattr(claims, "CLAIM_SECS", 0.3)
        first, other = provider_of(conf), provider_of({**conf, "storm.id": "other"})
        epoch = first.claim()
        for use in (other.claim, other.check_free):
            with pytest.raises(InUseError, match="is in use by topology 'stateful'"):
                use()
        first.close()
        other.check_free()
        assert other.claim() == epoch + 1
        other.close()


def steps_of(state: Any) -> dict[str, Callable[[], Any]]:
    """Return everything that writes, by name."""
    return {
        "prepare": lambda: state.prepare_commit(7),
        "commit": lambda: state.commit(6),
        "commit at once": state.commit,
        "rollback": state.rollback,
        "claim": lambda: state.claim(1),
    }
