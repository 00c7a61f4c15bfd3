"""A ``multilang.toml`` is used only where no other account made it, or can change it: the system is asked whether it can."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.cli import exits
from multilang.component.errors import ConfigError
from multilang.helpers.private import TRUSTED_FOLDERS, check_owners
from multilang.project import FILE, ProjectFile, find_project
from tests.cli.command import multilang
from tests.security.test_another_account import NOBODY
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT, MINE, OTHER, GROUP = 0, 1234, 1235, 54321
FOLDERS = ("top", "top/project", "elsewhere", "further")
LINKS = ("elsewhere/link", "further/settings")  # what multilang.toml leads to, if it is a link

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and "CI" not in os.environ, reason="only root can become another account"
)


@contextmanager
def being(account: int) -> Iterator[None]:
    os.setegid(account)
    os.seteuid(account)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextmanager
def made(links: int, changes: dict[str, tuple[int, int]]) -> Iterator[Path]:
    """Make a project to which everybody has the way, in which each part has an owner, and rights that all may be given."""
    base = Path(tempfile.mkdtemp(prefix="multilang-project-"))
    try:
        base.chmod(0o755)
        places = [f"top/project/{FILE}", *LINKS][: links + 1]
        for name in FOLDERS:
            (base / name).mkdir()
        for name, target in pairwise(places):
            (base / name).symlink_to(base / target)
        (base / places[-1]).write_text("")
        for name in (*FOLDERS, *places):
            owner, mode = changes.get(name, (ROOT, 0o755))
            os.chown(base / name, owner, GROUP, follow_symlinks=False)
            if not (base / name).is_symlink():
                (base / name).chmod(mode if (base / name).is_dir() else mode & 0o666)
        yield base
    finally:
        shutil.rmtree(base)


def can_change(base: Path, name: str, account: int) -> bool:
    """Return whether an account made one of the parts, or can put its own into its place; it leaves all as it was."""
    path = base / name
    if os.lstat(path).st_uid == account:
        return True
    with being(account), suppress(PermissionError):
        aside = path.with_name(f"{path.name}.aside")
        path.rename(aside)
        aside.rename(path)
        return True
    with being(account), suppress(PermissionError):
        if name == "top/project":
            (path / "module.py").touch()  # which the project imports
            (path / "module.py").unlink()
            return True
        if path.is_file() and not path.is_symlink():
            path.open("r+").close()
            return True
    return False


CHANGES = st.dictionaries(
    st.sampled_from([*FOLDERS, f"top/project/{FILE}", *LINKS]),
    st.tuples(
        st.sampled_from([ROOT, MINE, NOBODY, OTHER]),
        st.sampled_from([0o755, 0o775, 0o2775, 0o777, 0o1777, 0o1755]),
    ),
    max_size=3,
)


@given(victim=st.sampled_from([ROOT, MINE]), links=st.integers(0, 2), changes=CHANGES)
def test_a_project_is_used_exactly_if_no_other_account_can_have_changed_it(
    victim: int, links: int, changes: dict[str, tuple[int, int]]
) -> None:
    with made(links, changes) as base:
        parts = [*FOLDERS[: 2 + links], f"top/project/{FILE}", *LINKS[:links]]
        strangers = {MINE, NOBODY, OTHER} - {victim}
        is_open = any(can_change(base, name, each) for name in parts for each in strangers)
        is_theirs = os.lstat(base / "top" / "project" / FILE).st_uid in strangers
        told: list[str] = []
        refused = ""
        found: ProjectFile | None = None
        with being(victim):
            try:
                found = find_project(base / "top" / "project" / "below", told.append)
            except ConfigError as error:
                refused = str(error)
        for each in [*told, *filter(None, [refused])]:
            assert "would run code as you" in each
            assert f"{TRUSTED_FOLDERS}={base / 'top' / 'project'}" in each
            assert f"chmod o-w {base.parent} " not in each
        assert (found is None) == is_open
        assert (len(told), bool(refused)) == (is_open and is_theirs, is_open and not is_theirs), "theirs stops nobody"
        with pytest.MonkeyPatch.context() as patch, being(victim):
            patch.setenv(TRUSTED_FOLDERS, f"/nowhere:{base / 'top'}")
            assert find_project(base / "top" / "project") is not None
            patch.setenv(TRUSTED_FOLDERS, f"{base}/to")
            with suppress(ConfigError):
                assert (find_project(base / "top" / "project") is None) == is_open


@given(st.sets(st.sampled_from(["top", "top/project", "elsewhere", "elsewhere/link"]), min_size=1))
def test_what_a_umask_of_nothing_left_open_takes_one_command_to_close(left_open: set[str]) -> None:
    with made(1, dict.fromkeys(left_open, (ROOT, 0o777))) as base:
        with pytest.raises(ConfigError) as refused:
            find_project(base / "top" / "project")
        subprocess.run(str(refused.value).partition("(")[2].partition(" takes that away)")[0], shell=True, check=True)
        assert find_project(base / "top" / "project") is not None


def test_the_own_project_is_found_above_another_accounts_file() -> None:
    with made(0, {f"top/project/{FILE}": (NOBODY, 0o644)}) as base:
        (base / "top" / FILE).touch()
        found = find_project(base / "top" / "project")
        assert found is not None
        assert found.root == base / "top"


def test_folders_that_this_account_can_not_enter_are_in_no_project() -> None:
    with made(0, {"top": (ROOT, 0o700)}) as base, being(MINE):
        assert find_project(base / "top" / "project") is None


def test_a_removed_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(ConfigError, match="was removed"):
        find_project(os.curdir)


def test_a_link_of_another_accounts_on_the_way_of_an_own_link_is_refused() -> None:
    """Of files that are no code, too: nobody knows where it will lead."""
    with made(2, {"elsewhere": (ROOT, 0o1777), "elsewhere/link": (NOBODY, 0o644)}) as base:
        with pytest.raises(PermissionError, match="elsewhere/link belongs to another account"):
            check_owners(base / "top" / "project" / FILE)
        (base / "up").symlink_to("elsewhere/../top/../elsewhere")
        check_owners(base / "up" / "missing")
        with pytest.raises(PermissionError, match="elsewhere/link belongs to another account"):
            check_owners(base / "up" / "link" / "missing")
        (base / "round").symlink_to("round")
        with pytest.raises(OSError, match="symbolic links"):
            check_owners(base / "round")


@pytest.mark.parametrize(
    ("words", "status"), [("list", exits.UNAVAILABLE), ("doctor", 1), ("config show", 2), ("status", 2), ("run", 2)]
)
def test_another_accounts_file_above_stops_no_command_and_is_told_once(words: str, status: int) -> None:
    with made(0, {f"top/project/{FILE}": (NOBODY, 0o644)}) as base:
        below = base / "top" / "project" / "below"
        below.mkdir()
        (below.parent / FILE).write_text('topology = "gone.py"\nname = "gone"\nmode = "nowhere"\n')
        nimbus = ["--nimbus", f"127.0.0.1:{free_port()}"] if words in ("list", "doctor") else []
        shown = multilang(*words.split(), *nimbus, cwd=below)
        assert shown.returncode == status, shown.stderr
        assert shown.stderr.count("is passed by") == 1
        assert f"{TRUSTED_FOLDERS}={below.parent}" in shown.stderr
        assert "gone" not in shown.stdout + shown.stderr
        assert "Traceback" not in shown.stderr
