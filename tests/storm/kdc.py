"""A Kerberos of the tests' own: a KDC on loopback, its users, and their keytabs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.patience import patient
from tests.servers import Server

if TYPE_CHECKING:
    from pathlib import Path

REALM = "MULTILANG.TEST"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
SYSTEM = "/usr/sbin:/sbin"  # where Debian has them, which the path of a user need not name


class Kdc(Server):
    """A KDC, whose files are in ``folder``. Who has ``environment`` finds it."""

    name = "kdc"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.conf = folder / "krb5.conf"
        self.conf.write_text(
            f"""\
[libdefaults]
default_realm = {REALM}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{REALM} = {{
    kdc = 127.0.0.1:{self.port}
}}
"""
        )
        (folder / "kdc.conf").write_text(
            f"""\
[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
{REALM} = {{
    database_name = {folder}/principals
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
    supported_enctypes = aes256-cts:normal
}}
"""
        )
        self.environment = {
            "KRB5_CONFIG": str(self.conf),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder}/no-tickets",
            "PATH": f"{os.environ.get('PATH', '')}:{SYSTEM}",
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the database")

    def command(self) -> list[str]:
        settings = [f"{name}={self.environment[name]}" for name in ("KRB5_CONFIG", "KRB5_KDC_PROFILE", "PATH")]
        return ["env", *settings, "krb5kdc", "-n", "-r", REALM]

    def answers(self) -> bool:
        return self._listens()

    def add(self, principal: str) -> Path:
        """Add a user with a random key, and return a keytab with it."""
        keytab = self.folder / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(keytab), principal)
        return keytab

    def change(self, principal: str) -> None:
        """Give a user another key, so that the keytab is of no use any more."""
        self._run("kadmin.local", "-r", REALM, "change_password", "-randkey", principal)

    def ticket(self, principal: str, keytab: Path) -> Path:
        """Return a cache with a user's ticket."""
        cache = self.folder / f"{principal}.ticket"
        self._run("kinit", "-k", "-t", str(keytab), "-c", f"FILE:{cache}", principal)
        return cache

    def _listens(self) -> bool:
        import socket

        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _run(self, *command: str) -> None:
        shown = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patient(60),
        )
        assert shown.returncode == 0, shown.stdout + shown.stderr
