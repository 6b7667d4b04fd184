"""Pages from a loopback address: the phone in TypeScript, types stripped by Node, or any files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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
READ = (
    *("docs/vectors/*.json", "protocol/earshot_protocol/data/*"),
    *("client/web/page/texts/*.json", "tests/protocol/prio3_vectors.json"),
)
"""Files that tests read."""
OF_NODE = {
    '"node:test"': '"/tests/web/chromium/test.ts"',
    '"node:assert/strict"': '"/tests/web/chromium/assert.ts"',
}
"""Modules of Node that tests import, and what a browser has in their place."""
_TEXTS = {
    **dict.fromkeys((".ts", ".js"), "text/javascript"),
    "": "text/html",
    ".html": "text/html",
    ".css": "text/css",
    ".json": "application/json",
}


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
    files = {
        f"/{path.relative_to(ROOT).as_posix()}": path.read_bytes()
        for pattern in READ
        for path in ROOT.glob(pattern)
        if path.is_file()
    }
    files |= {path: text.encode() for path, text in scripts.items()}
    files["/"] = b"<!doctype html><link rel=icon href=data:,>"
    with hosted(files, f"{POLICY} {asked}") as address:
        yield address


def files_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder by the paths at which a host serves them; `/` is its page."""
    files = {
        f"/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {**files, "/": files["/index.html"]}


@contextlib.contextmanager
def hosted(
    files: Mapping[str, bytes], policy: str = "", moved: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Serve files by their paths, and nothing for a folder; the address, without a slash.

    Args:
        files: contents by path.
        policy: Content-Security-Policy of every response; none if it is empty.
        moved: paths that lead to another one.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path)
            target = (moved or {}).get(self.path)
            if target is not None:
                self.send_response(308)
                self.send_header("Location", target)
            else:
                self.send_response(404 if body is None else 200)
            text = _TEXTS.get(Path(self.path).suffix)
            kind = f"{text}; charset=utf-8" if text else "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body or b"")))
            if policy:
                self.send_header("Content-Security-Policy", policy)
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
