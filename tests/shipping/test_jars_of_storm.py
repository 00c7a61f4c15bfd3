"""Storm's jars, which ``multilang cluster`` fetches once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster.artifacts import missing_programs, storm_jars
from multilang.shipping.errors import ClusterError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(bool(missing_programs()), reason="no Java or no Maven here")
def test_a_folder_that_can_not_be_made_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MULTILANG_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        ClusterError, match="cache can't hold Storm's jars: Not a directory; name a folder for downloads"
    ):
        storm_jars()
