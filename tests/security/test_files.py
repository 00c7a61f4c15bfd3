"""Stored files are their user's alone, whatever the umask, and nobody can lead a writer elsewhere by a link."""

import os
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from multilang.component.errors import SourceUnavailable
from multilang.conformance.record import open_recording
from multilang.helpers import private
from multilang.store import StateError, open_store
from multilang.transactional.spouts.files import FileSource
from spark_bridge.sources.store import Marks
from tests.cli.command import COMMAND, LIMIT
from tests.security.test_another_account import NOBODY


@pytest.fixture(autouse=True)
def everybody_may_read():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def store_at(path):
    """A store that has written, so that all of its files are there."""
    store = open_store(f"sqlite://{path}")
    try:
        assert store.compare_and_write("p", {}, {"t": {b"k": b"1"}})
    except BaseException:
        store.close()
        raise
    return store


def test_a_states_file_and_all_beside_it_are_its_users_alone(tmp_path):
    folder = tmp_path / "new"
    with closing(store_at(folder / "state.sqlite")) as store:
        assert store.beat("p", {"t": {b"k": b"1"}}, 1)
        assert mode(folder) == 0o700
        found = {path.name: mode(path) for path in folder.iterdir()}
    assert found == dict.fromkeys(
        ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "state.sqlite.p.owner"), 0o600
    )


def test_a_heartbeat_is_written_through_no_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "state.sqlite.p.owner").symlink_to(victim)
    with closing(store_at(tmp_path / "state.sqlite")) as store, pytest.raises(StateError, match="symbolic link"):
        store.beat("p", {"t": {b"k": b"1"}}, 1)
    assert victim.read_text() == "precious"


def test_a_file_is_replaced_through_no_link_and_by_no_name_that_can_be_guessed(tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_text("precious")
    for name in (f"out.{os.getpid()}", f".out.{os.getpid()}"):  # the names that were used
        (tmp_path / name).symlink_to(victim)
    out.symlink_to(victim)
    seen = []

    def write(handle):
        seen.extend(path.name for path in tmp_path.iterdir())
        private.write_all(handle, b"new")

    private.replace_file(out, write)
    assert (out.read_text(), victim.read_text()) == ("new", "precious")
    assert mode(out) == 0o600
    assert not out.is_symlink()
    (part,) = [name for name in seen if name.startswith(".out.") and not name.endswith(str(os.getpid()))]
    assert len(part) > len(".out.") + 6
    with pytest.raises(ZeroDivisionError):
        private.replace_file(out, lambda _: 1 / 0)
    assert out.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["out", "victim", f"out.{os.getpid()}", f".out.{os.getpid()}"]
    )


def test_a_recording_is_its_users_alone_and_made_through_no_link(tmp_path):
    file, victim = tmp_path / "talk.jsonl", tmp_path / "victim"
    record_nothing = [COMMAND, "conformance", "record", "-o", file, "--", sys.executable, "-c", ""]
    subprocess.run(record_nothing, stdin=subprocess.DEVNULL, check=True, timeout=LIMIT)
    assert mode(file) == 0o600
    victim.write_text("precious")
    file.unlink()
    file.symlink_to(victim)
    subprocess.run(record_nothing, stdin=subprocess.DEVNULL, timeout=LIMIT)
    assert victim.read_text() == "precious"


TRIES = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.close(os.open(path, flags))
        except PermissionError:
            continue
        print(path, flags)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_account_reads_and_writes_no_state_even_in_a_folder_of_all():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        store = store_at(folder / "state.sqlite")
        assert store.beat("p", {"t": {b"k": b"1"}}, 1)
        private.replace_file(folder / "export", lambda handle: private.write_all(handle, b"secret"))
        paths = [str(path) for path in folder.iterdir()]
        assert len(paths) >= 5
        shown = subprocess.run(
            [sys.executable, "-S", "-c", TRIES, *paths], capture_output=True, text=True, timeout=LIMIT
        )
        assert (shown.stdout, shown.stderr, shown.returncode) == ("", "", 0)
        store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("squatted", ["file", "link", "folder"])
def test_no_state_is_kept_in_what_another_account_put_where_everybody_may(tmp_path, squatted):
    """Whoever made the file before its user did read the state, and could write it anew."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    theirs = shared / "theirs"
    if squatted == "folder":
        theirs.mkdir()
    elif squatted == "link":
        theirs.symlink_to(tmp_path / "elsewhere.sqlite")
    else:
        theirs.touch()
        theirs.chmod(0o666)
    os.chown(theirs, 65534, 65534, follow_symlinks=False)
    path = theirs / "state.sqlite" if squatted == "folder" else theirs
    with pytest.raises(StateError, match="belongs to another account"):
        store_at(path)
    assert not (tmp_path / "elsewhere.sqlite").exists()
    assert not (shared / "theirs-wal").exists()


@pytest.fixture
def of_all(tmp_path):
    """A folder like /tmp."""
    if os.geteuid() != 0:
        assert "CI" not in os.environ
        pytest.skip("only root can give files to another account")
    folder = tmp_path / "of_all"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def theirs(path, content=b"", kind=Path.write_bytes):
    kind(path, content)
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal"])
def test_no_watermarks_are_kept_with_what_another_account_put_there(of_all, suffix):
    path = of_all / "marks"
    with closing(open_store(f"sqlite://{path}")) as store:
        claimed(store).release()
    Path(f"{path}{suffix}").unlink(missing_ok=True)
    theirs(Path(f"{path}{suffix}"))
    with (
        closing(open_store(f"sqlite://{path}")) as store,
        pytest.raises(StateError, match=f"marks{suffix} belongs to another"),
    ):
        Marks(store, "g").load()


def test_a_file_of_watermarks_is_its_users_alone(tmp_path):
    with closing(open_store(f"sqlite://{tmp_path / 'new' / 'marks'}")) as store:
        marks = claimed(store)
        assert {mode(path) for path in (tmp_path / "new").rglob("*")} == {0o600}
        assert mode(tmp_path / "new") == 0o700
        marks.release()


def claimed(store):
    marks = Marks(store, "g")
    marks.claim([0], "run", "orders")
    return marks


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_no_state_is_read_with_what_another_account_put_beside_it(of_all, suffix):
    """SQLite plays back a journal that it finds, whoever wrote it, and so had another's content."""
    path = of_all / "state.sqlite"
    store_at(path).close()
    beside = Path(f"{path}{suffix}")
    beside.unlink(missing_ok=True)
    theirs(beside, b"forged")
    with pytest.raises(StateError, match=f"state.sqlite{suffix} belongs to another account"):
        store_at(path)
    assert beside.read_bytes() == b"forged"


def test_nobody_else_can_put_a_journal_beside_a_state_that_is_about_to_be_opened(of_all):
    path = of_all / "state.sqlite"
    store_at(path).close()
    for _ in range(2):
        with closing(store_at(path)):
            left = {each.name: each.stat().st_uid for each in of_all.iterdir()}
            assert left.keys() >= {f"state.sqlite{suffix}" for suffix in ("-journal", "-wal", "-shm")}
            assert set(left.values()) == {0}


def test_the_heartbeat_of_another_account_stops_no_owner(of_all):
    theirs(of_all / "state.sqlite.p.owner", b"9223372036854775807 1")
    with closing(store_at(of_all / "state.sqlite")) as store:
        for use in (lambda: store.beats("p"), lambda: store.beat("p", {"t": {b"k": b"1"}}, 1)):
            with pytest.raises(StateError, match="belongs to another account"):
                use()


@pytest.mark.parametrize("kind", [Path.write_bytes, lambda path, _: os.mkfifo(path)])
def test_no_conversation_is_recorded_into_a_file_of_another_account(of_all, kind):
    """Its name has the pid of the component, which can be guessed, and a conversation has the conf in it."""
    file = of_all / "talk.jsonl"
    file.touch()
    theirs(of_all / "talk-7.jsonl", kind=kind)
    with pytest.raises(OSError, match=r"belongs to another account|No such device"):
        open_recording(file, 7)
    assert not any(each.stat().st_size for each in of_all.iterdir())


def test_what_is_written_to_a_pipe_waits_for_its_reader(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    writer = private.open_file(path, os.O_WRONLY)
    data = bytes(1 << 20)
    with ThreadPoolExecutor(1) as pool, open(reader, "rb") as file:
        read = pool.submit(file.read)
        written = os.write(writer, data)
        os.close(writer)
        assert written == len(read.result()) == len(data)


def test_a_recording_that_can_not_be_made_is_told_in_a_sentence(tmp_path):
    file = tmp_path / f"{'long' * 100}.jsonl"
    shown = subprocess.run(
        [COMMAND, "conformance", "record", "-o", file, "--", sys.executable, "-c", ""],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert shown.returncode == 3
    assert f"{file} can't be written: File name too long; name another file" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_the_order_of_files_is_not_taken_from_another_account(of_all):
    source = FileSource(str(of_all), "*", "utf-8", "strict")
    (of_all / "first").write_text("a\n")
    theirs(of_all / ".partitions", b'"../outside"\n')
    for use in (source.discover, source.num_partitions):
        with pytest.raises(SourceUnavailable, match="belongs to another account"):
            use()
