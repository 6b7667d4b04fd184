"""What anybody may read: results, statistics, and how this API is called."""

from __future__ import annotations

import msgspec
from flask import Blueprint, Response

from earshot_protocol.api import JSON, OPENAPI, RESULTS, STATISTICS
from earshot_protocol.phases.learning import Result
from earshot_server.api import bodies
from earshot_server.api.openapi import document
from earshot_server.api.problems import UnknownPhaseError
from earshot_server.api.views import Histograms, Published, Results
from earshot_server.store.archive import Archive

CACHED_SECONDS = 60
"""What is published does not change; there is only more of it."""


class Public:
    """The public endpoints.

    Args:
        archive: the phases that are over.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._document = msgspec.json.encode(document())

    def blueprint(self) -> Blueprint:
        """The endpoints, to be mounted."""
        blueprint = Blueprint("public", __name__)
        blueprint.before_request(bodies.negotiate)
        blueprint.after_request(_cache)
        blueprint.add_url_rule(RESULTS, view_func=self.results)
        blueprint.add_url_rule(f"{RESULTS}/<phase:phase>", view_func=self.result)
        blueprint.add_url_rule(STATISTICS, view_func=self.statistics)
        blueprint.add_url_rule(OPENAPI, view_func=self.openapi)
        return blueprint

    def results(self) -> Response:
        """The newest results, in short."""
        listed = (
            Published(
                phase=record.phase.hex(),
                finished=record.finished or 0.0,
                environments=record.ending.centroids.rows,
                label_names=record.ending.label_names,
            )
            for record in self._archive.phases()
            if isinstance(record.ending, Result)
        )
        return bodies.respond(Results(results=tuple(listed)))

    def result(self, phase: bytes) -> Response:
        """One result."""
        record = self._archive.phase(phase)
        if record is None or not isinstance(record.ending, Result):
            raise UnknownPhaseError("no learning phase of this name has a result")
        return bodies.respond(record.ending)

    def statistics(self) -> Response:
        """The newest statistics."""
        return bodies.respond(Histograms(statistics=self._archive.statistics()))

    def openapi(self) -> Response:
        """This API, described."""
        return Response(self._document, content_type=JSON)


def _cache(response: Response) -> Response:
    if response.status_code == 200:
        response.headers["Cache-Control"] = f"public, max-age={CACHED_SECONDS}"
        response.headers["Vary"] = "Accept"
    return response
