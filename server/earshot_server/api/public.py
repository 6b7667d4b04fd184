"""Public endpoints: results, statistics, and the description of this API."""

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
"""Seconds for which responses may be cached: published results never change, only new ones come."""


def public(archive: Archive) -> Blueprint:
    """Return the public endpoints.

    Args:
        archive: Archive of the phases.
    """
    blueprint = Blueprint("public", __name__)
    blueprint.before_request(bodies.negotiate)
    blueprint.after_request(_cache)
    described = _described()

    @blueprint.get(RESULTS)
    def results() -> Response:
        """List the newest results, without their content."""
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
        """Return one result."""
        record = archive.phase(phase)
        if record is None or not isinstance(record.ending, NamedCentroids):
            raise UnknownPhaseError("no phase of this name has found environments")
        return bodies.respond(record.ending)

    @blueprint.get(STATISTICS)
    def statistics() -> Response:
        """List the newest statistics."""
        return bodies.respond(Histograms(statistics=archive.statistics()))

    @blueprint.get(OPENAPI)
    def openapi() -> Response:
        """Return the description of this API."""
        return Response(described, content_type=JSON)

    return blueprint


@cache
def _described() -> bytes:
    """Return the description, built once per process: it takes most of an application's start."""
    return msgspec.json.encode(document())


def _cache(response: Response) -> Response:
    if response.status_code == 200:
        response.headers["Cache-Control"] = f"public, max-age={CACHED_SECONDS}"
        response.headers["Vary"] = "Accept"
    return response
