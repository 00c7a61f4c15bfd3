"""The logs of workers, from a folder and from a server that answers as Storm's logviewer does."""

from __future__ import annotations

import threading
import unicodedata
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote_plus, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.helpers.masked import harmless
from multilang.shipping import worker_logs
from multilang.shipping.errors import ShippingError
from multilang.shipping.worker_logs import WorkerPlace, tail_of_logviewer
from tests.cli.command import multilang

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def logviewer(artifacts: Path) -> Iterator[int]:
    """LogviewerResource.downloadLogFile: the parameter ``file``, decoded once more, is a path below the artifacts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            path = artifacts / unquote_plus(parse_qs(asked.query)["file"][0])
            if asked.path != "/api/v1/download" or not path.is_file():
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.end_headers()
            self.wfile.write(path.read_bytes())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def write(folder: Path, id: str, port: int, text: str) -> None:
    (folder / id / str(port)).mkdir(parents=True)
    (folder / id / str(port) / "worker.log").write_text(text)


def test_the_last_lines_come_from_the_logviewer(tmp_path: Path) -> None:
    id = "50% & more+-1-1795241441"
    write(tmp_path, id, 6700, "one\ntwo\nünïcode\n")
    with logviewer(tmp_path) as port:
        assert tail_of_logviewer(WorkerPlace("127.0.0.1", 6700), id, port, 2) == ["two", "ünïcode"]
        with pytest.raises(ShippingError, match="does not show the log of worker 6701: HTTP 404"):
            tail_of_logviewer(WorkerPlace("127.0.0.1", 6701), id, port, 2)
    with pytest.raises(
        ShippingError, match=f"no logviewer answers at http://127.0.0.1:{port} .*storm logviewer.*--folder"
    ):
        tail_of_logviewer(WorkerPlace("127.0.0.1", 6700), id, port, 2)


def test_a_folder_is_enough_for_a_topology_that_has_ended(tmp_path: Path) -> None:
    artifacts = tmp_path / "workers-artifacts"
    write(artifacts, "words-1-100", 6700, "old\n")
    write(artifacts, "words-2-200", 6700, "one\ntwo\n")
    write(artifacts, "words-2-200", 6701, "three\n")
    write(artifacts, "words-more-3-300", 6700, "other\n")
    expected = "==> worker 6700 <==\ntwo\n==> worker 6701 <==\nthree\n"
    for folder in (tmp_path, artifacts):
        assert multilang("logs", "words", "--raw", "-n", 1, "--folder", folder).stdout == expected
    none = multilang("logs", "nothing", "--folder", tmp_path)
    assert none.returncode == 2
    assert "holds no log of a topology 'nothing'" in none.stderr


HOSTILE = "\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2J\x1b]0;title\x1b\\\x9b31m\u202ecod.exe\r\x08\x7f"


def test_a_log_moves_no_cursor_and_sets_no_clipboard(tmp_path: Path) -> None:
    write(tmp_path / "workers-artifacts", "t-1-5", 6700, f"first\n{HOSTILE}\n\ttabs and ünïcode ✓\n")
    for options in ((), ("--raw",)):
        shown = multilang("logs", "t", *options, "--folder", tmp_path)
        check_harmless(shown)


def check_harmless(shown) -> None:
    assert shown.returncode == 0, shown.stderr
    assert not {each for each in shown.stdout if unicodedata.category(each) in ("Cc", "Cf") and each not in "\n\t"}
    assert "\n\\x1b]52;c;cm0gLXJmIC8=\\x07\\x1b[2J" in shown.stdout
    assert "\n\ttabs and ünïcode ✓\n" in shown.stdout


def test_a_password_that_somebody_logged_is_not_shown(tmp_path: Path) -> None:
    lines = (
        "open redis://shop:hunter2@host/0",
        'conf {"sasl.password": "hunter2", "topic": "orders"}',
        "password=hunter2",
    )
    write(tmp_path / "workers-artifacts", "t-1-5", 6700, "".join(f"{line}\n" for line in lines))
    for options in ((), ("--raw",)):
        check_masked(multilang("logs", "t", *options, "--folder", tmp_path).stdout)


def check_masked(shown: str) -> None:
    assert "hunter2" not in shown
    assert "redis://shop:***@host/0" in shown
    assert '"topic": "orders"' in shown


@given(st.text())
def test_whatever_a_log_has_a_terminal_obeys_nothing(text: str) -> None:
    assert not {each for each in harmless(text) if unicodedata.category(each) == "Cc" and each not in "\n\t"}


def test_a_line_without_an_end_and_lines_without_an_end_take_a_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_logs, "MAX_SHOWN", 1_000_000)
    write(tmp_path, "t", 6700, "x" * 5_000_000)
    write(tmp_path, "t", 6701, "y" * 9 + "\n" + "y\n" * 100_000)
    with logviewer(tmp_path) as port:
        assert sum(map(len, tail_of_logviewer(WorkerPlace("127.0.0.1", 6700), "t", port, 10**9))) <= 1_000_000
        assert len(tail_of_logviewer(WorkerPlace("127.0.0.1", 6701), "t", port, 10**9)) == 100_001
        monkeypatch.setattr(worker_logs, "MAX_READ", 100_000)
        with pytest.raises(ShippingError, match="shows no log: the answer has more than 100000 bytes"):
            tail_of_logviewer(WorkerPlace("127.0.0.1", 6700), "t", port, 10)
