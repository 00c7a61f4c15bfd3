"""A Kafka that asks for a login over TLS: spouts read it as the conf or their code says, and whoever may not learns why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from multilang.component.errors import ConfigError
from multilang.helpers.secret import Secret
from multilang.queues import KafkaSpout
from multilang.settings import KAFKA_OPTIONS
from multilang.testing import run_spout
from multilang.transactional.spouts.kafka import TransactionalKafkaSpout
from tests.servers import LIMIT, KafkaServer, wait_for

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "secured"


@pytest.fixture(scope="module")
def filled(kafka: KafkaServer) -> KafkaServer:
    """The server with a topic of three messages, which were written without a login."""
    plain = {"bootstrap.servers": kafka.address, "log_level": 0}
    admin = AdminClient(plain)  # what it was asked ends with it
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(LIMIT)
    producer = Producer(plain)
    for number in range(3):
        producer.produce(TOPIC, str(number))
    assert producer.flush(LIMIT) == 0
    return kafka


@pytest.fixture
def options(filled: KafkaServer, tmp_path: Path) -> dict[str, Any]:
    secret = tmp_path / "kafka.secret"
    secret.write_text(f"{filled.password}\n")
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": filled.user,
        "sasl.password": {"file": str(secret)},
        "ssl.ca.location": str(filled.authority.pem),
    }


@pytest.fixture(scope="module")
def scram(filled: KafkaServer) -> None:
    """The server's user, also for logins by SCRAM."""
    admin = AdminClient({"bootstrap.servers": filled.address, "log_level": 0})
    word = filled.password.encode()
    for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        made = UserScramCredentialUpsertion(filled.user, ScramCredentialInfo(kind, 4096), word)
        admin.alter_user_scram_credentials([made])[filled.user].result(LIMIT)


def spout(filled: KafkaServer, **more: Any) -> KafkaSpout:
    return KafkaSpout(f"127.0.0.1:{filled.secured}", TOPIC, "shop", **more)


def test_a_spout_logs_in_as_the_conf_says(filled: KafkaServer, options: dict[str, Any]) -> None:
    found = spout(filled)
    found.check_start({KAFKA_OPTIONS: options})
    run = run_spout(found, conf={KAFKA_OPTIONS: options})

    def asked() -> bool:
        run.next()
        return len(run.values) == 3

    try:
        wait_for(asked, "the messages are read")
        assert run.values == [["0"], ["1"], ["2"]]
    finally:
        found.close()


def test_options_of_the_code_come_before_those_of_the_conf(filled: KafkaServer, options: dict[str, Any]) -> None:
    own = {"sasl.password": Secret(filled.password)}
    spout(filled, options=own).check_start({KAFKA_OPTIONS: {**options, "sasl.password": "guessed"}})
    servers = f"127.0.0.1:{filled.secured}"
    source = TransactionalKafkaSpout(servers, TOPIC, options=own).open(
        {KAFKA_OPTIONS: {**options, "sasl.password": "guessed"}}
    )
    try:
        assert source.read(0, 0, 10) == ([["0"], ["1"], ["2"]], 3)
    finally:
        source.close()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_conf_may_name_a_mechanism_by_which_no_password_is_sent(
    filled: KafkaServer, scram: None, options: dict[str, Any], mechanism: str
) -> None:
    spout(filled).check_start({KAFKA_OPTIONS: {**options, "sasl.mechanism": mechanism}})
    wrong = {**options, "sasl.mechanism": mechanism, "sasl.password": "guessed"}
    with pytest.raises(ConfigError, match="Authentication failed") as caught:
        spout(filled).check_start({KAFKA_OPTIONS: wrong})
    assert "guessed" not in str(caught.value)


def test_the_conf_may_name_a_login_by_token(filled: KafkaServer, options: dict[str, Any]) -> None:
    authority = {name: options[name] for name in ("security.protocol", "ssl.ca.location")}
    token = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=shop lifeSeconds=60"}
    spout(filled).check_start({KAFKA_OPTIONS: {**authority, "sasl.mechanism": "OAUTHBEARER", **token}})


def test_a_mechanism_that_the_installed_librdkafka_lacks_is_refused_before_anything_is_sent(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ConfigError, match=r"Kafka does not take the options: .*EXTERNAL"):
        KafkaSpout("127.0.0.1:1", TOPIC, "shop").check_start({KAFKA_OPTIONS: {**options, "sasl.mechanism": "EXTERNAL"}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sasl.password": "guessed"}, r"Authentication failed: Invalid username or password"),
        ({"sasl.username": "eve"}, r"Authentication failed: Invalid username or password"),
        ({"ssl.ca.location": None}, r"certificate verify failed|certificate could not be verified"),
        ({"security.protocol": "SASL_PLAINTEXT"}, r"can't be used|does not answer"),
    ],
    ids=["password", "user", "authority", "no TLS"],
)
def test_a_login_without_the_right_to_read_is_reported(
    filled: KafkaServer, options: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    wrong = {name: value for name, value in {**options, **change}.items() if value is not None}
    with pytest.raises(ConfigError, match=message) as caught:
        spout(filled).check_start({KAFKA_OPTIONS: wrong})
    assert f"topic '{TOPIC}' of Kafka" in str(caught.value)
    assert filled.password not in str(caught.value)
    assert "guessed" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("SASL_SSL", rf"{KAFKA_OPTIONS} is of type str; write an object"),
        ({"group.id": "other"}, rf"{KAFKA_OPTIONS} has 'group.id', which the spout sets by itself"),
        (
            {"sasl.password": {"env": "NOT_SET_ANYWHERE"}},
            "sasl.password of Kafka is in the environment variable NOT_SET_ANYWHERE",
        ),
        ({"no.such.option": 1}, "no.such.option"),
    ],
)
def test_options_that_can_not_be_are_named(filled: KafkaServer, given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spout(filled).check_start({KAFKA_OPTIONS: given})
