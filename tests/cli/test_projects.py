"""Projects on the command line: new ones, those of streamparse, their settings, what a machine lacks, completion."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from multilang.settings import SETTINGS
from tests.cli.command import COMMAND, LIMIT, multilang

PAGES = ("home", "news", "shop", "about")
OWN = "my_clicks.topology"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project."""
    folder = tmp_path_factory.mktemp("projects")
    shown = multilang("new", "my-clicks", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "my-clicks/multilang.toml" in shown.stdout
    assert "cd my-clicks && multilang run --for 5" in shown.stdout
    return folder / "my-clicks"


def test_the_tests_of_a_new_project_pass(made: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=made, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout
    assert "5 passed" in shown.stdout


def test_a_new_project_runs_at_once_and_from_a_folder_below(made: Path, tmp_path: Path) -> None:
    for folder in (made, made / "tests"):
        shown = multilang(
            "run",
            "--json",
            "--mode",
            "inprocess",
            "-c",
            "my_clicks.visits=5",
            cwd=folder,
            MULTILANG_STATE_HOME=str(tmp_path),
        )
        assert shown.returncode == 0, shown.stderr
        document = json.loads(shown.stdout)
        assert document["topology"] == "my-clicks"
        assert document["reliability"]["acked"] >= 5


def test_the_simulated_run_of_the_tutorial_loses_nothing_and_is_the_same_after_a_real_one(
    made: Path, tmp_path: Path
) -> None:
    def run(*options: str) -> str:
        words = ("-q", "-c", "my_clicks.visits=1000", "--top", "count:page:visits", *options)
        shown = multilang("run", *words, cwd=made, MULTILANG_STATE_HOME=str(tmp_path))
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    simulated = ("--mode", "simulated", "--faults", "--seed", "7")
    first = run(*simulated)
    assert ", 0 lost; " in first
    visits = {page: int(number) for page, number in re.findall(r"^(/\w+) +(\d+)$", first, re.MULTILINE)}
    assert 1000 <= sum(visits.values()) < 1200, "each was counted, and some again after a fault"
    assert [*tmp_path.iterdir()] == []
    run("--mode", "inprocess", "-c", "my_clicks.visits.per.second=100000")
    assert run(*simulated) == first


def test_a_new_project_is_as_ruff_would_write_it(made: Path) -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,I,W,UP,B", "--line-length", "120"]
    shown = subprocess.run([*ruff, made], capture_output=True, text=True, cwd=made)
    assert shown.returncode == 0, shown.stdout
    shown = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--check", "--diff", "--line-length", "120", made],
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "would hide the module 'json'"),
        ("class", "is a word of Python's"),
        ("there.txt/shop", "the project can't be made: there.txt/shop: Not a directory"),
        ("9lives", "is no name for a project"),
        ("a b", "is no name for a project"),
        (".", "not empty"),
    ],
)
def test_a_name_that_can_not_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "there.txt").touch()
    shown = multilang("new", folder if name == "." else name, cwd=folder)
    assert shown.returncode == 2
    assert message in shown.stderr
    assert [each.name for each in folder.iterdir()] == ["there.txt"]


def config(folder: Path, *options: object) -> dict:
    shown = multilang("config", "show", "--json", *options, cwd=folder)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def test_config_show_says_where_each_value_comes_from(tmp_path: Path) -> None:
    (tmp_path / "top.py").write_text(
        "from multilang import TopologyBuilder\n"
        "from multilang.testing import FixedTupleSpout\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('numbers', FixedTupleSpout(['n'], [[1]]))\n"
        "topology = builder.build('tops', conf={'a.key': 1, 'b.key': 1, 'c.key': 1, 'd.key': 1})\n"
    )
    (tmp_path / "multilang.toml").write_text(
        'topology = "top.py"\nnimbus = "here:1"\n[conf]\n"b.key" = 2\n"c.key" = 2\n"d.key" = 2\n'
        '[environments.prod]\nnimbus = "there:2"\n'
        '[environments.prod.conf]\n"c.key" = 3\n"d.key" = 3\n"x.token" = { env = "NOT_SET" }\n'
    )
    document = config(tmp_path, "top.py", "-e", "prod", "-c", "d.key=4")
    assert document["environment"] == "prod"
    found = {key: (each["value"], each["from"]) for key, each in document["conf"].items()}
    of_prod = "multilang.toml [environments.prod]"
    assert found["a.key"] == (1, "the topology")
    assert found["b.key"] == (2, "multilang.toml")
    assert found["c.key"] == (3, of_prod)
    assert found["d.key"] == (4, "command line")
    assert [(each["value"], each["from"]) for each in document["conf"]["d.key"]["over"]] == [
        (3, of_prod),
        (2, "multilang.toml"),
        (1, "the topology"),
    ]
    assert found["x.token"] == ({"env": "NOT_SET"}, of_prod)
    assert found["topology.subprocess.timeout.secs"] == (60, "default of submit")
    assert document["settings"]["nimbus"]["value"] == "there:2"
    assert document["settings"]["nimbus"]["over"] == [{"value": "here:1", "from": "multilang.toml"}]
    assert config(tmp_path, "-e", "prod", "--nimbus", "else:3")["settings"]["nimbus"]["value"] == "else:3"
    # What is shown is what runs and what is submitted.
    for command in (("submit", "--dry-run"), ("show",)):
        shown = multilang(*command, "-e", "prod", "-c", "d.key=4", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert [re.search(rf"{key}\.key = (\d)", shown.stdout)[1] for key in "abcd"] == ["1", "2", "3", "4"]
    unloaded = config(tmp_path, "-e", "prod", "-c", "d.key=4")
    assert (document["topology"], unloaded["topology"]) == ("top.py", None)
    assert unloaded["conf"].keys() == {"b.key", "c.key", "d.key", "x.token"}
    table = multilang("config", "show", "-e", "prod", cwd=tmp_path).stdout
    assert f"multilang config show {tmp_path / 'top.py'}" in table, "it names how to see the topology's own"
    table = multilang("config", "show", "top.py", "-e", "prod", cwd=tmp_path).stdout
    assert re.search(r"^d\.key +3 +\[environments\.prod\] *$", table, re.M)
    assert re.search(r"^ +not 2 +multilang\.toml *$", table, re.M)


def test_the_states_of_a_project_are_those_that_its_settings_name(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "states"
    shutil.copytree(made, folder)
    settings = folder / "multilang.toml"
    of_prod = (
        f"[environments.prod.conf]\n\"topology.state.provider.config\" = {{ path = '{tmp_path / 'prod.sqlite'}' }}\n"
    )
    settings.write_text(settings.read_text().replace("[environments.prod.conf]\n", of_prod))
    ran = multilang("run", "-q", "--mode", "inprocess", "-e", "prod", "-c", "my_clicks.visits=50", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    here = {"MULTILANG_STATE_HOME": str(tmp_path / "home")}
    assert str(tmp_path / "prod.sqlite") in multilang("state", "ls", OWN, "-e", "prod", cwd=folder, **here).stdout
    assert "nothing is stored" in multilang("state", "ls", OWN, cwd=folder, **here).stdout  # the environment is dev
    named = [
        int(multilang("state", "get", OWN, "count", f"/{page}", "-e", "prod", cwd=folder).stdout or 0) for page in PAGES
    ]
    assert sum(named) == 50
    left_out = multilang("state", "export", "-e", "prod", cwd=folder).stdout.splitlines()
    assert sorted(json.loads(line)["value"] for line in left_out[1:]) == sorted(filter(None, named))
    for words, lacking in (("get count", "NAME"), ("get count /home", "KEY"), ("ls", "WHERE")):
        missing = multilang("state", *words.split(), cwd=folder)
        assert missing.returncode == 2
        assert f"Missing argument '{lacking}'" in missing.stderr
        assert "name the topology first" in missing.stderr


def test_a_topology_that_lies_elsewhere_has_none_of_the_projects_settings(made: Path) -> None:
    other = made.parent / "other.py"
    other.write_text(
        "from multilang import TopologyBuilder\nfrom multilang.testing import FixedTupleSpout\n"
        "builder = TopologyBuilder()\nbuilder.set_spout('numbers', FixedTupleSpout(['n'], [[1]]))\n"
        "topology = builder.build('other')\n"
    )
    assert "my_clicks.visits" not in multilang("show", other, cwd=made).stdout
    assert "my_clicks.visits" in multilang("show", "my_clicks.topology", cwd=made).stdout


def test_without_a_project_the_commands_say_how_to_make_one(tmp_path: Path) -> None:
    shown = multilang("config", "show", cwd=tmp_path)
    assert shown.returncode == 2
    assert "multilang new NAME makes a project" in shown.stderr
    shown = multilang("run", cwd=tmp_path)
    assert shown.returncode == 2
    assert "TOPOLOGY" in shown.stderr


def test_a_project_of_streamparse_is_taken_over(tmp_path: Path) -> None:
    assert multilang("sparse", "quickstart", "old", cwd=tmp_path).returncode == 0
    path = tmp_path / "old" / "config.json"
    old = json.loads(path.read_text())
    old["envs"]["prod"] |= {"options": {"shop.password": "hunter2", "topology.workers": 2}, "use_ssh_for_nimbus": True}
    old["envs"]["beta"] = {"nimbus": "beta.example.com"}
    path.write_text(json.dumps(old))
    before = {each: each.read_bytes() for each in (tmp_path / "old").rglob("*") if each.is_file()}
    shown = multilang("new", "fresh", "--from", "streamparse", "old", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "SHOP_PASSWORD is to have it" in shown.stderr
    assert "use_ssh_for_nimbus" in shown.stderr
    fresh = tmp_path / "fresh"
    assert "hunter2" not in (fresh / "multilang.toml").read_text()
    assert {each: each.read_bytes() for each in before} == before
    document = config(fresh, "-e", "prod")
    assert document["conf"]["topology.workers"]["value"] == 2
    assert document["conf"]["shop.password"]["value"] == {"env": "SHOP_PASSWORD"}
    assert document["settings"]["nimbus"]["value"] == "localhost"
    assert config(fresh, "-e", "beta")["settings"]["nimbus"]["value"] == "beta.example.com"
    run = multilang("run", "--for", "1", "--json", "--mode", "inprocess", cwd=fresh)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["components"]["counts"]["executed"] > 0
    assert multilang("new", "fresh", "--from", "streamparse", "old", cwd=tmp_path).returncode == 2


def test_doctor_says_what_is_missing_and_for_what(made: Path, tmp_path: Path) -> None:
    lacking = multilang("doctor", cwd=made, PATH=str(tmp_path), JAVA_HOME="", STORM_CONF_DIR=str(tmp_path))
    lines = {line[4:].split("  ")[0].strip(): line for line in lacking.stdout.splitlines()}
    assert lacking.returncode == 0, lacking.stdout
    assert lines["Java"].startswith("-")
    assert "multilang cluster, multilang spark" in lines["Java"]
    assert lines["mvn"].startswith("-")
    assert lines["Python"].startswith("ok")
    assert lines["multilang.toml"].startswith("ok")
    assert str(made / "my_clicks" / "topology.py") in lines["topology"]


def test_the_keys_of_this_library_are_shown_with_their_defaults(tmp_path: Path) -> None:
    shown = multilang("config", "keys", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert [line[0] for line in lines if line[0].startswith("multilang.")] == list(SETTINGS)
    assert ["multilang.exchange.tuples", "1000", "the", "largest"] in [line[:4] for line in lines]


def test_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "multilang.toml").write_text(
        'topology = "top.py"\nnimbus = "127.0.0.1:1"\n[conf]\n"x.token" = { env = "NOT_SET" }\n'
    )
    shown = multilang("doctor", cwd=tmp_path)
    assert shown.returncode == 1
    assert re.search(r"^WRONG +topology ", shown.stdout, re.M)
    assert f"there is no {tmp_path / 'top.py'}" in shown.stdout
    assert re.search(r"^WRONG +Nimbus +no Nimbus listens on 127\.0\.0\.1:1", shown.stdout, re.M)
    assert "x.token is in the environment variable NOT_SET, which is not set" in shown.stdout
    (tmp_path / "multilang.toml").write_text("topolgy = 3")
    shown = multilang("doctor", cwd=tmp_path)
    assert shown.returncode != 0
    assert "did you mean 'topology'" in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("multilang do", "doctor"),
        ("multilang submit -e p", "prod"),
        ("multilang run --wa", "--watch"),
        ("multilang run -c multilang.st", "multilang.store="),
        ("multilang run -c topology.w", "topology.workers="),
    ],
)
def test_the_shell_completes_commands_options_keys_and_environments(made: Path, words: str, expected: str) -> None:
    shown = subprocess.run(
        [COMMAND],
        env={
            **os.environ,
            "_MULTILANG_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
        capture_output=True,
        text=True,
        cwd=made,
    )
    assert f"plain,{expected}" in shown.stdout.splitlines(), shown.stderr
