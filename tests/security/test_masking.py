"""No part of a password gets out of a text or a document, whatever it is made of and whatever is written around it."""

import json

import pytest
import ujson
from hypothesis import given
from hypothesis import strategies as st

from multilang import Spout, TopologyBuilder
from multilang.cli.arguments import Top
from multilang.cli.ranking import Ranking
from multilang.cli.report import status_document
from multilang.engine.status import History, RunError, RunStatus, Series
from multilang.helpers.masked import MASK, is_secret, masked
from multilang.protocol import Tuple

KEYS = [
    *(
        "password",
        "sasl.password",
        "DB_PASSWORD",
        "passwords",
        "redisPassword",
        "shop.token",
        "client_secret",
        "secrets",
    ),
    *(
        "aws_secret_access_key",
        "AWS_SECRET_ACCESS_KEY",
        "secretAccessKey",
        "X-Api-Key",
        "AccountKey",
        "SharedAccessKey",
    ),
    *("private_key", "apiKeys", "x-auth-token", "SharedAccessSignature"),
]
LETTERS = "QZJKVqzj037"  # none of which is beside the password in what follows
SIGNS = "/@:,;'\"\\%&=#!?[]{}()<>|+*~^$-_."
passwords = st.text(st.sampled_from(LETTERS + SIGNS), min_size=4, max_size=20).filter(
    lambda text: not text.startswith(("80/", "443/"))
)
users = st.text(st.sampled_from("abc.-+@/\\'%"), max_size=6)


def leaked(secret: str, shown: str) -> list[str]:
    """Return the runs of four characters of a secret that are shown; those of signs alone are beside it, too."""
    runs = {secret[at : at + 4] for at in range(len(secret) - 3)}
    return [run for run in runs if run in shown and set(run) & set(LETTERS)]


def check(secret: str, value: object, *others: object) -> None:
    for each in (value, *others):
        shown = masked(each)
        shown = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        assert leaked(secret, shown) == [], shown
        assert MASK in shown


ADDRESSES = ["redis://{}:{}@host:1/0", "amqps://{}:{}@mq", "https://{}:{}@host/path", "mongodb+srv://{}:{}@a,b"]
AROUND = ["{}", "open {} now", "no way to {}: refused", "url={}", "({})", "cache;{}"]


@given(passwords, users, st.sampled_from(ADDRESSES), st.sampled_from(AROUND))
def test_an_address_shows_no_part_of_its_password(secret, user, address, around):
    text = address.format(user, secret)
    check(secret, around.format(text), {"place": text}, [text])
    for written in (
        json.dumps([text, 1]),
        ujson.dumps([text]),
        repr({"a": text, "b": 2}),
        repr(text),
        f"open '{text}'",
    ):
        check(secret, written, json.dumps({"config": written}))


@given(passwords, st.sampled_from(KEYS), st.sampled_from(["{}={}", "-c {}={} -c a=b", "at ?a=b&{}={}", "a=b;{}={}"]))
def test_a_setting_shows_no_part_of_its_value(secret, key, form):
    check(secret, form.format(key, secret), {"said": form.format(key, secret)})


@given(passwords, st.sampled_from(KEYS), st.sampled_from(["{} = {}", "{}: {}", "  {}: {}\n", "[a]\n{} = {}\nb = 1"]))
def test_a_line_of_a_header_or_of_a_file_of_settings_shows_no_part_of_its_value(secret, key, form):
    check(secret, form.format(key, secret))


@given(passwords, st.sampled_from(KEYS), st.sampled_from([(), ("a",), ("a", "b")]), st.integers(0, 2))
def test_whatever_stands_under_the_key_of_a_secret_is_hidden(secret, key, more, depth):
    value = secret
    for _ in range(depth):
        value = [*more, value]
    for document in ({"a": 1, key: value, "b": 2}, {"a": [{key: {"x": value}}, 1]}):
        check(secret, document)
        written = [json.dumps(document), ujson.dumps(document), json.dumps(document, indent=1), repr(document)]
        for text in written:
            check(secret, text, f"conf {text} is new", json.dumps({"config": text}))


@given(passwords.filter(lambda text: not set(text) & set("\"'\\")), st.sampled_from(KEYS))
def test_quotes_hide_what_is_between_them(secret, key):
    for form in ('{}="{}", a="b"', "{}='{}')", '{}: "{}"\na: b', '<a {}="{}"/>', '{} => "{}"', "f({}='{} {}')"):
        check(secret, form.format(key, secret, secret))


UNNAMED = [
    *(
        "Invalid header value b'Bearer {}\\n'",
        "git+https://{}@github.com/a/b is gone",
        "https://a.blob/c?sv=1&sig={}&se=2",
    ),
    *("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "b'-----BEGIN RSA PRIVATE KEY-----\\n{}'"),
]


@given(st.text(st.sampled_from(LETTERS), min_size=23, max_size=40), st.sampled_from(UNNAMED))
def test_what_is_a_secret_by_its_place_is_hidden(secret, form):
    text = form.format(f"{secret}0")
    check(secret, text, {"said": text}, json.dumps([text]), repr(text))


@given(st.sampled_from(KEYS), st.sampled_from(["a", {"a": 1}, ["a"], 7]))
def test_each_of_these_keys_is_known(key, value):
    assert is_secret(key)
    assert masked({key: value}) == {key: MASK}
    assert masked(value, key) == MASK


@pytest.mark.parametrize(
    "text",
    [
        "the password is wrong: ask; token: missing, and password: required",
        "https://localhost:8080/users/me@example.com at http://host:80/a@b",
        "see https://host/a/b, or mail me@example.com: it's there",
        'password: {\'env\': \'OURS\'} and {"shop.token": {"file": "/etc/token"}}',
        "max_tokens=256 keys=3 key=word monkey=1 tokens: [1, 2] passwords.path=/etc/a token_count: 5",
        "'token': refused by nobody",
        "from = to, a == b; c => d",
        "payload={'id': 7}, and payload: 5 bytes; sig=9",
        "a Bearer authentication-is-needed, and https://host/@someone/with-a-long-title-of-7-words",
        'no line "-----BEGIN PRIVATE KEY-----" is in host.pem',
    ],
)
def test_what_is_no_secret_stays_as_it_is(text):
    assert masked(text) == text


def test_a_status_hides_what_components_said_and_no_figures():
    status = RunStatus(
        topology="t",
        engine="inprocess",
        state="ended",
        seconds=1.0,
        errors=(
            RunError(component="token", message="password=hun,ter2", report='{"tokens": 1, "apiKeys": ["hunter2"]}'),
        ),
        history=History(at=(1.0,), components={"token": Series(rate=(2.0,))}),
    )
    shown = status_document(status)
    assert shown["errors"][0]["message"] == f"password={MASK}"
    assert shown["errors"][0]["report"] == f'{{"tokens": 1, "apiKeys": {MASK}}}'
    assert shown["errors"][0]["component"] == "token"
    assert RunStatus.from_json(shown).history == status.history


def test_the_greatest_values_are_shown_without_secrets():
    class Words(Spout):
        output_fields = ["password", "place"]

    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    topology = builder.build("t")
    tup = Tuple("1", "words", "default", 1, ["hunter2", "redis://a:it's/pw@b"])
    for key, value, row in (("password", "place", (MASK, "redis://a:***@b")), ("place", None, ("redis://a:***@b", 1))):
        ranking = Ranking(Top("words", "default", key, value), topology)
        ranking.add(tup)
        assert ranking.rows(1) == [row]
