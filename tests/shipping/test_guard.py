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
from tests.authority import Authority
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


NAMES = (
    *(".envrc", ".zsh_history", ".bash_history", "secrets.ini", "secrets.properties", "secrets", "Secrets.XML"),
    *("secret.json", "prod.tfvars", "prod.auto.tfvars.json", "credentials.yaml", ".secrets"),
)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_secret_is_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(ShippingError, match="has the name of a secret"):
        Guard().check_file(name, tmp_path / name)


BODY = "MC4CAQAwBQYDK2VwBCIEIHJhbmRvbSBieXRlcyBhcmUgaGVyZSwgYW5kIG1vcmUh\n"
TEXTS = {
    name: f"-----BEGIN {kind}-----\n{BODY}-----END {kind}-----\n"
    for name, kind in {
        "pkcs8": "PRIVATE KEY",
        "rsa": "RSA PRIVATE KEY",
        "encrypted": "ENCRYPTED PRIVATE KEY",
        "openssh": "OPENSSH PRIVATE KEY",
        "pgp": "PGP PRIVATE KEY BLOCK",
    }.items()
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("before", [0, 1, 65_500, 1_048_550, 1_048_575, 3_000_001])
@pytest.mark.parametrize("name", TEXTS)
def test_a_key_in_a_text_is_found_wherever_it_is(tmp_path: Path, name: str, before: int, encoding: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(("x" * before + TEXTS[name] + "x" * 1000).encode(encoding))
    with pytest.raises(ShippingError, match="has a private key in it"):
        Guard().check_file("notes.txt", path)


def keys() -> dict[str, bytes]:
    """Keys in DER, of each kind and form; some certificates and public keys."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

    form, none = serialization.PrivateFormat, serialization.NoEncryption()
    locked = serialization.BestAvailableEncryption(b"word")
    der, found = serialization.Encoding.DER, {}
    made = {
        "rsa": rsa.generate_private_key(65537, 1024),
        "dsa": dsa.generate_private_key(1024),
        "p256": ec.generate_private_key(ec.SECP256R1()),
        "p521": ec.generate_private_key(ec.SECP521R1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate(),
    }
    for name, key in made.items():
        found[f"{name} pkcs8"] = key.private_bytes(der, form.PKCS8, none)
        found[f"{name} encrypted"] = key.private_bytes(der, form.PKCS8, locked)
        if name != "ed25519":
            found[f"{name} traditional"] = key.private_bytes(der, form.TraditionalOpenSSL, none)
        found[f"{name} public"] = key.public_key().public_bytes(der, serialization.PublicFormat.SubjectPublicKeyInfo)
    found["pkcs12"] = serialization.pkcs12.serialize_key_and_certificates(b"a", made["p256"], None, None, locked)
    found["rsa pkcs1 public"] = made["rsa"].public_key().public_bytes(der, serialization.PublicFormat.PKCS1)
    return found


def test_a_key_in_der_is_found_and_a_public_one_is_shipped(tmp_path: Path) -> None:
    found = keys()
    assert len(found) > 15
    for name, data in found.items():
        path = tmp_path / "data.bin"
        path.write_bytes(data)
        if name.endswith("public"):
            Guard().check_file("data.bin", path)
            continue
        with pytest.raises(ShippingError, match="has a private key in it"):
            Guard().check_file("data.bin", path)


def test_a_certificate_in_der_is_shipped(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    authority = Authority(tmp_path, "authority")
    certificate = x509.load_pem_x509_certificate(Path(authority.pem).read_bytes())
    (tmp_path / "certificate.der").write_bytes(certificate.public_bytes(Encoding.DER))
    Guard().check_file("certificate.der", tmp_path / "certificate.der")


def test_source_may_speak_of_a_key_and_have_none(tmp_path: Path) -> None:
    path = tmp_path / "secrets.py"
    path.write_text('BEGIN = "-----BEGIN PRIVATE KEY-----"\nEND = "-----END PRIVATE KEY-----"\n' + "words " * 100)
    Guard().check_file("secrets.py", path)
    for key in (TEXTS["rsa"], TEXTS["rsa"].replace("\n", "\\n")):
        path.write_text(f"KEY = '''{key}'''\n")
        with pytest.raises(ShippingError, match="has a private key in it"):
            Guard().check_file("secrets.py", path)


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
