"""The phone in TypeScript as a browser gets it: types stripped by Node, from a loopback address."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from support.node import PACKAGE, ROOT, stripped

POLICY = "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'"
"""The page's rules for its own scripts: no text becomes a script, no other host is asked."""


@contextlib.contextmanager
def served(others: Mapping[str, bytes], asked: str = "") -> Iterator[str]:
    """Serve the scripts, an empty page and other files; the address, without a slash.

    Args:
        others: files by their paths.
        asked: address of another server that pages may ask, if any.
    """
    root = PACKAGE.relative_to(ROOT).as_posix()
    scripts = {path.removeprefix(root): text.encode() for path, text in stripped(PACKAGE).items()}
    files = {"/": b"<!doctype html><title>Earshot</title>", **scripts, **others}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            kind = "text/javascript" if self.path.endswith(".ts") else "application/octet-stream"
            self.send_header("Content-Type", "text/html" if self.path == "/" else kind)
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Content-Security-Policy", f"{POLICY} {asked}")
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
