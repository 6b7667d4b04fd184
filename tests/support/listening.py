"""Servers in threads of the tests' process, and how long anything is waited for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

PATIENCE = 300.0
"""Seconds after which what a test waits for has failed; a loaded machine may stall for a minute."""


@contextlib.contextmanager
def answering(server: ThreadingHTTPServer) -> Iterator[None]:
    """Let a server answer within the block, in threads of this process; it ends with it."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
