"""A task reports to a Storm that knows nothing of it how busy it is, and where it stays long, in lines of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from multilang.component.task_report import PREFIX, TaskReport, read_report

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

OFTEN = {"multilang.metrics.interval.secs": 0.1}


def reports(child: Child) -> list[TaskReport]:
    found = [read_report(line) for line in child.logged(2) if line.startswith(PREFIX)]
    assert None not in found
    return [each for each in found if each is not None]


def rest(found: list[TaskReport]) -> float:
    """Return the seconds in which the task was not busy."""
    return sum(each.secs - each.busy_secs for each in found)


def test_a_bolt_is_as_busy_as_its_work(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                time.sleep(tup[0])
        """, OFTEN)  # fmt: skip
    for _ in range(10):
        child.give(0.1)
    child.until(lambda: len(child.acked) == 10)
    child.until(lambda: sum(each.busy_secs for each in reports(child)) > 0.9)
    assert all(each.task == 4 and 0 <= each.capacity <= 1 for each in reports(child))
    worked = len(reports(child))

    def rests() -> bool:
        child.beat()
        return rest(reports(child)[worked:]) > 0.5

    child.until(rests)


def test_the_pause_of_a_spout_that_has_nothing_is_no_work(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            def next_tuple(self):
                pass
        """, OFTEN, spout=True).started()  # fmt: skip
    for _ in range(50):
        child.ask()
    told = len(reports(child))

    def tells() -> bool:
        child.ask()
        return len(reports(child)) > told

    child.until(tells)
    assert rest(reports(child)) > 40 * 0.016  # its longest pause


def test_a_call_that_takes_long_is_reported_while_it_lasts(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                while not os.path.exists(tup[0]):
                    time.sleep(0.01)
        """, {"multilang.process.timeout.secs": 10})  # fmt: skip
    until = start.folder / "until"
    child.give(str(until))
    child.until(lambda: reports(child))
    (report,) = reports(child)
    assert report.call is not None
    method, secs, at = report.call
    assert (method, secs >= 1) == ("process", True)
    assert at is not None
    assert at.endswith(" in process")
    (line,) = child.logged(3)
    assert line.startswith("part task 4 has been in process for 1 s (")
    until.touch()
    child.until(lambda: len(reports(child)) == 2)
    assert reports(child)[1].call is None
    assert child.logged(3)[1].startswith("part task 4 is out of process after ")


NUMBERS = st.floats(0, 1e9)
TOTALS = st.tuples(st.text(), st.sampled_from(["counter", "gauge", "timer"]), NUMBERS, st.none() | st.integers(0, 9))
CALLS = st.none() | st.tuples(st.text(), NUMBERS, st.none() | st.text())


@given(st.integers(1, 10**6), NUMBERS, st.floats(0.001, 1e6), NUMBERS, st.lists(TOTALS), CALLS)
def test_what_was_reported_is_read(
    task: int, time: float, secs: float, busy: float, metrics: list[Any], call: Any
) -> None:
    line = TaskReport(task, time, secs, busy, metrics, call).line()
    assert "\n" not in line
    found = read_report(line)
    assert found is not None
    assert found.line() == line
    assert (found.task, found.metrics, found.capacity <= 1) == (task, metrics, True)


@given(st.text() | st.recursive(st.none() | NUMBERS | st.text(), st.lists).map(str))
def test_what_is_no_report_is_none(text: str) -> None:
    assert read_report(text) is None
    assert read_report(f"{PREFIX}{text}") is None
    assert read_report(f'{PREFIX}1,"time":1,"secs":1,"busy_secs":1,"call":{text!r}}}') is None
