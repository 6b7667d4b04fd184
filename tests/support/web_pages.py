"""The phone in TypeScript as a browser gets it: types stripped by Node, from a loopback address."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from support.node import PACKAGE, ROOT, TESTS, stripped

POLICY = "; ".join(
    (
        "default-src 'none'",
        "img-src data:",
        "script-src 'self'",
        "worker-src 'self'",
        "connect-src 'self'",
    )
)
"""The page's rules for its own scripts: no text becomes a script, no other host is asked."""
READ = ("/docs/vectors/", "/protocol/earshot_protocol/data/")
"""Folders whose files tests read."""
OF_NODE = {
    '"node:test"': '"/tests/web/chromium/test.ts"',
    '"node:assert/strict"': '"/tests/web/chromium/assert.ts"',
}
"""Modules of Node that tests import, and what a browser has in their place."""


@contextlib.contextmanager
def served(others: Mapping[str, str] | None = None, asked: str = "") -> Iterator[str]:
    """Serve the package, its tests and what they read, by their paths here, and an empty page.

    Args:
        others: scripts that are in no file, by their paths.
        asked: address of another server that pages may ask, if any.

    Returns:
        The address, without a slash.
    """
    scripts = {f"/{path}": text for path, text in stripped(PACKAGE, TESTS).items()}
    scripts |= others or {}
    for name, place in OF_NODE.items():
        scripts = {path: text.replace(name, place) for path, text in scripts.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/":
                self._say("text/html", b"<!doctype html><link rel=icon href=data:,>")
            elif self.path in scripts:
                self._say("text/javascript", scripts[self.path].encode())
            elif self.path.startswith(READ) and ".." not in self.path:
                self._say("application/octet-stream", (ROOT / self.path[1:]).read_bytes())
            else:
                self.send_error(404)

        def _say(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", f"{POLICY} {asked}")
            self.end_headers()
            self.wfile.write(body)

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
