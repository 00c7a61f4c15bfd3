"""Nimbus is found where Storm's own client finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from multilang.shipping.errors import ShippingError
from multilang.shipping.storm_yaml import Address, addresses, conf_file, parse_address, read_conf


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("storm", Address("storm", 6627)),
        ("storm:7000", Address("storm", 7000)),
        ("[::1]:7000", Address("::1", 7000)),
        ("[::1]", Address("::1", 6627)),
    ],
)
def test_an_address_is_a_host_and_maybe_a_port(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["", ":6627", "storm:", "storm:port", "storm:0", "storm:65536", "storm:²"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ShippingError, match="write host:port"):
        parse_address(text)


def test_the_users_own_file_comes_before_that_of_storm_conf_dir(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    environment = {"HOME": str(home), "STORM_CONF_DIR": str(site)}
    assert conf_file(environment) is None
    site.mkdir()
    (site / "storm.yaml").write_text("nimbus.seeds: [far]\n")
    assert conf_file(environment) == site / "storm.yaml"
    (home / ".storm").mkdir(parents=True)
    (home / ".storm" / "storm.yaml").write_text("nimbus.seeds: [near]\n")
    assert conf_file(environment) == home / ".storm" / "storm.yaml"
    assert conf_file({"HOME": str(tmp_path)}) is None


def test_seeds_and_port_are_read_as_yaml(tmp_path: Path) -> None:
    file = tmp_path / "storm.yaml"
    file.write_text('# ours\nnimbus.seeds:\n  - "one"\n  - two\nnimbus.thrift.port: 7627\n')
    assert addresses(read_conf(file), str(file)) == [Address("one", 7627), Address("two", 7627)]
    file.write_text("# nothing but comments, as Storm ships it\n")
    assert addresses(read_conf(file), str(file)) == [Address("localhost", 6627)]


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({"nimbus.seeds": "one"}, "write a list of host names"),
        ({"nimbus.seeds": []}, "write a list of host names"),
        ({"nimbus.thrift.port": "6627"}, "write a port number"),
        ({"nimbus.thrift.port": True}, "write a port number"),
        ({"storm.thrift.transport": "org.example.Own"}, "which is not known here"),
        ({"nimbus.thrift.client.use.tls": True}, "nimbus.thrift.tls.port is None; write a port number"),
    ],
)
def test_what_is_wrong_or_not_supported_is_said_with_the_files_name(conf: dict[str, Any], problem: str) -> None:
    with pytest.raises(ShippingError, match=f"^storm.yaml: .*{problem}"):
        addresses(conf, "storm.yaml")


@pytest.mark.parametrize("text", ["- a list\n", "a: [1\n", "tab:\n\t- 1\n"])
def test_a_file_that_is_no_conf_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "storm.yaml"
    file.write_text(text)
    with pytest.raises(ShippingError, match=r"storm\.yaml "):
        read_conf(file)


@pytest.mark.parametrize(
    "text",
    ["hunter2: x", '"hunter2', "[hunter2", "@hunter2", "*hunter2", "!!hunter2 x", "'a' hunter2", "&hunter2 *hunter2x"],
)
def test_what_is_no_yaml_is_not_quoted(text: str, tmp_path: Path) -> None:
    """A password with such a sign, without quotation marks, was in the error."""
    file = tmp_path / "storm.yaml"
    file.write_text(f"nimbus.seeds: [one]\nstorm.zookeeper.auth.payload: {text}\n")
    with pytest.raises(ShippingError, match=r"it is no YAML in line [23], column \d+ \(not shown") as caught:
        read_conf(file)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
