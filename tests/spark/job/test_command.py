"""``multilang spark``, run as its user does: as a program."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.cli import command
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.spark.stream.conftest import state_of

SENTENCES = ["the cow jumped over the moon", "an apple a day", "the moon"] * 30
COUNTS = Counter(word for sentence in SENTENCES for word in sentence.split())
COMPONENTS = Path(__file__).with_name("topologies.py")
# Each starts a JVM and Python workers, and the machine may be busy.
multilang = partial(command.multilang, limit=patient(400))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "a book [1].txt"  # Spark takes some signs for patterns
    file.write_text("\n".join(SENTENCES) + "\n")
    return file


pytestmark = pytest.mark.usefixtures("spark_programs")


def has_traceback(text: str) -> bool:
    """Return whether a traceback of the command itself is shown.

    Spark's worker may begin to print its own when it is ended.
    """
    return re.search(r"Traceback .*\n  File .*(multilang|spark_bridge)", text) is not None


def test_it_runs_the_example_and_writes_what_came_out(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "out [1]"
    arguments = ("--source", f"sentences={text}", "--master", "local[2]", "--output", output)
    shown = multilang("spark", "examples/word_count.py", *arguments)
    assert shown.returncode == 0, shown.stderr
    assert "90 tuples acked" in shown.stdout
    assert not has_traceback(shown.stderr)
    rows = [json.loads(line) for file in (output / "count").glob("part-*") for line in file.read_text().splitlines()]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["word"]] = max(row["count"], counts.get(row["word"], 0))
    assert counts == COUNTS

    again = multilang("spark", "examples/word_count.py", *arguments)
    assert again.returncode == 2
    assert "the folder is not empty; name another, or add --overwrite" in again.stderr


@soak_only
def test_a_file_that_spark_cannot_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("this is no parquet")
    shown = multilang("spark", "examples/word_count.py", "--source", f"sentences={broken}", "--master", "local[1]")
    assert shown.returncode == 4, shown.stderr
    assert "broken.parquet" in shown.stderr
    assert not has_traceback(shown.stderr)


@soak_only
def test_what_failed_is_named_and_the_status_says_so(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("n,key\n" + "".join(f"{n},k{n % 3}\n" for n in range(20)))
    shown = multilang(
        "spark", f"{COMPONENTS}:failing", "--source", f"rows={rows}", "--master", "local[2]", "--max-replays", "1",
        "-c", "test.fail=[7]", "-c", "test.times=[99]",
    )  # fmt: skip
    assert shown.returncode == 1, shown.stderr
    assert "19 tuples acked" in shown.stdout
    assert "failed at every attempt: 'rows' (0, 7): ['k1', 7]" in shown.stdout
    assert "ValueError in component 'fails'" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--source", "sentences=no-such-file"], "there is no no-such-file"),
        (["--source", "sentences"], "'sentences' is not SPOUT=FILE"),
        (["--source", "sentence={text}"], "'sentence' is no component of topology 'word-count'"),
        (["--source", "sentences={text}", "--limit", "sentences=many"], "'many' is not a number of tuples"),
        (["--source", "sentences={text}", "--master", "local[x]"], "'local[x]' is no master of Spark's: use local[2]"),
        pytest.param(
            ["--source", "sentences={text}", "--master", "locl[2]"],
            "'locl[2]' is no master of Spark's: use local[2]",
            marks=soak_only,
        ),
        pytest.param(  # after Spark was started
            ["--source", "sentences={text}", "--keep", "cuont"],
            "there is no stream 'cuont'; did you mean 'count'?",
            marks=soak_only,
        ),
    ],
)
def test_mistakes_are_named(text: Path, arguments: list[str], said: str) -> None:
    shown = multilang(
        "spark", "examples/word_count.py", "--master", "local[1]", *[a.format(text=text) for a in arguments]
    )
    assert shown.returncode == 2, shown.stderr
    assert said in shown.stderr
    assert not has_traceback(shown.stderr)


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("fifo", os.mkfifo, "is a pipe, which can be read once"),
        (
            "words",
            lambda path: write(path, b"\x7fELF\0\0"),
            "words is not text (byte 0 at offset 4); give text in UTF-8",
        ),
        ("words.txt", lambda path: write(path, "Käse".encode("latin-1")), "byte 0xe4 at offset 1 is not UTF-8"),
        ("rows", lambda path: write(path, b"PAR1\x15\0"), "it begins as a file whose name ends in .parquet: rename it"),
        ("rows.csv", lambda path: write(path, b"\x1f\x8b\x08\0"), "whose name ends in .gz"),
        ("rows.csv", os.mkdir, None),
        ("words.gz", lambda path: write(path, gzip.compress(b"a b")), None),
        ("words", lambda path: write(path, "a€".encode() * 5000), None),
    ],
)
def test_a_source_that_is_not_what_its_name_says_is_told(tmp_path: Path, name: str, make, said: str | None) -> None:
    make(tmp_path / name)
    source = f"sentences={tmp_path / name}"
    # Sources are looked at first: 69 says that then there was no Java.
    shown = multilang("spark", "examples/word_count.py", "--source", source, PATH="/nowhere", JAVA_HOME="")
    assert shown.returncode == (69 if said is None else 2), shown.stderr
    assert said is None or (f"--source {source}: " in shown.stderr and said in shown.stderr)
    assert not has_traceback(shown.stderr)


@soak_only
def test_rows_may_be_compressed(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl.gz"
    rows.write_bytes(gzip.compress(b"".join(b'{"sentence": "a b"}\n' for _ in range(5))))
    shown = multilang("spark", "examples/word_count.py", "--source", f"sentences={rows}", "--master", "local[1]")
    assert shown.returncode == 0, shown.stderr
    assert "5 tuples acked" in shown.stdout


def test_sources_are_looked_at_before_spark_is(text: Path) -> None:
    for source, status in ((f"sentence={text}", 2), (f"sentences={text}", 69)):
        shown = multilang("spark", "examples/word_count.py", "--source", source, PATH="/nowhere", JAVA_HOME="")
        assert shown.returncode == status, shown.stderr  # 69: there is no Java


def test_it_streams_what_comes_into_a_folder_and_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    arguments = ("--source", f"sentences={folder}", "--master", "local[2]", "--checkpoint", tmp_path / "checkpoint")
    arguments += ("--state", tmp_path / "state", "--output", tmp_path / "out", "--stream", "--once", "--json")
    # A query that goes on is in stream/test_query.py, in one JVM: here each run starts one.
    batches = [SENTENCES[:60], SENTENCES[60:]] if SOAK else [SENTENCES]
    for number, batch in enumerate(batches):
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in batch))
        shown = multilang("spark", "examples/stateful_word_count.py", *arguments)
        assert shown.returncode == 0, shown.stderr
        [told] = map(json.loads, shown.stdout.splitlines())
        assert (told["batch"], told["rows"], told["acked"], told["lost"]) == (number, len(batch), len(batch), 0)
        assert f"batch {number}: {len(batch)} rows in" in shown.stderr
    assert state_of(tmp_path / "state") == COUNTS
    last = [
        line
        for file in (tmp_path / "out" / "count" / f"batch={number:06}").glob("part-*")
        for line in file.read_text().splitlines()
    ]
    assert len(last) == sum(len(sentence.split()) for sentence in batch)


def test_options_of_streaming_queries_are_told_apart(tmp_path: Path) -> None:
    output = tmp_path / "count"
    output.mkdir()  # as of an earlier query
    anew = ("--stream", "--checkpoint", str(tmp_path / "new"), "--output", str(tmp_path))
    written_over = multilang("spark", "examples/word_count.py", "--source", f"sentences={output}", *anew)
    assert (written_over.returncode, "the folder is not empty" in written_over.stderr) == (2, True)
    alone = multilang("spark", "examples/word_count.py", "--stream")
    assert (alone.returncode, "add --checkpoint DIR" in alone.stderr) == (2, True)
    (output / "lines.txt").touch()
    file = multilang("spark", "examples/word_count.py", "--source", f"sentences={output}/lines.txt", *anew)
    assert (file.returncode, "is a file; with --stream name the folder" in file.stderr) == (2, True)
    bounded = multilang("spark", "examples/word_count.py", "--once")
    assert (bounded.returncode, "are for --stream" in bounded.stderr) == (2, True)
