"""The initial handshake: setup info in, the pid out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.json_text import NEVER_SENT
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("common/handshake", "Initial handshake", f"{PAGE}, Initial Handshake")
LETTERS = ("common/unicode/1", "bolt/ordinary/7")

# As many keys as a real worker's conf has (299), with the same kinds of values.
BIG_CONF: dict[str, Any] = {
    "storm.zookeeper.servers": ["127.0.0.1", "host.example"],
    "topology.worker.gc.childopts": "",
    "storm.nimbus.retry.interval.millis": 2000,
    "topology.stats.sample.rate": 0.05,
    "topology.kryo.register": [{"java.math.BigDecimal": None}, "org.example.A"],
    "ui.filter.params": None,
    "topology.state.synchronization.timeout.secs": 60,
    "nimbus.queue.size": -1,
    "storm.local.dir": "/storm/data",
    "topology.name": "café ✓ 🐍",
    "drpc.https.port": -1,
    'a"quoted" \\ key\n': {"deep": [[[{}]]]},
    **{f"filler.{'setting.' * 3}{n}": [n, str(n), n / 8, n % 2 == 0, None][n % 5] for n in range(290)},
}


def answers(t: Conversation, **how: Any) -> None:
    """Send the handshake in some way, and check that it is answered and the program continues."""
    t.handshake(**how)
    t.check(type(t.monitor.pid) is int, "the answer holds no pid", '{"pid": 1234}', t.monitor.pid)
    t.settle()


@section.must(
    "answers with its pid", 'The setup info is answered by one JSON object with the process\'s own pid, {"pid": 1234}.'
)
def _(t: Conversation) -> None:
    t.handshake()
    t.check(type(t.monitor.pid) is int, "the answer holds no pid", '{"pid": 1234}', t.monitor.pid)


section.watch(
    "MUST",
    "pid.missing pid.type",
    "the first message is the pid, a JSON integer",
    "Storm takes the first message for the answer to the handshake and casts its pid to a number: a string halts the worker.",
    f"{PAGE}, Initial Handshake; {MEASURED} (pid_string)",
)
section.watch(
    "MUST",
    "pid.again",
    "the pid is sent once",
    "After the handshake each message carries a command; a second pid is a message without one and halts the worker.",
    f"{PAGE}, Initial Handshake; {MEASURED} (no_command)",
)


@section.should(
    "a handshake over many lines",
    "A message may span lines: the handshake of the page, indented, is read up to the line 'end'.",
    source=f"{PAGE}, Initial Handshake; {NEVER_SENT}",
    after=("common/json/1", "common/json/3"),
)
def _(t: Conversation) -> None:
    answers(t, text=lambda text: json.dumps(json.loads(text), indent=4))


@section.must(
    "context and conf before pidDir, and after it",
    "The keys of a JSON object have no order; Storm's differs from run to run.",
)
def _(t: Conversation) -> None:
    answers(t, text=lambda text: storm_text(dict(sorted(json.loads(text).items()))))


@section.must(
    "a conf as large as Storm's",
    "A worker of Storm 2.8.3 sends 299 conf entries of all JSON types, slashes escaped, other letters as raw UTF-8.",
    source=f"{PAGE}, Initial Handshake; {MEASURED}",
    after=LETTERS,
)
def _(t: Conversation) -> None:
    # The keys have no order, so what the program needs may stand behind all of it.
    conf = {**t.world.full_conf(), **BIG_CONF, **t.world.conf}
    answers(t, conf=conf, text=lambda text: storm_text(dict(sorted(json.loads(text).items()))))


@section.must("unknown keys beside conf, pidDir and context", "What a newer Storm adds to the handshake is ignored.")
def _(t: Conversation) -> None:
    answers(t, text=lambda text: text[:-1] + ',"future":{"conf":{},"pidDir":[1]}}')


@section.must(
    "conf values reach the component",
    "The conf is handed to user code as it was sent.",
    steps="conf",
    after=("common/unicode/1", "common/json/8", "common/json/10", "common/json/11"),
)
def _(t: Conversation) -> None:
    entries = {
        "a.text": 'é/\n"',
        "a.map": {"x": [1, None]},
        "a.no": False,
        "a.float": -2.5,
        "a.null": None,
        "A.capital Letter": 1,
    }
    t.world.conf |= entries
    keys = list(entries)
    outs = t.perform(*([["conf", key]] for key in keys))
    for key, out in zip(keys, outs, strict=True):
        t.emitted(out, [[entries[key]]], f"the conf entry {key!r} came out changed")
