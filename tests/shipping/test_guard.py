"""Files that should not leave the machine by accident are refused by name, and go only if that is forced."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import textwrap
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
KEY = TEXTS["openssh"]
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
    "key.asc": TEXTS["pgp"],
    ".envrc": "x",
    ".env~": "x",
    "id_rsa.bak": "x",
    "secrets.yaml": "x",
    "prod.tfvars": "x",
    "anything.txt": f"first\n{KEY}",
}


NAMES = (
    *(
        ".envrc",
        ".zsh_history",
        "fish_history",
        ".netrc.gpg",
        ".credentials",
        "token.json",
        "config/master.key",
        ".env~",
    ),
    *(
        "terraform.tfstate.1712345.backup",
        "prod.auto.tfvars.json",
        "client_secret_12-ab.apps.of.com.json",
        "id_rsa.bak.2",
    ),
    *(
        "secrets/db.txt",
        "clientSecret.json",
        "credentials.tfrc.json",
        "kafka_client_jaas.conf",
        "credentials.csv",
        ".token",
    ),
    *(
        "db_password.txt",
        "kubeconfig-prod.yaml",
        "config/credentials/production.key",
        "secrets.prod",
        "Copy of secrets.json",
        "api_key.txt",
        ".openai_api_key",
        "apiKeys.json",
        "service-private-key.txt",
        "krb5cc_1000",
        ".vault-pass",
    ),
)
INNOCENT = (
    *(
        ".env.local.example",
        "example.env",
        "secrets.yaml.example",
        "secrets.yaml.j2",
        ".env.dist",
        "id_rsa.pub",
        "public.key",
    ),
    *(
        "libssh2.so.1",
        "secretary.csv",
        "tokenizer.json",
        "special_tokens_map.json",
        "tokens.txt",
        "secrets/__init__.py",
        "key.json",
        "api_keys.py",
        "primary_keys.csv",
    ),
    *(
        "environment.yml",
        "env.yaml",
        "monkey.csv",
        "price_history.csv",
        "history",
        "passwords_test.go",
        "vite.env.d.ts",
    ),
)
BEFORE, WORDS = ("", ".", "prod-", "my_", "Our "), ("secret", "secrets", "credentials", "Credential", "creds")
AFTER, DATA = (
    ("", "-prod", "_dev-2", " (1)"),
    ("", ".json", ".yaml", ".yml", ".ini", ".properties", ".XML", ".txt", ".toml", ".db"),
)
COPIES = ("", "~", ".bak", ".1", ".old", ".gpg", ".2024.backup")
SOURCES = (
    ".py",
    ".go",
    ".ts",
    ".sql",
    ".java",
    ".rs",
    ".tsx",
    ".c",
    ".scala",
    ".md",
    ".html",
    ".proto",
    ".sh",
    ".so",
    ".tf",
)
HARMLESS = ("example", "sample", "template", "j2", "dist")
words = st.builds("{}{}{}".format, *map(st.sampled_from, (BEFORE, WORDS, AFTER)))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "empty"
    path.touch()
    return path


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_secret_is_known(empty: Path, name: str) -> None:
    with pytest.raises(ShippingError, match="has the name of a secret"):
        Guard().check_file(name, empty)


@pytest.mark.parametrize("name", INNOCENT)
def test_other_names_are_shipped(empty: Path, name: str) -> None:
    Guard().check_file(name, empty)


@given(words, st.sampled_from(DATA), st.sampled_from(COPIES))
def test_data_with_the_word_for_a_secret_is_refused_in_any_form_and_copy(
    empty: Path, word: str, kind: str, copy: str
) -> None:
    with pytest.raises(ShippingError, match="has the name of a secret"):
        Guard().check_file(f"conf/{word}{kind}{copy}", empty)


@given(words, st.sampled_from(SOURCES), st.sampled_from(DATA), st.sampled_from(HARMLESS))
def test_source_code_and_examples_may_have_any_word_in_their_name(
    empty: Path, word: str, source: str, kind: str, harmless: str
) -> None:
    for name in (f"{word}{source}", f"{word}{kind}.{harmless}", f"{harmless}-{word}{kind}", f"{word}.{harmless}{kind}"):
        Guard().check_file(name, empty)


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


def in_pieces(text: str, size: int, form: str, between: str) -> str:
    return between.join(form.format(repr(text[at : at + size])) for at in range(0, len(text), size))


def wrapped(pem: str, der: bytes, size: int) -> dict[str, bytes]:
    """Files in which a key is."""
    lines = pem.splitlines(keepends=True)
    key = base64.b64encode(der).decode()
    texts = {
        "a.pem": pem,
        "a.json": json.dumps({"type": "service", "private_key": pem}),
        "b.json": json.dumps({"config": json.dumps({"key": pem})}),
        "list.json": json.dumps(lines),
        "a.yaml": "key: |\n" + "".join(f"    {line}" for line in lines),
        "commented.ini": "".join(f"# {line}" for line in lines),
        "bytes.py": f"KEY = {pem.encode()!r}\n",
        "formatted.py": "KEY = f" + repr(pem),
        "triple.py": f"KEY = b'''{pem}'''\n",
        "added.py": "KEY = " + in_pieces(pem, size, "{}", " + \\\n    "),
        "implicit.py": "KEY = (\n    " + in_pieces(pem, size, "b{}", "\n    ") + "\n)\n",
        "Key.java": "String KEY = " + in_pieces(pem, size, "{}", "\n    + ").replace("'", '"') + ";",
        "lines.py": f"KEY = {lines!r}\n",
        "bundle.crt": CERTIFICATE + pem + CERTIFICATE,
        "encoded.yaml": f"tls.key: {base64.b64encode(pem.encode()).decode()}\n",
        "windows.txt": pem.replace("\n", "\r\n"),
    }
    if der:
        texts |= {
            "encoded.env.txt": f"KEY={key}\n",
            "encoded.py": f"def key():\n    return{key!r}",
            "folded.txt": "\n".join(textwrap.wrap(key, 76)),
            "pieces.py": in_pieces(key, size, "{}", " + "),
        }
    files = {name: text.encode() for name, text in texts.items()}
    if der:
        files |= {
            "a.bin": der,
            "end.bin": der + b"\n\0 more",
            "two.der": CERTIFICATE.encode() + der,
            "begin.bin": b"\xff\n" + der,
        }
    return files


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUJt3vM2Jb0bqk\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def real() -> list[tuple[str, bytes]]:
    """Keys of each kind and form, as PEM and, where there is such, as DER."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

    form, pem, der = serialization.PrivateFormat, serialization.Encoding.PEM, serialization.Encoding.DER
    made = [
        rsa.generate_private_key(65537, 1024),
        dsa.generate_private_key(1024),
        ec.generate_private_key(ec.SECP256R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ]
    found = []
    for key in made:
        for how in (form.PKCS8, form.TraditionalOpenSSL, form.OpenSSH):
            for locked in (serialization.NoEncryption(), serialization.BestAvailableEncryption(b"word")):
                is_ed, is_dsa = isinstance(key, ed25519.Ed25519PrivateKey), isinstance(key, dsa.DSAPrivateKey)
                if how is form.OpenSSH and (is_dsa or isinstance(locked, serialization.BestAvailableEncryption)):
                    continue  # neither is made by this package alone
                if how is form.TraditionalOpenSSL and is_ed:
                    continue
                is_binary = how is form.PKCS8 or (
                    how is form.TraditionalOpenSSL and isinstance(locked, serialization.NoEncryption)
                )
                binary = key.private_bytes(der, how, locked) if is_binary else b""
                found.append((key.private_bytes(pem, how, locked).decode(), binary))
    assert len(found) > 15
    return found


@given(st.data())
def test_a_real_key_is_found_in_whatever_file_it_is_and_its_first_line_alone_is_not(
    real: list[tuple[str, bytes]], empty: Path, data: st.DataObject
) -> None:
    pem, der = data.draw(st.sampled_from(real))
    files = wrapped(pem, der, data.draw(st.integers(1, 70)))
    name = data.draw(st.sampled_from(sorted(files)))
    path = empty.with_name("held")
    path.write_bytes(files[name])
    with pytest.raises(ShippingError, match="has a private key in it"):
        Guard().check_file(name, path)
    lines = pem.splitlines()
    path.write_bytes(
        wrapped("\n".join([lines[0], "...", lines[-1]]), b"", 10)[name] if not der else b""
    )  # no key behind it
    Guard().check_file(name, path)


def test_keys_in_other_forms_are_found(tmp_path: Path, real: list[tuple[str, bytes]]) -> None:
    number = base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
    jwk = {"kty": "EC", "crv": "P-256", "x": number, "y": number}
    forms = {
        "jwk": json.dumps({"keys": [jwk, {**jwk, "d": number}]}),
        "jwk first": json.dumps({"d": number, **jwk}, indent=1),
        "jwk of text": json.dumps({"key": json.dumps({**jwk, "d": number})}),
        "symmetric jwk": repr({"kty": "oct", "k": number}),
        "putty": f"PuTTY-User-Key-File-2: ssh-rsa\nPublic-Lines: 1\n{number}\nPrivate-Lines: 1\n{number}{number}\n",
        "ssh2": f'---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "a"\n{number}{number}\n',
        "pgp": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{number}\n{number}\n",
    }
    binary = {
        "ber pkcs12": bytes.fromhex("308002010330800609 2a864886f70d010701 a080 2480 0482"),
        "jks": bytes.fromhex("feedfeed0000000200000001"),
        "keytab": bytes.fromhex("0502000000320001000b") + b"EXAMPLE.COM\0\4shop",
    }
    for name, data in {**{name: text.encode() for name, text in forms.items()}, **binary}.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ShippingError, match=rf"{name} has a private key in it"):
            Guard().check_file("data", path)
    path = tmp_path / "public"
    for text in (json.dumps({"keys": [jwk]}), json.dumps([jwk, {"d": number}])):
        path.write_text(text)
        Guard().check_file("data", path)


prose = st.lists(
    st.sampled_from(
        [
            *(
                "-----BEGIN RSA PRIVATE KEY-----",
                "-----END PRIVATE KEY-----",
                "PuTTY-User-Key-File-2: ",
                "MIIEvgIBADAN",
                "...",
            ),
            *(
                "line",
                "the key, then",
                '"',
                "'",
                "\n",
                "\\n",
                "+",
                "<your key>",
                "Proc-Type: 4,ENCRYPTED",
                "kty",
                "b3BlbnNzaC1rZXktdjE",
            ),
            *(
                "KEY =",
                "DEK-Info: AES-128-CBC,",
                "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAo...",
                "LS0tLS1CRUdJTi",
                "Private-Lines: 3",
            ),
        ]
    ),
    max_size=30,
).map(" ".join)


@given(prose.map(str.encode) | st.binary().map(lambda data: b"\x05\x02\x00\x00" + data), st.binary(max_size=40))
def test_a_text_that_speaks_of_keys_and_what_begins_like_a_keytab_are_shipped(
    empty: Path, data: bytes, more: bytes
) -> None:
    path = empty.with_name("innocent")
    path.write_bytes(data + more)
    Guard().check_file("innocent", path)


@pytest.mark.parametrize("serial", [0, 1, 1000])
def test_certificates_requests_and_public_keys_are_shipped(tmp_path: Path, serial: int) -> None:
    """Those of the first version begin as keys do: with a small number and an algorithm."""
    path = tmp_path / "a.der"
    first = (
        bytes.fromhex("3082 0100 3081 c0 0201")
        + bytes([serial % 256])
        + bytes.fromhex("300d06092a864886f70d01010505003011")
    )
    snmp = bytes.fromhex("302602010104067075626c6963a019")
    for data in (first, snmp, bytes.fromhex("302e020100300506032b657004220420")):
        path.write_bytes(data + bytes(300 if data is first else 20))
        Guard().check_file("a.der", path)


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


def test_modules_and_the_topology_itself_are_looked_at_too(project: Path) -> None:
    (project / "lib").mkdir()
    (project / "lib" / "__init__.py").touch()
    held = project / "lib" / "login.py"
    (project / "shop.py").write_text(f"import lib.login\n{TOPOLOGY}")
    for path in (held, project / "shop.py"):
        held.touch()
        before = path.read_text()
        path.write_text(f"{before}\nKEY = {TEXTS['pkcs8']!r}\n")
        topology = load_topology(str(project / "shop.py"))
        with pytest.raises(ShippingError, match=rf"{path.name} has a private key in it"):
            pack(topology)
        assert path.name in "".join(names_in(pack(topology, guard=Guard(force=True)).jar()))
        path.write_text(before)


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
