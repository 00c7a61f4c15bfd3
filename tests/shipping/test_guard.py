"""Files that should not leave the machine by accident are refused by name, and go only if that is forced."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from multilang.shipping import ShippingError, pack
from multilang.shipping.archive import archive_folder
from multilang.shipping.guard import Guard
from multilang.topology import load_topology
from tests.cli.command import multilang

TOPOLOGY = """
from multilang import Spout, TopologyBuilder

class Words(Spout):
    output_fields = ["word"]

builder = TopologyBuilder()
builder.set_spout("words", Words)
topology = builder.build("shop")
"""
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"
SECRETS = {
    ".env": "PASSWORD=x",
    "prod.env": "PASSWORD=x",
    ".env.local": "PASSWORD=x",
    ".netrc": "machine a login b password c",
    "id_rsa": "x",
    ".ssh/config": "x",
    ".aws/credentials": "x",
    "service.keytab": "x",
    "storm_jaas.conf": "x",
    "server.pem": KEY,
    "id_ed25519_sk": "x",
    "terraform.tfstate": "x",
    ".streamlit/secrets.toml": "x",
    ".psql_history": "x",
    "key.asc": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
    ".envrc": "x",
    ".env~": "x",
    "id_rsa.bak": "x",
    "secrets.yaml": "x",
    "prod.tfvars": "x",
    "anything.txt": f"first\n{KEY}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "data.txt").write_text("data")
    (tmp_path / "resources" / ".env.example").write_text("PASSWORD=")
    (tmp_path / "resources" / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "shop.py").write_text(TOPOLOGY)
    return tmp_path


def names_in(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as jar:
        return jar.namelist()


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_shipped_only_where_that_is_forced(project: Path, name: str) -> None:
    secret = project / "resources" / name
    secret.parent.mkdir(exist_ok=True)
    secret.write_text(SECRETS[name])
    topology = load_topology(str(project / "shop.py"))
    with pytest.raises(ShippingError, match="reads the blob store could read it: leave it out, --exclude"):
        pack(topology)
    with pytest.raises(ShippingError, match="reads the blob store could read it: leave it out, --exclude"):
        archive_folder(project / "resources", project / "a.tgz")
    assert not (project / "a.tgz").exists()
    out = Guard(exclude=[name])
    assert f"resources/{name}" not in names_in(pack(topology, guard=out).jar())
    assert "resources/data.txt" in names_in(pack(topology, guard=out).jar())
    assert archive_folder(project / "resources", project / "a.tgz", out).left_out == {name: "excluded"}
    assert f"resources/{name}" in names_in(pack(topology, guard=Guard(force=True)).jar())
    archive_folder(project / "resources", project / "a.tgz", Guard(force=True))
    with tarfile.open(project / "a.tgz") as tar:
        assert name in tar.getnames()


def test_what_a_link_leads_to_outside_is_shipped_only_where_that_is_forced(project: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
    outside.write_text("not yours")
    link = project / "resources" / "innocent.txt"
    link.symlink_to(outside)
    topology = load_topology(str(project / "shop.py"))
    for ship in (
        lambda guard: pack(topology, guard=guard),
        lambda guard: archive_folder(link.parent, project / "a.tgz", guard),
    ):
        with pytest.raises(ShippingError, match="leads out of the folder, to"):
            ship(Guard())
        ship(Guard(exclude=["innocent.*"]))
        ship(Guard(force=True))
    assert b"not yours" in pack(topology, guard=Guard(force=True)).contents._items["innocent.txt"].data


def test_version_control_is_left_out_of_an_archive_and_that_is_told(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("url = https://user:password@host")
    shown = multilang("archive", project, "-o", project / "a.tgz", "--exclude", "resources/d*")
    assert shown.returncode == 0, shown.stderr
    with tarfile.open(project / "a.tgz") as tar:
        names = tar.getnames()
    assert "shop.py" in names
    assert not [name for name in names if ".git" in name or "data" in name]
    assert "  without .git: of version control\n  without resources/data.txt: excluded\n" in shown.stdout
    assert set(names) <= {line.strip() for line in shown.stdout.splitlines()}


def test_the_command_refuses_excludes_and_forces(project: Path) -> None:
    (project / "resources" / ".env").write_text("PASSWORD=x")
    shown = multilang("package", project / "shop.py", "-o", project / "a.jar")
    assert shown.returncode == 2
    assert ".env has the name of a secret" in shown.stderr
    assert not (project / "a.jar").exists()
    shown = multilang("package", project / "shop.py", "-o", project / "a.jar", "--exclude", ".env")
    assert "  without .env: excluded\n" in shown.stdout
    assert ".env: " not in shown.stdout.replace("without .env: ", "")
    shown = multilang("package", project / "shop.py", "-o", project / "a.jar", "--force")
    assert "  .env  10 bytes: your files" in shown.stdout
