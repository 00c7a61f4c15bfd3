"""Threads of a bolt whose tuples travel in blocks: what one did before the main thread did something comes before that."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.exchange.harness import Driven, tuples_of

if TYPE_CHECKING:
    from collections.abc import Callable


def in_thread(call: Callable[[], object]) -> None:
    thread = Thread(target=call)
    thread.start()
    thread.join()


@pytest.mark.parametrize("end", ["ack", "fail", "finish", "fail later", "many"])
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "block"])
@pytest.mark.parametrize("how", ["root", "block"])
def test_what_a_thread_emitted_comes_before_what_the_main_thread_does_then(how: str, alone: bool, end: str) -> None:
    driven = Driven(how=how)
    id = driven.give("direct", [1]) if alone else driven.give_block([("default", [[1]])])
    (tup,) = driven.got
    collector = driven.collector
    in_thread(lambda: collector.emit([5], anchors=[tup]))
    collector.emit([6], anchors=[tup])
    in_thread(lambda: collector.emit([7], anchors=[tup]))
    kept: list[Any] = []
    if end in ("ack", "fail"):
        getattr(collector, end)(tup)
    elif end == "many":
        collector.settle_many([tup], True)
    else:
        collector.deferred_ack(kept)(tup)
        collector.finish(kept, end == "finish")
    driven.flush()  # the parent raises for what is anchored to a tuple that was acked or failed
    assert driven.settled == [(id, "fail" not in end)]
    sent = [(list(emit.anchors), values[0]) for emit in driven.emits for _, values in tuples_of(emit)]
    assert sorted(n for _, n in sent) == [5, 6, 7]
    assert all(anchors == [id] for anchors, _ in sent)
    driven.close()


def test_one_tasks_tuples_are_in_the_order_of_the_emits() -> None:
    driven = Driven(how="block")
    driven.give_block([("default", [[1]])])
    (tup,) = driven.got
    collector = driven.collector
    for n in range(20):
        emit = lambda n=n: collector.emit([n, "key"], "keyed", [tup])  # noqa: E731 - each with its own number
        in_thread(emit) if n % 3 else emit()
    collector.ack(tup)
    driven.flush()
    assert [values[0] for emit in driven.emits for _, values in tuples_of(emit)] == list(range(20))
    driven.close()
