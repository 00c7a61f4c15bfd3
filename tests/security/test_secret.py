"""No secret is shown: what is masked, what a Secret tells, and the errors that once quoted a conf."""

import copy
import json
import logging
import pickle
import time

import pytest
import ujson
from hypothesis import given
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.helpers.masked import MASK, is_secret, masked, masked_text
from multilang.helpers.secret import Secret, secret_of
from multilang.protocol import ChildConnection, RemoteProtocolError
from multilang.protocol.handshake import read_setup
from multilang.topology.conf import known
from tests.cli.command import multilang
from tests.patience import PACE
from tests.soak import SOAK

HIDDEN = "hunter2-V3ry"  # a text that no key has
KEYS = [
    "password",
    "storm.zookeeper.auth.payload",
    "storm.zookeeper.topology.auth.payload",
    "redisPassword",
    "sasl.password",
    "ssl.key.pem",
    "sasl.jaas.config",
    "sasl.oauthbearer.client.secret",
    "aws_secret_key",
    "API-KEY",
    "ssl.keystore.key",
    "Authorization",
    "db.pass",
    "smtpPass",
]
PLAIN = [
    "multilang.source.secret.file",
    "topology.auto-credentials",
    "topology.name",
    "keyspace",
    "monkey",
    "passwords.path",
    "bypass",
    "pass",
]
secrets = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda text: HIDDEN + text)


def test_every_password_of_storms_is_known_by_its_key():
    passwords = [key for key in known() if "password" in key or key.endswith("payload")]
    assert len(passwords) > 20
    assert [key for key in passwords if not is_secret(key)] == []
    assert [key for key in KEYS if not is_secret(key)] == []
    assert [key for key in PLAIN if is_secret(key)] == []


def confs(secret):
    """A conf somewhere in which a secret is."""
    entry = st.sampled_from(KEYS).map(lambda key: {key: secret, "topology.workers": 3})
    words = st.text("ab1/@:,?#%=\\", max_size=4).filter(lambda word: "//" not in word)
    address = st.builds(
        lambda form, before, after: {"place": form.format(f"{before}{HIDDEN}{after}")},
        st.sampled_from(["redis://user:{}@host:1/0", "amqps://:{}@host", "https://me:{}@host/path"]),
        words.filter(lambda word: not word[:1].isdigit()),
        words,
    )
    return st.recursive(
        entry | address,
        lambda inner: (
            inner.map(lambda each: {"a": [1, each]}) | inner.map(json.dumps).map(lambda text: {"config": text})
        ),
        max_leaves=3,
    )


@given(secrets.flatmap(confs))
def test_no_conf_shows_its_secrets(conf):
    before = copy.deepcopy(conf)
    shown = masked(conf)
    assert HIDDEN not in json.dumps(shown, ensure_ascii=False)
    assert MASK in json.dumps(shown)
    assert conf == before
    for text in (json.dumps(conf), ujson.dumps(conf), json.dumps(conf, indent=1)):
        assert HIDDEN not in masked_text(text)


@given(
    st.dictionaries(
        st.sampled_from(PLAIN), st.integers() | st.booleans() | st.sampled_from(["a", "x=1", "http://a:1/"])
    )
)
def test_what_is_no_secret_is_shown_as_it_is(conf):
    assert masked(conf) == conf
    assert masked_text(json.dumps(conf)) == json.dumps(conf)


def test_the_words_of_a_sentence_stay_as_they_are():
    text = "the password is wrong: ask; token: missing, password = input() of http://a:80/b@c, secret.file: 'x'"
    assert masked_text(text) == text
    assert masked_text("-c sasl.password=x1 -c a.b=2") == "-c sasl.password=*** -c a.b=2"


def test_the_header_of_a_login_is_masked_in_a_text():
    for scheme in ("Bearer", "basic", "Negotiate"):
        assert masked_text(f"GET /\nAuthorization: {scheme} aGk6aGk=\nHost: a") == (
            f"GET /\nAuthorization: {scheme} ***\nHost: a"
        )
        assert "aGk" not in masked_text(json.dumps({"headers": [["Authorization", f"{scheme} aGk6aGk="]]}))
    assert (
        masked_text("authorization: token missing, DB_PASS=x1 pass=3") == "authorization: token ***, DB_PASS=*** pass=3"
    )


@pytest.mark.parametrize("secret", [b"x1", b"x'1", b'x"1', "x1"])
def test_bytes_of_python_are_masked_as_texts_are(secret):
    for shown in (repr({"password": secret}), f"password={secret!r}", repr([{"shop.token": secret}, 1])):
        assert "1'" not in masked_text(shown).replace(" 1]", "")
        assert "x" not in masked_text(shown)
        assert MASK in masked_text(shown)


@pytest.mark.parametrize("start", ["", 'password="', 'password=\\"', "token: ["])
@pytest.mark.parametrize(
    "unit",
    [
        *("0", "-", ".", "a.", "password", '"', "\\", " ", "://", "://a:", '\\"', 'pwd="', "= :"),
        *("@://a:", "token: [", "pwd: a ", "\npwd: a", "pwd=a'", "authorization"),
    ],
)
def test_a_long_text_is_masked_in_a_time_that_grows_with_its_length(start, unit):
    """20,000 digits in an error's text took 80 seconds once; a text 50 times as long takes less than one now."""
    length = 1_000_000 if SOAK else 200_000
    text = start + unit * (length // len(unit))
    before = time.process_time()
    masked_text(text)
    assert time.process_time() - before < length / 50_000 * PACE


def test_the_place_of_a_secret_is_shown():
    conf = {
        "sasl.password": {"env": "KAFKA"},
        "ssl.key.password": {"file": "/etc/key"},
        "password": {"env": 1, "more": 2},
    }
    assert masked(conf) == {**conf, "password": MASK}


def test_a_secret_shows_its_mask_only():
    secret = Secret(HIDDEN, "the password")
    texts = [str(secret), repr(secret), f"{secret}", f"{secret!r:>9}", f"{[secret]} { {'a': secret} }"]
    record = logging.LogRecord("a", 20, "a", 1, "%s", (secret,), None)
    assert not [text for text in [*texts, record.getMessage()] if HIDDEN in text]
    assert secret.reveal() == HIDDEN
    with pytest.raises(TypeError):
        json.dumps(secret)
    assert HIDDEN not in str(ujson.dumps({"a": str(secret)}))
    assert pickle.loads(pickle.dumps(secret)) == secret


def test_a_secret_is_read_where_it_is_when_it_is_needed(tmp_path, monkeypatch):
    path = tmp_path / "key"
    from_file, from_env = Secret({"file": str(path)}, "key"), secret_of({"a.password": {"env": "OURS"}}, "a.password")
    with pytest.raises(ConfigError, match=r"^key is in the file '.*key', which can't be read: No such file"):
        from_file.reveal()
    with pytest.raises(
        ConfigError, match=r"^a.password is in the environment variable OURS, which is not set; set it$"
    ):
        from_env.reveal()
    for text in ("first", "second"):
        path.write_text(f" {text}\n")
        monkeypatch.setenv("OURS", text)
        assert (from_file.reveal(), from_env.reveal()) == (text, text)
    path.write_bytes(b"\n")
    with pytest.raises(ConfigError, match="which is empty"):
        from_file.reveal()
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        from_file.reveal()
    with pytest.raises(ConfigError, match="larger than"):
        Secret({"file": "/dev/zero"}, "key").reveal()
    assert secret_of({}, "a") is None


@pytest.mark.parametrize(
    "value",
    [3, ["x"], {}, {"env": ""}, {"env": 3}, {"file": "relative"}, {"pw": HIDDEN}, {"env": HIDDEN, "file": HIDDEN}],
)
def test_what_is_neither_a_text_nor_a_place_is_refused_without_its_texts(value):
    with pytest.raises(ConfigError, match=r'write {"env": NAME}') as caught:
        Secret(value, "key")
    assert HIDDEN not in str(caught.value)


SETUP = {
    "conf": {"sasl.password": HIDDEN, "topology.name": "t", "config": json.dumps({"password": HIDDEN})},
    "pidDir": "/tmp",
    "context": {"taskid": 1, "task->component": {"1": "a"}, "componentid": "a", "streams": ["default"]},
}


def _feed(child, data, step):
    for at in range(0, len(data), step):
        child.receive_data(data[at : at + step])
    child.receive_data(b"")


@pytest.mark.parametrize("limit", [40, 150, 1 << 20])
@pytest.mark.parametrize("step", [1, 50, 1000])
def test_a_handshake_that_is_too_long_or_has_no_end_is_not_quoted(limit, step):
    data = ujson.dumps(SETUP).encode() + (b"\nend\n" if step == 1000 else b"")
    child = ChildConnection(limit)
    if len(data) < limit and step == 1000:
        child.receive_data(data)
        data = b'{"id": "a tuple that is quoted'
    with pytest.raises(RemoteProtocolError) as caught:
        _feed(child, data, step)
    assert "hunter2" not in str(caught.value)
    assert ("that is quoted" in str(caught.value)) == (step == 1000 and limit > 1000)


@given(st.data())
def test_no_handshake_error_tells_what_is_in_the_conf(data):
    """Bytes are lost, changed and added, and parts replaced, as in a conversation that broke."""
    setup = copy.deepcopy(SETUP)
    junk = st.sampled_from([None, 1, [], {}, HIDDEN, [HIDDEN], {"a": HIDDEN}])
    place = data.draw(st.sampled_from(["conf", "pidDir", "context", "taskid", "streams", "task->component", ""]))
    if place in setup:
        setup[place] = data.draw(junk)
    elif place:
        setup["context"][place] = data.draw(junk.filter(lambda value: HIDDEN not in str(value)))
    frame = bytearray(ujson.dumps(setup).encode())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        read_setup(bytes(frame))
    except RemoteProtocolError as error:
        assert "hunter2" not in str(error)  # noqa: PT017


TOPOLOGY = f"""
from multilang import Bolt, Spout, TopologyBuilder

class Numbers(Spout):
    component_conf = {{"sasl.password": "{HIDDEN}"}}

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
topology = builder.build("t", conf={{"shop.token": "{HIDDEN}", "place": "redis://a:{HIDDEN}@b", "topology.workers": 2}})
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_show_shows_no_secret(tmp_path, form):
    file = tmp_path / "t.py"
    file.write_text(TOPOLOGY)
    shown = multilang("show", file, "--format", form)
    assert shown.returncode == 0, shown.stderr
    assert HIDDEN not in shown.stdout
    assert "redis://a:***@b" in shown.stdout
    assert shown.stdout.count(MASK) == 3


LOUD = f"""
import logging, os
from multilang import Spout, TopologyBuilder

class Loud(Spout):
    output_fields = ["n"]

    def next_tuple(self):
        if os.path.exists(__file__ + ".said"):
            return
        open(__file__ + ".said", "w").close()
        self.report_error("no way to redis://me:{HIDDEN}/a@b with password={HIDDEN}")
        self.log("tried redis://me:{HIDDEN}/a@b", "info")
        logging.getLogger("theirs").warning("token: '{HIDDEN}'")
        raise ValueError("redis://me:{HIDDEN}/a@b refused password='{HIDDEN}'")

builder = TopologyBuilder()
builder.set_spout("token", Loud)
topology = builder.build("t")
"""


@pytest.mark.parametrize("mode", ["inprocess", "process"])
@pytest.mark.parametrize("options", [["--json", "-v"], ["-vv"], []])
def test_a_run_shows_no_secret_of_what_components_report_and_log(tmp_path, mode, options):
    file = tmp_path / "t.py"
    file.write_text(LOUD)
    shown = multilang("run", file, "--mode", mode, *options)
    assert "redis://me:***@b" in shown.stderr
    assert HIDDEN not in shown.stdout + shown.stderr
    if "--json" in options:
        assert "redis://me:***@b" in shown.stdout
        assert json.loads(shown.stdout)["components"]["token"]["component"] == "token"


def test_an_error_of_the_command_shows_no_secret(tmp_path):
    file = tmp_path / "t.py"
    file.write_text(TOPOLOGY.replace('"topology.workers": 2', f'"multilang.log.level": "redis://a:{HIDDEN}@b"'))
    shown = multilang("run", file)
    assert shown.returncode == 2  # the conf is refused
    assert "multilang.log.level is 'redis://a:***@b'; use one of" in shown.stderr
    assert HIDDEN not in shown.stderr
