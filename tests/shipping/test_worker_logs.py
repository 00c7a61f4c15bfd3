"""The logs of workers, from a folder and from a server that answers as Storm's logviewer does."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote_plus, urlsplit

import pytest

from multilang.shipping.errors import NimbusError, UnreachableError
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
        with pytest.raises(NimbusError, match="does not show the log of worker 6701: HTTP 404"):
            tail_of_logviewer(WorkerPlace("127.0.0.1", 6701), id, port, 2)
    with pytest.raises(
        UnreachableError, match=f"no logviewer answers at http://127.0.0.1:{port} .*storm logviewer.*--folder"
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
        assert multilang("logs", "words", "-n", 1, "--folder", folder).stdout == expected
    none = multilang("logs", "nothing", "--folder", tmp_path)
    assert none.returncode == 2
    assert "holds no log of a topology 'nothing'" in none.stderr
