"""A file without its ``-wal``, or an older copy of it, lacks commits: nothing starts on it unless somebody says so."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from multilang.state import StateError, StoreGoneError, commits
from multilang.state.providers import provider_of
from multilang.transactional import SqliteBacking
from multilang.transactional.stores import open_state
from tests.soak import SOAK

ROOT = Path(__file__).parents[2]
RUN = {"topology.name": "shop", "storm.id": "shop-1", "multilang.parent": "local"}
WRITTEN = 30


class Provided:
    """A task's state."""

    def __init__(self, path):
        self._provider = provider_of(
            {**RUN, "topology.state.provider": "sqlite", "topology.state.provider.config": {"path": path}}
        )
        try:
            epoch = self._provider.claim()
            self._state = self._provider.new_state("count-0")
            self._state.claim(epoch)
        except BaseException:
            self._provider.close()
            raise

    def write(self, n):
        self._state.put("n", n)
        self._state.commit()

    def read(self):
        return self._state.get("n", 0)

    def close(self):
        self._state.close()
        self._provider.close()


class Transactions:
    """The state of transactions."""

    def __init__(self, path):
        conf = {**RUN, "multilang.transactional.sqlite.path": path, "topology.transactional.id": "words"}
        self._state = open_state(conf)
        self._state.claim()

    def write(self, n):
        self._state.set_data("user/0/1", n)

    def read(self):
        return self._state.get_data("user/0/1") or 0

    def close(self):
        self._state.close()


class Map:
    """A map of transactions."""

    def __init__(self, path):
        self._backing = SqliteBacking(path)
        self._backing.check()

    def write(self, n):
        assert self._backing.multi_put([("n", str(self.read()) if self.read() else None, str(n))])

    def read(self):
        return int(self._backing.multi_get(["n"])[0] or 0)

    def close(self):
        self._backing.close()


USERS = {each.__name__: each for each in (Provided, Transactions, Map)}


def write_and_die(kind, path):
    """Write 1, 2, ..., and be killed with the last commits in the log."""
    user = USERS[kind](str(path))
    for n in range(user.read() + 1, user.read() + WRITTEN + 1):
        user.write(n)
    os.kill(os.getpid(), signal.SIGKILL)


def written_and_killed(kind, path):
    code = f"from tests.state.test_commits import write_and_die; write_and_die({kind!r}, {str(path)!r})"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == -signal.SIGKILL
    assert os.path.getsize(f"{path}-wal")


def read(kind, path):
    with contextlib.closing(USERS[kind](str(path))) as user:
        return user.read()


def lost_in_place(path):
    for suffix in ("-wal", "-shm"):
        os.unlink(f"{path}{suffix}")
    return path


def left_behind(path):
    """The file was copied, with the small files beside it, and without its log."""
    there = path.parent / "there"
    there.mkdir()
    for each in (path, Path(f"{path}.commits")):
        shutil.copy(each, there)
    return there / path.name


@pytest.mark.parametrize("how", [lost_in_place, left_behind])
@pytest.mark.parametrize("kind", USERS)
def test_a_file_without_the_log_of_a_killed_process_is_refused_until_somebody_says_so(kind, how, tmp_path):
    path = tmp_path / "file.sqlite"
    written_and_killed(kind, path)
    path = how(path)
    told = rf"file\.sqlite lacks the last \d+ of \d+ commits.*-wal.*remove {path}\.commits"
    content = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreGoneError, match=told):
            read(kind, path)
    assert path.read_bytes() == content
    os.unlink(f"{path}.commits")
    assert read(kind, path) < WRITTEN
    written_and_killed(kind, path)
    with pytest.raises(StoreGoneError, match=told):
        read(kind, lost_in_place(path))


def put_back(path, older):
    """Put copies of the file and of those beside it back, as if nothing else had ever been there."""
    for each in path.parent.iterdir():
        each.unlink()
    for each in older.iterdir():
        shutil.copy(each, path.parent)


def taken(path, there):
    """Take a copy of the whole folder, as of a process that was killed now."""
    return shutil.copytree(path.parent, there)


@pytest.mark.parametrize("seed", range(50 if SOAK else 4))
@pytest.mark.parametrize("kind", USERS)
def test_an_older_copy_is_refused_and_a_whole_folder_passes(kind, seed, tmp_path):
    rng = random.Random(seed)
    path = tmp_path / "place" / "file.sqlite"
    path.parent.mkdir()
    copies = []
    n = 0
    for run in range(2):
        with contextlib.closing(USERS[kind](str(path))) as user:
            assert user.read() == n
            for _ in range(rng.randint(2, 5)):
                n += 1
                user.write(n)
                copies.append((taken(path, tmp_path / f"copy-{run}-{n}"), n))
    last = (path.parent / "file.sqlite.commits").read_bytes()
    for copy, then in copies:
        put_back(path, copy)
        assert read(kind, path) == then  # with what was noted beside it
        put_back(path, copy)
        Path(f"{path}.commits").write_bytes(last)
        if commits.last_commit(str(path)) > commits.last_commit(str(copy / path.name)):
            with pytest.raises(StoreGoneError, match="lacks the last"):
                read(kind, path)


def test_a_process_that_was_killed_before_its_commit_was_noted_lacks_nothing(tmp_path):
    path = tmp_path / "file.sqlite"
    with contextlib.closing(Map(str(path))) as user:
        before = Path(f"{path}.commits").read_bytes()
        for n in range(1, 4):
            user.write(n)
            noted = Path(f"{path}.commits").read_bytes()
            Path(f"{path}.commits").write_bytes(before)
            assert sqlite_count(path) == commits.last_commit(path) + 1
            Path(f"{path}.commits").write_bytes(noted)
            before = noted
    Path(f"{path}.commits").unlink()
    assert read("Map", path) == 3


def sqlite_count(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count FROM commits").fetchone()[0]


def note(path, number):
    with contextlib.closing(commits.CommitNotes(path)) as notes:
        notes.found(number)
        notes.write(number)


@pytest.mark.parametrize("seed", range(200 if SOAK else 20))
def test_a_number_that_is_half_written_or_late_never_tells_more_than_was_noted(seed, tmp_path):
    rng = random.Random(seed)
    path = str(tmp_path / "file")
    noted = 0
    for _ in range(rng.randint(1, 200)):
        before = Path(f"{path}.commits").read_bytes() if noted else b""
        noted += 1
        note(path, noted)
        assert commits.last_commit(path) == noted
    after = Path(f"{path}.commits").read_bytes()
    before = before.ljust(len(after), b"\0")
    changed = [at for at in range(len(after)) if before[at] != after[at]]
    for at in changed:  # the write was cut there
        Path(f"{path}.commits").write_bytes(after[:at] + before[at:])
        assert commits.last_commit(path) in (noted - 1, noted)
    Path(f"{path}.commits").write_bytes(after)
    for late in range(max(1, noted - commits.LINES + 1), noted):
        note(path, late)
    assert commits.last_commit(path) == noted
    Path(f"{path}.commits").write_bytes(rng.randbytes(3000))
    assert commits.last_commit(path) == 0


def commit_often(path, key, times):
    """Commit to a task's state of its own."""
    provider = provider_of(
        {**RUN, "topology.state.provider": "sqlite", "topology.state.provider.config": {"path": path}}
    )
    state = provider.new_state(f"count-{key}")
    state.claim(1)
    for n in range(times):
        state.put("n", n)
        state.commit()
    state.close()
    provider.close()


def test_a_commit_opens_no_file(tmp_path):
    opened = []
    watching = True
    sys.addaudithook(lambda event, arguments: opened.append(arguments[0]) if watching and event == "open" else None)
    before = len(os.listdir("/proc/self/fd"))
    with contextlib.closing(Provided(str(tmp_path / "file.sqlite"))) as user:
        user.write(1)
        opened.clear()
        for n in range(2, 6):
            user.write(n)
        mine = [each for each in opened if str(each).endswith((commits.SUFFIX, ".sqlite"))]
    watching = False
    assert mine == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_number_is_noted_again_in_a_file_that_was_removed_or_replaced(tmp_path):
    path = tmp_path / "file.sqlite"
    noted = Path(f"{path}.commits")
    with contextlib.closing(Map(str(path))) as user:
        for n, change in enumerate((noted.unlink, lambda: os.replace(shutil.copy(noted, tmp_path / "x"), noted)), 1):
            user.write(n)
            change()
            user.write(n)
            user.write(n + 1)
            assert commits.last_commit(str(path)) == sqlite_count(path)


def test_the_tasks_of_one_file_note_its_newest_commit(tmp_path):
    path = str(tmp_path / "file.sqlite")
    user = Provided(path)
    begun = sqlite_count(path)
    code = "from tests.state.test_commits import commit_often; commit_often({!r}, {}, 40)"
    tasks = [subprocess.Popen([sys.executable, "-c", code.format(path, key)], cwd=ROOT) for key in range(1, 4)]
    assert [task.wait() for task in tasks] == [0, 0, 0]
    assert sqlite_count(path) == begun + 3 * (1 + 40)
    assert begun + 3 * 41 - 3 <= commits.last_commit(path) <= sqlite_count(path)
    user.close()
    assert commits.last_commit(path) == sqlite_count(path)


def test_a_commit_that_can_not_be_noted_is_made_and_told_once(tmp_path, caplog):
    path = tmp_path / "file.sqlite"
    with contextlib.closing(Map(str(path))) as user:
        user.write(1)
        Path(f"{path}.commits").unlink()
        Path(f"{path}.commits").symlink_to(tmp_path / "elsewhere")
        for n in (2, 3):
            user.write(n)
        assert not (tmp_path / "elsewhere").exists()
        assert [each.getMessage().split(":")[0] for each in caplog.records] == [f"{path}.commits can't be written"]
    with pytest.raises(StateError, match=r"file\.sqlite\.commits, which has the number.*can't be read.*or remove it"):
        read("Map", path)
    Path(f"{path}.commits").unlink()
    assert read("Map", path) == 3


def test_who_only_looks_is_refused_too_and_changes_nothing(tmp_path):
    path = tmp_path / "file.sqlite"
    written_and_killed("Provided", path)
    provider = provider_of(
        {**RUN, "topology.state.provider": "sqlite", "topology.state.provider.config": {"path": str(path)}}
    )
    before = Path(f"{path}.commits").read_bytes()
    killed = taken(path, tmp_path.with_name("killed"))
    assert provider.namespaces() == ["count-0"]  # and SQLite moves what is in the log to the file
    assert Path(f"{path}.commits").read_bytes() == before
    put_back(path, killed)
    lost_in_place(path)
    for look in (provider.namespaces, provider.check):
        with pytest.raises(StoreGoneError, match="lacks the last"):
            look()
    assert Path(f"{path}.commits").read_bytes() == before
    provider.close()


def test_a_file_of_an_earlier_version_is_counted_from_then_on(tmp_path):
    path = tmp_path / "file.sqlite"
    with contextlib.closing(Map(str(path))) as user:
        user.write(7)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE commits")
    with pytest.raises(StoreGoneError, match="lacks the last"):  # this copy is older than the count
        read("Map", path)
    os.unlink(f"{path}.commits")
    with contextlib.closing(Map(str(path))) as user:
        assert user.read() == 7
        user.write(8)
    assert commits.last_commit(path) == sqlite_count(path) > 0


def test_a_file_that_is_made_anew_is_told_and_a_copy_of_the_former_one_is_older(tmp_path, caplog):
    path = tmp_path / "file.sqlite"
    with contextlib.closing(Map(str(path))) as user:
        user.write(1)
    path.rename(tmp_path / "moved.sqlite")
    with contextlib.closing(Map(str(path))) as user:
        assert user.read() == 0
        user.write(1)
    assert "is made anew, although" in caplog.text
    os.replace(tmp_path / "moved.sqlite", path)
    with pytest.raises(StoreGoneError, match="lacks the last"):
        read("Map", path)
    path.rename(tmp_path / "there.sqlite")  # without the number beside it
    assert read("Map", tmp_path / "there.sqlite") == 1
