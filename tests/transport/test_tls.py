"""Nimbus over TLS: a server of the tests' own speaks as Storm's TlsTransportPlugin does, binary Thrift without frames.

Storm 2.8.3's own server can't be asked: on Java 17 it fails in getPeerCertificateChain, which that Java has no more.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.shipping.errors import ShippingError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.storm_yaml import Address
from multilang.shipping.thrift_types import types
from multilang.transport.keys import USE_TLS
from tests.authority import PASSWORD, Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = "nimbus.thrift.tls.client."


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("tls"), "authority")
    made.issue("server")
    made.issue("client")
    return made


@contextmanager
def nimbus_over_tls(authority: Authority, wants_client: bool = False) -> Iterator[Address]:
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.thrift import TProcessor
    from thriftpy2.transport import TBufferedTransportFactory, TSocket

    thrift = types()

    class Cluster:
        def getClusterInfo(self) -> object:
            return thrift.ClusterSummary(supervisors=[], topologies=[], nimbuses=[])

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.folder / "server.pem")
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.pem)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            try:
                with context.wrap_socket(connection, server_side=True) as wire:
                    transport = TBufferedTransportFactory().get_transport(TSocket(sock=wire))
                    protocol = TBinaryProtocolFactory().get_protocol(transport)
                    TProcessor(thrift.Nimbus, Cluster()).process(protocol, protocol)
            except OSError:
                pass  # the client does not trust it, or it the client

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join()


def conf_of(**client: object) -> dict[str, Any]:
    return {USE_TLS: "true", **{f"{CLIENT}{key.replace('_', '.')}": value for key, value in client.items()}}


def test_a_server_is_trusted_by_its_authority_in_pem_or_pkcs12(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", PASSWORD.decode())
    for conf in (
        conf_of(truststore_path=str(authority.pem)),
        conf_of(truststore_path=str(authority.p12), truststore_password=PASSWORD.decode()),
        conf_of(truststore_path=str(authority.p12), truststore_password={"env": "STORE_PASSWORD"}),
    ):
        with nimbus_over_tls(authority) as address, Nimbus([address], conf=conf) as nimbus:
            assert nimbus.summary().topologies == []


def test_a_client_proves_itself_with_a_certificate_in_any_form(authority: Authority) -> None:
    own, folder = {"truststore_path": str(authority.pem)}, authority.folder
    for conf in (
        conf_of(**own, keystore_path=str(folder / "client.pem"), auth_required=True),
        conf_of(**own, keystore_path=str(folder / "client.p12"), keystore_password=PASSWORD.decode()),
        conf_of(**own, cert_path=str(folder / "client.crt"), key_path=str(folder / "client.key")),
    ):
        with nimbus_over_tls(authority, wants_client=True) as address, Nimbus([address], conf=conf) as nimbus:
            assert nimbus.summary().topologies == []
    without = conf_of(**own)
    refused = pytest.raises(ShippingError, match=r"broke off|does not agree on TLS")
    with nimbus_over_tls(authority, wants_client=True) as at, refused, Nimbus([at], conf=without) as nimbus:
        nimbus.summary()


def test_a_server_of_another_authority_or_name_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    for conf in (conf_of(truststore_path=str(other.pem)), conf_of()):
        with (
            nimbus_over_tls(authority) as address,
            pytest.raises(ShippingError, match="certificate that is not trusted"),
        ):
            Nimbus([address], conf=conf)
    with nimbus_over_tls(authority) as address, pytest.raises(ShippingError, match="certificate that is not trusted"):
        Nimbus([Address("localhost", address.port)], conf=conf_of(truststore_path=str(authority.pem)))


def test_stores_that_can_not_be_read_are_named_and_no_password_shown(authority: Authority, tmp_path: Path) -> None:
    jks = tmp_path / "trust.jks"
    jks.write_bytes(bytes.fromhex("feedfeed00000002"))
    (tmp_path / "noise").write_bytes(b"noise")
    for conf, problem in (
        (conf_of(truststore_path=str(jks)), "keytool -importkeystore"),
        (conf_of(truststore_path=str(tmp_path / "none")), "can't be read"),
        (conf_of(truststore_path=str(tmp_path / "noise"), truststore_password="hidden"), "no PKCS #12 file"),
        (conf_of(truststore_path=str(authority.p12), truststore_password="hidden"), "another password"),
        (conf_of(keystore_path=str(authority.pem)), "certificate and key can't be used"),
    ):
        with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ShippingError, match=problem) as caught:
            Nimbus([Address("127.0.0.1", server.getsockname()[1])], conf=conf)
        assert "hidden" not in str(caught.value)
