"""The SQLite file: what is damaged or another's is refused and left as it is, and whoever writes waits for the others."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from multilang import BasicBolt
from multilang.component.errors import ConfigError
from multilang.component.report import describe
from multilang.state.providers import provider_of
from multilang.state.settings import CONFIG
from multilang.store import InUseError, StateError, StoreGoneError, claims, open_store, sqlite
from multilang.store.settings import url_of
from multilang.transactional import SqliteBacking
from tests.patience import patient

ROOT = Path(__file__).parents[2]


def store_at(path):
    return open_store(f"sqlite://{path}")


def names(folder):
    return {each.name for each in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some pages, with nothing beside it."""
    path = tmp_path / "store.sqlite"
    with closing(store_at(path)) as store:
        assert store.compare_and_write("p", {}, {"t": {b"key %d" % number: b"x" * 40 for number in range(5000)}})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")  # no free pages, in which nothing could be damaged
    assert names(tmp_path) == {"store.sqlite"}
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
    uses = (
        lambda store: store.check(),
        lambda store: store.get("p", "t", [b"k"]),
        lambda store: store.compare_and_write("p", {}, {"t": {b"k": b"1"}}),
        lambda store: store.claim("p", "run", "shop"),
    )
    for use in uses:
        with (
            closing(store_at(path)) as store,
            pytest.raises(StoreGoneError, match=r"store\.sqlite is damaged .*restore a copy"),
        ):
            use(store)
    assert path.read_bytes() == data


def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE rows (key, value)")
    before = path.read_bytes()
    with (
        closing(store_at(path)) as store,
        pytest.raises(StateError, match=r"no store; name another in multilang\.store"),
    ):
        store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
    assert path.read_bytes() == before
    assert names(tmp_path) == {"other.sqlite"}


def test_a_file_of_another_layout_is_refused_and_left_as_it_is(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    before = path.read_bytes()
    with closing(store_at(path)) as store, pytest.raises(StateError, match=r"layout 7, and this version knows \d"):
        store.get("p", "t", [b"k"])
    assert path.read_bytes() == before


def test_a_folder_in_the_files_place_is_named(tmp_path):
    with (
        closing(store_at(tmp_path)) as store,
        pytest.raises(
            StateError, match=r"unable to open.*a file that can be written.*name another in multilang\.store"
        ),
    ):
        store.get("p", "t", [b"k"])


def test_a_folder_that_can_not_be_made_is_reported_with_the_setting(tmp_path):
    (tmp_path / "file").write_text("")
    with closing(open_store(f"sqlite://{tmp_path}/file/store.sqlite", setting="multilang.positions")) as store:
        for use in (
            lambda: store.compare_and_write("p", {}, {"t": {b"k": b"1"}}),
            lambda: store.claim("p", "run", "shop"),
        ):
            with pytest.raises(StateError, match=r"can't be made.*name another in multilang\.positions"):
                use()


def test_who_only_reads_makes_no_file(tmp_path):
    with closing(store_at(tmp_path / "deep" / "store.sqlite")) as store:
        store.check()
        assert (store.get("p", "t", [b"k"]), [*store.list("p", "t")], [*store.places("")]) == ([None], [], [])
        assert store.beats("p") is None
    assert names(tmp_path) == set()


def test_a_file_is_named_in_many_ways_and_is_the_same_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for url in (
        "sqlite:store.sqlite",
        "sqlite:./store.sqlite",
        "sqlite:~/store.sqlite",
        f"sqlite:{tmp_path}/store.sqlite",
    ):
        with closing(open_store(url)) as store:
            assert store.describe() == f"the SQLite file {tmp_path}/store.sqlite"
            assert store.url == f"sqlite://{tmp_path}/store.sqlite"


@pytest.mark.parametrize("path", ["store.sqlite", "{}/store.sqlite", "/{}/store.sqlite", "~/store.sqlite"])
def test_a_path_is_that_of_a_file_whatever_it_begins_with(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    given = path.format(tmp_path)
    for backing in (open_store(url_of(given)), SqliteBacking(given).store):
        with closing(backing) as store:
            assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
    assert names(tmp_path) == {"store.sqlite"}


@pytest.mark.parametrize(
    ("conf", "setting"),
    [
        ({"multilang.store": "sqlite:kept.sqlite"}, "multilang.store"),
        ({"topology.state.provider": "sqlite", CONFIG: {"path": "kept.sqlite"}}, CONFIG),
    ],
)
def test_a_task_on_a_cluster_keeps_nothing_in_its_working_folder(conf, setting, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run = {"topology.name": "shop", "storm.id": "shop-1-1700000000"}
    with pytest.raises(
        ConfigError, match=rf"{re.escape(setting)} is 'sqlite:.*kept.sqlite', which begins in the working"
    ):
        provider_of({**run, **conf})
    for parent in ("local", "spark"):
        with closing(provider_of({**run, **conf, "multilang.parent": parent})) as provider:
            assert provider.describe() == f"SQLite file {tmp_path}/kept.sqlite"


@pytest.mark.parametrize("given", [7, ["a"], True])
def test_what_is_no_path_is_named(given):
    with pytest.raises(ConfigError, match=r"multilang\.source\.store is .*, which names no database"):
        open_store(url_of(given), setting="multilang.source.store")


WRITER = """
import sys
from multilang.store import open_store
store = open_store(f"sqlite://{sys.argv[1]}")
claim = store.claim(sys.argv[2], "run", "shop")
for number in range(40):
    assert claim.write({"t": {b"n": b"%d" % number}})
"""


@pytest.mark.parametrize("times", range(3))
def test_processes_that_start_and_write_at_once_wait_for_each_other(tmp_path, times):
    path = tmp_path / "deep" / "er" / "store.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"p{index}"], cwd=ROOT, stderr=subprocess.PIPE)
        for index in range(4)
    ]
    assert [(writer.communicate(timeout=patient(120))[1], writer.returncode) for writer in writers] == [(b"", 0)] * 4
    with closing(store_at(path)) as store:
        assert [store.get(f"p{index}", "t", [b"n"]) for index in range(4)] == [[b"39"]] * 4


def test_a_file_that_another_one_makes_meanwhile_is_a_store(tmp_path, monkeypatch):
    """Its header has two numbers, and is asked for one after the other."""
    path = tmp_path / "store.sqlite"
    header = sqlite._header
    others: list[threading.Thread] = []

    def make():
        with closing(store_at(path)) as other:
            other.compare_and_write("p", {}, {"t": {b"other": b"1"}})

    class Between:
        """A connection; after its first question another one makes the file, as far as it can."""

        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement):
            found = self.connection.execute(statement).fetchall()
            if not others:
                others.append(threading.Thread(target=make))
                others[0].start()
                others[0].join(0.5)
            return self.connection.execute("SELECT ?", found[0])

    monkeypatch.setattr(sqlite, "_header", lambda each: header(each if others else Between(each)))
    with closing(store_at(path)) as store:
        assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
        others[0].join(patient(60))
        assert dict(store.list("p", "t")) == {b"k": b"1", b"other": b"1"}


def renamed(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def replaced(path):
    copy = path.read_bytes()
    path.unlink()
    path.write_bytes(copy)


FILES = {"file": "", "log": "-wal", "log's index": "-shm"}
CHANGES = {
    **{f"{name} deleted": lambda path, end=end: Path(f"{path}{end}").unlink() for name, end in FILES.items()},
    **{f"{name} replaced": lambda path, end=end: replaced(Path(f"{path}{end}")) for name, end in FILES.items()},
    "file emptied": lambda path: path.write_bytes(b""),
    "renamed, with a link in its place": renamed,
}


@pytest.mark.parametrize("through_link", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_changed_under_its_users_is_noticed_at_the_next_write(path, tmp_path, change, through_link):
    given = path
    if through_link:
        given = tmp_path / "link" / "store.sqlite"
        given.parent.mkdir()
        given.symlink_to(path)
    with closing(store_at(given)) as store:
        claim = store.claim("p", "run", "shop")
        assert claim.write({"t": {b"k": b"1"}})
        CHANGES[change](path)
        for _ in range(2):
            with pytest.raises(
                StoreGoneError,
                match=r"store\.sqlite(-wal|-shm|) was deleted, renamed, emptied or replaced while|is damaged",
            ):
                claim.write({"t": {b"k": b"2"}})


def test_a_full_disk_is_reported_with_what_to_do(path):
    with closing(store_at(path)) as store:
        assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
        store._connection.execute("PRAGMA max_page_count = 1")  # SQLite's error is that of a full disk
        with pytest.raises(StateError, match="disk is full; what was committed is stored: free space") as raised:
            store.compare_and_write("p", {}, {"t": {b"k": b"2", b"large": bytes(1_000_000)}})
        assert store.get("p", "t", [b"k", b"large"]) == [b"1", None]
    assert "\n" not in describe(raised.value, BasicBolt(), None)


def test_a_limit_on_the_size_of_files_is_reported_with_what_to_do(path):
    code = f"""
import resource
from multilang.store import open_store
store = open_store("sqlite://{path}")
store.check()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.compare_and_write("p", {{}}, {{"t": {{b"large": bytes(1_000_000)}}}})
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"StateError the SQLite file {path} can't be used" in said
    assert "disk I/O error" in said
    assert "ulimit -f" in said
    with closing(store_at(path)) as store:
        assert len(dict(store.list("p", "t"))) == 5000


def test_a_writer_that_is_stopped_in_its_step_is_named_after_a_while(path, monkeypatch):
    monkeypatch.setattr(sqlite, "WAIT_SECS", 0.2)
    with closing(store_at(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        assert store.get("p", "t", [b"key 1"]) == [b"x" * 40]
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match=r"another process has been writing to it for .*fuser"):
            store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
        assert store.get("p", "t", [b"k"]) == [None]  # who reads does not wait
        other.execute("ROLLBACK")
        assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})


def test_what_is_written_is_on_the_disk_before_it_is_answered(path):
    with closing(store_at(path)) as store:
        store.check()
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_is_for_its_user_alone(tmp_path):
    before = os.umask(0o022)
    try:
        with closing(store_at(tmp_path / "made" / "store.sqlite")) as store:
            claim = store.claim("p", "run", "shop")
            assert store.beat("p", claim.fence, 1)
            modes = {each.name: each.stat().st_mode & 0o077 for each in (tmp_path / "made").iterdir()}
            assert len(modes) == 4  # with SQLite's two, and the heartbeat
            assert {*modes.values()} == {0}
            assert (tmp_path / "made").stat().st_mode & 0o077 == 0
            claim.release()
    finally:
        os.umask(before)


def test_a_heartbeat_that_somebody_put_in_its_place_is_reported(path):
    with closing(store_at(path)) as store:
        claim = store.claim("p", "run", "shop")
        Path(f"{path}.p.owner").unlink(missing_ok=True)
        Path(f"{path}.p.owner").mkdir()
        for use in (lambda: store.beat("p", claim.fence, 1), lambda: store.beats("p")):
            with pytest.raises(StateError, match=r"store\.sqlite\.p\.owner, the heartbeat of an owner.*or remove it"):
                use()
        assert claim.write({"t": {b"k": b"1"}})  # it protects nothing
        Path(f"{path}.p.owner").rmdir()
        claim.release()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(claims, "BEAT_SECS", 0.05)
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.3)


def test_another_run_is_refused_through_a_symbolic_link_to_the_file(tmp_path, quick):
    (tmp_path / "elsewhere").mkdir()
    path, link = tmp_path / "store.sqlite", tmp_path / "elsewhere" / "link.sqlite"
    link.symlink_to(path)
    with closing(store_at(path)) as first, closing(store_at(link)) as second:
        claim = first.claim("p", "first", "shop")
        with pytest.raises(InUseError, match=r"link\.sqlite is in use by topology 'shop' "):
            second.claim("p", "second", "shop")
        claim.release()


def test_a_file_with_two_names_is_refused_since_their_users_would_not_see_each_other(path):
    link = path.with_name("link.sqlite")
    link.hardlink_to(path)
    for each in (path, link):
        with (
            closing(store_at(each)) as store,
            pytest.raises(StateError, match=rf"{each} has 2 names \(hard links\), .*: keep one name"),
        ):
            store.claim("p", "run", "shop")


MOUNTED = """
import sys
from multilang.store import claims, open_store
claims.BEAT_SECS, claims.CLAIM_SECS = 0.05, 0.3
for run, path in enumerate(sys.argv[1:]):
    try:
        open_store(f"sqlite://{path}").claim("p", str(run), "shop")
        print("claimed")
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize("what", ["the file", "its folder"])
@pytest.mark.parametrize("name", ["store.sqlite", "a store\\.sqlite"])
def test_a_file_that_is_mounted_by_itself_is_refused_and_a_folder_is_the_same(tmp_path, what, name):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    if what == "the file":
        (there / name).touch()
        (here / name).touch()
        mounted = [there / name, here / name]
    else:
        mounted = [there, here]
    own = ["unshare", "--mount", "--map-root-user", "sh", "-c"]  # what is mounted so goes with the process
    if (
        shutil.which("unshare") is None
        or subprocess.run([*own, 'mount --bind "$1" "$2"', "-", *mounted], capture_output=True).returncode
    ):
        pytest.skip("nothing may be mounted here")
    command = [sys.executable, "-c", MOUNTED, there / name, here / name]
    shown = subprocess.run(
        [*own, 'mount --bind "$1" "$2"; shift 2; exec "$@"', "-", *mounted, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    first, second = shown.stdout.splitlines()
    assert first == "claimed", shown
    if what == "the file":
        assert second.startswith(f"StateError the SQLite file {here / name} is mounted by itself (mount --bind"), shown
    else:
        assert second.startswith(f"InUseError the SQLite file {here / name} is in use by topology 'shop'"), shown
