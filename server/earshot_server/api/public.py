"""What anybody may read: results, statistics, and how this API is called."""

from __future__ import annotations

from functools import cache

import msgspec
from flask import Blueprint, Response

from earshot_protocol.api import JSON, OPENAPI, RESULTS, STATISTICS
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_server.api import bodies
from earshot_server.api.openapi import document
from earshot_server.api.problems import UnknownPhaseError
from earshot_server.api.views import Histograms, Published, Results
from earshot_server.store.archive import Archive

CACHED_SECONDS = 60
"""What is published does not change; there is only more of it."""


def public(archive: Archive) -> Blueprint:
    """The public endpoints, to be mounted.

    Args:
        archive: the phases that are over.
    """
    blueprint = Blueprint("public", __name__)
    blueprint.before_request(bodies.negotiate)
    blueprint.after_request(_cache)
    described = _described()

    @blueprint.get(RESULTS)
    def results() -> Response:
        """The newest results, in short."""
        listed = (
            Published(
                phase=record.phase.hex(),
                finished=record.finished or 0.0,
                environments=len(set(record.ending.environments)),
                named=record.ending.named,
                label_names=record.ending.label_names,
                name=record.name,
            )
            for record in archive.phases()
            if isinstance(record.ending, NamedCentroids)
        )
        return bodies.respond(Results(results=tuple(listed)))

    @blueprint.get(f"{RESULTS}/<phase:phase>")
    def result(phase: bytes) -> Response:
        """One result."""
        record = archive.phase(phase)
        if record is None or not isinstance(record.ending, NamedCentroids):
            raise UnknownPhaseError("no phase of this name has found environments")
        return bodies.respond(record.ending)

    @blueprint.get(STATISTICS)
    def statistics() -> Response:
        """The newest statistics."""
        return bodies.respond(Histograms(statistics=archive.statistics()))

    @blueprint.get(OPENAPI)
    def openapi() -> Response:
        """This API, described."""
        return Response(described, content_type=JSON)

    return blueprint


@cache
def _described() -> bytes:
    """The same in every application of a process, of which it would be most of the making."""
    return msgspec.json.encode(document())


def _cache(response: Response) -> Response:
    if response.status_code == 200:
        response.headers["Cache-Control"] = f"public, max-age={CACHED_SECONDS}"
        response.headers["Vary"] = "Accept"
    return response
