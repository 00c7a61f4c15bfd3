"""Files in a real blob store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.blobs import delete_blob, list_blobs, put_blob, read_blob, save_blob
from multilang.shipping.errors import ShippingError
from multilang.shipping.nimbus import CHUNK
from tests.cli.command import multilang

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def test_a_file_is_put_listed_read_updated_and_deleted(storm: Cluster, tmp_path: Path) -> None:
    at = ("--nimbus", storm.address)
    file, back = tmp_path / "data", tmp_path / "back"
    content = bytes(range(256)) * (3 * CHUNK // 256) + b"the end"
    file.write_bytes(content)
    assert multilang("blob", "put", "data.bin", file, *at).stdout == f"data.bin: {len(content):,} bytes, new\n"
    assert "data.bin\n" in multilang("blob", "ls", *at).stdout
    assert multilang("blob", "cat", "data.bin", "-o", back, *at).returncode == 0
    assert back.read_bytes() == content
    file.write_bytes(b"short\n")
    assert multilang("blob", "put", "data.bin", file, *at).stdout.endswith("updated\n")
    assert multilang("blob", "cat", "data.bin", *at).stdout == "short\n"
    assert multilang("blob", "rm", "data.bin", *at).returncode == 0
    assert "data.bin" not in multilang("blob", "ls", *at).stdout
    gone = multilang("blob", "rm", "data.bin", *at)
    assert gone.returncode == 2
    assert "there is no blob 'data.bin'; multilang blob put data.bin FILE puts one there" in gone.stderr


def test_what_cannot_be_is_refused_and_leaves_nothing(nimbus: Nimbus, tmp_path: Path) -> None:
    before = set(list_blobs(nimbus))
    with pytest.raises(ShippingError, match="'a/b' is not a key"):
        put_blob(nimbus, "a/b", Path(__file__))
    with pytest.raises(ShippingError, match="can't be read: Is a directory"):
        put_blob(nimbus, "folder", tmp_path)
    with pytest.raises(ShippingError, match="there is no blob 'nothing'"):
        list(read_blob(nimbus, "nothing"))
    with pytest.raises(ShippingError, match="there is no blob 'nothing'"):
        save_blob(nimbus, "nothing", tmp_path / "file")
    with pytest.raises(ShippingError, match="there is no blob 'nothing'"):
        delete_blob(nimbus, "nothing")
    assert not set(list_blobs(nimbus)) - before  # Nimbus may just remove those of a topology that was killed
    assert list(tmp_path.iterdir()) == []
