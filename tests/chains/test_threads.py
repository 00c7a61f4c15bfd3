"""Members with threads of their own: what a thread emitted before the main thread acked is anchored, and sent before the ack."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from multilang import Bolt, Tuple
from multilang.protocol.messages import Ack, Emit
from tests.chains.harness import FIELDS, DrivenChain
from tests.exchange.harness import tuples_of


class Helped(Bolt):
    """A thread emits while the main thread waits for it, and then acks."""

    output_fields = FIELDS

    def process(self, tup: Tuple) -> None:
        thread = threading.Thread(target=lambda: self.emit([tup["value"]], anchors=[tup]))
        thread.start()
        thread.join()
        self.ack(tup)


class Passes(Bolt):
    output_fields = FIELDS

    def process(self, tup: Tuple) -> None:
        self.emit([tup["value"]], anchors=[tup])
        self.ack(tup)


class Fails(Bolt):
    output_fields = FIELDS

    def process(self, tup: Tuple) -> None:
        self.fail(tup)


@pytest.mark.parametrize("how", ["tuple", "root"])
def test_what_a_thread_emitted_before_the_ack_is_anchored_and_sent_before_it(how: str) -> None:
    driven = DrivenChain([Passes(), Helped(), Passes()], [[], [0], [1]], how)
    ids = [driven.give("default", [n]) for n in range(3)]
    if how == "root":
        ids.append(driven.give_block([("default", [[n] for n in range(3, 6)])]))
    driven.flush()
    assert sorted(driven.settled) == sorted((id, True) for id in ids)
    done: set[str] = set()
    sent: Counter[int] = Counter()
    for event in driven.sent:
        if isinstance(event, Ack):
            done.add(event.id)
        elif isinstance(event, Emit):
            assert event.anchors
            assert not done & set(event.anchors)
            sent.update(values[0] for _, values in tuples_of(event))
    assert sent == dict.fromkeys(range(6 if how == "root" else 3), 3)
    driven.close()


def test_what_comes_of_it_may_fail_yet() -> None:
    driven = DrivenChain([Helped(), Fails()], [[], [0]], "root")
    id = driven.give("default", [1])
    driven.flush()
    assert driven.settled == [(id, False)]
    driven.close()
