"""The examples give the right answers, in every mode that they can run in."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from glob import glob
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from multilang.loading.modules import load_module
from multilang.state import state_file
from multilang.topology import load_topology
from multilang.transactional import SqliteBacking, TransactionalMap
from tests.cli.command import multilang
from tests.patience import patient
from tests.soak import SOAK, chosen

EXAMPLES = Path(__file__).parents[2] / "examples"
MODES = ["process", "inprocess", "simulated"]

everywhere = pytest.mark.parametrize("mode", chosen(MODES, "process", "inprocess"))


def greatest(run, component, key, value):
    """The last value of each key that a component emitted."""
    return {tup[key]: tup[value] for tup in run.captured(component)}


@everywhere
def test_word_count_counts_each_word_of_the_documentation_once(run_topology, mode):
    topology = load_topology(f"{EXAMPLES}/word_count.py")
    run = run_topology(topology, mode, capture=["count"], timeout=patient(150))
    words = Counter(word.strip(".,:;!?\"'`()[]{}<>*=-_|") for text in topics.values() for word in text.lower().split())
    del words[""]
    assert greatest(run, "count", "word", "count") == words
    lines = sum(bool(line.strip()) for text in topics.values() for line in text.splitlines())
    assert run.counters["sentences"].acked == lines


@pytest.mark.parametrize("mode", chosen(MODES, "inprocess"))
def test_word_count_written_as_streams_gives_the_same(run_topology, mode):
    topology = load_topology(f"{EXAMPLES}/stream_words.py")
    run = run_topology(topology, mode, capture=["count"], timeout=patient(150))
    words = Counter(word.strip(".,:;!?\"'`()[]{}<>*=-_|") for text in topics.values() for word in text.lower().split())
    del words[""]
    assert greatest(run, "count", "key", "value") == words


@everywhere
def test_word_count_shares_the_lines_among_the_spouts_tasks(run_topology, mode, tmp_path):
    (tmp_path / "text").write_text("".join(f"line{number} word\n" for number in range(101)))
    topology = load_topology(f"{EXAMPLES}/word_count.py")
    conf = {"multilang.input.files": [str(tmp_path / "text")], "topology.tasks": 3}
    run = run_topology(topology, mode, conf=conf, capture=["count"])
    counts = greatest(run, "count", "word", "count")
    assert counts.pop("word") == 101
    assert set(counts.values()) == {1}
    assert len(counts) == 101


@everywhere
def test_join_pays_every_order_once(run_topology, mode):
    run = run_topology(
        load_topology(f"{EXAMPLES}/join_orders.py"), mode, capture=["join", "turnover"], timeout=patient(150)
    )
    joined = [tup.values for tup in run.captured("join")]
    assert sorted(joined) == [[n, f"customer-{n % 97}", 100 + n * 37 % 9900] for n in range(1, 2001)]
    assert sum(greatest(run, "turnover", "customer", "cents").values()) == sum(cents for _, _, cents in joined)
    assert run.counters["orders"].acked == run.counters["payments"].acked == 2000


@everywhere
def test_direct_grouping_evens_out_the_characters_not_the_number_of_texts(run_topology, mode):
    run = run_topology(load_topology(f"{EXAMPLES}/direct_balance.py"), mode, capture=["measure"], timeout=patient(150))
    characters = greatest(run, "measure", "task", "characters")
    assert sum(characters.values()) == sum(map(len, topics.values()))
    assert len(characters) == 3
    longest = max(map(len, topics.values()))
    assert max(characters.values()) - min(characters.values()) <= longest


@pytest.mark.parametrize("mode", ["process", "simulated"] if SOAK else ["process"])
def test_rolling_counts_add_up_and_fall_again(run_topology, mode):
    topology = load_topology(f"{EXAMPLES}/rolling_top_words.py")
    run = run_topology(topology, mode, capture=["count", "rank"], timeout=patient(150))
    words = [word for word in " ".join(topics[topic] for topic in sorted(topics)).lower().split() if word.isalpha()]
    assert run.counters["words"].acked == len(words)
    highest = Counter()
    for tup in run.captured("count"):
        highest[tup["word"]] = max(highest[tup["word"]], tup["count"])
    assert set(highest) == set(words)
    assert all(highest[word] <= count for word, count in Counter(words).items())
    assert {tup["rank"] for tup in run.captured("rank")} == set(range(1, 11))


@pytest.mark.skipif(shutil.which("node") is None and "CI" not in os.environ, reason="node is not on the PATH")
def test_a_bolt_in_node_splits_as_well_as_one_in_python(run_topology):
    topology = load_topology(f"{EXAMPLES}/node_split.py")
    run = run_topology(topology, "process", capture=["count"], timeout=patient(150))
    counts = greatest(run, "count", "word", "count")
    assert counts["better"] == 80
    assert counts["aren't"] == 10
    assert run.counters["zen"].acked == 190


@everywhere
@pytest.mark.parametrize("promise", ["topology", "exactly_once"])
def test_stateful_word_count_goes_on_where_the_run_before_ended(run_topology, mode, promise, tmp_path):
    (tmp_path / "text").write_text("the cow jumped over the moon\n" * 100)
    topology = load_topology(f"{EXAMPLES}/stateful_word_count.py:{promise}")
    conf = {
        "multilang.input.files": [str(tmp_path / "text")],
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
    }
    run = run_topology(topology, mode, conf=conf, capture=["count"], timeout=patient(150))
    assert greatest(run, "count", "word", "count") == {"the": 200, "cow": 100, "jumped": 100, "over": 100, "moon": 100}
    run.kill()
    again = run_topology(topology, mode, conf=conf, capture=["count"], timeout=patient(150))
    if promise == "exactly_once":
        assert again.captured("count") == []  # all lines are counted already
    else:
        assert greatest(again, "count", "word", "count")["the"] == 400


@pytest.mark.parametrize("mode", chosen(["process", "inprocess"], "inprocess"))
@pytest.mark.parametrize("name", ["global_count", "transactional_words", "bank_transfers"])
def test_transactional_examples_count_once_and_go_on_where_the_run_before_ended(name, mode, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))

    def run(**conf):
        entries = [word for key, value in conf.items() for word in ("-c", f"{key.replace('_', '.')}={value}")]
        shown = multilang("run", f"{EXAMPLES}/{name}.py", "--mode", mode, "--json", *entries)
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)["components"]

    def stored(id, name):
        backing = SqliteBacking(state_file(id), name)
        rows = backing.store.list(f"map/{name}", "values")
        keys = [json.loads(key) for key, _ in rows if not key.startswith(b"$")]
        found = TransactionalMap(backing).multi_get(keys)
        backing.close()
        return found

    if name == "global_count":
        run()
        assert stored("global-count", "counts") == {"words": 19}
        assert run()["sum"]["emitted"] == 0
        assert stored("global-count", "counts") == {"words": 19}
    elif name == "transactional_words":
        run()
        text = load_module(f"{EXAMPLES}/transactional_words.py").SENTENCES
        words = Counter(word for sentence in text for word in 4 * sentence.split())
        assert stored("transactional-words", "counts") == words
        buckets = stored("transactional-words", "buckets")
        assert {bucket: count for bucket, count in buckets.items() if count} == Counter(n // 10 for n in words.values())
    else:
        for transfers in (500, 1500):
            run(bank_transfers=transfers)
            transfer = load_module(f"{EXAMPLES}/bank_transfers.py").transfer
            balances = Counter({f"account-{number:02}": 1000 for number in range(20)})
            for number in range(transfers):
                payer, payee, amount = transfer(number)
                balances[payer] -= amount
                balances[payee] += amount
            assert stored("bank", "balances") == balances
            assert balances.total() == 20_000


def test_imports_are_counted_into_files_in_both_styles(run_topology, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPORTS_FOLDER", str(tmp_path))
    example = load_module(f"{EXAMPLES}/imports_to_files.py")
    lines = [line for name in glob(example.SOURCES) for line in Path(name).read_text(errors="replace").splitlines()]
    wanted = Counter(module for line in lines for module in example.imported(line))
    assert wanted["os"] > 3
    for topology, sink in ((example.topology, "saved"), (example.by_hand, "saved-by-hand")):
        run_topology(topology, "inprocess", timeout=patient(150))
        counts: Counter[str] = Counter()
        for file in tmp_path.glob(f"{sink}-0*.jsonl"):
            for row in map(json.loads, file.read_text().splitlines()):
                counts[row["module"]] = max(row["count"], counts[row["module"]])
        assert counts == wanted
