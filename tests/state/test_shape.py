"""A topology that is continued in another shape: what comes of it is right, or it was refused with a sentence."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import uuid
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, LocalCluster, StatefulBasicBolt, TopologyBuilder
from multilang.state import PositionSpout
from multilang.state.admin import COORDINATOR, StoredStates
from multilang.state.names import SHAPE_KEY, STATE_KEY, TASKS_KEY
from multilang.state.positions import open_positions, saved_positions
from multilang.state.providers import provider_of
from multilang.store.errors import StateError
from multilang.store.sqlite import SqliteStore
from tests.cli.command import multilang
from tests.patience import patient
from tests.soak import SOAK
from tests.state.conftest import conf_of

ROWS = 24
HALF = 10


class Letters(PositionSpout):
    """Emits (number, letter); ``test.rows`` of them in all, each task its share. Its position survives it."""

    output_fields = ["number", "letter"]
    save_secs = 0.0

    def __init__(self, letters="abcde", part=1, says=False):
        self.letters = letters
        self.part = part  # of the rows; 2: the half of them
        self.says = says

    def identity(self):
        return self.letters if self.says else None

    def initialize(self, conf, context):
        self.total = conf["test.rows"] // self.part
        self.n, self.step = context.task_index, len(context.tasks(context.component))

    def next_tuple(self):
        if self.n < self.total:
            n, self.n = self.n, self.n + self.step
            self.emit([n, self.letters[n % 5]], tup_id=n)

    def position(self):
        return self.n

    def seek(self, position):
        self.n = position

    def exhausted(self):
        return self.n >= self.total


class Signs(Letters):
    """Another class, which reads the same."""


class Tally(StatefulBasicBolt):
    """Counts each value of a field; what it counted is its state."""

    output_fields = ["number", "letter"]

    def init_state(self, state):
        self.counts = state

    def process(self, tup):
        letter = tup["letter"]
        self.counts.put(letter, self.counts.get(letter, 0) + 1)
        self.emit([tup["number"], letter])


class Ends(Tally):
    """Another class, with its own counts."""

    def process(self, tup):
        self.counts.put("all", self.counts.get("all", 0) + 1)


class Passing(BasicBolt):
    output_fields = ["number", "letter"]

    def process(self, tup):
        self.emit([tup["number"], tup["letter"]])


BASE = {
    "exact": True,
    "source": "letters",
    "sources": 2,
    "between": None,
    "tally": "tally",
    "tallies": 2,
    "fields": ("letter",),
    "ends": True,
    "swapped": False,
    "stateful": True,
    "class": Letters,
    "letters": "abcde",
    "second": False,
    "crossed": False,
    "says": False,
}


def build(shape, conf):
    builder = TopologyBuilder()
    last = shape["source"]
    given = [(shape["letters"], 1, shape["says"]), ("pqrst", 2, shape["says"])]
    if shape["second"]:
        if shape["crossed"]:
            given.reverse()
        builder.set_spout("second", Letters(*given[1]), 2)
    builder.set_spout(last, shape["class"](*given[0]), shape["sources"])
    if shape["between"]:
        builder.set_bolt(shape["between"], Passing, 2).shuffle_grouping(last)
        last = shape["between"]
    first, second = (Ends, Tally) if shape["swapped"] else (Tally, Ends)
    if not shape["stateful"]:
        first = Passing
    bolt = builder.set_bolt(shape["tally"], first, shape["tallies"])
    if shape["fields"]:
        bolt.fields_grouping(last, *shape["fields"])
    else:
        bolt.shuffle_grouping(last)
    if shape["second"]:
        bolt.fields_grouping("second", "letter")
    if shape["ends"]:
        builder.set_bolt("ends", second).global_grouping(shape["tally"] if not shape["swapped"] else last)
    alignment = "exact" if shape["exact"] else "at-least-once"
    return builder.build("shaped", conf={**conf, "multilang.state.alignment": alignment})


def run(shape, conf, rows):
    """Run the topology until all rows are counted. Raises what refuses it."""
    with LocalCluster(mode="inprocess") as cluster:
        cluster.submit(build(shape, {**conf, "test.rows": rows})).wait(timeout=patient(60))


def counted(conf):
    """Everything that any task of any component has counted, and how often."""
    provider = provider_of(conf)
    total: Counter[str] = Counter()
    try:
        for name in provider.namespaces():
            if name != COORDINATOR:
                state = provider.new_state(name)
                kept = [(key, value) for key, value in state.items() if key in [*"abcdepqrstvwxyz", "all"]]
                state.close()
                total.update(dict(kept))
    finally:
        provider.close()
    return total


def places(conf, shape):
    """The tasks in which each letter is counted."""
    provider = provider_of(conf)
    found: dict[str, set[str]] = {}
    try:
        for name in provider.namespaces():
            if name.rpartition("-")[0] == shape["tally"]:
                state = provider.new_state(name)
                for key, _ in state:
                    found.setdefault(key, set()).add(name)
                state.close()
    finally:
        provider.close()
    return found


LETTERS = Counter("abcde"[n % 5] for n in range(ROWS))


def correct(conf, before, after):
    """Return whether all rows are counted once, each letter in one task. Only what both shapes count is looked at."""
    found = counted(conf)
    if before["letters"] != after["letters"]:
        return False
    expected = Counter(after["letters"][n % 5] for n in range(ROWS))
    if after["second"]:
        expected += Counter("pqrst"[n % 5] for n in range(ROWS // 2))
    if after["swapped"] or before["swapped"]:
        return found == {**expected, "all": ROWS} and before["swapped"] == after["swapped"]
    if {letter: count for letter, count in found.items() if letter != "all"} != expected:
        return False
    if before["ends"] and after["ends"] and found["all"] != expected.total():
        return False
    return not after["fields"] or all(len(tasks) == 1 for tasks in places(conf, after).values())


def continued(before, after, conf):
    """Run half under one shape and the rest under the other. Return the sentence that refused it, or None."""
    run(before, conf, HALF)
    try:
        run(after, conf, ROWS)
    except Exception as problem:  # noqa: BLE001 - whatever class the engine puts around it
        return str(problem)
    return None


def local(tmp, kind="sqlite"):
    base = tmp / uuid.uuid4().hex
    base.mkdir()
    return {
        **conf_of(kind, None, base),
        "topology.name": "shaped",
        "multilang.positions": str(base / "positions.sqlite"),
    }


SHAPES = st.fixed_dictionaries(
    {
        "exact": st.booleans(),
        "source": st.sampled_from(["letters", "lines"]),
        "sources": st.integers(1, 3),
        "between": st.sampled_from([None, "between", "passing"]),
        "tally": st.sampled_from(["tally", "count"]),
        "tallies": st.integers(1, 3),
        "fields": st.sampled_from([("letter",), ("letter", "number")]),
        "ends": st.booleans(),
        "swapped": st.just(False),
        "stateful": st.just(True),
        "class": st.sampled_from([Letters, Signs]),
        "letters": st.sampled_from(["abcde", "vwxyz"]),
        "second": st.booleans(),
        "crossed": st.booleans(),
        "says": st.booleans(),
    }
)


@settings(max_examples=500 if SOAK else 12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=SHAPES, changed=st.sets(st.sampled_from(sorted(BASE)), min_size=0, max_size=2), to=SHAPES)
def test_another_shape_gives_the_uninterrupted_result_or_is_reported(tmp_path, caplog, before, changed, to):
    caplog.clear()
    before = {**before, "fields": ("letter",)}  # a number beside the letter gives each letter several tasks
    after = {**before, **{key: to[key] for key in changed}}
    conf = local(tmp_path)
    refused = continued(before, after, conf)
    if refused is None:
        told = f"of {after['source']!r} was " in caplog.text and "If" in caplog.text
        assert told or correct(conf, before, after), (before, after, counted(conf))
        if told:  # where nobody can know
            assert (
                before["letters"] != after["letters"]
                or before["class"] != after["class"]
                or before["says"] != after["says"]
                or before["crossed"]
                or after["crossed"]
            )
            assert not (before["says"] and after["says"]) or before["class"] != after["class"]
    else:
        assert before != after
        assert "multilang state" in refused or "Build it with" in refused, refused


# The change, and words of the sentence that refuses it.
HARMFUL = {
    "exact to at least once": ({"exact": False}, "with the positions of 'letters'"),
    "at least once to exact": ({"exact": True}, "without the positions of the sources"),
    "source renamed": ({"source": "lines"}, "state rename TOPOLOGY letters"),
    "bolt renamed": ({"tally": "count"}, "state rename TOPOLOGY tally"),
    "bolt removed": ({"ends": False}, "state rm TOPOLOGY ends"),
    "no longer stateful": ({"stateful": False}, "stores none in this topology"),
    "other tasks": ({"tallies": 3}, "state reshard TOPOLOGY tally 3"),
    "other sources": ({"sources": 1}, "Only you can divide"),
    "other fields": ({"fields": ("number",)}, "by fields \\(letter\\) grouping"),
    "no fields": ({"fields": ()}, "by fields \\(letter\\) grouping"),
    "sources crossed": ({"crossed": True}, "'letters' has what 'second' had|'second' has what 'letters' had"),
    "another source": ({"letters": "vwxyz"}, "'letters' is one in \"abcde\", and 'letters' reads \"vwxyz\" now"),
    "classes swapped": ({"swapped": True}, "'tally' is that of Tally, and 'tally' is Ends now"),
}


class Other(Tally):
    """A class that the first topology does not have."""


def test_a_component_is_not_renamed_behind_another_that_takes_its_name(tmp_path):
    conf = local(tmp_path)
    run({**BASE, "ends": False}, conf, HALF)
    half = counted(conf)
    builder = TopologyBuilder()
    builder.set_spout("letters", Letters, 2)
    builder.set_bolt("words", Tally, 2).fields_grouping("letters", "letter")
    builder.set_bolt("tally", Other, 2).fields_grouping("words", "letter")
    after = builder.build("shaped", conf={**conf, "multilang.state.alignment": "exact", "test.rows": ROWS})
    with (
        LocalCluster(mode="inprocess") as cluster,
        pytest.raises(Exception, match="'tally' is that of Tally, and 'tally' is Other now, and 'words' is Tally"),
    ):
        cluster.submit(after).wait(timeout=patient(60))
    assert counted(conf) == half


def written_by(change):
    if "exact" in change:
        return {**BASE, "exact": not change["exact"]}
    return {**BASE, "second": "crossed" in change, "says": "letters" in change}


@pytest.mark.parametrize("name", HARMFUL)
def test_each_difference_that_would_double_or_lose_is_refused(tmp_path, name):
    change, words = HARMFUL[name]
    before = written_by(change)
    conf = local(tmp_path)
    run(before, conf, HALF)
    half = counted(conf)
    with pytest.raises(Exception, match=words):
        run({**before, **change}, conf, ROWS)
    assert counted(conf) == half
    run(before, conf, ROWS)  # the refusal changed nothing
    assert correct(conf, before, before)


@pytest.mark.parametrize("name", ["sources crossed", "another source"])
def test_positions_of_another_source_are_refused_until_somebody_says_so(tmp_path, name):
    change, words = HARMFUL[name]
    before = {**written_by(change), "exact": False}
    after = {**before, **change}
    conf = local(tmp_path)
    run(before, conf, HALF)
    for _ in range(2):
        with pytest.raises(Exception, match=words):
            run(after, conf, ROWS)
    with closing(StoredStates(build(after, conf), conf)) as states:
        assert "although it is declared in another way" in states.accept()[0]
        assert states.accept() == []
    run(after, conf, ROWS)


def test_a_new_source_does_not_take_the_place_of_an_older_one(tmp_path):
    conf = local(tmp_path)
    before = {**BASE, "letters": "pqrst"}
    run({**before, "crossed": True}, conf, HALF)
    builder = TopologyBuilder()
    builder.set_spout("letters", Letters("vwxyz"), 2)
    builder.set_spout("formerly", Letters("pqrst"), 2)
    bolt = builder.set_bolt("tally", Tally, 2)
    bolt.fields_grouping("letters", "letter").fields_grouping("formerly", "letter")
    builder.set_bolt("ends", Ends).global_grouping("tally")
    topology = builder.build("shaped", conf={**conf, "multilang.state.alignment": "exact", "test.rows": ROWS})
    with (
        LocalCluster(mode="inprocess") as cluster,
        pytest.raises(Exception, match="'formerly', which is new, has what 'letters' had when"),
    ):
        cluster.submit(topology).wait(timeout=patient(60))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"class": Signs}, "'letters' was written by Letters, and 'letters' is Signs now"),
        (
            {"letters": "vwxyz"},
            r"was stored when Letters had other arguments \(letters\).*state rm TOPOLOGY letters.*identity\(\)",
        ),
    ],
)
def test_a_source_that_may_be_another_is_reported_once_and_goes_on(tmp_path, caplog, exact, change, words):
    before = {**BASE, "exact": exact, "sources": 1}
    conf = local(tmp_path)
    assert continued(before, {**before, **change}, conf) is None
    assert len(re.findall(words, caplog.text)) == 1
    caplog.clear()
    run({**before, **change}, conf, ROWS)
    assert not re.search(words, caplog.text)


@pytest.mark.parametrize("kind", ["redis", "files"])
@pytest.mark.parametrize("name", ["exact to at least once", "source renamed", "other tasks"])
def test_every_provider_refuses_alike(tmp_path, request, kind, name):
    change, words = HARMFUL[name]
    before = written_by(change)
    conf = {**conf_of(kind, request, tmp_path), "topology.name": "shaped"}
    run(before, conf, HALF)
    with pytest.raises(Exception, match=words):
        run({**before, **change}, conf, ROWS)
    run(before, conf, ROWS)
    assert correct(conf, before, before)


@pytest.mark.parametrize("change", [{"between": "between"}, {"tally": "tally", "between": "passing"}])
def test_a_difference_that_does_no_harm_passes(tmp_path, change):
    conf = local(tmp_path)
    before = {**BASE, "between": "former"} if change["between"] == "passing" else {**BASE, "ends": False}
    after = {**before, **change, "ends": True}
    assert continued(before, after, conf) is None
    assert correct(conf, {**before, "ends": False}, after)


# What is told by the namespaces and the numbers of tasks alone, where the shape is gone.
TOLD = ["exact to at least once", "source renamed", "bolt renamed", "other tasks", "other sources"]


@pytest.mark.parametrize("name", TOLD)
def test_states_without_their_shape_are_compared_as_far_as_they_tell(tmp_path, name):
    change, _ = HARMFUL[name]
    before = written_by(change)
    conf = local(tmp_path)
    run(before, conf, HALF)
    provider = provider_of(conf)
    coordinator = provider.new_state(COORDINATOR)
    coordinator.claim(provider.claim())
    coordinator.delete(SHAPE_KEY)
    coordinator.commit()
    coordinator.close()
    provider.close()
    with pytest.raises(Exception, match=r"multilang state"):
        run({**before, **change}, conf, ROWS)
    run(before, conf, ROWS)
    assert correct(conf, before, before)


@pytest.mark.parametrize(
    "name", ["exact to at least once", "at least once to exact", "source renamed", "sources crossed"]
)
def test_without_the_comparison_it_is_silently_wrong(tmp_path, name, monkeypatch):
    change, _ = HARMFUL[name]
    before = written_by(change)
    monkeypatch.setattr("multilang.state.shape.differences", lambda *_: [])
    conf = local(tmp_path)
    assert continued(before, {**before, **change}, conf) is None
    assert not correct(conf, before, {**before, **change})


def test_what_was_renamed_continues_behind_state_rename(tmp_path):
    conf = local(tmp_path)
    run(BASE, conf, HALF)
    after = {**BASE, "source": "lines", "tally": "count"}
    states = StoredStates(build(after, conf), conf)
    with pytest.raises(StateError, match=r"nothing of 'nothing' is stored.* there is 'ends', 'letters', 'tally'"):
        states.rename("nothing", "count")
    with pytest.raises(StateError, match="'ends' is a component of"):
        states.rename("ends", "count")
    assert states.rename("letters", "lines") == 2
    assert states.rename("tally", "count") == 2
    states.close()
    run(after, conf, ROWS)
    assert correct(conf, BASE, after)


@pytest.mark.parametrize("way", ["as before", "rm", "export"])
def test_another_number_of_sources_goes_on_by_what_the_error_says(tmp_path, way):
    conf = local(tmp_path)
    run(BASE, conf, HALF)
    after = {**BASE, "sources": 1}
    with pytest.raises(
        Exception, match=r"'letters' are those of 2 tasks, and it has 1 now.*give it 2, as before"
    ) as raised:
        run(after, conf, ROWS)
    assert "reshard" not in str(raised.value)
    with closing(StoredStates(build(after, conf), conf)) as states:
        if way == "rm":
            states.remove("letters")
        elif way == "export":
            header, *lines = states.export()
            header["tasks"]["letters"] = 1
            kept = [line for line in lines if line["namespace"] != "letters-1"]
            (position,) = (line for line in kept if line["namespace"] == "letters-0")
            assert position["value"] == HALF  # so that the only task goes on behind what both had read
            states.load(iter([header, *kept]), replace=True)
    run(BASE if way == "as before" else after, conf, ROWS)
    again = HALF if way == "rm" else 0
    assert sum(counted(conf).values()) == 2 * (ROWS + again)


def test_what_was_removed_is_removed_by_state_rm(tmp_path):
    conf = local(tmp_path)
    run(BASE, conf, HALF)
    after = {**BASE, "ends": False}
    states = StoredStates(build(after, conf), conf)
    assert states.remove("ends") == 1
    states.close()
    run(after, conf, ROWS)
    assert counted(conf) == LETTERS


@pytest.mark.parametrize("name", ["exact to at least once", "at least once to exact", "no fields"])
def test_what_is_meant_is_accepted(tmp_path, name):
    change, words = HARMFUL[name]
    before = written_by(change)
    after = {**before, **change}
    conf = local(tmp_path)
    run(before, conf, HALF)
    states = StoredStates(build(after, conf), conf)
    (text,) = states.accept()
    assert words.replace("\\", "") in text
    assert states.accept() == []
    states.close()
    run(after, conf, ROWS)
    again = 0 if name == "no fields" else HALF  # the sources began at the beginning
    assert sum(counted(conf).values()) == 2 * (ROWS + again)


def test_a_rename_in_the_middle_of_a_checkpoint_completes_it_first(tmp_path):
    conf = local(tmp_path)
    run(BASE, conf, HALF)
    provider = provider_of(conf)
    epoch = provider.claim()
    coordinator = provider.new_state(COORDINATOR)
    coordinator.claim(epoch)
    txid = coordinator.get(STATE_KEY)[0] + 1
    for id, tasks in coordinator.get(TASKS_KEY).items():
        for index in range(tasks):
            state = provider.new_state(f"{id}-{index}")
            state.claim(epoch)
            if (id, index) == ("tally", 0):
                state.put("z", 7)
            state.prepare_commit(txid)
            state.close()
    coordinator.put(STATE_KEY, [txid, "COMMITTING"])
    coordinator.commit()
    coordinator.close()
    provider.close()
    states = StoredStates(build({**BASE, "tally": "count"}, conf), conf)
    states.rename("tally", "count")
    assert states.get("count", "z") == 7
    states.close()


def plain(spout="letters", tasks=1, conf=None, own=None):
    builder = TopologyBuilder()
    builder.set_spout(spout, type("Letters", (Letters,), {"component_conf": own or {}}), tasks)
    builder.set_bolt("passing", Passing).shuffle_grouping(spout)
    return builder.build("plain", conf=conf)


def read(topology):
    with LocalCluster(mode="inprocess") as cluster:
        run = cluster.submit(topology, capture=["passing"])
        run.wait(timeout=patient(60))
        return len(run.captured("passing"))


@pytest.fixture(params=["sqlite", "redis"])
def positions(request, tmp_path):
    place = str(tmp_path / "positions.sqlite")
    if request.param == "redis":
        server = request.getfixturevalue("redis")
        place = f"redis://127.0.0.1:{server.port}/0"
    # One row: of four tasks, one has something to save.
    return {"topology.name": "plain", "multilang.parent": "local", "multilang.positions": place, "test.rows": 4}


@pytest.mark.parametrize(("before", "after"), [(4, 1), (1, 4), (2, 3)])
def test_another_number_of_tasks_is_refused_whichever_had_saved_something(positions, before, after):
    assert read(plain(tasks=before, conf=positions)) == 4
    if before > 1:  # the first task's share was empty
        first = open_positions(positions, "letters/0")
        first.claim()
        first.remove()
        first.close()
        assert "letters/0" not in saved_positions(positions)
    with pytest.raises(Exception, match=rf"one of {before} tasks, and spout 'letters' has {after} now"):
        read(plain(tasks=after, conf=positions))


@pytest.mark.parametrize("whose", ["topology", "spout"])
def test_a_spout_that_was_renamed_is_refused_and_continues_behind_state_rename(positions, whose, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path / "home"))
    own = {} if whose == "topology" else {"multilang.positions": positions.pop("multilang.positions")}
    assert read(plain(tasks=2, conf=positions, own=own)) == 4
    renamed = plain("lines", 2, positions, own)
    with pytest.raises(Exception, match=r"there is a position of 'letters'.*state rename TOPOLOGY letters NEW"):
        read(renamed)
    with closing(StoredStates(renamed, positions)) as states:
        assert states.rename("letters", "lines") == 2
    assert read(renamed) == 0
    with closing(StoredStates(renamed, positions)) as states:
        assert states.remove("lines") == 2
    assert read(renamed) == 4


def test_two_topologies_in_one_place_keep_their_positions_apart(positions):
    assert read(plain(conf=positions)) == 4
    other = plain("lines", conf=positions).with_conf({}, name="other")
    assert read(other) == 4
    assert read(other) == 0


def test_the_commands_rename_remove_and_accept(tmp_path):
    conf = local(tmp_path)
    where = "tests.state.test_shape:renamed"
    options = [f"-c{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in conf.items()]
    run(BASE, conf, HALF)
    for words in (
        ("rename", where, "letters", "lines"),
        ("rename", where, "tally", "count"),
        ("rm", where, "ends"),
        ("accept", where),
    ):
        shown = multilang("state", *words, *options)
        assert shown.returncode == 0, shown.stderr
    run(RENAMED, conf, ROWS)
    assert counted(conf) == LETTERS


RENAMED = {**BASE, "source": "lines", "tally": "count", "ends": False, "fields": ()}
renamed = build(RENAMED, {})


def command_and_die(words, conf, kill_at):
    """Do a command, and be killed behind this write."""
    write, numbers = SqliteStore.compare_and_write, count(1)

    def killed(store, *arguments):
        done = write(store, *arguments)
        if next(numbers) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    SqliteStore.compare_and_write = killed
    name, *arguments = words
    with closing(StoredStates(build({**MOVED, "exact": conf["test.exact"]}, conf), conf)) as states:
        getattr(states, name)(*arguments)


MOVED = {**BASE, "source": "lines", "tally": "count", "ends": False, "fields": ()}
COMMANDS = [("rename", "letters", "lines"), ("rename", "tally", "count"), ("remove", "ends"), ("accept",)]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_commands_that_are_killed_at_any_write_are_repeated(tmp_path, seed, exact):
    rng = random.Random(f"{seed} {exact}")
    conf = {**local(tmp_path), "test.exact": exact}
    before = {**BASE, "exact": exact}
    run(before, conf, HALF)
    killed = 0
    for words in COMMANDS:
        kill_at = rng.randint(1, 6)
        code = f"from tests.state.test_shape import command_and_die; command_and_die({words!r}, {conf!r}, {kill_at})"
        ended = subprocess.run(
            [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True
        )
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        killed += ended.returncode != 0
        said = ""
        if ended.returncode:
            with closing(StoredStates(build({**MOVED, "exact": exact}, conf), conf)) as states:
                try:
                    getattr(states, words[0])(*words[1:])
                except StateError as problem:
                    said = str(problem)
        assert not said or "nothing of" in said  # it was done, and only the place was left to be released
    assert killed
    run({**MOVED, "exact": exact}, conf, ROWS)
    assert counted(conf) == LETTERS
