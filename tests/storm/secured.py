"""A secured cluster: digest logins at Nimbus and DRPC, and ACLs of both."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE, make_digest_acl_credential

from multilang.shipping.cluster import Cluster
from multilang.transport.keys import DIGEST
from tests.patience import patient
from tests.storm import jvm
from tests.storm.conftest import PATIENT, START_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUTH = "org.apache.storm.security.auth"
MODULE = f"{AUTH}.digest.DigestLoginModule required"
PASSWORDS = {"storm": "daemons' own", "bob": 'bob\\"s ü', "eve": "eve's", "games": "of the games"}

ZOOKEEPER = "storm:the daemons' at ZooKeeper"
FOLDERS = {
    "assignments",
    "storms",
    "supervisors",
    "workerbeats",
    "errors",
    "blobstore",
    "nimbuses",
    "logconfigs",
    "backpressure",
}
LIMIT = patient(60)


class SecuredCluster(Cluster):
    """Users: storm, who is the daemons and their admin; bob and eve, who submit topologies; games, who is in the group games of every Unix."""

    def __init__(self, home: Path, people: Path) -> None:
        self._people = people
        daemons = people / "daemons.jaas"
        known = " ".join(f"user_{name}={json.dumps(word, ensure_ascii=False)}" for name, word in PASSWORDS.items())
        write_secret(daemons, f"StormServer {{ {MODULE} {known}; }};\n{client_section('storm', PASSWORDS['storm'])}")
        acl = people / "drpc-acl.yaml"
        functions = {"exclamation": {"client.users": ["bob"], "invocation.user": "storm"}}
        acl.write_text(json.dumps({"drpc.authorizer.acl": functions}))
        super().__init__(
            home,
            slots=3,
            drpc=True,
            start_limit=START_LIMIT,
            conf={
                **PATIENT,
                **jvm.conf(),
                # Storm's own clients log in by digest to no other host: the server names itself so.
                "nimbus.seeds": ["localhost"],
                "storm.local.hostname": "localhost",
                "drpc.servers": ["localhost"],
                "storm.thrift.transport": DIGEST,
                "java.security.auth.login.config": str(daemons),
                "nimbus.authorizer": f"{AUTH}.authorizer.SimpleACLAuthorizer",
                "nimbus.admins": ["storm"],
                "nimbus.supervisor.users": ["storm"],
                "supervisor.authorizer": f"{AUTH}.authorizer.SupervisorSimpleACLAuthorizer",
                "storm.blobstore.acl.validation.enabled": True,
                "drpc.authorizer": f"{AUTH}.authorizer.DRPCSimpleACLAuthorizer",
                "drpc.authorizer.acl.filename": str(acl),
                "drpc.authorizer.acl.strict": True,
                "storm.zookeeper.auth.scheme": "digest",
                "storm.zookeeper.auth.payload": ZOOKEEPER,
                "storm.zookeeper.superACL": f"digest:{make_digest_acl_credential(*ZOOKEEPER.split(':'))}",
                # Else the next Nimbus would take away what workers need; see allow_workers.
                "storm.nimbus.zookeeper.acls.check": False,
                "storm.nimbus.zookeeper.acls.fixup": False,
            },
        )

    @contextmanager
    def zookeeper(self, payload: str | None = None) -> Iterator[KazooClient]:
        """Yield a client of the cluster's ZooKeeper, by that login."""
        address = f"127.0.0.1:{self.conf['storm.zookeeper.port']}"
        client = KazooClient(address, auth_data=[("digest", payload)] if payload else None)
        client.start(LIMIT)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def allow_workers(self) -> None:
        """Let workers see that Storm's own folders in ZooKeeper are there.

        Each topology has a login of its own, and its worker first looks for these folders, which belong to the daemons. Since 3.9.2
        ZooKeeper asks for the right to read even for that (ZOOKEEPER-2590), and Storm gives it to nobody.
        """
        root = self.conf.get("storm.zookeeper.root", "/storm")
        with self.zookeeper(ZOOKEEPER) as client:
            client.set_acls(root, [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE])
            for name in client.get_children(root):
                client.set_acls(f"{root}/{name}", [*CREATOR_ALL_ACL, *(READ_ACL_UNSAFE if name in FOLDERS else [])])

    def settings_of(self, user: str, password: str | None = None, **more: Any) -> dict[str, str]:
        """Return the environment of a user whose storm.yaml and JAAS file are of this cluster."""
        folder = self._people / f"{user}-{password is None}"
        folder.mkdir(exist_ok=True)
        jaas = folder / "jaas.conf"
        write_secret(jaas, client_section(user, PASSWORDS[user] if password is None else password))
        conf = {
            "nimbus.seeds": ["127.0.0.1"],
            "nimbus.thrift.port": self.address.port,
            "storm.thrift.transport": DIGEST,
            "java.security.auth.login.config": str(jaas),
            **more,
        }
        (folder / "storm.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in conf.items()))
        return {"STORM_CONF_DIR": str(folder), "HOME": str(folder)}


def client_section(user: str, password: str) -> str:
    return f'StormClient {{ {MODULE} username="{user}" password={json.dumps(password, ensure_ascii=False)}; }};\n'


def write_secret(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
