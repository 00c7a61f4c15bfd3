"""multilang state: what is stored is shown, moved elsewhere and divided anew."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import ujson

from multilang.local import LocalCluster
from multilang.state import StateError
from multilang.state.admin import StoredStates
from multilang.state.providers import provider_of
from multilang.store import claims
from tests.cli.command import multilang
from tests.patience import patient
from tests.soak import combined
from tests.state.conftest import conf_of, opened
from tests.state.topologies import build, exact, stored, topology, words_of

WHERE = "tests/state/topologies.py"
EXPORTED = '{"multilang-state": 1, "tasks": {"count": 2}, "txid": 3}\n'


@pytest.fixture(params=["sqlite", "redis"])
def counted(request, tmp_path):
    """A conf under which a run has stored its counts, and the options that tell of it."""
    conf = conf_of(request.param, request, tmp_path)
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(topology).wait(timeout=patient(60))
    return conf


def options(conf):
    return [part for key, value in conf.items() for part in ("-c", f"{key}={ujson.dumps(value)}")]


def test_what_is_stored_is_listed_and_got(counted):
    shown = multilang("state", "ls", WHERE, *options(counted))
    assert shown.returncode == 0, shown.stderr
    assert "count-0" in shown.stdout
    listed = json.loads(multilang("state", "ls", WHERE, "--json", *options(counted)).stdout)
    assert listed["state"] == "COMMITTED"
    keys = {row["namespace"]: row["keys"] for row in listed["namespaces"]}
    assert keys["count-0"] + keys["count-1"] == len(words_of(200))
    assert {row["committed"] == row["prepared"] == listed["txid"] for row in listed["namespaces"]} == {True}
    assert multilang("state", "get", WHERE, "count", "moon", *options(counted)).stdout == f"{words_of(200)['moon']}\n"
    fours = sum(count for word, count in words_of(200).items() if len(word) == 4)
    assert multilang("state", "get", WHERE, "lengths", "4", *options(counted)).stdout == f"{fours}\n"
    missing = multilang("state", "get", WHERE, "count", "nobody", *options(counted))
    assert missing.returncode == 1
    assert "no task of 'count' has the key 'nobody'; it has " in missing.stderr
    assert "no task of 'split'" in (none := multilang("state", "get", WHERE, "split", "moon", *options(counted))).stderr
    assert "nothing of it is stored" in none.stderr


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("moon", "moon"),
        ('"moon"', "moon"),
        ('"', '"'),
        ("7", 7),
        ("8", "8"),
        ("true", "true"),
        ("{}", "{}"),
        ('["a", [1, "b"]]', ("a", (1, "b"))),
        ("[1.5]", "[1.5]"),
        ("", ""),
    ],
)
def test_a_key_is_typed_as_it_is(tmp_path, typed, key):
    conf = conf_of("sqlite", None, tmp_path)
    found = provider_of(conf)
    state = opened(found, "count-1")
    state.put(key, "found")
    state.commit()
    state.close()
    found.close()
    shown = multilang("state", "get", *options(conf), WHERE, "count", typed)
    assert (shown.stdout, shown.stderr) == ('"found"\n', "")


def test_what_is_exported_is_imported_elsewhere(counted, tmp_path):
    file = tmp_path / "states.jsonl"
    shown = multilang("state", "export", WHERE, "-o", file, *options(counted))
    assert file.stat().st_mode & 0o777 == 0o600
    assert shown.returncode == 0, shown.stderr
    elsewhere = conf_of("sqlite", None, tmp_path / "elsewhere")
    assert multilang("state", "import", WHERE, file, *options(elsewhere)).returncode == 0
    found = provider_of(elsewhere)
    assert stored(found, "count", 2) == words_of(200)
    again = multilang("state", "import", WHERE, file, *options(elsewhere))
    assert again.returncode == 2
    assert "--replace" in again.stderr
    with LocalCluster(mode="inprocess", conf=elsewhere) as cluster:
        cluster.submit(topology).wait(timeout=patient(60))
    assert stored(found, "count", 2) == {word: 2 * count for word, count in words_of(200).items()}
    assert multilang("state", "import", WHERE, file, "--replace", *options(elsewhere)).returncode == 0
    assert stored(found, "count", 2) == words_of(200)
    found.close()


def test_a_file_in_another_encoding_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(EXPORTED.encode() + b"\xff\n")
    shown = multilang("state", "import", WHERE, file, *options(conf_of("sqlite", None, tmp_path)))
    assert shown.returncode == 2
    assert f"{file} is not text in UTF-8" in " ".join(shown.stderr.split())


NO_EXPORTS = [
    ("", "not a file of multilang state export"),
    ('{"multilang-state": 9}\n', "not a file of multilang state export"),
    ('{"multilang-state": 1, "tasks": {}, "txid": 3}\n{"namespace": "count-0"}\n', "line 2"),
    ('{"multilang-state": 1, "tasks": {}, "txid": 3}\nnonsense\n', "line 2 is not JSON"),
    ('{"multilang-state": 1, "tasks": {"count": "2"}, "txid": 3}\n', "not a file of multilang state export"),
    ('{"multilang-state": 1, "tasks": {}, "txid": "3"}\n', "not a file of multilang state export"),
    (EXPORTED + '{"namespace": "count-0", "key": {"a": 1}, "value": 1}\n', "line 2 is not a key with its value"),
    (EXPORTED + '{"namespace": 7, "key": "a", "value": 1}\n', "line 2 is not a key with its value"),
    (EXPORTED + '{"namespace": "count-0", "key": "a", "value": null}\n', "line 2 has no value"),
    (EXPORTED + '{"namespace": "count-2", "key": "a", "value": 1}\n', "line 2 has no value, or is of no task"),
]


@pytest.mark.parametrize(("counted", "case"), combined(["sqlite", "redis"], NO_EXPORTS), indirect=["counted"])
def test_a_file_that_is_none_is_refused_and_nothing_changes(counted, tmp_path, case):
    text, says = case
    file = tmp_path / "file"
    file.write_text(text)
    shown = multilang("state", "import", WHERE, file, "--replace", *options(counted))
    assert shown.returncode == 2
    assert says in shown.stderr
    found = provider_of(counted)
    assert stored(found, "count", 2) == words_of(200)
    found.close()


@pytest.mark.parametrize(("counted", "tasks"), combined(["sqlite", "redis"], [1, 3, 5]), indirect=["counted"])
def test_keys_are_divided_among_other_tasks_as_the_fields_grouping_will(counted, tasks):
    parallel = build_with(tasks)
    with (
        LocalCluster(mode="inprocess", conf=counted) as cluster,
        pytest.raises(Exception, match=f"state reshard TOPOLOGY count {tasks}"),
    ):
        cluster.submit(parallel)
    shown = multilang("state", "reshard", WHERE, "count", tasks, *options(counted))
    assert shown.returncode == 0, shown.stderr
    found = provider_of(counted)
    assert stored(found, "count", tasks) == words_of(200)
    with LocalCluster(mode="inprocess", conf=counted) as cluster:
        cluster.submit(parallel).wait(timeout=patient(60))
    # Each word has one task, which counted on from what was stored.
    assert stored(found, "count", tasks) == {word: 2 * count for word, count in words_of(200).items()}
    found.close()


def build_with(tasks):
    parallel = build()
    spec = parallel["count"]
    spec.tasks = spec.parallelism = tasks
    spec.declared = (tasks, None)
    return parallel


def test_a_topology_that_ended_before_anything_was_committed_may_have_other_tasks(durable):
    with LocalCluster(mode="simulated", conf=durable, seed=1) as cluster:
        run = cluster.submit(topology)
        run.run_for(0.0005)
        assert run.counters["count"].acked == 0
    states = StoredStates(topology, durable)
    assert states.reshard("count", 3) == 0
    states.close()
    with LocalCluster(mode="inprocess", conf=durable) as cluster:
        cluster.submit(build_with(3)).wait(timeout=patient(60))
    found = provider_of(durable)
    assert stored(found, "count", 3) == words_of(200)
    found.close()


def by_first_letter(key, value):
    return [key[0]]


def test_keys_that_are_not_the_groupings_are_refused_unless_a_function_tells(counted):
    shown = multilang("state", "reshard", WHERE, "lengths", 2, *options(counted))
    assert shown.returncode == 2
    assert "by fields grouping" in shown.stderr
    states = StoredStates(topology, counted)
    states.reshard("count", 1)  # where every key is with the task that it ought to be with
    for values in ("moon", ["moon", 1]):
        with pytest.raises(StateError, match="no list of as many values"):
            states.reshard("count", 3, lambda key, value, values=values: values)
    assert states.reshard("count", 2) > 0
    with pytest.raises(Exception, match="keys of this state are not what the tuples are grouped by"):
        states.reshard("count", 3, by_first_letter)
    assert states.reshard("count", 2) == 0
    states.close()


def test_what_was_prepared_when_everything_died_is_settled_first(counted):
    for how, expected in (("PREPARING", 0), ("COMMITTING", 5)):
        found = provider_of(counted)
        coordinator = opened(found, "$checkpointspout-0")
        txid = coordinator.get("__state")[0] + 1
        for name in ("count-0", "count-1", "lengths-0"):
            state = opened(found, name)
            if name == "count-0":
                state.put("new", 5)
            state.prepare_commit(txid)
            state.close()
        coordinator.put("__state", [txid, how])
        coordinator.commit()
        coordinator.close()
        found.close()
        states = StoredStates(topology, counted)
        exported = list(states.export())
        assert sum(line.get("key") == "new" for line in exported) == (expected > 0)
        assert states.position() == (txid if expected else txid - 1, "COMMITTED")
        states.close()


def test_a_part_of_what_a_former_component_prepared_is_not_taken(counted, monkeypatch):
    found = provider_of(counted)
    coordinator = opened(found, "$checkpointspout-0")
    state = opened(found, "former-0")
    state.put("old", 1)
    state.prepare_commit(0)
    state.commit(0)
    coordinator.put("__state", [1, "PREPARING"])
    coordinator.commit()
    monkeypatch.setattr(type(found.store), "portion_rows", 1)
    writes = []

    def end_at_the_second(step):
        writes.append(step)
        if writes.count("write") == 2:
            raise KeyboardInterrupt

    state.store.trace = end_at_the_second
    for key in ("new", "newer", "newest"):
        state.put(key, 2)
    with pytest.raises(KeyboardInterrupt):
        state.prepare_commit(1)
    for each in (state, coordinator, found):
        each.close()
    states = StoredStates(topology, counted)
    former = [line["key"] for line in states.export() if line.get("namespace") == "former-0"]
    states.close()
    assert former == ["old"]


def test_mistakes_are_reported(tmp_path):
    nothing = conf_of("sqlite", None, tmp_path / "nothing")
    shown = multilang("state", "ls", WHERE, *options(nothing))
    assert (shown.returncode, "nothing is stored" in shown.stdout) == (0, True)
    assert not Path(nothing["topology.state.provider.config"]["path"]).exists()
    assert "no component 'cuont'" in multilang("state", "get", WHERE, "cuont", "x", *options(nothing)).stderr
    memory = multilang("state", "ls", WHERE, "-c", "topology.state.provider=memory")
    assert memory.returncode == 2
    assert "nothing is stored in memory" in memory.stderr
    assert multilang("state", "reshard", WHERE, "count", 0).returncode == 2


def test_a_sources_position_is_not_resharded(tmp_path):
    conf = conf_of("sqlite", None, tmp_path)
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(exact).wait(timeout=patient(60))
    shown = multilang("state", "reshard", f"{WHERE}:exact", "sentences", 1, *options(conf))
    assert shown.returncode == 2
    assert "'sentences' is a source" in shown.stderr
    with LocalCluster(mode="inprocess", conf=conf) as cluster, pytest.raises(Exception, match="'sentences'") as raised:
        cluster.submit(exact, conf={"topology.max.task.parallelism": 1})
    assert (
        "Only you can divide the positions themselves: give each task one in the file of multilang state export"
        in str(raised.value)
    )
    assert Counter(stored(provider_of(conf), "count", 2)) == words_of(200)


def test_a_file_that_a_topology_uses_is_left_alone(tmp_path, monkeypatch):
    conf = {**conf_of("sqlite", None, tmp_path), "test.sentences": 20}
    with LocalCluster(conf=conf) as cluster:
        run = cluster.submit(topology)
        run.wait(timeout=patient(100))
        shown = multilang("state", "reshard", WHERE, "count", 3, *options(conf))
        assert shown.returncode == 2
        assert "is in use by topology 'stateful'" in shown.stderr
        monkeypatch.setattr(claims, "CLAIM_SECS", 0.0)
        states = StoredStates(topology, conf)
        for what in (lambda: list(states.export()), lambda: states.load(iter([ujson.loads(EXPORTED)]), replace=True)):
            with pytest.raises(StateError, match="is in use by topology 'stateful'"):
                what()
        states.close()
        assert multilang("state", "ls", WHERE, *options(conf)).returncode == 0
    assert multilang("state", "reshard", WHERE, "count", 3, *options(conf)).returncode == 0
