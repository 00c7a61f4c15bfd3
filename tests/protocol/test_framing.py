"""Messages out of bytes: where one ends, how large it may be, and that the pieces in which it comes don't matter."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from multilang.protocol import ParentConnection, RemoteProtocolError, Sync
from multilang.protocol.framing import DEFAULT_MAX_BUFFER, FrameReader
from tests.protocol.wire import END, handshake, one_at_a_time, outcome, random_pieces, shaken_child, tuple_bytes, whole

SYNC = b'{"command":"sync"}'


def frames_of(pieces: Any, limit: int = DEFAULT_MAX_BUFFER) -> tuple[list[bytes], str | None]:
    """The frames that a reader makes of ``pieces``, and its error."""
    reader = FrameReader(limit)
    frames: list[bytes] = []
    try:
        for piece in pieces:
            frames += reader.feed(piece)
        reader.close()
    except RemoteProtocolError as error:
        return frames + error.events, str(error)  # type: ignore[operator]
    return frames, None


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"{}\nend\n", [b"{}"]),
        (b"{}\nend\n[]\nend\n", [b"{}", b"[]"]),
        (b"{}\r\nend\r\n[]\nend\n", [b"{}\r", b"[]"]),
        (b"{\n}\nend\n", [b"{\n}"]),
        (b"end\n", [b""]),
        (b"end\nend\n{}\nend\n", [b"", b"", b"{}"]),
        (b"\nend\n", [b""]),
        (b'["\nendless"]\nend\n', [b'["\nendless"]']),
        (b'["the end\n"]\nend\n', [b'["the end\n"]']),
        (b"{}\nend \n[]\nend\n", [b"{}\nend \n[]"]),  # as Storm: only "end" alone is an end
        (b"{}\n end\n[]\nend\n", [b"{}\n end\n[]"]),
        (b"{}\nEND\n[]\nend\n", [b"{}\nEND\n[]"]),
        (b"{}\nend\r\r\n[]\nend\n", [b"{}\nend\r\r\n[]"]),
        ("[\"\u00e9nd\nend\u00e9\"]\nend\n".encode(), ["[\"\u00e9nd\nend\u00e9\"]".encode()]),
        (b"", []),
        (b"\n \n", []),
    ],
)  # fmt: skip
def test_a_line_end_alone_ends_a_message(data: bytes, frames: list[bytes]) -> None:
    assert frames_of(whole(data)) == (frames, None)
    assert frames_of(one_at_a_time(data)) == (frames, None)


def test_random_text_is_cut_the_same_in_any_pieces() -> None:
    rng = random.Random(7)
    for seed in range(300):
        parts = [rng.choice((b"\n", b"end", b"\r", b"en", b"d", b"{}", b" ", b"\nend\n", b"x")) for _ in range(60)]
        data = b"".join(parts)
        for limit in (DEFAULT_MAX_BUFFER, 20):
            together = frames_of(whole(data), limit)
            assert frames_of(one_at_a_time(data), limit) == together, (data, limit)
            assert frames_of(random_pieces(seed)(data), limit) == together, (data, limit)


def test_the_stream_must_not_end_inside_a_message() -> None:
    parent = ParentConnection("bolt")
    parent.receive_data(b'{"pid": 1')
    with pytest.raises(RemoteProtocolError, match=r"""ended inside a message, 9 bytes without.*: '{"pid": 1'"""):
        parent.receive_data(b"")


# ---- the bound ----


def test_the_bound_is_128_mib_by_default() -> None:
    assert DEFAULT_MAX_BUFFER == 128 * 1024 * 1024
    assert FrameReader().max_buffer == DEFAULT_MAX_BUFFER


@pytest.mark.parametrize("cut", [whole, one_at_a_time, random_pieces(1)])
def test_a_message_may_be_as_large_as_the_bound(cut: Any) -> None:
    text = b'["' + b"x" * 46 + b'"]'
    assert frames_of(cut((text + END) * 3), 50) == ([text] * 3, None)


@pytest.mark.parametrize("cut", [whole, one_at_a_time, random_pieces(1)])
@pytest.mark.parametrize("ended", [True, False])
def test_a_larger_one_is_an_error_that_says_so(cut: Any, ended: bool) -> None:
    data = b"[]" + END + b'["' + b"x" * 47 + b'"]' + (END if ended else b"")
    frames, error = frames_of(cut(data), 50)
    assert frames == [b"[]"]
    assert error is not None
    assert "larger than the limit of 50 bytes (multilang.buffer.max.bytes)" in error
    assert "'end' is missing" in error
    assert error.endswith("begins '[\"" + "x" * 47 + "\"'")


def test_the_conf_sets_the_bound_for_everything_behind_the_handshake() -> None:
    for cut in (whole, one_at_a_time):
        child = shaken_child()
        fresh = type(child)()
        data = handshake({"multilang.buffer.max.bytes": 200}) + tuple_bytes("1") + tuple_bytes("2", ["x" * 300, 1])
        events, error = outcome(fresh, cut(data))
        assert [type(event).__name__ for event in events] == ["Setup", "Tuple"]
        assert error is not None
        assert "limit of 200 bytes" in error


def test_the_bound_of_the_parent_is_an_argument() -> None:
    parent = ParentConnection("spout", max_buffer=1000)
    with pytest.raises(RemoteProtocolError, match="limit of 1000 bytes"):
        parent.receive_data(b"x" * 1010)


def test_what_came_before_is_not_lost_with_a_message_that_is_too_large() -> None:
    parent = ParentConnection("bolt", max_buffer=100)
    parent.setup({}, "/pids", {})
    parent.receive_data(b'{"pid":1}' + END)
    with pytest.raises(RemoteProtocolError) as caught:
        parent.receive_data(SYNC + END + b"x" * 200)
    assert caught.value.events == [Sync()]


def test_after_an_error_there_is_only_the_error() -> None:
    for connection in (shaken_child(), ParentConnection("bolt")):
        with pytest.raises(RemoteProtocolError) as first:
            connection.receive_data(b"garbage" + END)
        with pytest.raises(RemoteProtocolError) as second:
            connection.receive_data(SYNC + END)
        assert str(second.value) == str(first.value)
        assert second.value.events == []
        assert connection.receive_data(b"") == []


# ---- cost ----


def _seconds(data: bytes, piece: int) -> float:
    best = float("inf")
    for _ in range(3):
        reader = FrameReader()
        start = time.process_time()
        for at in range(0, len(data), piece):
            reader.feed(data[at : at + piece])
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        (b"x" * 65536, 65536),  # a large value in the pieces that a pipe gives
        (b"\nendless" * 8192, 65536),  # where an end may be in every line
        (b"x", 1),
        (b"\nend", 3),
        (b"{}\nend\n", 16),
    ],
)
def test_a_message_costs_in_proportion_to_its_size(text: bytes, piece: int) -> None:
    small = text * (max(1, (2_000_000 if piece > 100 else 20_000) // len(text)))
    # 16 times the data: with a cost that grows with the square it takes 256 times as long
    assert _seconds(small * 16, piece) < 100 * max(_seconds(small, piece), 0.0005)


def test_a_tuple_of_10_mb_arrives_in_pieces() -> None:
    child = shaken_child()
    text = "0123456789" * 1_000_000
    data = tuple_bytes("1", [text, 1])
    events: list[Any] = []
    for at in range(0, len(data), 65536):
        events += child.receive_data(data[at : at + 65536])
    assert len(events) == 1
    assert events[0].values == [text, 1]
