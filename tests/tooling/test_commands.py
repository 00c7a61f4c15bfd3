"""The manual's commands are commands: each name and each option of each line is there, and the tutorial's shorter ones run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from multilang.cli.app import app
from tests.cli.command import multilang

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINE = re.compile(r"^ *(?:\$ )?multilang (.*)$")


def commands_of(page: Path) -> Iterator[tuple[int, list[str]]]:
    """The words of each command line of a page, with the line's number: those of blocks, and whole ones within a text."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        found = LINE.match(line) if fenced or line.startswith("    ") else None
        if found is not None:
            yield number, shlex.split(found[1], comments=True)
        elif not fenced and not line.startswith("    "):
            for inline in re.findall(r"`multilang ([^`]*)`", line):
                yield number, shlex.split(inline)


def check(words: list[str]) -> None:
    """Raise click's UsageError for an option or a command that there is not."""
    command: click.Command = app
    context = click.Context(app, info_name="multilang")
    rest = list(words)
    while isinstance(command, click.Group) and rest:
        if "auto" in command.commands and rest[0] not in (*command.commands, "--help"):
            rest.insert(0, "auto")  # as multilang conformance does
        if rest[0].startswith("-"):
            break
        names = rest.pop(0).rstrip(",")
        found = command.get_command(context, names)
        if found is None:
            raise click.UsageError(f"multilang has no command {names!r}")
        command, context = found, click.Context(found, parent=context, info_name=names)
    try:
        command.make_parser(context).parse_args([word for word in rest if word != "..."])
    except click.BadOptionUsage as error:
        if "requires" not in error.message:  # a text names an option alone
            raise


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_one_with_these_options(page: Path) -> None:
    wrong = []
    for number, words in commands_of(page):
        try:
            check(words)
        except click.UsageError as error:
            wrong.append(f"{page.name}:{number}: multilang {' '.join(words)}: {error.format_message()}")
    assert wrong == []


def test_a_command_that_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    multilang deploy -e prod --bluegreen\n\nand `multilang stat`, `multilang run --watch`.\n")
    said = []
    for _, words in commands_of(page):
        try:
            check(words)
        except click.UsageError as error:
            said.append(error.format_message())
    assert len(said) == 2
    assert "'--bluegreen'" in said[0]
    assert said[1] == "multilang has no command 'stat'"


def files_of_the_tutorial() -> list[tuple[str, str]]:
    """The name and the text of each file that the tutorial writes, in their order."""
    text = TUTORIAL.read_text(encoding="utf-8")
    return [(match[1], match[2]) for match in re.finditer(r"^```python\n# (\S+\.py)\n(.*?)^```", text, re.S | re.M)]


def test_what_the_tutorial_writes_and_runs_shows_what_it_says(tmp_path: Path) -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    tried = 0
    for name, source in files_of_the_tutorial():
        (tmp_path / name).write_text(source)
        after = text[text.index(source) :]
        command = re.search(rf"^    multilang (run {name} .*)$", after, re.M)
        assert command is not None
        shown = multilang(*shlex.split(command[1]), "-q", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        wanted = re.search(r"^```text\n(.*?)^```", after[command.end() :], re.S | re.M)
        assert wanted is not None
        table = [line.split() for line in wanted[1].splitlines()]
        assert [line.split() for line in shown.stdout.splitlines()][: len(table)] == table
        tried += 1
    assert tried == 2
