"""A failure before the first tuple is one clear error in Storm's log and a status of 1."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from multilang.child.process import UNUSABLE
from multilang.protocol.messages import Pid
from tests.component.harness import PREAMBLE, Child, context
from tests.patience import paced

if TYPE_CHECKING:
    from tests.component.harness import Starter

PART = "class Part(BasicBolt):\n    def process(self, tup): pass"


def one_error(child: Child) -> str:
    """The process ends with one error, nothing on standard error, and a status that tells whether to start it again."""
    status = child.ended()
    assert isinstance(child.messages[0], Pid)
    (error,) = child.errors
    assert status == (1 if error.startswith("SystemExit") else UNUSABLE)
    assert child.stderr == b""
    return error


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("multilang.process.timeout.secs", ["300", -1, True, [1]]),
        ("multilang.log.level", ["loud", 3]),
        ("multilang.middleware", ["one.Name", [1], {"a": 1}, [""]]),
        ("multilang.metrics.interval.secs", [0, -5, "60", True]),
        ("multilang.metrics.registered", ["name", [1], {"a": 1}]),
        ("multilang.metrics.prometheus.port", ["9000", -1, 65536, True, 1.5]),
        ("multilang.metrics.prometheus.host", [1, ""]),
        ("multilang.buffer.max.bytes", ["1MB", 0, -1, 1.5, True]),
    ],
)
def test_a_wrong_value_of_the_conf_is_one_error_that_names_the_key_and_the_value(
    start: Starter, key: str, values: list[Any]
) -> None:
    children = [(value, start(PART, {key: value})) for value in values]
    for value, child in children:
        error = one_error(child)
        assert f"ConfigError in component 'part' (task 4): {key} " in error
        assert repr(value) in error


def test_a_conf_with_all_our_keys_right_starts(start: Starter) -> None:
    conf = {
        "multilang.process.timeout.secs": paced(5),
        "multilang.max.replays": None,
        "multilang.log.level": "DEBUG",
        "multilang.middleware": [],
        "multilang.metrics.interval.secs": 1,
        "multilang.metrics.registered": [],
        "multilang.buffer.max.bytes": 1 << 20,
    }
    child = start(PART, conf)
    id = child.give("x")
    child.until(lambda: child.acked == [id])


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("nowhere:Part", ["nowhere"]),
        ("nowhere.py:Part", ["nowhere.py"]),
        ("there.py:Missing", ["there.py", "'Missing'", "Part"]),
        ("there.py", ["'topology'", "Part"]),
        ("there.py:number", ["int", "Topology"]),
        ("there.py:raises", ["ValueError", "no good", "there.py"]),
        ("broken.py:Part", ["SyntaxError", "broken.py", "line 2"]),
        ("failing.py:Part", ["ModuleNotFoundError", "no_such_library", "failing.py"]),
        ("exiting.py:Part", ["SystemExit", "set SHOP first"]),
        ("topology.py:topology", ["no component 'part'", "'words'"]),
        ("shell.py", ["'part'", "ShellBolt", "own command"]),
    ],
)
def test_a_target_that_cannot_be_run_is_one_error(start: Starter, target: str, parts: list[str]) -> None:
    files = {
        "there.py": f"{PART}\nnumber = 5\ndef raises(): raise ValueError('no good')",
        "broken.py": "\ndef broken(:",
        "failing.py": "import no_such_library",
        "exiting.py": "sys.exit('set SHOP first')",
        "topology.py": """
            class Words(Spout):
                output_fields = ["word"]
            builder = TopologyBuilder()
            builder.set_spout("words", Words)
            topology = builder.build("t")
            """,
        "shell.py": """
            class Words(Spout):
                output_fields = ["word"]
            builder = TopologyBuilder()
            builder.set_spout("words", Words)
            builder.set_bolt("part", ShellBolt(["node", "x.js"])).shuffle_grouping("words")
            topology = builder.build("t")
            """,
    }
    for name, source in files.items():
        (start.folder / name).write_text(
            textwrap.dedent(source) if name == "broken.py" else PREAMBLE + textwrap.dedent(source)
        )
    child = start.command([sys.executable, "-m", "multilang.component", target]).set_up()
    error = one_error(child)
    assert [part for part in parts if part not in error] == []


@pytest.mark.parametrize("target", ["topology.py:topology", "topology:topology", "topology:make", "topology.py"])
def test_a_task_of_a_topology_finds_its_component_by_its_id(start: Starter, target: str) -> None:
    (start.folder / "topology.py").write_text(
        PREAMBLE
        + textwrap.dedent("""
            class Words(Spout):
                output_fields = ["value"]
            class Part(BasicBolt):
                output_fields = ["value"]
                def __init__(self, factor=3):
                    self.factor = factor
                def process(self, tup):
                    self.emit([tup["value"] * self.factor])
            def make():
                builder = TopologyBuilder()
                builder.set_spout("source", Words)
                builder.set_bolt("part", Part(2), parallelism=2).shuffle_grouping("source")
                return builder.build("t")
            topology = make()
            """)
    )
    child = start.command([sys.executable, "-m", "multilang.component", target]).set_up()
    child.give(21)
    child.until(lambda: child.acked)
    assert child.emitted == [[42]]


@pytest.mark.parametrize("arguments", [[], ["a:b", "c:d"], ["--help"]])
def test_a_wrong_command_line_says_the_right_one(start: Starter, arguments: list[str]) -> None:
    child = start.command([sys.executable, "-m", "multilang.component", *arguments])
    assert child.process.wait(60) == 1
    child._threads[2].join(60)
    assert child.stderr.startswith(b"usage: python -m multilang.component MODULE:NAME")


@pytest.mark.parametrize(
    ("handshake", "error"),
    [
        (b'{"conf":{},"context":{"taskid":4,"task->component":{"4":"part"}}}', b"'pidDir' is missing"),
        (
            b'{"conf":{},"pidDir":7,"context":{"taskid":4,"task->component":{"4":"part"}}}',
            b"'pidDir' is of type int, where a string is due",
        ),
        (b'{"pidDir":".","context":{"taskid":4,"task->component":{"4":"part"}}}', b"'conf' is missing"),
        (b'{"conf":{},"pidDir":".","context":{}}', b"taskid"),
        (b'{"command":"next"}', b"the handshake"),
        (b"hello", b"not JSON"),
    ],
)
def test_a_handshake_that_is_none_is_said_on_standard_error(start: Starter, handshake: bytes, error: bytes) -> None:
    child = start.raw(PART)
    child.raw(handshake + b"\nend\n")
    child.ended(1)
    assert error in child.stderr
    assert child.stderr.count(b"\n") == 1
    assert child.messages == []


def test_a_pid_folder_that_is_not_there_is_a_warning(start: Starter) -> None:
    child = start.raw(PART)
    child.say(lambda parent: parent.setup({}, str(start.folder / "missing"), context()))
    id = child.give("x")
    child.until(lambda: child.acked == [id])
    (warning,) = child.logged(3)
    assert "missing" in warning
    assert "PID file" in warning


def test_the_pid_is_sent_before_the_users_module_is_imported(start: Starter) -> None:
    child = start("time.sleep(3600)")
    child.until(lambda: child.all(Pid))


def test_a_logger_works_before_the_start(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def __init__(self):
                self.logger.info("made")
            def process(self, tup):
                pass
        """)
    child.give("x")
    child.until(lambda: child.acked)
    assert "Part: made" in child.logged()
