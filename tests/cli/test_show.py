"""``multilang show`` and ``multilang version``."""

from __future__ import annotations

import json

import ujson

from multilang import __version__
from tests.cli.command import multilang


def test_show_lists_components_with_their_inputs_and_streams() -> None:
    shown = multilang("show", "examples/word_count.py")
    assert shown.returncode == 0
    assert "bolt count: WordCount, 2 tasks\n  <- split by fields (word)\n  -> default (word, count)\n" in shown.stdout
    assert shown.stdout.endswith("between processes:\n  sentences -> split: by block\n  split -> count: by block\n")


def test_show_draws_a_diagram_for_markdown() -> None:
    assert multilang("show", "examples/word_count.py", "--format", "mermaid").stdout.startswith("flowchart LR\n")


def test_show_gives_data_to_programs() -> None:
    document = json.loads(multilang("show", "examples/word_count.py", "--format", "json").stdout)
    assert [component["id"] for component in document["components"]] == ["sentences", "split", "count"]


def test_show_tells_which_tuples_travel_in_blocks_and_why_others_do_not() -> None:
    entries = ("-c", "multilang.exchange=block", "-c", "topology.workers=2")
    text = multilang("show", "tests/cli/hops.py", *entries).stdout
    assert text.endswith(
        "between processes:\n"
        "  numbers -> next: by block\n"
        "  next -> near: tuple by tuple: no task knows which others are in its worker (topology.workers is more than 1)\n"
        "  next -> program: tuple by tuple: 'program' is a program of its own\n"
    )
    mermaid = multilang("show", "tests/cli/hops.py", *entries, "--format", "mermaid").stdout
    assert '==>|"shuffle"|' in mermaid
    assert mermaid.count("==>") == 1
    document = json.loads(multilang("show", "tests/cli/hops.py", *entries, "--format", "json").stdout)
    found = {part["id"]: [each["exchange"]["by"] for each in part["inputs"]] for part in document["components"]}
    assert found == {"numbers": [], "next": ["block"], "near": ["tuple"], "program": ["tuple"]}


def test_show_refuses_a_wrong_setting() -> None:
    shown = multilang("show", "tests/cli/hops.py", "-c", "multilang.exchange=on")
    assert shown.returncode == 2
    assert "multilang.exchange is 'on'; use 'auto', 'tuple', 'root' or 'block'" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_version_names_what_a_report_needs() -> None:
    shown = multilang("version").stdout
    assert shown.startswith(f"storm-multilang {__version__}\n")
    assert f"ujson {ujson.__version__}" in shown
