"""Middleware runs around process and next_tuple."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.child.process import UNUSABLE

if TYPE_CHECKING:
    from tests.component.harness import Starter

FORKS = True

TRACE = """
from multilang.component import Middleware
class Trace(Middleware):
    def process(self, bolt, call):
        bolt.log("made for " + type(bolt).__name__)
        def traced(tup):
            bolt.log("conf before")
            call(tup)
            bolt.log("conf after")
        return traced
    def next_tuple(self, spout, call):
        def traced():
            spout.log("conf before")
            call()
        return traced
made = Trace()
not_one = 5
"""


def test_the_first_is_outermost_and_the_confs_are_outside_of_the_classes(start: Starter) -> None:
    (start.folder / "tracing.py").write_text(TRACE)
    child = start("""
        class Say(Middleware):
            def __init__(self, name):
                self.name = name
            def process(self, bolt, call):
                def around(tup):
                    bolt.log(f"{self.name} before")
                    call(tup)
                    bolt.log(f"{self.name} after")
                return around
        class Part(BasicBolt):
            middleware = [Say("one"), Say("two")]
            def process(self, tup):
                self.log("process")
            def process_tick(self, tup):
                self.log("tick")
        """, {"multilang.middleware": ["tracing.Trace"]})  # fmt: skip
    child.give("x")
    child.tick()
    child.until(lambda: len(child.acked) == 2)
    assert child.logged() == [
        "made for Part",
        "conf before",
        "one before",
        "two before",
        "process",
        "two after",
        "one after",
        "conf after",
        "tick",
    ]


@pytest.mark.parametrize("name", ["tracing.Trace", "tracing.made"])
def test_the_confs_middleware_is_a_class_or_an_instance_and_works_around_spouts(start: Starter, name: str) -> None:
    (start.folder / "tracing.py").write_text(TRACE)
    child = start("""
        class Part(Spout):
            def next_tuple(self):
                self.log("next")
        """, {"multilang.middleware": [name]}, spout=True).started()  # fmt: skip
    child.ask()
    assert child.logged() == ["conf before", "next"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("tracing.Trace", "multilang.middleware is 'tracing.Trace'; use a list of dotted names"),
        (["tracing.Missing"], "multilang.middleware names 'tracing.Missing', which can't be imported"),
        (["nowhere.Trace"], "multilang.middleware names 'nowhere.Trace', which can't be imported"),
        (["Trace"], "multilang.middleware names 'Trace', which can't be imported"),
        (["tracing.not_one"], "is not a Middleware but int"),
    ],
)
def test_a_middleware_that_cannot_be_had_is_one_clear_error(start: Starter, value: object, error: str) -> None:
    (start.folder / "tracing.py").write_text(TRACE)
    child = start("class Part(BasicBolt): pass", {"multilang.middleware": value})
    assert child.ended() in (1, UNUSABLE)
    assert error in child.errors[0]
    assert len(child.errors) == 1


def test_timing_measures_bolts_and_spouts(start: Starter) -> None:
    bolt = start("""
        class Part(BasicBolt):
            middleware = [Timing("mine")]
            def process(self, tup):
                time.sleep(0.05)
                if tup[0] == "bad":
                    raise ValueError
        """, {"multilang.metrics.registered": ["mine"]})  # fmt: skip
    bolt.give("good")
    bolt.give("bad")
    bolt.until(lambda: bolt.acked and bolt.failed)
    bolt.close_input()
    bolt.ended(0)
    ((_, figures),) = bolt.metrics
    assert figures["count"] == 2
    assert figures["min"] >= 0.05

    spout = start("""
        class Part(Spout):
            middleware = [Timing("next")]
            def next_tuple(self):
                pass
        """, {"multilang.metrics.registered": ["next"]}, spout=True).started()  # fmt: skip
    spout.ask()
    spout.ask()
    spout.close_input()
    spout.ended(0)
    assert spout.metrics[0][1]["count"] == 2


FLAKY = """
class Part(BasicBolt):
    output_fields = ["value"]
    middleware = [{retry}]
    calls = 0
    def process(self, tup):
        self.calls += 1
        if self.calls <= tup[0]:
            raise {error}
        self.emit([self.calls])
"""


@pytest.mark.parametrize(
    ("retry", "error", "failures", "calls"),
    [
        ("Retry(3)", "OSError('down')", 3, 4),
        ("Retry(2, delay_secs=0.01)", "OSError('down')", 2, 3),
        ("Retry(1, on=OSError)", "TimeoutError('a kind of OSError')", 1, 2),
        ("Retry(3)", "OSError('down')", 4, None),
        ("Retry(3, on=OSError)", "ValueError('no OSError')", 1, None),
        ("Retry(3)", "FailedException('it is to fail')", 1, None),
    ],
)
def test_retry_calls_again_so_many_times(
    start: Starter, retry: str, error: str, failures: int, calls: int | None
) -> None:
    child = start(FLAKY.format(retry=retry, error=error))
    child.give(failures)
    child.until(lambda: child.acked or child.failed)
    if calls is None:
        assert child.failed
        assert child.emitted == []
        assert len(child.errors) == ("FailedException" not in error)
    else:
        assert child.emitted == [[calls]]
        assert len([line for line in child.logged(3) if "tried again" in line]) == failures
        assert child.errors == []


def test_retry_wants_a_number_from_1(start: Starter) -> None:
    child = start(FLAKY.format(retry="Retry(0)", error="OSError"))
    child.ended(UNUSABLE)
    assert "Retry(times=0): use a number from 1" in child.errors[0]


def test_a_middleware_that_is_none_is_one_clear_error(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            middleware = [Timing]
            def process(self, tup):
                pass
        """)
    child.ended(UNUSABLE)
    (error,) = child.errors
    assert "middleware is a list of Middleware objects" in error
