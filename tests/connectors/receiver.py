"""A server that takes what a WebhookSink sends."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """A server that notes what it gets, fails some, and counts how many came at once."""

    def __init__(self) -> None:
        self.got: list[object] = []
        self.heads: list[dict[str, str]] = []
        self.status: dict[object, list[int]] = {}
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.meet: threading.Barrier | None = None
        self.goes_on: threading.Event | None = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/in"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, handler) -> None:
        value = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if self.meet is not None:
            self.meet.wait(30)
        with self.lock:
            self.now -= 1
            left = self.status.get(str(value))
            status = left.pop(0) if left else 204
            if status == 204:
                self.got.append(value)
                self.heads.append(dict(handler.headers))
        handler.send_response(status)
        handler.send_header("Location", "/elsewhere")
        handler.end_headers()
        if self.goes_on is not None:
            handler.wfile.write(b"the beginning of an answer")
            self.goes_on.wait(60)
