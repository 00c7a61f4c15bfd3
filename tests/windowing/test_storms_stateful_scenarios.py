"""The scenarios of Storm's own tests of windows with state, of its window manager and of its watermarks, in our words."""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads
from multilang.testing import make_tuple, run_bolt
from multilang.testing.bolts import BoltRun
from multilang.windowing import Sliding, StatefulWindowedBolt, Tumbling, WindowedBolt, milliseconds

FIELDS = ["id", "ts"]


class Shows(StatefulWindowedBolt):
    """Emits the ids of a window's tuples, and of those that are new."""

    output_fields = ["ids", "new"]
    id_field = "id"

    def process_window(self, window):
        self.emit([[tup["id"] for tup in part] for part in (window.tuples, window.new)])


def bolt(window, base=Shows, **more):
    return type("Bolt", (base,), {"window": window, **more})


def started(kind, state=()):
    return BoltRun(kind(), [make_tuple([0, 0], FIELDS)], None, "bolt", 1, 0, state=dict(state))


def give(run, *rows):
    for row in rows:
        run.process(make_tuple(list(row), FIELDS))
    return run


def committed(run):
    """Return what is in the store after a checkpoint, as it comes back from it."""
    run.bolt.pre_prepare(1)
    return {key: loads(dumps(value)) for key, value in run.state.items()}


def ids(*numbers):
    return [(n, n) for n in numbers]


# ---- StatefulWindowedBoltExecutorTest, PersistentWindowedBoltExecutorTest ----


def test_windows_are_evaluated_with_state_as_without():
    rows = ids(*range(1, 10))
    plain = run_bolt(
        bolt(
            Sliding(5, 3),
            WindowedBolt,
            process_window=Shows.process_window,
            output_fields=Shows.output_fields,
        )(),
        [],
    )
    for row in rows:
        plain.process(make_tuple(list(row), FIELDS))
    assert give(started(bolt(Sliding(5, 3))), *rows).values == plain.values
    assert plain.values == [[[1, 2, 3], [1, 2, 3]], [[2, 3, 4, 5, 6], [4, 5, 6]], [[5, 6, 7, 8, 9], [7, 8, 9]]]


def test_what_a_windows_task_had_before_a_crash_is_neither_lost_nor_new_again():
    """Storm's bolt has all five as new then, and waits for tasks that have nothing more to send."""
    before = give(started(bolt(Sliding(5, 3))), *ids(1, 2, 3, 4, 5, 6))
    after = give(started(bolt(Sliding(5, 3)), committed(before)), *ids(7, 8, 9))
    assert after.values == [[[5, 6, 7, 8, 9], [7, 8, 9]]]


def test_replays_of_what_is_in_the_checkpoint_are_acked_and_count_once():
    before = give(started(bolt(Sliding(5, 3))), *ids(1, 2, 3, 4, 5))
    after = give(started(bolt(Sliding(5, 3)), committed(before)), *ids(2, 3, 4, 5, 6, 7, 8, 9))
    assert [row[0] for row in after.values] == [[2, 3, 4, 5, 6], [5, 6, 7, 8, 9]]
    assert after.unfinished == []


def test_replays_of_what_expired_before_the_checkpoint_are_acked_and_not_counted():
    before = give(started(bolt(Sliding(5, 3))), *ids(1, 2, 3, 4, 5, 6))
    assert before.values == [[[1, 2, 3], [1, 2, 3]], [[2, 3, 4, 5, 6], [4, 5, 6]]]
    after = give(started(bolt(Sliding(5, 3)), committed(before)), *ids(*range(1, 10)))
    assert after.values == [[[5, 6, 7, 8, 9], [7, 8, 9]]]
    assert after.unfinished == []


def test_ids_that_json_tells_apart_are_those_of_different_tuples():
    before = give(started(bolt(Tumbling(6))), (1, 0), (True, 0), (1.0, 0), (1, 0))
    after = give(started(bolt(Tumbling(6)), committed(before)), (True, 0), (1.0, 0), ("1", 0), (0, 0), (False, 0))
    assert repr(after.values) == repr([[[1, True, 1.0, "1", 0, False]] * 2])
    assert after.unfinished == []


def test_what_came_after_the_checkpoint_is_not_in_it():
    run = give(started(bolt(Tumbling(4))), *ids(1, 2))
    state = committed(run)
    give(run, *ids(3))
    assert give(started(bolt(Tumbling(4)), state), *ids(3, 4)).values == [[[1, 2, 3, 4], [1, 2, 3, 4]]]


def test_a_rollback_before_any_commit_begins_anew():
    run = give(started(bolt(Tumbling(3))), *ids(1, 2))
    run.bolt.pre_rollback()
    assert give(run, *ids(1, 2, 3)).values == [[[1, 2, 3], [1, 2, 3]]]


def test_a_checkpoint_without_any_tuple_is_none_that_matters():
    state = committed(started(bolt(Tumbling(2))))
    assert give(started(bolt(Tumbling(2)), state), *ids(1, 2)).values == [[[1, 2], [1, 2]]]


# ---- WindowManagerTest ----


def test_tuples_that_no_window_will_have_do_not_gather():
    """Storm looks through its queue at every hundredth tuple; here a tuple between two windows is acked at once."""
    kind = bolt(
        Sliding(milliseconds(10), milliseconds(1000)),
        WindowedBolt,
        timestamp_field="ts",
        process_window=lambda *_: None,
    )
    run = run_bolt(kind, [[n, 20 + n] for n in range(150)], fields=FIELDS)
    assert len(run.acked) == 150
    assert run.emitted == []


def test_a_tuple_that_is_too_new_hides_none_behind_it():
    """Storm's search stops at the first tuple beyond the lag."""
    kind = bolt(Tumbling(milliseconds(10)), timestamp_field="ts", lag=milliseconds(10))
    run = give(started(kind), (1, 5), (2, 35), (3, 6), (4, 27), (5, 15), (6, 7))
    run.advance(1)
    give(run, (7, 60))
    run.advance(1)
    assert [row[0] for row in run.values] == [[1, 3, 6], [5], [4], [2]]


def test_lag_lets_a_window_wait_and_those_after_it_keep_what_came_early():
    kind = bolt(Sliding(milliseconds(20), milliseconds(10)), timestamp_field="ts", lag=milliseconds(5))
    run = give(started(kind), *enumerate([603, 605, 607, 618, 626, 629, 636]))
    run.advance(1)
    assert [row[0] for row in run.values] == [[0, 1, 2], [0, 1, 2, 3], [3, 4, 5]]
    give(run, (7, 631), (8, 700))  # out of order by no more than the lag
    run.advance(1)
    assert [row[0] for row in run.values[3:]] == [[4, 5, 6, 7], [6, 7]]


def test_one_tuple_may_be_in_many_windows_and_is_new_in_the_first():
    kind = bolt(Sliding(milliseconds(30), milliseconds(10)), timestamp_field="ts")
    run = give(started(kind), (1, 5), (2, 100))
    run.advance(1)
    assert run.values == [[[1], [1]], [[1], []], [[1], []]]


# ---- WaterMarkEventGeneratorTest ----


def test_a_watermark_waits_for_each_stream_and_follows_the_slower_one():
    names = [make_tuple([0, 0], FIELDS, name) for name in ("a", "b")]
    kind = bolt(
        Tumbling(milliseconds(100)),
        WindowedBolt,
        timestamp_field="ts",
        late_stream="late",
        output_fields=["ids", "new"],
    )
    kind.process_window = Shows.process_window
    run = BoltRun(kind(), names, None, "bolt", 1, 0)
    steps = [("a", 110), ("a", 250), ("b", 90), ("b", 210), ("b", 50)]
    for n, (name, ts) in enumerate(steps):
        run.process(make_tuple([n, ts], FIELDS, name))
        run.advance(1)
    assert [row.values[0] for row in run.emitted_on("default")] == [[2], [0]]
    assert [row["late_tuple"]["values"] for row in run.emitted_on("late")] == [[4, 50]]
