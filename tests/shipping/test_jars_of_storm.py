"""Storm's jars, which ``multilang cluster`` fetches once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster.artifacts import missing_programs, storm_jars
from multilang.shipping.cluster.cluster import SIGN, Cluster
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(bool(missing_programs()), reason="no Java or no Maven here")
def test_a_folder_that_can_not_be_made_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MULTILANG_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        ShippingError, match="cache can't hold Storm's jars: Not a directory; name a folder for downloads"
    ):
        storm_jars()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("squatted", [".", "storm-2.8.3"])
def test_no_jar_of_another_account_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squatted: str) -> None:
    """They were complete, so they were taken, and run by whoever started a cluster or asked for an object of Java's."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    cache = shared if squatted != "." else shared / "cache"
    (cache / "storm-2.8.3" / "lib-worker").mkdir(parents=True)
    for each in (cache / squatted, *(cache / squatted).rglob("*")):
        os.chown(each, 65534, 65534)
    monkeypatch.setenv("MULTILANG_CACHE", str(cache))
    monkeypatch.delenv("MULTILANG_CLUSTER_HOME", raising=False)
    with pytest.raises(ShippingError, match="belongs to another account"):
        storm_jars()
    home = cache / squatted / "cluster"
    home.mkdir()
    (home / SIGN).touch()
    with pytest.raises(ShippingError, match="belongs to another account"):
        Cluster(home).down()
