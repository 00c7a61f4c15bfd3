"""Files that should not leave this machine by accident: secrets, and what links lead to from outside the folder.

A jar or archive can be read by whoever can read the blob store, so that they are refused, unless that is forced.
"""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

VERSION_CONTROL = (".git", ".hg", ".svn", ".bzr")
_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud", ".m2", ".snowsql")
_NAMES = (
    *(".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".htpasswd", ".my.cnf"),
    *(".git-credentials", ".gitconfig", "credentials", "credentials.json", ".vault-token", "*.kdbx"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_*_sk", "*.ppk", "secring.gpg", "*.p8", "*.p12", "*.pfx"),
    *("*.jks", "*.keystore", "*.keytab", "*jaas*.conf", "kubeconfig", "*.tfstate", "*.tfstate.backup"),
    *(
        ".boto",
        ".s3cfg",
        ".dockercfg",
        ".dockerconfigjson",
        ".databrickscfg",
        "rclone.conf",
        "*.ovpn",
        "*.kdb",
        "*.tfvars",
    ),
    *(
        "credentials.*",
        "secrets",
        "secrets.*",
        "secret.*",
        ".secrets",
        ".secret",
        "client_secret*.json",
        ".vault_pass*",
    ),
    *("application_default_credentials.json", ".envrc", ".authinfo", ".mylogin.cnf", ".*_history", ".histfile"),
    *("*.tfvars.json", "*.agekey", "*.jceks", "*.bcfks", ".age-key.txt"),
)
_COPY = re.compile(r"(?:~|\.(?:bak|old|orig|save|swp))+$")  # as editors and people leave them
_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----|PuTTY-User-Key-File-\d: "
    rb"|AGE-SECRET-KEY-1[0-9A-Z]{50}"
)
_KEY_ITSELF = re.compile(rb"PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[^A-Za-z0-9+/-]){1,200}?[A-Za-z0-9+/]{60}")
_SOURCES = (".py", ".pyi", ".js", ".rb", ".java", ".md", ".rst", ".html", ".so", ".pyc")  # that may speak of a key
_PART = 1 << 20  # bytes that are looked at at once
_MORE = 1 << 10  # bytes of the part before, in which a key may begin

# Keys in DER (ASN.1): a sequence, whose length is that of the file, and in it what only a key has.
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..|\x83...)"
_DER = re.compile(rb"\x30" + _LENGTH, re.DOTALL)
_DER_KEY = re.compile(
    rb"\x02\x01[\x00\x01](?:\x30" + _LENGTH + rb"\x06|\x02(?:[\x30-\x7f]|\x81.|\x82..))"  # PKCS #8; RSA, DSA
    rb"|\x02\x01\x01\x04[\x10-\x7f]"  # an elliptic curve
    rb"|\x02\x01\x03\x30"  # PKCS #12
    rb"|\x30"
    + _LENGTH
    + rb"\x06(?:\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05|\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01)",  # encrypted
    re.DOTALL,
)
_STORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce", b"\x05\x02\x00\x00")  # of Java's keys; a keytab


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
    *folders, last = _COPY.sub("", name.lower()).split("/")
    if any(each in _FOLDERS for each in folders):
        return "is in a folder of secrets"
    is_source = last.endswith(_SOURCES)
    if last not in _HARMLESS and not is_source and any(fnmatch.fnmatchcase(last, each) for each in _NAMES):
        return "has the name of a secret"
    try:
        with path.open("rb") as file:
            return "has a private key in it" if _has_key(file, _KEY_ITSELF if is_source else _PRIVATE_KEY) else None
    except OSError:
        return None  # whoever reads it next says so


def _has_key(file: BinaryIO, text: re.Pattern[bytes]) -> bool:
    """Return whether a file has a private key, of which a text tells or which is one in DER."""
    part = file.read(_PART)
    if part.startswith(_STORES) or _is_der_key(part, os.fstat(file.fileno()).st_size):
        return True
    before = b""
    while part:
        looked_at = before + part
        if text.search(looked_at) or (b"\0" in looked_at and text.search(looked_at.replace(b"\0", b""))):  # UTF-16, too
            return True
        before = looked_at[-_MORE:]
        part = file.read(_PART)
    return False


def _is_der_key(begin: bytes, size: int) -> bool:
    outer = _DER.match(begin)
    if outer is None:
        return False
    length = outer[0][1:]
    told = length[0] if length[0] < 0x80 else int.from_bytes(length[1:], "big")
    return outer.end() + told == size and _DER_KEY.match(begin, outer.end()) is not None
