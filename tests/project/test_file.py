"""``multilang.toml``: what holds in an environment, where it comes from, and what is refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from multilang.component.errors import ConfigError
from multilang.project import FILE, find_project


def project(folder: Path, text: str):
    (folder / FILE).write_text(text, encoding="utf-8")
    found = find_project(folder)
    assert found is not None
    return found


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        project(folder, text)
    assert str(folder / FILE) in str(caught.value)
    return str(caught.value)


def test_a_file_in_another_encoding_is_refused_in_words(tmp_path) -> None:
    (tmp_path / FILE).write_bytes('name = "café"\n'.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"is not in UTF-8, as TOML is: .* at byte 11"):
        find_project(tmp_path)


LAYERS = ("", "[environments.prod]", "[environments.other]")


@pytest.mark.parametrize("given", list(product([False, True], repeat=3)))
def test_what_holds_is_the_strongest_section_that_gives_it_and_the_others_are_listed(tmp_path, given) -> None:
    texts = []
    for place, (layer, is_given) in enumerate(zip(LAYERS, given, strict=True)):
        conf = "[conf]" if not layer else f"{layer[:-1]}.conf]"
        texts.append(f'{layer}\nname = "{place}"\n{conf}\n"a.key" = {place}' if is_given else layer)
    settings = project(tmp_path, "\n".join(texts) + "\n[environments.prod.spark]").settings("prod")
    counting = [place for place in (1, 0) if given[place]]  # those of another environment never count
    origins = [FILE, f"{FILE} [environments.prod]"]
    for found, expected in ((settings.values.get("name"), str), (settings.conf.get("a.key"), int)):
        values = [] if found is None else [found, *found.over]
        assert [(each.value, each.origin) for each in values] == [(expected(n), origins[n]) for n in counting]


def test_a_project_is_found_from_a_folder_below_and_its_paths_begin_at_its_own(tmp_path) -> None:
    (tmp_path / "needed.txt").touch()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    own = project(tmp_path, 'topology = "src/top.py:small"\nrequirements = "needed.txt"')
    found = find_project(tmp_path / "deep" / "er")
    assert found is not None
    assert found.root == own.root == tmp_path
    settings = found.settings()
    assert settings.get("requirements") == str(tmp_path / "needed.txt")
    assert found.topology(settings) == f"{tmp_path / 'src' / 'top.py'}:small"


def test_the_files_own_environment_counts_where_none_is_named(tmp_path) -> None:
    text = 'environment = "dev"\n[environments.dev]\nname = "d"\n[environments.prod]\nname = "p"'
    own = project(tmp_path, text)
    assert [own.settings(name).get("name") for name in (None, "dev", "prod")] == ["d", "d", "p"]
    with pytest.raises(ConfigError, match=r"no environment 'prd'; did you mean 'prod'\?"):
        own.settings("prd")


def test_the_number_of_workers_is_storms_setting(tmp_path) -> None:
    settings = project(tmp_path, '[conf]\n"topology.workers" = 1\n[environments.prod]\nworkers = 3').settings("prod")
    assert settings.conf["topology.workers"].value == 3
    assert "are the same setting" in refusal(tmp_path, 'workers = 3\n[conf]\n"topology.workers" = 1')


SECRETS = {
    '"shop.password" = "hunter2"': 'shop.password is a secret.*"shop.password" = { env = "SHOP_PASSWORD" }',
    '"shop.url" = "redis://me:hunter2@host"': "shop.url has a secret in it",
    '"multilang.redis.access" = { user = "me", password = "hunter2" }': "multilang.redis.access has a secret in it",
    '"topology.worker.childopts" = "-Dpassword=hunter2"': "topology.worker.childopts has a secret in it",
}


@pytest.mark.parametrize("place", ["conf", "environments.prod.conf"])
@pytest.mark.parametrize("line", SECRETS)
def test_a_secret_that_is_given_by_its_value_is_refused_and_not_repeated(tmp_path, line, place) -> None:
    import re

    message = refusal(tmp_path, f"[{place}]\n{line}")
    assert re.search(SECRETS[line], message)
    assert "hunter2" not in message


def test_a_secret_is_given_by_its_place(tmp_path) -> None:
    text = '[conf]\n"shop.password" = { env = "P" }\n"multilang.redis.access" = { password = { file = "/run/p" } }'
    conf = project(tmp_path, text).settings().conf
    assert conf["shop.password"].value == {"env": "P"}
    assert conf["multilang.redis.access"].value == {"password": {"file": "/run/p"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topolgy = 'a'", "topolgy is read by nobody; did you mean 'topology'?"),
        ("[prod]\nnimbus = 'x'", "an environment is a section [environments.prod]"),
        ("[environments.prod]\nnimbus = 6627", "[environments.prod] nimbus is 6627; write a text, in quotes"),
        ("[conf]\ntopology.max.spout.pending = 3", 'write "topology.max.spout.pending" = 3'),
        ("[conf]\nshop.debug = true", 'write "shop.debug" = true'),
        ("[conf]\n'topology.worker' = 3", "did you mean 'topology.workers'?"),
        ("[conf]\n'topology.workers' = 'three'", "topology.workers is 'three'"),
        ("[conf]\n'a.day' = 2026-01-01", "a.day is a date"),
        ("requirements = 'none.txt'", "there is no "),
        ("include = 'data'", "write a list of texts"),
        ("mode = 'fast'", "write one of 'process', 'inprocess', 'simulated'"),
        ("environment = 'dev'", "add a section [environments.dev]"),
        ("[spark]\nmster = 'local'", "did you mean 'master'?"),
        ("topology = 'a", "is no valid TOML"),
        ("conf = 3", "[conf]"),
        ("environments = 3", "[environments.prod]"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_what_to_write(tmp_path, text, message) -> None:
    assert message in refusal(tmp_path, text)


def test_spark_has_settings_of_its_own(tmp_path) -> None:
    text = "[environments.prod.spark]\nmaster = 'local[2]'\nconf = { 'spark.ui.enabled' = true }"
    settings = project(tmp_path, text).settings("prod")
    assert settings.get("spark.master") == "local[2]"
    assert settings.get("spark.conf") == ["spark.ui.enabled=true"]
