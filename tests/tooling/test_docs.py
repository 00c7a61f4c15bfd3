"""The manual's Python runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from multilang.settings import REMOVED
from multilang.topology.conf import known

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KEY = re.compile(
    r"""["'`]((?:drpc|multilang|nimbus|storm|supervisor|topology|transactional)\.(?!pickle)[a-z.]+)["'`]"""
)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    namespace = {"__name__": f"page_{page.stem}"}
    for block in re.finditer(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
        # The line number in the page, so that a failure shows where it is.
        padding = "\n" * page.read_text(encoding="utf-8").count("\n", 0, block.start(1))
        exec(compile(padding + block[1], str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    found = [re.sub(r"[^\w\- ]", "", line.lower()) for line in re.findall(r"^#+ (.*)$", text, re.M)]
    return {line.strip().replace(" ", "-") for line in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_headings_that_links_name_are_there(page: Path) -> None:
    named = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    missing = [f"{file}#{name}" for file, name in named if name not in headings(page.parent / file if file else page)]
    assert missing == []


# What components find in their conf because Storm has it there too, without anything here that reads it.
NOT_OURS = {
    "executor.metrics.frequency.secs",
    "storm.cluster.mode",
    "storm.id",
    "topology.debug",
    "topology.name",
    "topology.stats.sample.rate",
    # What Nimbus adds to the conf of each submission.
    "storm.version",
    "topology.submitter.principal",
    "topology.submitter.user",
}

FILES = {
    "drpc.thrift",
    "multilang.toml",
    "nimbus.log",
    "nimbus.thrift",
    "storm.yaml",
    "transactional.py",
    "storm.py",
    "topology.yaml",
}


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file() or path.parent.with_suffix(".py").is_file()


def test_every_key_that_the_code_reads_is_in_the_table_of_configuration() -> None:
    # The storm.yaml of a cluster on this machine, which Storm reads; what the conformance tester says as a parent.
    # And the checks of what Storm reads.
    written = {ROOT / "multilang" / "shipping" / "cluster", ROOT / "multilang" / "conformance"}
    checks = ROOT / "multilang" / "topology" / "conf.py"
    files = [path for path in (ROOT / "multilang").rglob("*.py") if written.isdisjoint(path.parents) and path != checks]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    read = (
        {key for key in KEY.findall(code) if key in known() or not is_module(key)} - NOT_OURS - FILES - REMOVED.keys()
    )
    read.add("topology.ackers")  # which the checks take for today's name
    assert read == set(re.findall(r"^\| `([a-z.]+)`", page, re.M))


def test_the_tables_of_configuration_are_those_that_the_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "settings_table.py"))
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert script["with_tables"](page) == page


def test_the_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text)
    assert len(named) > 20
    assert [each for each in named if not any((home / each).exists() for home in (ROOT, ROOT / "multilang"))] == []


def test_the_picture_of_the_architecture_is_the_folder_tree() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.split("```")[1]
    shown = {folder for line in picture.splitlines() for folder in re.findall(r"([a-z_]+)/", line)}
    there = {"multilang", "spark_bridge"}
    there |= {each.parent.name for top in ("multilang", "spark_bridge") for each in (ROOT / top).glob("*/__init__.py")}
    assert shown == there
