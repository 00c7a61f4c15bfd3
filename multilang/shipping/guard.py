"""Files that should not leave this machine by accident: secrets, and what links lead to from outside the folder.

A jar or archive can be read by whoever can read the blob store, so that they are refused, unless that is forced.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
    *("credentials.toml", "secrets.toml", "secrets.y*ml", "secrets.json", "client_secret*.json", ".vault_pass*"),
    *("application_default_credentials.json", ".envrc", ".authinfo", ".mylogin.cnf", ".*_history"),
)
_COPY = re.compile(r"(?:~|\.(?:bak|old|orig|save|swp))+$")  # as editors and people leave them
_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_LOOKED_AT = 64 * 1024  # bytes of a file
_SOURCES = (".py", ".js", ".rb", ".java", ".md", ".rst", ".html", ".so")  # that may speak of a key


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
    if last not in _HARMLESS and any(fnmatch.fnmatchcase(last, each) for each in _NAMES):
        return "has the name of a secret"
    if last.endswith(_SOURCES):
        return None
    try:
        with path.open("rb") as file:
            return "has a private key in it" if _PRIVATE_KEY.search(file.read(_LOOKED_AT)) else None
    except OSError:
        return None  # whoever reads it next says so
