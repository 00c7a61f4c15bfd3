"""An artifact that Maven can't get is named, with what to do."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from multilang.shipping.errors import ShippingError
from multilang.shipping.jar import merge
from multilang.shipping.maven import Artifact, fetch_jars


@pytest.mark.skipif(shutil.which("mvn") is None and "CI" not in os.environ, reason="there is no mvn here")
def test_an_artifact_that_can_not_be_resolved_is_named_with_what_to_do(tmp_path):
    said = r"of flux-core 2\.8\.3: org\.apache\.storm:flux:pom:2\.8\.3 is in none of its repositories; name another version, or"
    with pytest.raises(ShippingError, match=said):
        fetch_jars([Artifact("org.apache.storm", "flux-core", "2.8.3")], tmp_path)


def test_an_artifact_is_written_as_for_storm_jar() -> None:
    assert Artifact.of("org.apache.storm:storm-kafka-client:2.8.3^org.slf4j:slf4j-api^a:b") == Artifact(
        "org.apache.storm", "storm-kafka-client", "2.8.3", (("org.slf4j", "slf4j-api"), ("a", "b"))
    )
    assert "<exclusion><groupId>a</groupId><artifactId>b</artifactId></exclusion>" in Artifact.of("g:n:1^a:b").to_pom()


@pytest.mark.parametrize("text", ["storm-kafka-client", "g:n", "g:n:1:jar", "g:n:1^a", "g:n:<1>", ""])
def test_what_is_no_artifact_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ShippingError, match="names no artifact of Maven's: write GROUP:NAME:VERSION"):
        Artifact.of(text)


def test_jars_are_merged_with_the_services_of_all_and_the_signatures_of_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jar", tmp_path / "second.jar"
    for jar, name in ((first, "one"), (second, "two")):
        with zipfile.ZipFile(jar, "w") as archive:
            for file in ("META-INF/services/a.Service", "META-INF/LICENSE", "LICENSE", "module-info.class"):
                archive.writestr(file, name)
            archive.writestr(f"{name}.class", name)
            archive.writestr("META-INF/X.SF", name)
    files: dict[str, bytes] = {}
    for jar in (first, second):
        merge(files, jar)
    assert files == {
        "META-INF/services/a.Service": b"one\ntwo\n",
        "META-INF/LICENSE": b"one",
        "LICENSE": b"one",
        "one.class": b"one",
        "two.class": b"two",
    }
    with zipfile.ZipFile(second, "a") as archive:
        archive.writestr("one.class", "other")
    with pytest.raises(ShippingError, match=r"two jars have the file 'one\.class', .*second\.jar and one before it"):
        merge(files, second)
