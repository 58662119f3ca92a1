"""A real HTTP server that answers as Prometheus does, or as it should not."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.watchdog import SECONDS


@contextmanager
def prometheus(body: object, *, code: int = 200, late: bool = False, head: dict[str, str] | None = None):
    """A server with one answer, or one that is too late; yields its address and the requests that it saw."""
    seen: list[str] = []
    over = threading.Event()

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            over.wait(SECONDS if late else 0)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(code)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **(head or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(data)
            except OSError:
                return  # the asker has gone away

        def log_message(self, *words: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/prom", seen
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def vector(*values: str) -> dict[str, object]:
    """As Prometheus answers an instant query."""
    series = [{"metric": {"gpu": str(number)}, "value": [1435781451.781, value]} for number, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": series}}
