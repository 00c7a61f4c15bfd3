"""Broken messages: nothing but RemoteProtocolError, and the same one however the bytes come.

A sample by default, 100,000 with MULTILANG_SOAK=full. MULTILANG_SEED replays a run; a failure names its seed and frame.
"""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from multilang.protocol import ChildConnection, ParentConnection
from tests.protocol.wire import (
    CONVERSATIONS,
    END,
    OLD_CONTEXT,
    conversation,
    handshake,
    one_at_a_time,
    outcome,
    random_pieces,
    shaken_child,
    shaken_parent,
    tuple_bytes,
    whole,
)
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Callable

FRAMES = 25_000 if SOAK else 1_250  # for each of the four below
SEED = int(os.environ.get("MULTILANG_SEED") or (random.SystemRandom().randrange(10**9) if SOAK else 1))

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800 if SOAK else 180)]

TOKENS = [
    b"\n", b"\r\n", b"end", END, b"end\n", b"\nend\r\n", b"\nend ", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null",
    b"true", b"NaN", b"-Infinity", b"1e400", b"-", b"01", b"1.", b"-0", b"9" * 25, b"1" * 4400, rb"\ud800", rb"\u0000",
    b"\xff", b"\xed\xa0\x80", b"\xc3", b"\x00", "é🐍".encode(), b"[" * 350 + b"]" * 350, b"[" * 1100, b'"tuple":', b'"command":',
    b'"id":', b'{"command":"sync"}', b"[2]", b"x" * 300,
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**32 + 2, 2**63, -(2**63), 2**200, 0.5, -0.0, 1e308, "", "1", "11", "12", "default",
    "nosuch", "__heartbeat", "__tick", "ack", "emit", "sync", "next", "é\n\u2028", "\ud800", [], [1], ["11"], [None], [[]],
    {}, {"a": 1}, {"": None}, {"type": "DIRECT"}, {"default": ["word"]}, {"1": "a"}, {"²": "a"}, {"a": {"b": ["c"]}},
    {"a": {"b": [["c"]]}}, {"a": {"b": {"type": []}}}, [[[[[]]]]], "x" * 1000,
]  # fmt: skip


def test_the_child_survives_broken_messages() -> None:
    messages = [raw for name in CONVERSATIONS for direction, raw in conversation(name) if direction == "in"]
    corpus = [raw for raw in messages if len(raw) < 1000]
    corpus += [tuple_bytes("12", [{"a": [1, 2.5, None]}, "é", 2**40]), b'{"command":"ack","id":{"k":[1]}}' + END]

    def child(rng: random.Random) -> ChildConnection:
        found = shaken_child()
        for id in ("11", "12"):
            found.receive_data(tuple_bytes(id))
        for n in range(rng.randrange(3)):
            found.emit(["a", n], token=rng.choice((None, n)))
        return found

    _break(child, corpus, rounds=4)


def test_the_child_survives_broken_handshakes() -> None:
    corpus = [
        handshake(),
        handshake({"multilang.buffer.max.bytes": 80, "topology.name": "t", "topology.workers": 1}),
        json.dumps({"pidDir": "/pids", "conf": {}, "context": OLD_CONTEXT}).encode() + END,
        conversation("src.task7")[0][1],
    ]
    _break(lambda _: ChildConnection(), corpus, rounds=1)


@pytest.mark.parametrize("strict", [True, False])
def test_the_parent_survives_broken_messages(strict: bool) -> None:
    messages = [raw for name in CONVERSATIONS for direction, raw in conversation(name) if direction == "out"]
    corpus = [
        *messages,
        b'{"command":"emit","anchors":["11","12"],"tuple":[{"a":[1,2.5,null]},"\xc3\xa9",7],"need_task_ids":false}'
        + END,
        b'{"command":"emit","id":5,"stream":"s","task":4294967299,"tuple":[]}' + END,
        b'{"command":"metrics","name":"m","params":{"a":[1,0.5]}}' + END,
        b'{"command":"error","msg":"e"}' + END,
        b'{"command":"ack","id":"11"}' + END,
        b'{"command":"sync","exhausted":true}' + END,
    ]

    def parent(rng: random.Random) -> ParentConnection:
        if rng.random() < 0.1:
            found = ParentConnection(rng.choice(("bolt", "spout")), strict=strict)
            found.setup({}, "/pids", {})
            return found
        if rng.random() < 0.3:
            return shaken_parent("spout", strict=strict)
        return shaken_parent("bolt", ["11", "12"], strict=strict)

    _break(parent, corpus, rounds=4)


def _break(
    make: Callable[[random.Random], ChildConnection | ParentConnection], corpus: list[bytes], rounds: int
) -> None:
    print(f"MULTILANG_SEED={SEED}")
    refused = 0
    for n in range(FRAMES):
        seed = f"{SEED}.{n}"
        rng = random.Random(seed)
        data = b"".join(_mutated(rng, corpus) for _ in range(rng.randrange(rounds) + 1))
        try:
            together = _shown(outcome(make(random.Random(seed)), whole(data)))
            cut = one_at_a_time if len(data) < 3000 else random_pieces(n)
            in_pieces = _shown(outcome(make(random.Random(seed)), cut(data)))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r} instead of RemoteProtocolError for {data!r}") from error
        assert in_pieces == together, f"seed {seed}: pieces matter in {data!r}"
        refused += together[1] is not None
    assert FRAMES * 0.3 < refused < FRAMES  # most mutations hurt, some don't: neither is all that was tried


def _shown(found: tuple[list[Any], str | None]) -> tuple[str, str | None]:
    return repr(found[0]), found[1]  # NaN is not equal to itself


def _mutated(rng: random.Random, corpus: list[bytes]) -> bytes:
    data = rng.choice(corpus)
    how = rng.randrange(10)
    if how < 4:
        return _mutated_json(rng, data)
    if how == 4:
        return data
    for _ in range(rng.choice((1, 1, 2, 5))):
        data = _mutated_bytes(rng, data, corpus)
    return data


def _mutated_bytes(rng: random.Random, data: bytes, corpus: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    to = min(len(data), at + rng.choice((1, 2, 5, 30)))
    how = rng.randrange(6)
    if how == 0:
        return data[:at] + data[to:]
    if how == 1:
        return data[:at] + rng.choice(TOKENS) + data[at:]
    if how == 2:
        return data[:at] + rng.choice(TOKENS) + data[to:]
    if how == 3:
        return data[:at] + bytes(rng.randrange(256) for _ in range(to - at)) + data[to:]
    if how == 4:
        return data[:at] + data[at:to] * 2 + data[to:]
    other = rng.choice(corpus)
    return data[:at] + other[rng.randrange(len(other)) :]


def _mutated_json(rng: random.Random, data: bytes) -> bytes:
    """Still JSON, with values, keys or items that are others."""
    message = json.loads(data[: -len(END)])
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(message))
        if not places:
            return json.dumps(rng.choice(VALUES)).encode() + END
        holder, key = rng.choice(places)
        how = rng.randrange(4)
        if how == 0:
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[rng.choice(("id", "task", "tuple", "command", "stream", "", "\ud800", "9" * 30))] = holder.pop(key)
        else:
            holder[key] = rng.choice(VALUES)
        message = json.loads(json.dumps(message))  # VALUES' own lists are not to be changed
    return json.dumps(message, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass") + END


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from _places(item)
