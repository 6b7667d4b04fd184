"""Whether this process lives, and whether it can serve; for load balancers."""

from __future__ import annotations

from flask import Blueprint, Response

from earshot_protocol.api import JSON
from earshot_server.store.database import Database

LIVE = "/health/live"
READY = "/health/ready"


def health(database: Database) -> Blueprint:
    """The two endpoints, to be mounted."""
    blueprint = Blueprint("health", __name__)

    @blueprint.get(LIVE)
    def live() -> Response:
        """The process answers."""
        return Response(b'{"status":"live"}', content_type=JSON)

    @blueprint.get(READY)
    def ready() -> Response:
        """The process answers and its database does."""
        database.check()
        return Response(b'{"status":"ready"}', content_type=JSON)

    return blueprint
