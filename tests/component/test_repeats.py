"""A repeated report is shown once, and then counted; nothing is lost."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang import BasicBolt, Spout, TopologyBuilder
from multilang.component.errors import ConnectorError
from multilang.component.repeats import LONGEST_PAUSE_SECS, QUIET_SECS, Repeats
from multilang.component.report import describe
from multilang.local import LocalCluster
from multilang.protocol.messages import Tuple
from tests.patience import patient

if TYPE_CHECKING:
    from tests.component.harness import Starter


class Reports:
    """Collects reports, on a clock of its own."""

    def __init__(self):
        self.now = 0.0
        self.lines = []
        self.repeats = Repeats(lambda about, text: self.lines.append((self.now, about, text)), lambda: self.now)

    @property
    def texts(self):
        return [text for _, _, text in self.lines]


def trace(text, line=7, tuple_=1, kind="ValueError"):
    return (
        f"{kind} in component 'count' (task 3) on tuple {tuple_} from 'words', values [{tuple_}]: {text}\n"
        f'Traceback (most recent call last):\n  File "count.py", line {line}, in process\n    int(x)\n{kind}: {text}\n'
    )


def test_the_first_is_told_in_full_and_the_others_as_a_count_with_growing_pauses():
    reports = Reports()
    for number in range(1000):
        reports.now = number / 10
        reports.repeats.report("task", trace(f"no {number}", tuple_=number))
    assert reports.texts[0] == trace("no 0", tuple_=0)
    assert all("\n" not in text for text in reports.texts[1:])
    assert reports.texts[1] == (
        "ValueError in component 'count' (task 3) on tuple 10 from 'words', values [10]: no 10 "
        "(as before, 10 times more in 1.0 s; 11 times in all)"
    )
    pauses = [
        round(after - before, 1) for (before, *_), (after, *_) in zip(reports.lines, reports.lines[1:], strict=False)
    ]
    assert pauses == [1, 2, 4, 8, 16, 32]
    reports.repeats.report_rest()
    assert reports.texts[-1].endswith("; 1,000 times in all)")
    assert not reports.repeats.unreported


def test_what_differs_is_told_in_full_at_once():
    reports = Reports()
    different = [
        trace("a"),
        trace("a", line=8),
        trace("a", kind="KeyError"),
        trace("quite another"),
        "gave up 1",
        "gave up 2",
    ]
    for text in different:
        for _ in range(3):
            reports.repeats.report(None, text, who="count")
    reports.repeats.report(None, trace("a"), who="other")
    assert reports.texts == [*different, trace("a")]
    assert reports.repeats.unreported == 12


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=5, max_size=30, unique=True))
def test_an_error_without_a_stack_is_counted_whatever_its_tuple_is(values):
    reports = Reports()
    for number, value in enumerate(values):
        error = ConnectorError("out/file-000007 can't be written: No space left on device")
        tup = Tuple(str(number), "words", "default", 4, [value])
        said = describe(error, BasicBolt(), tup, f"in a batch of {number}")
        reports.repeats.report(None, said.replace(" BasicBolt ", " 'sink' (task 3) "))
    for text in (
        "ConnectorError in component 'other' (task 4): it can't be written",
        "OSError in component 'count' (task 4) in a batch of 7: it can't be written",
    ):
        reports.repeats.report(None, text)
        assert reports.texts[-1] == text
    reports.repeats.report_rest()
    assert len(reports.lines) <= 6
    assert reports.texts[-1].endswith(f"; {len(values)} times in all)")


def test_a_count_is_told_without_another_repetition():
    reports = Reports()
    reports.repeats.report("first", "gone")
    reports.repeats.report("second", "gone")
    reports.repeats.report_due()
    assert reports.texts == ["gone"]
    reports.now = 1.0
    reports.repeats.report_due()
    assert reports.lines[1:] == [(1.0, "second", "gone (as before, once more in 1.0 s; 2 times in all)")]
    reports.now = 100.0
    reports.repeats.report_due()
    reports.repeats.report_rest()
    assert len(reports.lines) == 2


def test_what_was_quiet_for_long_is_new_again():
    reports = Reports()
    for _ in range(2):
        reports.repeats.report(None, "gone")
    reports.now = QUIET_SECS + 1
    reports.repeats.report(None, "gone")
    assert [text[:20] for text in reports.texts] == ["gone", "gone (as before, onc", "gone"]


@given(st.lists(st.tuples(st.integers(0, 1500), st.floats(0, 100)), max_size=300))
def test_each_report_is_told_or_counted_once_and_never_later_than_the_longest_pause(values):
    reports = Reports()
    came = {}
    for number, pause in values:
        reports.now += pause
        reports.repeats.report_due()
        waiting = [known for known in reports.repeats._kinds.values() if known.unreported]
        assert all(reports.now - known.since <= LONGEST_PAUSE_SECS for known in waiting)
        reports.repeats.report(number, f"error {number}")
        came[number] = came.get(number, 0) + 1
    reports.repeats.report_rest()
    counted = {}
    for _, number, text in reports.lines:
        again = re.search(r"\(as before, (once|[\d,]+ times) more", text)
        times = 1 if again is None or again[1] == "once" else int(again[1].split()[0].replace(",", ""))
        counted[number] = counted.get(number, 0) + times
    assert counted == came


FAULTY = """
    class Part(BasicBolt):
        def process(self, tup):
            raise ValueError(f"no {tup[0]}")
    """


def test_storm_is_told_of_a_fault_once_and_then_how_often_it_came(start: Starter) -> None:
    child = start(FAULTY)
    for number in range(50):
        child.give(f"{number}")
    child.until(lambda: len(child.failed) == 50)
    # While there are no more reports, the count is reported.
    child.until(lambda: child.errors[-1].endswith("; 50 times in all)"))
    assert sum("Traceback" in error for error in child.errors) == 1
    for _ in range(3):
        child.give("7")
    child.until(lambda: len(child.failed) == 53)
    assert sum("Traceback" in error for error in child.errors) == 1
    child.close_input()
    child.ended(0)
    assert child.errors[-1].endswith("; 53 times in all)")


def test_an_embedded_cluster_and_whoever_wants_all_of_the_log_are_told_each(start: Starter) -> None:
    for conf in ({"multilang.parent": "local"}, {"multilang.log.level": "debug"}):
        child = start(FAULTY, conf)
        for number in range(5):
            child.give(f"{number}")
        child.until(lambda child=child: len(child.failed) == 5)
        assert sum("Traceback" in error for error in child.errors) == 5
        child.close_input()
        child.ended(0)


class Ten(Spout):
    output_fields = ["n"]

    def initialize(self, conf, context):
        self.given = 0

    def next_tuple(self):
        if self.given < 10:
            self.given += 1
            self.emit([self.given], tup_id=self.given)

    def exhausted(self):
        return self.given == 10


class Faulty(BasicBolt):
    def process(self, tup):
        raise ValueError(f"no {tup[0]}")


def faulty():
    builder = TopologyBuilder()
    builder.set_spout("ten", Ten)
    builder.set_bolt("faulty", Faulty, parallelism=2).shuffle_grouping("ten")
    return builder.build("faulty")


topology = faulty()


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_the_log_of_an_embedded_cluster_has_a_fault_of_all_tasks_once_and_their_number(mode, caplog):
    caplog.set_level(logging.INFO)
    with LocalCluster(mode=mode) as cluster:
        run = cluster.submit(topology)
        run.wait(timeout=patient(60))
    logged = [record.getMessage() for record in caplog.records if record.name == "faulty"]
    assert sum("Traceback" in text for text in logged) == 1
    assert logged[-1].endswith("; 10 times in all)")
    assert len(run.errors) == run.counters["faulty"].errors == 10
