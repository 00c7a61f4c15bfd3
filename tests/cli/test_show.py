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


def test_show_draws_a_diagram_for_markdown() -> None:
    assert multilang("show", "examples/word_count.py", "--format", "mermaid").stdout.startswith("flowchart LR\n")


def test_show_gives_data_to_programs() -> None:
    document = json.loads(multilang("show", "examples/word_count.py", "--format", "json").stdout)
    assert [component["id"] for component in document["components"]] == ["sentences", "split", "count"]


def test_version_names_what_a_report_needs() -> None:
    shown = multilang("version").stdout
    assert shown.startswith(f"storm-multilang {__version__}\n")
    assert f"ujson {ujson.__version__}" in shown
