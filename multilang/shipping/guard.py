"""Files that should not leave this machine by accident: secrets, and what links lead to from outside the folder.

A jar or archive can be read by whoever can read the blob store, so that they are refused, unless that is forced.
"""

from __future__ import annotations

import fnmatch
import re
from binascii import a2b_base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

VERSION_CONTROL = (".git", ".hg", ".svn", ".bzr")
_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud", ".m2", ".snowsql")
_NAMES = (  # that programs give to files with passwords or keys
    *(
        ".env",
        ".env.*",
        "*.env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".pgpass",
        "pgpass.conf",
        ".npmrc",
        ".pypirc",
        ".my.cnf",
    ),
    *(".gitconfig", ".vault-token", ".vault?pass*", ".authinfo", ".mylogin.cnf", ".boto", ".s3cfg", ".dockercfg"),
    *(
        ".dockerconfigjson",
        ".databrickscfg",
        ".terraformrc",
        "rclone.conf",
        "rootkey.csv",
        "*accesskeys.csv",
        "secring",
        "krb5cc*",
    ),
    *(
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_*_sk",
        ".*_history",
        "fish_history",
        "*host_history.txt",
        ".histfile",
    ),
    *(
        "*.key",
        "*.ppk",
        "*.p8",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.jceks",
        "*.bcfks",
        "*.keystore",
        "*.keytab",
        "*.agekey",
        "*.ovpn",
    ),
    *("*.kdb", "*.kdbx", "*.tfstate", "*.tfvars", "*.tfvars.json", "*.htpasswd", "*.kubeconfig", ".age-key.txt"),
)
# What a name says by one of its words, if it is no source code: a file of data, which these are, or of an environment.
_WORDS = re.compile(
    r"(?:.*[^a-z])?(?:(?:secrets?|credentials?|creds|kubeconfig|jaas|htpasswd)(?:[^a-z].*)?|token|passwords?|passwd|(?:api|private)[^a-z]?keys?)",
    re.DOTALL,
)
_FOLDERS_OF_DATA = ("secrets", ".secrets", "credentials", ".credentials")
_DATA = (
    *(
        "",
        "json",
        "json5",
        "jsonl",
        "yaml",
        "yml",
        "toml",
        "ini",
        "cfg",
        "cnf",
        "conf",
        "config",
        "properties",
        "props",
        "xml",
    ),
    *("plist", "env", "txt", "csv", "tsv", "db", "sqlite", "sqlite3", "pickle", "pkl", "dat", "bin", "dec"),
    *("local", "dev", "staging", "prod", "production"),
)
_HARMLESS = re.compile(
    r"(?:.*[^a-z])?(?:examples?|samples?|templates?|tmpl|tpl|dist|schema|j2|jinja2?|erb|mustache|pub|public)(?:[^a-z].*)?",
    re.DOTALL,
)
# As editors and people leave them.
_COPY = re.compile(r"(?:~|\.(?:bak|old|orig|save|swp|backup|copy|tmp|gpg|asc|enc|age|\d+))+$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# A key in a text is not its first line, which any manual names, but the lines after it: a line of base64, whose pieces may
# be joined in source code; or base64 of a key in DER, or of such a text, wherever it is.
_JOINED = re.compile(rb"""["'][\s\\,+()]*[bfru]{0,2}["']""", re.IGNORECASE)
_ESCAPED = re.compile(rb"\\(?<!\\\\)\\*[nrt]")
_LETTER = rb"(?:[A-Za-z0-9+/](?:[ \t\r]*\n[\s#*>]*)?)"  # of base64 in lines
_TEXT_KEY = re.compile(
    rb"(?:PRIVATE KEY(?: BLOCK)? ?-{4,5}|DEK-Info: [\w-]+,[0-9A-Fa-f]+)"
    rb"(?:[ \t\r]*(?:\n[ \t#*>]*[\w-]+: .*){1,9})?[\s#*>]*" + _LETTER + rb"{60}"
    rb"|Private-Lines: \d+[ \t\r]*\n" + _LETTER + rb"{40}|AGE-SECRET-KEY-1[0-9A-Z]{50}"
)
_OF_TEXT_KEYS = b"PRIVATE KEY", b"DEK-Info", b"Private-Lines", b"AGE-SECRET-KEY"  # found in a tenth of the time
_JWK = re.compile(rb"""\{(?=[^{}]*["']kty\\*["']\s*:)[^{}]*["'][dk]\\*["']\s*:\s*\\*["'][\w-]{20}""")
_BETWEEN = b" \t\r\n\"'`\\,#*>"  # characters that are not of base64
_OPENSSH = re.compile(rb"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]{100}")
_PEM_PACKED = re.compile(rb"LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}")  # base64 of -----BEGIN
_DER_PACKED = re.compile(rb"M(?=[A-I][A-Za-z0-9+/]{58})")  # base64 of a sequence
_PACKED = re.compile(rb"[A-Za-z0-9+/]+")

# A key in DER (ASN.1) is a sequence, and in it is what only a key has.
_LENGTH = rb"[\x00-\x7f]|\x81.|\x82..|\x83...|\x84...."
_DER_KEY = re.compile(
    rb"\x30(?=(" + _LENGTH + rb"|\x80)(?:"
    rb"\x02\x01[\x00\x01](?:\x30(" + _LENGTH + rb")\x06|\x02([\x30-\x7f]|\x81.|\x82..))"  # PKCS #8; RSA, DSA
    rb"|\x02\x01\x01\x04[\x10-\x7f]"  # an elliptic curve
    rb"|\x02\x01\x03\x30(?:" + _LENGTH + rb"|\x80)\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07"  # PKCS #12
    rb"|\x30(?:"
    + _LENGTH
    + rb")\x06(?:\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05|\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01)"  # encrypted
    rb"))",
    re.DOTALL,
)
# Java's stores of keys, by what they begin with, and a keytab, which begins with the name of a realm.
_STORE = re.compile(
    rb"(?:\xfe\xed\xfe\xed|\xce\xce\xce\xce)\x00\x00\x00[\x01\x02]|\x05\x02\x00\x00..\x00[\x01-\x09]\x00.[!-~]{2}",
    re.DOTALL,
)


@dataclass(frozen=True)
class Guard:
    """The choice of what may be shipped.

    Attributes:
        exclude: Patterns of files and folders to leave out: of a name, or of a path from the top (``data/*.csv``).
        force: Whether secrets are shipped, and what links outside of the folder lead to.
    """

    exclude: Sequence[str] = ()
    force: bool = False

    def excludes(self, name: str) -> bool:
        """Return whether a file or folder is to be left out, by its name from the top, with ``/`` between folders."""
        last = name.rpartition("/")[2]
        return any(fnmatch.fnmatchcase(each, one.rstrip("/")) for one in self.exclude for each in (name, last))

    def check_file(self, name: str, path: Path) -> None:
        """Refuse a file that is a secret, by its name or by a private key in it.

        Raises:
            ShippingError: It is one, and not forced.
        """
        if self.force:
            return
        why = _secret(name, path)
        if why is not None:
            raise ShippingError(
                f"{path} {why}, and whoever reads the blob store could read it: leave it out, --exclude {name!r}, or ship it "
                "nevertheless, --force"
            )

    def check_link(self, name: str, path: Path, real: str | Path) -> None:
        """Refuse a link that leads out of the folder that is shipped.

        Raises:
            ShippingError: It is not forced.
        """
        if not self.force:
            raise ShippingError(
                f"the link {path} leads out of the folder, to {real}, which would be shipped: put a copy there, leave it "
                f"out, --exclude {name!r}, or ship it nevertheless, --force"
            )


def _secret(name: str, path: Path) -> str | None:
    """Return the reason why a file is a secret; None if it is none that is known."""
    *folders, last = _COPY.sub("", _CAMEL.sub("-", name).lower()).split("/")
    if any(each in _FOLDERS for each in folders):
        return "is in a folder of secrets"
    if not _HARMLESS.fullmatch(last) and (
        any(fnmatch.fnmatchcase(last, each) for each in _NAMES) or _is_data(folders, last)
    ):
        return "has the name of a secret"
    try:
        return "has a private key in it" if _has_key(path.read_bytes()) else None
    except OSError:
        return None  # the next reader raises the error


def _is_data(folders: Sequence[str], last: str) -> bool:
    stem, dot, end = last.lstrip(".").rpartition(".")
    if not dot:
        stem, end = end, ""
    return end in _DATA and bool(_WORDS.fullmatch(stem) or any(each in _FOLDERS_OF_DATA for each in folders))


def _has_key(data: bytes) -> bool:
    if _STORE.match(data) or any(_is_der_key(data, found) for found in _DER_KEY.finditer(data)):
        return True
    text = data.replace(b"\0", b"")  # of UTF-16
    if b"kty" in text and _JWK.search(text):
        return True
    text = _ESCAPED.sub(b"\n", _JOINED.sub(b"", text))
    packed = text.translate(None, _BETWEEN)
    if (any(each in text for each in _OF_TEXT_KEYS) and _TEXT_KEY.search(text)) or _OPENSSH.search(packed):
        return True
    return any(_has_key(_unpacked(found[0])) for found in _PEM_PACKED.finditer(packed)) or any(
        _is_packed_key(packed, found.start()) for found in _DER_PACKED.finditer(packed)
    )


def _is_packed_key(packed: bytes, at: int) -> bool:
    found = _DER_KEY.match(_unpacked(packed[at : at + 60]))
    if found is None:
        return False
    whole = _PACKED.match(packed, at, at + max(60, _end(found, 1) * 4 // 3 + 4))
    der = _unpacked(whole[0]) if whole else b""
    found = _DER_KEY.match(der)
    return found is not None and _is_der_key(der, found)


def _unpacked(text: bytes) -> bytes:
    return a2b_base64(text[: len(text) - (len(text) % 4 == 1)] + b"==")


def _is_der_key(data: bytes, found: re.Match[bytes]) -> bool:
    """Return whether all of a key is there, and after its second part what a key has, as no certificate does."""
    if found[2] is not None and not data.startswith(b"\x04", _end(found, 2)):
        return False
    if found[3] is not None and not data.startswith(b"\x02", _end(found, 3)):
        return False
    return _end(found, 1) <= len(data)


def _end(found: re.Match[bytes], group: int) -> int:
    """Return where a part ends whose length a group has."""
    length = found[group]
    return found.end(group) + (length[0] if length[0] < 0x80 else int.from_bytes(length[1:], "big"))
