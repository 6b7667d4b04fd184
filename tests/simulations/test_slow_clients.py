"""The probe beside slow clients: each that a server does not answer is counted."""

from __future__ import annotations

import threading
import time
from socketserver import BaseRequestHandler, TCPServer

from support.slow_clients import SlowClients


def test_a_server_that_hangs_up_is_never_taken_for_alive() -> None:
    # A handler that does nothing: each connection is closed at once.
    with TCPServer(("127.0.0.1", 0), BaseRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        host, port = server.server_address
        with SlowClients(f"http://{host!s}:{port}", 0) as clients:
            until = time.monotonic() + 30
            while clients.unanswered < 3 and time.monotonic() < until:
                time.sleep(0.05)
        server.shutdown()
        thread.join()
    assert clients.unanswered >= 3
    assert clients.alive == 0
