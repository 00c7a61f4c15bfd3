"""The commands that make what is shipped."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.cli.command import ROOT, multilang


def test_package_writes_a_jar_and_lists_what_went_in(tmp_path: Path) -> None:
    out = tmp_path / "wordcount.jar"
    shown = multilang("package", "examples/word_count.py", "-o", out)
    assert shown.returncode == 0, shown.stderr
    assert "word_count.py" in shown.stdout
    assert "loaded from these files alone" in shown.stdout
    with zipfile.ZipFile(out) as jar:
        assert "resources/run_topology.py" in jar.namelist()
    assert [path.name for path in tmp_path.iterdir()] == ["wordcount.jar"]


def test_a_dry_run_shows_commands_and_conf_and_writes_nothing(tmp_path: Path) -> None:
    shown = multilang("package", ROOT / "examples/node_split.py", "--dry-run", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "  split: node node_split.js" in shown.stdout
    assert '  topology.kryo.register = ["org.apache.storm.shade.net.minidev.json.JSONArray"' in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_shows_what_is_started_in_the_workers_directory(tmp_path: Path) -> None:
    (tmp_path / "read.js").write_text("")
    (tmp_path / "reading.py").write_text(
        "from multilang import ShellSpout, TopologyBuilder\n"
        "builder = TopologyBuilder()\n"
        "spout = ShellSpout(['node', 'read.js', 'a b'], output_fields=['n'], change_child_cwd=False)\n"
        "builder.set_spout('numbers', spout)\n"
        "topology = builder.build()\n"
    )
    for command in ("package", "submit"):
        shown = multilang(command, tmp_path / "reading.py", "--dry-run")
        assert shown.returncode == 0, shown.stderr
        words = "node read.js 'a b'"
        assert f"  numbers: sh run_in_worker_1.sh (in the worker's directory: {words})" in shown.stdout


def test_a_topologys_files_and_any_folder_become_archives(tmp_path: Path) -> None:
    app, folder = tmp_path / "app.tgz", tmp_path / "folder.tgz"
    assert multilang("package", "examples/word_count.py", "-o", app).returncode == 0
    shown = multilang("archive", ROOT / "examples", "-o", folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1].startswith(f"{folder}: ")
    assert app.read_bytes()[:2] == folder.read_bytes()[:2] == b"\x1f\x8b"


def test_flux_writes_yaml_and_java() -> None:
    assert multilang("flux", "examples/word_count.py").stdout.startswith('name: "word-count"\n')
    assert "class DirectBalanceTopology {" in multilang("flux", "examples/direct_balance.py", "--java").stdout


def test_what_can_not_be_shipped_is_one_error_and_status_2(tmp_path: Path) -> None:
    for arguments, reason in (
        (["flux", "examples/direct_balance.py"], "Flux can't declare direct streams ('work' of 'balance')"),
        (["package", "examples/word_count.py", "-o", tmp_path / "x.zip"], "neither a .jar nor a .tgz"),
        (["package", "examples/word_count.py", "-o", tmp_path / "no/x.jar"], "can't be written"),
        (["package", "examples/word_count.py", "--python", "2.7"], "3.10 or newer"),
        (["package", "examples/word_count.py", "--interpreter", "python3 -u"], "not one word"),
        (["package", "examples/word_count.py", "--include", tmp_path], "outside of the topology's folder"),
        (["archive", tmp_path / "nothing", "-o", tmp_path / "x.tgz"], "is not a folder"),
    ):
        shown = multilang(*arguments)
        assert shown.returncode == 2
        assert reason in shown.stderr
        assert "Traceback" not in shown.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_is_given_at_the_submission_is_missed_by_that_alone(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(
        "from multilang import TopologyBuilder\n"
        "from multilang.state import PositionSpout\n"
        "class Lines(PositionSpout):\n"
        "    output_fields = ['line']\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('lines', Lines)\n"
        "topology = builder.build()\n"
    )
    note = "note: the position of 'lines' has no place that every worker reaches: set multilang.store to"
    packaged = multilang("package", "lines.py", "-o", "lines.jar", cwd=tmp_path)
    flux = multilang("flux", "lines.py", cwd=tmp_path)
    assert (packaged.returncode, flux.returncode) == (0, 0), (packaged.stderr, flux.stderr)
    assert packaged.stdout.count(note) == flux.stderr.count(note) == 1
    assert flux.stdout.startswith("name: ")
    refused = multilang("submit", "lines.py", "--dry-run", cwd=tmp_path)
    assert refused.returncode == 2
    assert "set multilang.store to" in refused.stderr
    given = ("-c", "multilang.store=redis://redis.example.com/0")
    whole = multilang("submit", "lines.py", "--dry-run", *given, cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert "note:" not in whole.stdout + whole.stderr
