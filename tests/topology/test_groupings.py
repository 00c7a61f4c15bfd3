from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.topology import CustomGrouping, Grouping, TopologyError, chooser
from multilang.topology.groupings.partial_key import two_tasks
from multilang.topology.javahash import list_hash

FIELDS = ["word", "n", "where"]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
KEYS = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text("ab", max_size=2), SCALARS, max_size=2)
TASKS = st.lists(st.integers(1, 100), min_size=1, max_size=8, unique=True)


def choose_with(grouping, tasks, *, local=(), seed=0, fields=FIELDS):
    return chooser(grouping, fields, tasks, source_task=1, local_tasks=local, rng=Random(seed))


class TestFields:
    @given(st.lists(KEYS, min_size=1, max_size=30), TASKS)
    def test_every_tuple_goes_where_storm_puts_it_however_often_it_comes(self, keys, tasks):
        choose = choose_with(Grouping("fields", ["word"]), tasks)
        for key in keys * 2:
            assert list(choose([key, 1, "x"])) == [sorted(tasks)[list_hash([key]) % len(tasks)]]

    @given(st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=30), TASKS)
    def test_several_fields_are_hashed_in_the_groupings_order(self, keys, tasks):
        choose = choose_with(Grouping("fields", ["where", "word"]), tasks)
        for word, where in keys * 2:
            assert list(choose([word, 1, where])) == [sorted(tasks)[list_hash([where, word]) % len(tasks)]]

    def test_one_and_one_point_zero_and_true_are_three_keys_in_any_order(self):
        tasks = list(range(1, 12))
        expected = {repr(key): [tasks[list_hash([key]) % 11]] for key in (1, 1.0, True)}
        assert len({task for (task,) in expected.values()}) == 3
        for order in ([1, 1.0, True], [True, 1.0, 1], [1.0, True, 1]):
            choose = choose_with(Grouping("fields", ["word"]), tasks)
            pair = choose_with(Grouping("fields", ["word", "n"]), tasks)
            for key in order * 2:
                assert list(choose([key, 0, ""])) == expected[repr(key)]
                assert list(pair([key, "a", ""])) == [tasks[list_hash([key, "a"]) % 11]]

    def test_a_memory_full_of_keys_is_emptied_and_nothing_moves(self, monkeypatch):
        monkeypatch.setattr("multilang.topology.groupings.fields.CACHED_KEYS", 10)
        choose = choose_with(Grouping("fields", ["word"]), [4, 5, 6])
        words = [f"word-{number}" for number in range(35)]
        first = [choose([word, 0, 0]) for word in words]
        assert [choose([word, 0, 0]) for word in words] == first

    def test_tasks_are_counted_in_ascending_order_whatever_order_they_are_given_in(self):
        up, down = (choose_with(Grouping("fields", ["word"]), tasks) for tasks in ([3, 7, 9], [9, 3, 7]))
        assert all(up([word, 0, 0]) == down([word, 0, 0]) for word in "abcdefgh")

    def test_a_field_that_the_stream_lacks_is_named(self):
        with pytest.raises(TopologyError, match=r"no field 'wrod'; did you mean 'word'\?"):
            choose_with(Grouping("fields", ["wrod"]), [1, 2])


class TestShuffle:
    @pytest.mark.parametrize("kind", ["shuffle", "none"])
    def test_each_round_gives_every_task_one_tuple(self, kind):
        choose = choose_with(Grouping(kind), [5, 6, 7, 8])
        rounds = [[choose([])[0] for _ in range(4)] for _ in range(3)]
        assert [sorted(tasks) for tasks in rounds] == [[5, 6, 7, 8]] * 3
        assert rounds[0] == rounds[1] == rounds[2]

    def test_the_same_seed_gives_the_same_order_and_another_seed_another(self):
        def order(seed):
            choose = choose_with(Grouping("shuffle"), range(1, 30), seed=seed)
            return [choose([])[0] for _ in range(29)]

        assert order(1) == order(1)
        assert order(1) != order(2)

    def test_one_task_gets_everything(self):
        choose = choose_with(Grouping("shuffle"), [5])
        assert [list(choose([n])) for n in range(3)] == [[5]] * 3


class TestLocalOrShuffle:
    def test_tasks_in_the_same_worker_come_first(self):
        choose = choose_with(Grouping("local_or_shuffle"), [5, 6, 7], local={1, 6, 7})
        assert {choose([])[0] for _ in range(10)} == {6, 7}

    def test_without_a_local_task_all_take_part(self):
        choose = choose_with(Grouping("local_or_shuffle"), [5, 6, 7], local={1, 2})
        assert {choose([])[0] for _ in range(10)} == {5, 6, 7}


class TestPartialKey:
    def test_the_two_tasks_of_a_key_are_those_of_storms_own_class(self):
        """Each line: tasks, first and second choice, hashes; made by Storm 2.8.3's RandomTwoTaskAssignmentCreator."""
        lines = Path(__file__).with_name("partial_keys.txt").read_text().splitlines()
        for line in lines:
            n, first, second, *hashes = map(int, line.split())
            assert two_tasks(hashes, n) == (first, second), line
        assert len(lines) == 200

    def test_a_key_alternates_between_its_two_tasks(self):
        choose = choose_with(Grouping("partial_key", ["word"]), [4, 5, 6, 7])
        counts = Counter(choose(["hot", 1, 1])[0] for _ in range(100))
        assert sorted(counts.values()) == [50, 50]

    def test_a_key_avoids_the_task_that_other_keys_keep_busy(self):
        choose = choose_with(Grouping("partial_key", ["word"]), [4, 5, 6, 7])
        loads = Counter(choose([f"word-{number % 300}", 1, 1])[0] for number in range(6000))
        assert max(loads.values()) - min(loads.values()) <= 60

    @given(st.lists(KEYS, min_size=1, max_size=40), TASKS)
    def test_no_key_has_more_than_two_tasks(self, keys, tasks):
        choose = choose_with(Grouping("partial_key", ["word"]), tasks)
        places: dict[str, set[int]] = {}
        for key in keys * 3:
            places.setdefault(repr(key), set()).update(choose([key, 1, 1]))
        assert all(len(place) <= 2 and place <= set(tasks) for place in places.values())


class Modulo(CustomGrouping):
    """The task whose position is the number's rest; prepared once per source task."""

    prepared = 0

    def prepare(self, context, stream, target_tasks):
        self.context, self.stream, self.tasks = context, stream, target_tasks
        self.prepared += 1

    def choose_tasks(self, source_task, values):
        return [self.tasks[values[1] % len(self.tasks)]]


class Astray(CustomGrouping):
    def choose_tasks(self, source_task, values):
        return values[0]


class Remembers(CustomGrouping):
    def prepare(self, context, stream, target_tasks):
        self.seen = (
            context.component,
            context.stream,
            context.fields,
            context.source_task,
            context.local_tasks,
            stream,
            target_tasks,
        )

    def choose_tasks(self, source_task, values):
        values.append((source_task, self.seen))
        return []


class TestCustom:
    def test_it_chooses_among_the_target_tasks(self):
        choose = choose_with(Grouping("custom", custom=Modulo()), [9, 4, 6])
        assert [list(choose(["", n, ""])) for n in range(4)] == [[4], [6], [9], [4]]

    def test_each_source_task_has_a_copy_of_its_own(self):
        declared = Modulo()
        for _ in range(3):
            choose_with(Grouping("custom", custom=declared), [1, 2])
        assert declared.prepared == 0

    def test_it_is_told_where_it_is(self):
        choose = chooser(
            Grouping("custom", custom=Remembers()),
            FIELDS,
            [3, 2],
            source_task=7,
            local_tasks=[7, 2],
            rng=Random(0),
            component="split",
            stream="words",
        )
        values: list[object] = []
        assert list(choose(values)) == []
        place = ("split", "words", ("word", "n", "where"), 7, frozenset({7, 2}), "words", (2, 3))
        assert values == [(7, place)]

    @pytest.mark.parametrize("answer", [[5], None, 1, [1, 5]])
    def test_an_answer_that_is_no_list_of_target_tasks_is_refused(self, answer):
        choose = choose_with(Grouping("custom", custom=Astray()), [1, 2])
        with pytest.raises(
            TopologyError, match=r"Astray.choose_tasks chose .* choose some of \[1, 2\] in a list or tuple"
        ):
            choose([answer])

    def test_it_may_choose_none_or_several(self):
        choose = choose_with(Grouping("custom", custom=Astray()), [1, 2])
        assert list(choose([[]])) == []
        assert list(choose([(1, 2)])) == [1, 2]

    def test_without_an_instance_it_is_refused(self):
        with pytest.raises(TopologyError, match="needs an instance of CustomGrouping"):
            choose_with(Grouping("custom"), [1])


def test_all_gives_every_task_each_tuple():
    assert list(choose_with(Grouping("all"), [3, 1, 2])([])) == [1, 2, 3]


def test_global_gives_all_to_the_lowest_task():
    assert list(choose_with(Grouping("global"), [3, 1, 2])([])) == [1]


def test_a_regular_emit_to_a_direct_subscriber_is_refused():
    with pytest.raises(TopologyError, match="direct_task="):
        choose_with(Grouping("direct"), [3, 1, 2])([])


def test_an_unknown_type_is_refused_with_the_nearest():
    with pytest.raises(TopologyError, match=r"no grouping 'shufle': did you mean 'shuffle'\?"):
        Grouping("shufle")


def test_no_task_to_choose_from_is_refused():
    with pytest.raises(TopologyError, match="no task to choose from"):
        choose_with(Grouping("shuffle"), [])


def test_a_chosen_sequence_can_not_be_changed_by_its_receiver():
    for kind in ("shuffle", "all", "global", "none"):
        assert type(choose_with(Grouping(kind), [1, 2])(["a"])) is tuple
    assert type(choose_with(Grouping("fields", ["word"]), [1, 2])(["a", 1, 2])) is tuple


@pytest.mark.parametrize(
    ("grouping", "wire"),
    [
        (Grouping("fields", ["word"]), {"type": "FIELDS", "fields": ["word"]}),
        (Grouping("global"), {"type": "FIELDS", "fields": []}),
        (Grouping("shuffle"), {"type": "SHUFFLE"}),
        (Grouping("all"), {"type": "ALL"}),
        (Grouping("none"), {"type": "NONE"}),
        (Grouping("direct"), {"type": "DIRECT"}),
        (Grouping("local_or_shuffle"), {"type": "LOCAL_OR_SHUFFLE"}),
        (Grouping("partial_key", ["word"]), {"type": "CUSTOM_SERIALIZED"}),
        (Grouping("custom", custom=Modulo()), {"type": "CUSTOM_SERIALIZED"}),
    ],
    ids=lambda value: str(value) if isinstance(value, Grouping) else "",
)
def test_a_grouping_shows_on_the_wire_as_storm_shows_it(grouping, wire):
    assert grouping.to_wire() == wire
