"""The SQLite file: what is damaged is refused and left as it is, and tasks that write at once wait for each other."""

from __future__ import annotations

import gc
import os
import random
import resource
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from multilang.state.sqlite import FILE, SqliteStore

from multilang import BasicBolt
from multilang.component.report import describe
from multilang.local import LocalCluster, LocalClusterError, TaskStartError
from multilang.state import SqliteStateProvider, StateError, StoreGoneError, sqlite_file
from tests.patience import patient
from tests.state.conftest import opened
from tests.state.topologies import topology


def provider(path: Path) -> SqliteStateProvider:
    return SqliteStateProvider({"path": str(path)}, {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some pages, with nothing beside it but the number of its last commit."""
    path = tmp_path / "state.sqlite"
    found = provider(path)
    state = opened(found, "count-0")
    for n in range(5000):
        state.put(f"key {n}", "x" * 40)
    state.prepare_commit(1)
    state.commit(1)
    state.close()
    found.close()
    with sqlite3.connect(path) as connection:
        connection.execute("VACUUM")  # no free pages, in which nothing could be damaged
    connection.close()
    assert {each.name for each in tmp_path.iterdir()} == {"state.sqlite", "state.sqlite.commits"}
    return path


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", ["cut", "overwritten", "zeroed", "not a database"])
def test_a_torn_file_is_refused_and_left_as_it_is(path, how, seed):
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[chance.randrange(100, len(data) - 4096) :]
    elif how == "overwritten":
        page = chance.randrange(1, len(data) // 4096) * 4096
        data[page : page + 4096] = chance.randbytes(4096)
    elif how == "zeroed":
        page = chance.randrange(1, len(data) // 4096) * 4096
        data[page : page + 4096] = bytes(4096)
    else:
        data[:16] = b"not a database.."
    path.write_bytes(data)
    with pytest.raises(StateError, match=r"state\.sqlite is damaged .*put back a copy"):
        opened(provider(path), "count-0")
    assert path.read_bytes() == data


def test_a_torn_file_is_told_before_any_task_is_started(path):
    path.write_bytes(path.read_bytes()[:-5000])
    conf = {"topology.state.provider": "sqlite", "topology.state.provider.config": {"path": str(path)}}
    with LocalCluster(conf=conf) as cluster, pytest.raises(TaskStartError, match="is damaged"):
        cluster.submit(topology)


def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE data (key, value)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StateError, match="no state file"):
        opened(provider(path), "count-0")
    assert path.read_bytes() == before


def test_a_file_of_a_later_version_is_refused(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(StateError, match="layout 7"):
        opened(provider(path), "count-0")


def test_a_folder_in_the_files_place_is_named(tmp_path):
    with pytest.raises(
        StateError, match=r"unable to open.*a file that can be written.*topology\.state\.provider\.config"
    ):
        opened(provider(tmp_path), "count-0")


WRITER = """
import sys
from multilang.state import SqliteStateProvider
state = SqliteStateProvider({"path": sys.argv[1]}, {}).new_state(sys.argv[2])
state.claim(1)
for txid in range(40):
    state.put("n", txid)
    state.prepare_commit(txid)
    state.commit(txid)
"""


@pytest.mark.parametrize("times", range(3))
def test_tasks_that_start_and_write_at_once_wait_for_each_other(tmp_path, times):
    path = tmp_path / "deep" / "er" / "state.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"count-{index}"], stderr=subprocess.PIPE)
        for index in range(4)
    ]
    assert [(writer.communicate(timeout=patient(120))[1], writer.returncode) for writer in writers] == [(b"", 0)] * 4
    found = provider(path)
    assert [found.txids(name) for name in found.namespaces()] == [(39, 39)] * 4


def test_a_file_that_another_task_makes_meanwhile_is_one_of_state(tmp_path, monkeypatch):
    """Its header has two numbers, and is asked for one after the other."""
    path = tmp_path / "state.sqlite"
    header = sqlite_file._header
    others: list[threading.Thread] = []

    class Between:
        """A connection; after its first question another task makes the file, as far as it can."""

        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement):
            found = self.connection.execute(statement).fetchall()
            if not others:
                others.append(threading.Thread(target=lambda: opened(provider(path), "count-1").close()))
                others[0].start()
                others[0].join(0.5)
            return self.connection.execute("SELECT ?", found[0])

    def slow_header(connection):
        return header(connection if others else Between(connection))

    monkeypatch.setattr(sqlite_file, "_header", slow_header)
    state = opened(provider(path), "count-0")
    others[0].join(60)
    state.put("moon", 1)
    state.commit()
    state.close()


def test_a_folder_that_can_not_be_made_is_told_with_the_setting(tmp_path):
    (tmp_path / "file").write_text("")
    own = provider(tmp_path / "file" / "state.sqlite")
    for use in (own.claim, lambda: opened(own, "count-0")):
        with pytest.raises(StateError, match=r"can't be made.*topology\.state\.provider\.config"):
            use()


def test_a_file_of_the_version_before_is_gone_on_with(tmp_path):
    path = tmp_path / "state.sqlite"
    with sqlite3.connect(path) as connection:
        for statement in (
            "CREATE TABLE txids (namespace TEXT PRIMARY KEY, committed INTEGER, prepared INTEGER) WITHOUT ROWID",
            "CREATE TABLE data (namespace TEXT, key BLOB, value BLOB NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID",
            "CREATE TABLE prepared (namespace TEXT, key BLOB, value BLOB, PRIMARY KEY (namespace, key)) WITHOUT ROWID",
            "INSERT INTO txids VALUES ('count-0', 4, 5)",
            "INSERT INTO data VALUES ('count-0', CAST('\"moon\"' AS BLOB), CAST('1' AS BLOB))",
            "INSERT INTO prepared VALUES ('count-0', CAST('\"sun\"' AS BLOB), CAST('2' AS BLOB))",
            f"PRAGMA application_id = {0x4D4C5354}",
            "PRAGMA user_version = 1",
        ):
            connection.execute(statement)
    connection.close()
    found = provider(path)
    state = opened(found, "count-0")
    assert found.txids("count-0") == (4, 5)
    assert dict(state) == {"moon": 1, "sun": 2}
    state.commit(5)
    assert found.txids("count-0") == (5, 5)
    state.close()
    found.close()


def renamed(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


FILES = {"file": "", "log": "-wal", "log's index": "-shm"}
CHANGES = {
    **{f"{name} deleted": lambda path, end=end: Path(f"{path}{end}").unlink() for name, end in FILES.items()},
    **{f"{name} replaced": lambda path, end=end: replaced(Path(f"{path}{end}")) for name, end in FILES.items()},
    "renamed, with a link in its place": renamed,
}


def replaced(path):
    copy = path.read_bytes()
    path.unlink()
    path.write_bytes(copy)


@pytest.mark.parametrize("through_link", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_changed_under_its_users_is_noticed_at_the_next_commit(path, tmp_path, change, through_link):
    given = path
    if through_link:
        given = tmp_path / "link" / "state.sqlite"
        given.parent.mkdir()
        given.symlink_to(path)
    found = provider(given)
    state = opened(found, "count-0")
    state.put("moon", 1)
    CHANGES[change](path)
    with pytest.raises(
        StoreGoneError, match=r"state\.sqlite(-wal|-shm|) was deleted, renamed, emptied or replaced while"
    ):
        state.prepare_commit(2)
    state.close()
    found.close()


@pytest.mark.parametrize("left", [b"", b"not a database " * 5000])
@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_file_that_is_emptied_or_overwritten_ends_its_topology(mode, left, tmp_path):
    path = tmp_path / "state.sqlite"
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(path)},
        "topology.state.checkpoint.interval.ms": 50,
        "topology.max.spout.pending": 100,
        "test.sentences": 10**9,
    }
    with LocalCluster(mode, conf=conf) as cluster:
        run = cluster.submit(topology)
        run.wait(lambda run: run.counters["sentences"].acked > 100, timeout=patient(60))
        path.write_bytes(left)
        with pytest.raises(
            LocalClusterError, match=r"state\.sqlite (is damaged|was deleted, renamed, emptied or replaced)"
        ):
            run.wait(lambda run: False, timeout=patient(120))


def test_a_value_that_sqlite_does_not_take_is_refused_where_it_is_put(path, monkeypatch):
    monkeypatch.setattr(SqliteStore, "largest", 100_000)
    found = provider(path)
    state = opened(found, "count-0")
    for value in ("x" * 100_000, {"deep": "é" * 60_000}):
        with pytest.raises(ValueError, match=r"value of 'large' in the state of 'count-0' has [\d,]+ bytes.*100,000"):
            state.put("large", value)
    state.put("small", "x" * 90_000)
    state.prepare_commit(2)
    state.commit(2)
    assert state.get("small") == "x" * 90_000
    state.close()
    found.close()


def test_a_full_disk_is_told_with_what_to_do(path):
    connection = FILE.open(path)
    connection.execute("PRAGMA max_page_count = 1")  # SQLite's error is that of a full disk
    with (
        pytest.raises(StateError, match="disk is full; what was committed is kept: make room") as raised,
        connection.writing(),
    ):
        connection.execute("CREATE TABLE more AS SELECT hex(randomblob(1000000))")
    connection.close()
    assert "\n" not in describe(raised.value, BasicBolt(), None)


def test_a_limit_on_open_files_is_told_with_what_to_do_wherever_it_is_hit(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "WAIT_SECS", 0.5)
    conf = {"topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")}, "test.sentences": 100}

    def run() -> None:
        with LocalCluster("inprocess", conf=conf) as cluster:
            cluster.submit(topology).wait(timeout=patient(60))

    def of_run() -> list[str]:  # what other tests left may open and close others meanwhile
        links = (Path("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
        return [file for link in links if link.is_symlink() and (file := os.readlink(link)).startswith(str(tmp_path))]

    run()  # so that no module has to be imported later
    gc.collect()  # what other tests left
    most = max(map(int, os.listdir("/proc/self/fd")))
    with ExitStack() as held:
        while (number := held.enter_context(open(os.devnull)).fileno()) < most:
            pass  # a limit is one on the numbers, of which the lowest is taken
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        told: list[str] = []
        while len(told) < 50:
            resource.setrlimit(resource.RLIMIT_NOFILE, (number + 1 + len(told), limits[1]))
            try:
                run()
                break
            except (LocalClusterError, StateError) as error:
                told.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            gc.collect()  # an error may keep what it was raised in
            assert of_run() == []
    assert 3 < len(told) < 50
    assert not [each for each in told if "ulimit -n" not in each]


def test_a_limit_on_the_size_of_files_is_told_with_what_to_do(path):
    code = f"""
import resource
from multilang.state.sqlite import FILE
connection = FILE.open({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with connection.writing():
        connection.execute("CREATE TABLE more AS SELECT hex(randomblob(1000000))")
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "StateError the state file" in said
    assert "disk I/O error" in said
    assert "ulimit -f" in said
    connection = FILE.open(str(path))
    assert connection.rows("SELECT count(*) FROM data") == [(5000,)]
    connection.close()
