"""The conf of a project's topology is the one that streamparse itself makes of the same files and the same options."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compat.originals import installed

ROOT = Path(__file__).parents[2]
NEEDLESS = {  # of SSH, virtualenvs and streamparse's own records
    *("install_virtualenv", "use_virtualenv", "virtualenv_flags", "virtualenv_name", "virtualenv_root"),
    *("storm.workers.list", "sudo_user", "topology.python.path"),
}
# What streamparse's command makes of options, and of the configuration's environment and the topology's config with them.
THEIRS = """\
import argparse, json, sys
from streamparse.cli import common
made = []
for each in json.load(sys.stdin):
    parser = argparse.ArgumentParser()
    for add in (common.add_ackers, common.add_debug, common.add_options, common.add_workers):
        add(parser)
    options = parser.parse_args(each["options"]).options
    topology = type("Words", (), {"config": each["config"]})
    made.append(common.resolve_options(options, each["environment"], topology, "words"))
json.dump(made, sys.stdout)
"""
# What `multilang sparse` makes of them: the conf with which it runs a topology, from the options as its command parses them.
OURS = """\
import json, os, sys
from multilang.cli.loading import load
from multilang.cli.sparse import run
made = []
for folder, options in json.load(sys.stdin):
    os.chdir(folder)
    context = run.make_context("run", ["-e", "prod", *options], obj={})
    made.append(load(".").with_conf(context.obj).conf)
json.dump(made, sys.stdout)
"""
TOPOLOGY = """\
from streamparse import Spout, Topology
class Words(Spout):
    outputs = ["word"]
class {name}(Topology):
    config = {config!r}
    words = Words.spec()
"""
KEYS = {
    "topology.message.timeout.secs": [30, 45],
    "topology.max.spout.pending": [7, 100],
    "topology.workers": [2, 5],
    "topology.acker.executors": [0, 3],
    "topology.debug": [True, False],
    "pystorm.log.level": ["info", "warning"],
    "pystorm.log.path": ["/a", "/b"],
    "words.of.mine": ["x", 1.5, [1, 2], None],
}


def cases(number: int) -> list[dict[str, Any]]:
    """Environments, topologies' configs and options at random, by a seed."""
    dice = random.Random("precedence")

    def some(share: float) -> dict[str, Any]:
        return {key: dice.choice(values) for key, values in KEYS.items() if dice.random() < share}

    found = []
    for count in range(number):
        log = {"path": "/logs", "file": "{task_id}.log", "max_bytes": 1000, "backup_count": "3", "level": "ERROR"}
        environment: dict[str, Any] = {
            "workers": dice.choice([["one"], ["one", "two", "three"]]),
            "nimbus": f"nimbus{count}.invalid",  # streamparse remembers the workers by it
            "virtualenv_root": "/virtualenvs",
            "user": "somebody",
        }
        if dice.random() < 0.7:
            environment["options"] = some(0.4)
        if dice.random() < 0.7:
            environment["log"] = {key: value for key, value in log.items() if dice.random() < 0.6}
        if dice.random() < 0.3:
            environment["log_path"] = "/old/logs"
        options = [
            f"-o{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in some(0.3).items()
        ]
        options += [word for word in ("-w4", "-a1", "-d", "-otopology.debug=False") if dice.random() < 0.25]
        dice.shuffle(options)
        options.sort(
            key=lambda each: each.startswith("-o"), reverse=dice.random() < 0.5
        )  # all -o count where the first is
        if sum(each.startswith("-otopology.debug") or each == "-d" for each in options) > 1:
            options = [each for each in options if each != "-d"]
        found.append({"environment": environment, "config": some(0.4), "options": options})
    return found


def answer(script: str, given: object, *path: Path) -> Any:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(600)  # pip downloads streamparse with all that it needs, once
def test_the_conf_is_the_one_that_streamparse_makes(tmp_path: Path) -> None:
    given = cases(60)
    theirs = answer(THEIRS, given, installed("streamparse==5.0.1", "setuptools<80"))
    projects = []
    for number, each in enumerate(given):
        folder = tmp_path / f"project{number}"
        (folder / "topologies").mkdir(parents=True)
        (folder / "src").mkdir()
        (folder / "config.json").write_text(json.dumps({"envs": {"prod": each["environment"]}}))
        name = f"Words{number}"
        text = TOPOLOGY.format(name=name, config=each["config"])
        (folder / "topologies" / f"words{number}.py").write_text(text)
        projects.append([str(folder), each["options"]])
    ours = answer(OURS, projects, ROOT)
    for each, expected, found in zip(given, theirs, ours, strict=True):
        left = {key: value for key, value in expected.items() if key not in NEEDLESS}
        if left.get("topology.debug"):
            found = {**found, "pystorm.log.level": "debug"}  # a component logs so where topology.debug is set
        assert found == left, each
