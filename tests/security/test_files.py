"""Stored files are their user's alone, whatever the umask, and nobody can lead a writer elsewhere by a link."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from multilang import private
from multilang.state import sqlite
from multilang.state.errors import StateError
from tests.cli.command import COMMAND, LIMIT


@pytest.fixture(autouse=True)
def everybody_may_read():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_states_file_and_all_beside_it_are_its_users_alone(tmp_path):
    folder = tmp_path / "new"
    file = folder / "state.sqlite"
    connection = sqlite.FILE.open(str(file))
    place = sqlite.FILE.place(str(file))
    place._write_beats(1, 1)
    assert mode(folder) == 0o700
    found = {path.name: mode(path) for path in folder.iterdir()}
    connection.close()
    place.close()
    assert {"state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "state.sqlite.owner"} <= set(found)
    assert set(found.values()) == {0o600}


def test_a_heartbeat_is_written_through_no_link(tmp_path):
    file, victim = tmp_path / "state.sqlite", tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "state.sqlite.owner").symlink_to(victim)
    place = sqlite.FILE.place(str(file))
    with pytest.raises(StateError, match="symbolic link"):
        place._write_beats(1, 1)
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
        connection = sqlite.FILE.open(str(folder / "state.sqlite"))
        place = sqlite.FILE.place(str(folder / "state.sqlite"))
        place._write_beats(1, 1)
        private.replace_file(folder / "export", lambda handle: private.write_all(handle, b"secret"))
        paths = [str(path) for path in folder.iterdir()]
        assert len(paths) == 5
        shown = subprocess.run(
            [sys.executable, "-S", "-c", TRIES, *paths], capture_output=True, text=True, timeout=LIMIT
        )
        assert (shown.stdout, shown.stderr, shown.returncode) == ("", "", 0)
        connection.close()
        place.close()


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
        sqlite.FILE.open(str(path))
    assert not (tmp_path / "elsewhere.sqlite").exists()
    assert not (shared / "theirs-wal").exists()
