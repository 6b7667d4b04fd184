"""Metrics for Prometheus: requests that this server answered, and the content of its database."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from flask import Response, g, request

from earshot_server.api.shared_counts import SharedCounts

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

PATH = "/metrics"
_REQUESTS, _SECONDS, _PROBLEMS = "requests", "seconds", "problems"
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, math.inf)
"""Upper bounds of the histogram's buckets, in seconds."""


class Metrics:
    """Counts of requests, and the endpoint for Prometheus.

    Args:
        stored: Collector of metrics from the database.
        counts: Counts shared by all workers; by default those of a single process.
    """

    def __init__(self, stored: Collector, counts: SharedCounts | None = None) -> None:
        self._stored = stored
        self._counts = counts or SharedCounts()

    def count(self, status: int, seconds: float) -> None:
        """Count the present request."""
        # Clients choose paths and methods: unknown ones must not become labels.
        rule = request.url_rule
        endpoint, method = (rule.rule, request.method) if rule else ("none", "none")
        self._counts.add((_REQUESTS, method, endpoint, str(status)), (1,))
        classes = [0.0] * len(_BOUNDS)
        classes[bisect_left(_BOUNDS, seconds)] = 1
        self._counts.add((_SECONDS, endpoint), (*classes, seconds))
        if "problem" in g:
            self._counts.add((_PROBLEMS, g.problem), (1,))

    def describe(self) -> Iterator[Metric]:
        """Describe nothing, so that registering does not collect."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all requests that any worker has answered."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
        from prometheus_client.utils import floatToGoString

        requests = CounterMetricFamily(
            "earshot_requests", "Requests answered", labels=("method", "endpoint", "status")
        )
        seconds = HistogramMetricFamily(
            "earshot_request_seconds",
            "Seconds from a request's arrival to its response",
            labels=("endpoint",),
        )
        problems = CounterMetricFamily("earshot_problems", "Problems, by kind", labels=("kind",))
        for (what, *labels), (*numbers, last) in self._counts.totals().items():
            if what == _SECONDS:
                upto = zip(map(floatToGoString, _BOUNDS), accumulate(numbers), strict=True)
                seconds.add_metric(labels, list(upto), last)
            else:
                (requests if what == _REQUESTS else problems).add_metric(labels, last)
        yield from (requests, seconds, problems)

    def respond(self) -> Response:
        """Return all metrics, in Prometheus' text format."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self._stored)
        registry.register(self)
        return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
