"""The dashboard over phases written by hand, served on a loopback port."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import logging
import re
import threading
from collections.abc import Iterator

from flask import Flask
from werkzeug.serving import make_server

from earshot_server.dashboard.pages import blueprint
from earshot_server.records import PhaseRecord
from support.dashboard_records import NOW, HandMadeArchive
from support.hand_made_campaigns import HandMadeCampaigns

NO_CAMPAIGNS = HandMadeCampaigns()


def application(
    archive: HandMadeArchive, campaigns: HandMadeCampaigns = NO_CAMPAIGNS, now: float = NOW
) -> Flask:
    app = Flask("dashboard", static_folder=None)
    app.register_blueprint(blueprint(archive, campaigns, lambda: now))
    return app


PAGES = sorted(
    rule.rule
    for rule in application(HandMadeArchive(())).url_map.iter_rules()
    if rule.arguments <= {"name"} and not rule.rule.endswith(".csv")
)
"""Paths of all pages but a campaign's; `<name>` stands for a phase."""


def words(path: str, *records: PhaseRecord) -> str:
    """Return the text of a page over these phases, without tags."""
    response = application(HandMadeArchive(records)).test_client().get(path)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", response.text)))


def rows(record: PhaseRecord, table: str) -> list[dict[str, str]]:
    """Return the rows of one of a phase's CSV files."""
    client = application(HandMadeArchive([record])).test_client()
    response = client.get(f"/phases/{record.phase.hex()}/{table}.csv")
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(response.text.removeprefix("\ufeff"))))


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
