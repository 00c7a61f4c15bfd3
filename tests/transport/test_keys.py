"""Storm's own keys choose the transport; an unsupported setting is refused before anything is sent, without a plain fallback."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from multilang import transport
from multilang.component.errors import ConfigError
from multilang.shipping.errors import ShippingError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.storm_yaml import Address, addresses
from multilang.transport.jaas import FILE, parse, read_section
from multilang.transport.keys import ALL, DIGEST, KERBEROS, SIMPLE, TLS, USE_TLS
from multilang.transport.sasl import Sasl
from multilang.transport.tls import Tls

KINDS = (transport.nimbus, transport.drpc, transport.drpc_invocations)
NOWHERE = Address("127.0.0.1", 1)


@pytest.mark.parametrize("choose", KINDS)
@pytest.mark.parametrize("conf", [{}, {ALL: SIMPLE}, {ALL: None}, {USE_TLS: False}, {USE_TLS: "false"}])
def test_without_settings_it_is_plain(choose: Any, conf: dict[str, Any]) -> None:
    assert choose(conf) is transport.PLAIN


@pytest.mark.parametrize("choose", KINDS)
@pytest.mark.parametrize("plugin", [DIGEST, KERBEROS])
def test_a_plugin_for_all_is_for_all(choose: Any, plugin: str) -> None:
    assert isinstance(choose({ALL: plugin}), Sasl)


def test_a_daemons_own_plugin_wins() -> None:
    conf = {ALL: DIGEST, "drpc.thrift.transport": SIMPLE}
    assert transport.drpc(conf) is transport.PLAIN
    assert isinstance(transport.drpc_invocations(conf), Sasl)
    assert isinstance(transport.nimbus({"nimbus.thrift.transport": DIGEST}), Sasl)


@pytest.mark.parametrize("spelt", [True, "true", "True", " TRUE "])
def test_tls_is_tls_however_it_is_spelt(spelt: Any) -> None:
    conf = {USE_TLS: spelt, "nimbus.thrift.tls.port": 6667, "nimbus.thrift.port": 6627}
    assert isinstance(transport.nimbus(conf), Tls)
    assert addresses(conf, "storm.yaml") == [Address("localhost", 6667)]


@pytest.mark.parametrize(
    "conf",
    [
        {ALL: "org.apache.storm.security.auth.plain.PlainSaslTransportPlugin"},
        {ALL: "com.example.Own"},
        {ALL: 7},
        {"nimbus.thrift.transport": "SimpleTransportPlugin"},
        {USE_TLS: "yes"},
        {USE_TLS: 1},
        {USE_TLS: True, "nimbus.thrift.tls.transport": "com.example.Own"},
        {USE_TLS: True, "nimbus.thrift.tls.client.auth.required": "true"},
        {USE_TLS: True, "nimbus.thrift.tls.client.cert.path": "/own.pem"},
        {"storm.doAsUser": "alice"},
        {ALL: DIGEST, "storm.doAsUser": "alice"},
    ],
)
def test_what_can_not_be_kept_is_refused_before_a_connection(conf: dict[str, Any]) -> None:
    """Nothing listens there, and that is not what is said."""
    with pytest.raises(ShippingError, match=r"known here|write true or false|certificate|leave the key out"):
        Nimbus([NOWHERE], conf=conf)
    with pytest.raises(ShippingError, match=r"^storm\.yaml: "):
        addresses(conf, "storm.yaml")


# ---- JAAS files ----

JAAS = """
/* of the
   gateway */
StormServer { a.B required user_x="y"; };
StormClient { // whoever
   com.sun.security.auth.module.Krb5LoginModule required
   useTicketCache=true username="bo\\"b\\\\" ;
   a.Digest sufficient username = bob
   password="s;e}c=r//et\\101";
};
"""


def test_a_jaas_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(JAAS)
    options = read_section({FILE: str(path)}, "StormClient")
    assert options == {"useTicketCache": "true", "username": "bob", "password": "s;e}c=r//etA"}
    with pytest.raises(ConfigError, match=r"no section Client, .* it has StormServer, StormClient"):
        read_section({FILE: str(path)}, "Client")
    for conf in ({}, {FILE: 7}, {FILE: str(tmp_path / "none")}):
        with pytest.raises(ConfigError, match=r"java\.security\.auth\.login\.config"):
            read_section(conf, "StormClient")


def test_the_users_home_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/bob")
    assert parse('A { b c keyTab="${user.home}/k"; };', "f") == {"A": {"keyTab": "/home/bob/k"}}
    with pytest.raises(ConfigError, match=r"\$\{java\.home\}"):
        parse('A { b c keyTab="${java.home}/k"; };', "f")


@pytest.mark.parametrize("cut", range(1, len(JAAS.rstrip()) - 90, 7))
def test_half_a_file_is_refused_with_its_line_and_no_value_of_it(cut: int) -> None:
    text = JAAS.rstrip()[: -1 - cut]
    with pytest.raises(ConfigError, match=r"^the JAAS file jaas\.conf has in line") as caught:
        parse(text, "jaas.conf")
    assert "s;e}c" not in str(caught.value)


def test_a_login_without_its_jaas_file_sends_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(ShippingError, match=r"needs a JAAS file .* nothing was sent"):
            Nimbus([address], conf={ALL: DIGEST})
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == b""


def test_tls_is_not_the_default_plugin_of_the_plain_port() -> None:
    with pytest.raises(ConfigError, match="not known here"):
        transport.nimbus({ALL: TLS})


@pytest.mark.parametrize("choose", KINDS)
@pytest.mark.parametrize(
    "conf",
    [
        {"storm": {"thrift": {"transport": DIGEST}}},
        {"storm.thrift": {"transport": DIGEST}},
        {"Storm": {"thrift.transport": DIGEST}, "nimbus.seeds": ["here"]},
        {"nimbus": {"thrift": {"client": {"use": {"tls": True}}}}},
        {"java": {"security.auth.login.config": "/jaas"}},
    ],
)
def test_a_key_in_parts_which_storm_ignores_is_not_plain(choose: Any, conf: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"is made of mappings within mappings, .* write [a-z.A-Z]+: VALUE"):
        choose(conf)


@pytest.mark.parametrize("choose", KINDS)
@pytest.mark.parametrize("key", ["Storm.Thrift.Transport", " storm.thrift.transport", "storm.thrift_transport"])
def test_a_key_that_would_be_ignored_is_not_plain(choose: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=f"'{key}' is no key of Storm's.* write storm.thrift.transport"):
        choose({key: DIGEST})
