"""The tests of the phone's protocol in a real browser: the same files as in Node."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from playwright.sync_api import Page
from support.dashboard_browser import browser, overheard
from support.node import PACKAGE, ROOT, TESTS, stripped

SERVED = ("docs/vectors/", "protocol/earshot_protocol/data/")
FILES = sorted(TESTS.glob("*.test.ts"))
PAGE = """<!doctype html>
<link rel="icon" href="data:,">
<script type="importmap">
{"imports": {
  "node:test": "/tests/web/chromium/test.ts",
  "node:assert/strict": "/tests/web/chromium/assert.ts"
}}
</script>
"""


class Modules(BaseHTTPRequestHandler):
    """Serve the stripped modules, the vectors, the encoders and an empty page."""

    texts: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        path = self.path.lstrip("/")
        if path == "":
            self._say("text/html", PAGE.encode())
        elif path in self.texts:
            self._say("text/javascript", self.texts[path].encode())
        elif path.startswith(SERVED) and ".." not in path:
            self._say("application/octet-stream", (ROOT / path).read_bytes())
        else:
            self.send_error(404)

    def _say(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    Modules.texts = stripped(PACKAGE, TESTS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Modules)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with browser() as running:
            page = running.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            yield page
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_its_tests_pass_in_chromium(page: Page, path: Path) -> None:
    complaints, _ = overheard(page)
    found = page.evaluate(
        """async (file) => (await import("/tests/web/chromium/test.ts")).outcomes(file)""",
        f"/tests/web/{path.name}",
    )
    assert found["failed"] == []
    assert found["ran"] > 0
    assert complaints == []


def test_a_test_that_fails_is_noticed(page: Page) -> None:
    Modules.texts["tests/web/broken.ts"] = (
        'import assert from "node:assert/strict";\nimport { test } from "node:test";\n'
        'test("no", () => assert.equal(1, 2));\ntest("none", () => assert.throws(() => 1));\n'
        'test("yes", () => assert.deepEqual({ a: [1n] }, { a: [1n] }));\n'
        'test("deep", () => assert.deepEqual({ a: [0] }, { a: [-0] }));\n'
    )
    found = page.evaluate(
        """async (file) => (await import("/tests/web/chromium/test.ts")).outcomes(file)""",
        "/tests/web/broken.ts",
    )
    assert [failed.partition(":")[0] for failed in found["failed"]] == ["no", "none", "deep"]
