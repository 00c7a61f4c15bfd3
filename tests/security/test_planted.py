"""Files, folders and links that another account plants beside this user's files, before a look at them or between the look and the use."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from multilang.cli.quickstart import write_project
from multilang.compat.project import project_of
from multilang.component.errors import ConfigError
from multilang.drpc import addresses
from multilang.drpc.errors import DRPCConnectionError
from multilang.helpers.private import check_owner, check_owners
from multilang.project.new import new_project
from multilang.shipping.cluster import artifacts, cluster
from multilang.shipping.errors import ShippingError
from multilang.store import StateError, open_store
from tests.security.test_another_account import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REFUSALS = (ShippingError, ConfigError, DRPCConnectionError, OSError, StateError)


@pytest.fixture
def of_all(tmp_path: Path) -> Path:
    """A folder like /tmp; beside it is ``elsewhere``, a folder of this user's alone, with a file."""
    if os.geteuid() != 0:
        assert "CI" not in os.environ
        pytest.skip("only root can give files to another account")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "elsewhere" / "mine").write_text("mine")
    folder = tmp_path / "of_all"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def open_folder(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)
    os.chown(path, NOBODY, NOBODY)


def link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "elsewhere")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


class Attacker:
    """Plants something at the instant at which this process is about to make, open or list it: nobody is quicker."""

    def __init__(self) -> None:
        self._path = ""
        self._plant: Callable[[], object] | None = None
        sys.addaudithook(self._look)  # it stays for ever, and does nothing then

    def waits_for(self, path: Path, plant: Callable[[Path], object]) -> None:
        self._path, self._plant = str(path), lambda: plant(path)

    @property
    def has_planted(self) -> bool:
        return self._plant is None

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        plant = self._plant
        if plant is None or event not in ("os.mkdir", "open", "os.listdir", "os.scandir"):
            return
        if str(arguments[0]).rstrip("/") == self._path and not os.path.lexists(self._path):
            self._plant = None
            plant()


@pytest.fixture(scope="module")
def the_attacker() -> Attacker:
    return Attacker()


@pytest.fixture
def attacker(the_attacker: Attacker) -> Iterator[Attacker]:
    yield the_attacker
    the_attacker._plant = None


def drpc_folder(path: Path) -> None:
    addresses.listen(f"unix:{path}", 3772).close()


def state(path: Path) -> None:
    open_store(f"sqlite://{path}/state.sqlite").compare_and_write("p", {}, {"t": {b"k": b"1"}})


def cluster_home(path: Path) -> None:
    with cluster.Cluster(path)._locked():
        pass


MAKERS: dict[str, Callable[[Path], object]] = {
    "a new project": new_project,
    "a new project below": lambda path: new_project(path / "shop"),
    "a project of streamparse's": write_project,
    "a project of streamparse's below": lambda path: write_project(path / "shop"),
    "sockets of DRPC": drpc_folder,
    "sockets of DRPC with a slash": lambda path: drpc_folder(f"{path}/"),  # type: ignore[arg-type]
    "sockets of DRPC below": lambda path: drpc_folder(path / "mine"),
    "a state": state,
    "a cluster": cluster_home,
}


@pytest.mark.parametrize("planted", [open_folder, link])
@pytest.mark.parametrize(
    ("when", "name"),
    [
        *(("before", name) for name in MAKERS),
        *(("between", name) for name in MAKERS if name != "sockets of DRPC below"),  # which makes no folder above
    ],
)
def test_nothing_is_made_in_what_another_account_planted(
    of_all: Path, attacker: Attacker, name: str, when: str, planted: Callable[[Path], object]
) -> None:
    path = of_all / "place"
    if when == "before":
        planted(path)
    else:
        attacker.waits_for(path, planted)
    with pytest.raises(REFUSALS):
        MAKERS[name](path)
    assert when == "before" or attacker.has_planted
    assert all(each.name == "mine" or not each.is_file() or not each.stat().st_size for each in tree(of_all.parent))
    elsewhere = of_all.parent / "elsewhere"
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    assert (elsewhere / "mine").read_text() == "mine"


def tree(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_no_jars_are_run_from_what_another_account_planted_while_they_were_looked_for(
    of_all: Path, attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_CACHE", str(of_all / "cache"))
    monkeypatch.setattr(artifacts, "missing_programs", list)
    attacker.waits_for(of_all / "cache", open_folder)
    with pytest.raises(ShippingError, match="belongs to another account"):
        artifacts.storm_jars()
    assert attacker.has_planted
    assert tree(of_all / "cache") == []


def test_sockets_of_drpc_are_not_reached_by_another_accounts_link(of_all: Path) -> None:
    """A slash at the end made the link's target the folder that was looked at, and nobody knows where it leads then."""
    link(of_all / "link")
    for folder in ("link", "link/", "link/."):
        with pytest.raises(DRPCConnectionError, match="belongs to another account"):
            addresses.connect(f"unix:{of_all}/{folder}", 3772, 1)


CONFIG = json.dumps({"topology_specs": "topologies", "envs": {"prod": {"options": {"topology.workers": 7}}}})


def test_settings_that_another_account_takes_away_when_they_were_read_are_not_taken(
    of_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is missing at the look after its reading was taken for none that could be another account's."""
    work = of_all / "work"
    work.mkdir()
    (work / "mine.py").write_text("")
    found = of_all / "config.json"
    found.write_text(CONFIG)
    os.chown(found, NOBODY, NOBODY)
    really = json.load

    def load_and_lose(file: Any) -> Any:
        document = really(file)
        found.unlink()
        return document

    monkeypatch.setattr("multilang.compat.project.json.load", load_and_lose)
    with pytest.raises(ConfigError, match="belongs to another account"):
        project_of(str(work / "mine.py"))


def test_what_must_be_there_is_refused_when_it_is_missing(of_all: Path) -> None:
    for check in (check_owner, check_owners):
        check(of_all / "missing")
        with pytest.raises(FileNotFoundError):
            check(of_all / "missing", must_exist=True)
