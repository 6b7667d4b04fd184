"""Figures for Prometheus: requests that this server answered, and the content of its database.

Several workers answer for one server. Each writes its figures to files in a common folder, and
the worker that is asked adds them up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Response, g, request

from earshot_protocol.errors import WrongStateError

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

PATH = "/metrics"


class Metrics:
    """Counters of requests, and the endpoint for Prometheus.

    Args:
        stored: Collector of figures from the database.
        folder: Folder of the workers' figures, empty when the server starts; None for a single
            process.

    Raises:
        WrongStateError: Prometheus' client has already been loaded for a single process.
    """

    def __init__(self, stored: Collector, folder: Path | None = None) -> None:
        if folder is not None:
            # The client reads this once, when it is loaded.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        from prometheus_client import CollectorRegistry, Counter, Histogram, values

        if folder is not None and not values.ValueClass._multiprocess:
            raise WrongStateError("prometheus_client was loaded before its folder was known")
        self._stored = stored
        self._folder = folder
        self._own = CollectorRegistry()
        self._requests = Counter(
            "earshot_requests",
            "Requests answered",
            ("method", "endpoint", "status"),
            registry=self._own,
        )
        self._seconds = Histogram(
            "earshot_request_seconds",
            "Seconds from a request's arrival to its response",
            ("endpoint",),
            registry=self._own,
        )
        self._problems = Counter(
            "earshot_problems", "Problems, by kind", ("kind",), registry=self._own
        )

    def count(self, status: int, seconds: float) -> None:
        """Count the present request."""
        # Strangers choose paths and methods, but must not name our figures.
        rule = request.url_rule
        endpoint, method = (rule.rule, request.method) if rule else ("none", "none")
        self._requests.labels(method, endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)
        if "problem" in g:
            self._problems.labels(g.problem).inc()

    def respond(self) -> Response:
        """Return all figures, in Prometheus' text format."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        stored = CollectorRegistry()
        stored.register(self._stored)
        requests = self._own
        if self._folder is not None:
            requests = CollectorRegistry()
            MultiProcessCollector(requests, str(self._folder))  # type: ignore[no-untyped-call]
        return Response(
            generate_latest(stored) + generate_latest(requests), content_type=CONTENT_TYPE_LATEST
        )
