"""Jars from Maven, each with all that it needs."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Sequence

FETCH_LIMIT = 900  # seconds, for about 140 MB
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>on-this-machine</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_WORD = r"[A-Za-z0-9_.-]+"


@dataclass(frozen=True)
class Artifact:
    """Something that Maven has.

    Attributes:
        group: The group's id.
        name: The artifact's id.
        version: The version.
        without: What it needs by its own account, and that is to be left out, each as ``(group, name)``.
    """

    group: str
    name: str
    version: str
    without: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str) -> Artifact:
        """Return what a text names, in the form of ``storm jar --artifacts``: GROUP:NAME:VERSION^GROUP:NAME.

        Raises:
            ShippingError: The text has another form.
        """
        whole, *without = text.split("^")
        if not re.fullmatch(f"{_WORD}(:{_WORD}){{2}}", whole) or not all(
            re.fullmatch(f"{_WORD}:{_WORD}", each) for each in without
        ):
            raise ShippingError(
                f"{text!r} names no artifact of Maven's: write GROUP:NAME:VERSION, such as "
                "org.apache.storm:storm-kafka-client:2.8.3, and ^GROUP:NAME behind it for what is to be left out"
            )
        group, name, version = whole.split(":")
        return cls(group, name, version, tuple((each.split(":")[0], each.split(":")[1]) for each in without))

    def to_pom(self) -> str:
        """Return it as a dependency of a pom."""
        left_out = "".join(
            f"<exclusion><groupId>{escape(group)}</groupId><artifactId>{escape(name)}</artifactId></exclusion>"
            for group, name in self.without
        )
        return (
            f"    <dependency><groupId>{escape(self.group)}</groupId><artifactId>{escape(self.name)}</artifactId>"
            f"<version>{escape(self.version)}</version><exclusions>{left_out}</exclusions></dependency>"
        )


def fetch_jars(artifacts: Sequence[Artifact], folder: Path) -> None:
    """Fetch the jars of artifacts and of all that they need at run time from Maven.

    Args:
        artifacts: The artifacts.
        folder: The folder for the jars.

    Raises:
        ShippingError: Maven is not there, or can't get them.
    """
    names = ", ".join(f"{each.name} {each.version}" for each in artifacts)
    with tempfile.TemporaryDirectory(prefix="multilang-pom-") as name:
        pom = Path(name, "pom.xml")
        pom.write_text(_POM.format(dependencies="\n".join(each.to_pom() for each in artifacts)))
        command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "--file", str(pom), _GOAL]
        try:
            shown = subprocess.run(
                [*command, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=FETCH_LIMIT,
            )
        except FileNotFoundError:
            raise ShippingError(
                f"mvn not found: Maven gets the jars of {names} (Debian, Ubuntu: apt-get install maven; macOS: brew install maven)"
            ) from None
        except subprocess.TimeoutExpired:
            raise ShippingError(
                f"Maven did not get the jars of {names} in {FETCH_LIMIT} seconds; run it again, and it continues"
            ) from None
    if shown.returncode:
        output = "\n".join((shown.stdout + shown.stderr).strip().splitlines()[:12])
        missing = re.search(r"Could not find artifact (\S+)|(\S+) was not found in ", output)
        why = (
            f": {missing[1] or missing[2]} is in none of its repositories; name another version, or in ~/.m2/settings.xml a mirror that has it"
            if missing
            else ""
        )
        raise ShippingError(f"Maven could not get the jars of {names}{why}. Its output:\n{output}")
