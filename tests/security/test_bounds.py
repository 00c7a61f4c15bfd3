"""A message takes no more memory than it may, and a tuple that no parser takes fails alone."""

import resource
import subprocess
import sys

import pytest
import ujson
from hypothesis import given
from hypothesis import strategies as st

from multilang.protocol import ChildConnection, RemoteProtocolError, Tuple
from multilang.protocol.bounds import SMALLEST_RATIO, memory_of, tuple_beyond_bounds
from multilang.protocol.framing import DEFAULT_MAX_BUFFER, FrameReader
from tests.cli.command import ROOT
from tests.soak import SOAK

SETUP = {
    "conf": {},
    "pidDir": "/tmp",
    "context": {"taskid": 1, "task->component": {"1": "a", "2": "b"}, "componentid": "a"},
}
END = b"\nend\n"
LIMIT = 60.0
TIMES = 1_000_000 if SOAK else 200_000
SHAPES = {  # made by their test, as they are large
    "lists": lambda: b"[" + b"[]," * TIMES + b"0]",
    "objects": lambda: b"[" + b"{}," * TIMES + b"0]",
    "one key each": lambda: b"[" + b'{"a":1},' * TIMES + b"0]",
    "numbers": lambda: b"[" + b"1000," * TIMES + b"0]",
    "floats": lambda: b"[" + b"1.5," * TIMES + b"0]",
    "texts": lambda: b"[" + b'"ab",' * TIMES + b"0]",
    "one object": lambda: b"{" + b",".join(b'"%d":%d' % (n, n + 1000) for n in range(TIMES // 4)) + b"}",
    "in pairs": lambda: b"[" + b"[1000]," * TIMES + b"0]",
    "wide": lambda: b'"' + b"a" * (4 * TIMES) + "\U0001f600".encode() + b'"',
    "wide, escaped": lambda: b'"' + b"a" * (4 * TIMES) + b'\\ud83d\\ude00"',
    "two bytes": lambda: b'"' + b"a" * (4 * TIMES) + "\u4e2d".encode() + b'"',
    "two bytes, escaped": lambda: b'"' + b"a" * (4 * TIMES) + b'\\u4e2d"',
}
MEASURE = """
import sys, tracemalloc, ujson
text = sys.stdin.buffer.read()
tracemalloc.start()
kept = ujson.loads(text)
print(tracemalloc.get_traced_memory()[0])
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_no_message_takes_more_memory_than_is_counted(shape):
    text = SHAPES[shape]()
    shown = subprocess.run([sys.executable, "-c", MEASURE], input=text, capture_output=True, check=True, timeout=LIMIT)
    taken, counted = int(shown.stdout), memory_of(text)
    assert taken <= counted <= SMALLEST_RATIO * len(text)


@given(st.binary(min_size=1, max_size=50), st.integers(1, 50))
def test_what_needs_no_counting_takes_less_than_the_limit(text, times):
    assert memory_of(text * times) <= SMALLEST_RATIO * len(text * times) + 10_000


def test_a_message_that_would_take_too_much_is_refused_before_it_is_parsed():
    """64 MB became 1,682 MB."""
    frame = b'{"id":"1","comp":"b","stream":"default","task":2,"tuple":[' + b"{}," * 10_000_000 + b"0]}"
    child = ChildConnection()
    child.receive_data(ujson.dumps(SETUP).encode() + END)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        RemoteProtocolError, match=r"bytes of memory, more than the limit of 134217728 \(multilang.buffer"
    ):
        child.receive_data(frame + END)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000  # KiB; the text itself, some times
    assert DEFAULT_MAX_BUFFER == 134217728


@given(
    st.lists(st.binary(max_size=30).filter(lambda text: b"\n" not in text), max_size=6),
    st.integers(50, 3000),
    st.data(),
)
def test_the_bound_is_the_same_however_the_bytes_come(texts, limit, data):
    stream = b"".join(text + END for text in texts)

    def outcome(pieces):
        reader, found = FrameReader(limit), []
        for piece in pieces:
            try:
                found += reader.feed(piece)
            except RemoteProtocolError as error:
                return [*found, *error.events], str(error)
        return found, None

    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert outcome(pieces) == outcome([stream])


def message(values, id='"-7"', more=""):
    return f'{{"id":{id},"comp":"b","stream":"default","task":2{more},"tuple":{values}}}'.encode()


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (f"[{'9' * 4301}]", "has an integer of 4301 digits"),
        (f"[1,-{'9' * 100_000},2]", "has an integer of 100001 digits"),
        (nested(1025), "is nested deeper than 1024 levels"),
        ('[{"a":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}]", "is nested deeper than 1024 levels"),
        (nested(100_000), "is nested deeper than 1024 levels"),
    ],
)
def test_a_tuple_that_no_parser_takes_fails_and_the_next_one_is_read(values, why):
    """The process ended, was started again, got the tuple again, and so on."""
    child = ChildConnection()
    child.receive_data(ujson.dumps(SETUP).encode() + END)
    child.data_to_send()
    good = message("[1]", '"2"')
    events = child.receive_data(message("[0]", '"1"') + END + message(values) + END + good + END)
    assert [(type(event), event.id) for event in events] == [(Tuple, "1"), (Tuple, "2")]
    said, failed = child.data_to_send().decode().split("\nend\n")[:2]
    assert ujson.loads(said)["command"] == "error"
    assert (
        f"tuple -7 from 'b', stream 'default', can't be read and fails: its message {why}" in ujson.loads(said)["msg"]
    )
    assert ujson.loads(failed) == {"command": "fail", "id": "-7"}


@pytest.mark.parametrize(
    "frame",
    [
        message(nested(2000))[:-1],  # not whole
        message(nested(2000)) + b"]",
        message(f"[{'9' * 5000}", '"1"'),
        message(f"[{'9' * 5000}]", "7"),  # no id
        b"[" + b"9" * 5000 + b"]",  # task ids
        b'{"command":"next","a":' + b"9" * 5000 + b"}",
        b'{"id":"1","comp":"b","stream":"default","task":2,"a":' + b"9" * 5000 + b"}",
        b"9" * 5000,
    ],
)
def test_what_is_broken_otherwise_still_breaks_the_conversation(frame):
    child = ChildConnection()
    child.receive_data(ujson.dumps(SETUP).encode() + END)
    with pytest.raises(RemoteProtocolError):
        child.receive_data(frame + END)


@given(st.binary(max_size=200))
def test_looking_at_any_bytes_raises_nothing(frame):
    tuple_beyond_bounds(frame)


def test_a_bolt_survives_what_it_cannot_read():
    program = (
        "from multilang import BasicBolt\n"
        "class Echo(BasicBolt):\n"
        "    output_fields = ['value']\n"
        "    def process(self, tup): self.emit([tup.values[0]])\n"
        "Echo().run()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as bolt:
        bolt.stdin.write(ujson.dumps(SETUP).encode() + END)
        bolt.stdin.flush()
        assert "pid" in ujson.loads(bolt.stdout.readline())  # as Storm, which sends no tuple before
        said, _ = bolt.communicate(b"".join([message(nested(3000)), END, message("[5]", '"2"'), END]), timeout=LIMIT)
    commands = [ujson.loads(part) for part in said.removeprefix(b"end\n").split(END) if part.strip()]
    assert [each.get("command") for each in commands] == ["error", "fail", "emit", "ack"]
