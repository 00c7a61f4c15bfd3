"""Real servers that tests start on free ports of loopback, kill, start again, and never leave behind."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pytest

from multilang.shipping.cluster.artifacts import cache_folder, storm_jars
from multilang.shipping.maven import Artifact, fetch_jars
from tests.authority import PASSWORD, Authority
from tests.patience import patient
from tests.storm import jvm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

S = TypeVar("S", bound="Server")

LIMIT = patient(90)  # seconds for what takes a moment
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_for(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {limit} seconds: {what}")
        time.sleep(0.01)


class Server(ABC):
    """A server whose data are in ``folder``, so that it has them again after it was killed."""

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that starts it."""

    @abstractmethod
    def answers(self) -> bool:
        """Return whether it does its work."""

    def start(self, *more: str) -> None:
        log_file = self.folder / f"{self.name}.log"
        with open(log_file, "ab") as log:
            self.process = subprocess.Popen(
                [*self.command(), *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        process = self.process
        wait_for(lambda: self.answers() or process.poll() is not None, f"{self.name} answers")
        assert process.poll() is None, log_file.read_text()

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def pause(self, secs: float) -> None:
        """It does nothing for so long; the caller goes on at once."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        threading.Timer(secs, self.process.send_signal, (signal.SIGCONT,)).start()

    def says(self, question: bytes, answer: bytes) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(question)
                return connection.recv(len(answer)) == answer
        except OSError:
            return False


class RedisServer(Server):
    """A redis-server that writes everything down at once."""

    name = "redis"

    def command(self) -> list[str]:
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--daemonize", "no"]
        return ["redis-server", *where, "--appendonly", "yes", "--appendfsync", "always", "--save", ""]

    def answers(self) -> bool:
        return self.says(b"PING\r\n", b"+PONG")

    @property
    def conf(self) -> dict[str, object]:
        """Return the conf with which a topology keeps its state here."""
        return {
            "topology.state.provider": "org.apache.storm.redis.state.RedisKeyValueStateProvider",
            "topology.state.provider.config": f'{{"jedisPoolConfig": {{"host": "127.0.0.1", "port": {self.port}}}}}',
        }


class SecuredRedisServer(RedisServer):
    """A redis-server that speaks TLS alone, and knows one user, who may do what state needs under one name and nothing else.

    Args:
        folder: The folder of its data and of the authority's certificates.
        name: The name of the topology whose keys the user has.
        authority: The authority that signs its certificate.
    """

    user, password = "shop", "of the shop's state"

    def __init__(self, folder: Path, name: str, authority: Authority) -> None:
        super().__init__(folder)
        self.authority = authority
        self._certificate = authority.issue("redis")
        rights = "-@all +@read +@write +@connection +@scripting +@transaction -@dangerous"
        digest = hashlib.sha256(self.password.encode()).hexdigest()
        self._users = folder / "users.acl"
        self._users.write_text(
            f"user default off\nuser {self.user} on #{digest} ~{name}:* ~{{{name}/* ~{{state/{name}[}}/]* ~{{position/{name}[}}/]* ~{{map/{name}[:}}]* "
            f"{rights}\n"
        )

    def command(self) -> list[str]:
        files = ("--tls-cert-file", self._certificate, "--tls-key-file", self._certificate)
        trusted = ("--tls-ca-cert-file", self.authority.pem, "--tls-auth-clients", "no")
        ports = ("--port", 0, "--tls-port", self.port, "--aclfile", self._users)
        return [*super().command(), *map(str, (*ports, *files, *trusted))]

    def answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.authority.pem))
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), 1) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
            ):
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"-NOAUTH"
        except OSError:
            return False

    @property
    def place(self) -> dict[str, object]:
        """Return the address, and the authority that its user trusts."""
        return {"host": "127.0.0.1", "port": self.port, "user": self.user, "ca": str(self.authority.pem)}


class ZooKeeperServer(Server):
    """The ZooKeeper in Storm's own jars."""

    name = "zookeeper"
    _shade = "org.apache.storm.shade.org.apache.zookeeper"
    _options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        settings = {
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": patient(500),  # ms; a session lasts from 2 to 20 of them
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok",
            "maxClientCnxns": 0,
            **self._more(),
        }
        (self.folder / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = f"{self._shade}.server.ZooKeeperServerMain"
        path = f"{storm_jars() / 'lib'}/*"
        quick = jvm.daemon(self.name).split()
        return ["java", "-Xmx96m", *_JVM, *quick, *self._options, "-cp", path, main, str(self.folder / "zoo.cfg")]

    def _more(self) -> dict[str, object]:
        return {}

    def answers(self) -> bool:
        return self.says(b"ruok", b"imok")

    @property
    def conf(self) -> dict[str, object]:
        """Return the conf with which a topology keeps its transactions here."""
        return {
            "multilang.transactional.store": "zookeeper",
            "transactional.zookeeper.servers": ["127.0.0.1"],
            "transactional.zookeeper.port": self.port,
            "storm.zookeeper.session.timeout": patient(2000),
            "storm.zookeeper.connection.timeout": patient(20_000),
        }


class SecuredZooKeeperServer(ZooKeeperServer):
    """A ZooKeeper with logins by SASL, and with a second port for TLS, where clients need a certificate of the authority."""

    users: ClassVar = {"bob": "bob's", "eve": "eve's"}

    def __init__(self, folder: Path, authority: Authority) -> None:
        super().__init__(folder)
        self.tls_port = free_port()
        self.authority = authority
        authority.issue("zookeeper")
        jaas = folder / "zookeeper.jaas"
        known = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        module = f"{self._shade}.server.auth.DigestLoginModule"
        jaas.write_text(f"Server {{ {module} required {known}; }};\n")
        self._options = (f"-Djava.security.auth.login.config={jaas}",)

    def _more(self) -> dict[str, object]:
        stores = {"keyStore": self.authority.folder / "zookeeper.p12", "trustStore": self.authority.p12}
        return {
            "authProvider.1": f"{self._shade}.server.auth.SASLAuthenticationProvider",
            "secureClientPort": self.tls_port,
            "serverCnxnFactory": f"{self._shade}.server.NettyServerCnxnFactory",
            **{f"ssl.{name}.location": path for name, path in stores.items()},
            **{f"ssl.{name}.password": PASSWORD.decode() for name in stores},
        }


_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_UNSIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


class KafkaServer(Server):
    """One Kafka broker that is its own controller (KRaft). Who asks it through ``wire`` is led there with all that follows.

    Its port ``secured`` speaks TLS, and asks for the login of ``user``, whom SCRAM knows once a test adds it, or for a token,
    which needs no signature.
    """

    user, password = "shop", "of the shop's topics"
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

    name = "kafka"
    version = "3.9.1"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        controller, behind_wire, self.secured = free_port(), free_port(), free_port()
        self.authority = Authority(folder, "authority")
        self.authority.issue("kafka")
        login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{self.user}="{self.password}";'
        here = f"PLAINTEXT://127.0.0.1:{self.port},SECURED://127.0.0.1:{self.secured}"
        self.wire = Wire(behind_wire)
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{here},WIRE://127.0.0.1:{behind_wire},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"{here},WIRE://127.0.0.1:{self.wire.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,WIRE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listener.name.secured.sasl.enabled.mechanisms": ",".join(self.mechanisms),
            "listener.name.secured.plain.sasl.jaas.config": login,
            **{f"listener.name.secured.{name.lower()}.sasl.jaas.config": _SCRAM for name in self.mechanisms[1:3]},
            "listener.name.secured.oauthbearer.sasl.jaas.config": _UNSIGNED,
            "listener.name.secured.ssl.keystore.type": "PKCS12",
            "listener.name.secured.ssl.keystore.location": folder / "kafka.p12",
            "listener.name.secured.ssl.keystore.password": PASSWORD.decode(),
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": folder / "data",
            "log.cleaner.enable": "false",  # its buffer is 128 MB of fresh memory
            "metadata.max.idle.interval.ms": 0,  # no records that say that nothing happened
            "num.network.threads": 1,  # for each listener; threads that wait wake up several times a second
            "num.io.threads": 2,
            "background.threads": 1,
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 100,
            "broker.heartbeat.interval.ms": patient(500),
            "broker.session.timeout.ms": patient(
                3000
            ),  # one that was killed is waited for so long before it may come again
            **dict.fromkeys(
                [
                    "offsets.topic.num.partitions",
                    "offsets.topic.replication.factor",
                    "transaction.state.log.replication.factor",
                    "transaction.state.log.min.isr",
                    "transaction.state.log.num.partitions",
                ],
                1,
            ),
        }
        self._settings = folder / "server.properties"
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        # What its StorageTool would write, which takes a JVM of its own.
        (folder / "data").mkdir()
        known = {"version": 1, "cluster.id": "MkU3OEVBNTcwNTJENDM2Qg", "node.id": 1}
        (folder / "data" / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in known.items()))

    def command(self) -> list[str]:
        return [*self._java("kafka.Kafka"), str(self._settings)]

    def answers(self) -> bool:
        """Return whether a topic could be made: not as long as the controller takes the broker for dead."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        topic = NewTopic("would-be", 1, 1)
        try:
            admin.create_topics([topic], validate_only=True, request_timeout=patient(5))["would-be"].result()
        except KafkaException:
            return False
        return True

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _java(self, main: str) -> list[str]:
        return ["java", "-Xmx128m", *_JVM, "-cp", f"{self.jars()}/*", main]

    @classmethod
    def is_here(cls) -> bool:
        return cls._folder().is_dir()

    @classmethod
    def _folder(cls) -> Path:
        return cache_folder() / f"kafka-{cls.version}"

    @classmethod
    def jars(cls) -> Path:
        """They are fetched once, and are there whole or not at all."""
        folder = cls._folder()
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as part:
                fetch_jars([Artifact("org.apache.kafka", "kafka_2.13", cls.version)], Path(part, "lib"))
                try:
                    Path(part, "lib").rename(folder)
                except OSError:  # another process was quicker
                    assert folder.is_dir()
        return folder


def running(kind: type[S], folder: Path, *programs: str) -> Iterator[S]:
    """Yield a server for a fixture. Skip, or in CI fail, if one of the programs is not installed."""
    missing = [each for each in programs if shutil.which(each) is None]
    if missing:
        reason = f"no {' and no '.join(missing)} here, which tests with {kind.name} need"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = kind(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()


class Wire:
    """A way to a server that can be cut: connections to ``port`` lead to it.

    ``lose_answer``: of the next ZooKeeper request of that type the server's answer is lost, and the connection with it.
    ``cut``: while it is set, nothing gets through and nobody can connect.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lose_answer: int | None = None
        self.lost = 0
        self.cut = threading.Event()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.disconnect()

    def disconnect(self) -> None:
        """Cut what is connected."""
        for each in list(self._open):
            self._end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.cut.is_set():
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open |= {client, server}
            for source, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, other, source is client), daemon=True).start()

    def _pass_on(self, source: socket.socket, other: socket.socket, from_client: bool) -> None:
        try:
            while frame := self._frame(source):
                while self.cut.is_set():
                    time.sleep(0.01)
                if not from_client and self.lose_answer == 0:
                    self.lose_answer = None
                    self.lost += 1
                    break
                if from_client and self.lose_answer and int.from_bytes(frame[8:12], "big") == self.lose_answer:
                    self.lose_answer = 0  # the next one that the server sends
                other.sendall(frame)
        except OSError:
            pass
        finally:
            self._end(source)
            self._end(other)

    def _frame(self, source: socket.socket) -> bytes:
        head = self._exactly(source, 4)
        return head + self._exactly(source, int.from_bytes(head, "big")) if head else b""

    @staticmethod
    def _exactly(source: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = source.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data

    def _end(self, connection: socket.socket) -> None:
        self._open.discard(connection)
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()
