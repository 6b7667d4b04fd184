"""The dashboard over phases written by hand, served on a loopback port."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from flask import Flask
from werkzeug.serving import make_server

from earshot_server.dashboard.pages import blueprint
from support.dashboard_records import NOW, HandMadeArchive


def application(archive: HandMadeArchive) -> Flask:
    app = Flask("dashboard", static_folder=None)
    app.register_blueprint(blueprint(archive, lambda: NOW))
    return app


@contextlib.contextmanager
def served(app: Flask) -> Iterator[str]:
    """The address of an application, while it is served."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
